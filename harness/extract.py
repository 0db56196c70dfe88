r"""Find the answer that a reply gives: an integer, a letter, an expression, a short text, a program.

One reader for grading, for rewards and for voting. What counts as an answer:

- A statement is a box, an `<answer>` tag, a label with its value ("Answer: C", "the answer is 70")
  or a letter that is said to be correct. What is denied, supposed or quoted states nothing.
- The last statement counts, wherever the ones before it stand: a final statement outranks working.
- Statements that stand together (nothing between them decides) and differ are a hedge: no answer.
- A statement that is taken back, with none after it, is no answer; nor is one that goes on ("70 or
  71", "70 thousand").
- Without any statement, the reply's conclusion counts ("Therefore m+n = 70.", a last line "**C**"),
  or a reply that is nothing but an answer. An arbitrary last number or letter is never an answer.
- What was said after thinking counts; inside thinking only boxes, tags and answer lines do.

Every rule is linear in the length of the reply. Whether an answer is right is decided in suites/.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Final, Literal, TypeVar

from harness.records import Kind

TAIL = 4000
"""Characters at the end of a reply in which labels and conclusions are looked for."""
MOST_BOXES = 10
"""Boxes that are looked at, from the end."""
LONGEST = 400
"""Characters of a value behind a label."""

Form = Literal["box", "tag", "line", "sentence"]
ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Statement:
    """A place in a reply that gives an answer."""

    form: Form
    start: int
    end: int
    text: str
    """What it gives, as it is written."""
    more: str = ""
    """What follows a box in its sentence; the rest of the line of a label."""
    value: int = 0
    """Where the value behind a label begins."""


class _Unclear(Enum):
    UNCLEAR = 0


UNCLEAR: Final = _Unclear.UNCLEAR
"""What a statement reads as that names several answers, or none of those that can be."""


def extract_integer(reply: str) -> int | None:
    r"""Return the integer that the reply gives as its answer, or None.

    It may lie outside 0-999: that is for the grader.

    >>> extract_integer(r"Hence \boxed{\text{070}}. There are 3 cases."), extract_integer("Answer: 7,0")
    (70, None)
    """
    return _answer(reply, ANSWERS, _read_integer, _conclusion_integer)


def extract_choice(reply: str, choices: Sequence[str] = (), letters: str = "ABCD") -> str | None:
    r"""Return the letter that the reply gives, or that of the one option whose text it gives.

    Letters are Latin: the place of a Cyrillic or Arabic one in its alphabet and its looks point to
    different options.

    >>> extract_choice("**Answer: $B$**"), extract_choice("Answer: Because")
    ('B', None)
    """
    reader = _Choices(tuple(choices), letters)
    return _answer(_folded(reply), CHOICES, reader.read, reader.conclusion, reader.said_correct)


def extract_expressions(reply: str) -> tuple[str, ...]:
    r"""Return the LaTeX or text that the reply gives; several where statements stand together.

    Whether several are one answer in two forms, a list or a hedge is for the grader.

    >>> extract_expressions(r"Not \boxed{3}. So $x=\boxed{1}$ or $x=\boxed{-2}$.")
    ('1', '-2')
    >>> extract_expressions("The answer is $7$. Wait, that is wrong.")
    ()
    """
    said = _answer(reply, ANSWERS, _read_expressions, _conclusion_expression, together=True)
    return said or ()


def extract_expression(reply: str) -> str | None:
    """Return the last expression that the reply gives, or None."""
    said = extract_expressions(reply)
    return said[-1] if said else None


def extract_texts(reply: str) -> tuple[str, ...]:
    """Return the short text that the reply gives; several where statements stand together."""
    return _answer(reply, ANSWERS, _read_text, _conclusion_expression, together=True) or ()


def extract_program(reply: str) -> str | None:
    """Return the program in the reply: its last complete fenced block, Python preferred, or None.

    LiveCodeBench (lcb_runner/utils/extraction_utils.py) takes the text between the last two lines
    that contain a fence. We differ on purpose where that is not a program: a block tagged
    `output` after the program does not hide it, and the prose between two blocks of a cut-off
    reply is never run.
    """
    thinking, said, _ = parted(reply)
    found = _fenced_program(said)
    if found is None and last_box(said) is None and thinking:
        found = _fenced_program(thinking)
    return found


def normalised(kind: Kind, reply: str) -> str | None:
    """Return the answer in the form in which two replies agree, or None; used for voting."""
    if kind == "integer":
        number = extract_integer(reply)
        return None if number is None else str(number)
    if kind == "choice":
        return extract_choice(reply)
    if kind == "program":
        program = extract_program(reply)
        return None if program is None else program.rstrip()
    return extract_expression(reply) or reply.strip() or None


# --- the rule -----------------------------------------------------------------------------------


def _answer(
    reply: str,
    labels: "_Labels",
    read: Callable[[Statement], ValueT | _Unclear | None],
    conclusion: Callable[[str], ValueT | _Unclear | None],
    others: Callable[[str, int], list[Statement]] | None = None,
    *,
    together: bool = False,
) -> ValueT | None:
    """Return the value of the last statement that counts, or of the conclusion."""
    thinking, said, cut_off = parted(reply)
    base = max(0, len(said) - TAIL)
    found = _statements(said, labels)
    if others and not cut_off:
        found = _outermost_last(
            said, sorted([*found, *others(said, base)], key=lambda one: one.start)
        )
    if cut_off:
        found = [one for one in found if one.form != "sentence"]
    value = _decided(said, found, read, together)
    if value is None and not cut_off:
        stated = max((one.end for one in found if read(one) is not None), default=0)
        value = conclusion(said[max(base, stated) :])
    if value is None and thinking and not _GIVES_UP.search(said):
        inside = [one for one in _statements(thinking, labels) if one.form != "sentence"]
        value = _decided(thinking, inside, read, together)
    return None if isinstance(value, _Unclear) else value


_GIVES_UP = re.compile(
    r"\b(?:could\s+not|cannot|can['\u2019]t|unable|sorry|do(?:n['\u2019]t|\s+not)\s+know)\b", re.I
)


def _decided(
    said: str,
    statements: Sequence[Statement],
    read: Callable[[Statement], ValueT | _Unclear | None],
    together: bool,
) -> ValueT | _Unclear | None:
    """Return what the last statement says, unclear where it is taken back or hedged."""
    read_so: list[tuple[Statement, ValueT | _Unclear]] = []
    for one in reversed(statements):
        value = read(one)
        if value is None or _denied(said, one):
            continue
        if read_so and not _stand_together(said, one, read_so[-1][0]):
            break
        read_so.append((one, value))
    if not read_so:
        return None
    last, value = read_so[0]
    if _taken_back(said, last) or any(isinstance(other, _Unclear) for _, other in read_so):
        return UNCLEAR
    if together:
        every = [part for _, other in reversed(read_so) for part in other]  # type: ignore[union-attr]
        return tuple(dict.fromkeys(every))  # type: ignore[return-value]
    return value if all(other == value for _, other in read_so) else UNCLEAR


_SENTENCE = re.compile(
    r".*(?:[.!?][\"'\u201d\u2019)\]*$]*\s|\b(?:so|thus|therefore|hence)\b)", re.I
)
_CLAUSE = re.compile(r".*(?:[,;:]|\b(?:and|but|because)\b)", re.I)
_SUPPOSED = re.compile(r"(?<!even )\b(?:if|suppose|assum(?:e|ing)|unless|had|according\s+to\s+(?:an?|some|my|one))\b", re.I)
_NOT_SAID = re.compile(
    r"\b(?:not|never|cannot|wrong|incorrect|false|might|may|could|would\s+be|whether|doubt|unlikely"
    r"|thinks|thought|says|said|untrue|claims?|claimed|believes|to\s+say|(?<!\bI )(?<!\bwe )think)\b"
    r"|\b(?:some|many|most|people|others|they)\s+(?:say|argue|believe)\b|\bno\s+way\b"
    r"|n['\u2019]t\b",
    re.I,
)
"""Before a statement in its clause: it is denied, only possible, or somebody else's."""
_NOT_BOXED = re.compile(
    r"(?:\b(?:not|never|instead\s+of|rather\s+than|(?:mistake|wrong|incorrect)\s+to\s+\w+)[\s$*(]*|~~[\s$*]*)$",
    re.I,
)
_OR_BOXED = re.compile(r"[\d}$)\w]\s*\$?,?\s*(?:\\text\{\s*)?\bor\b[\s$*}(]*$", re.I)
_WRONG = (
    r"(?:(?:is|was|are|seems|looks|must\s+be|would\s+be)\s+(?:\w+ly\s+)?(?:wrong|incorrect|false"
    r"|mistaken|impossible|not\s+(?:\w+\s+){0,2}(?:correct|right|answer|true|possible|valid))"
    r"|(?:isn|wasn)['\u2019]t\s+(?:\w+\s+){0,2}(?:correct|right|answer|true|possible|valid)"
    r"|can(?:not|['\u2019]t)\s+be\s+(?:\w+\s+)?(?:correct|right|true))\b"
)
_IT = r"(?:this|that|it|which|(?:my|the|that|this)\s+(?:answer|result|value|choice|option))"
_WRONG_ELSEWHERE = (
    r"\b(?:das|dies|cela|c['\u2019]est|es|eso|esto|isso|questo)\b[^.\n]{0,20}\b(?:falsch|faux|incorrect[oe]"
    r"|falso|errad[oa]|errat[oa]|sbagliat[oa]|err\u00f3neo)\b"
    r"|(?:\u8fd9|\u4e0a\u9762|\u7b54\u6848)[^\u3002\n]{0,8}(?:\u9519|\u4e0d\u5bf9|\u4e0d\u6b63\u786e)"
)
_DENIES = re.compile(
    rf"^[\W_]*(?:text\w*\s*\{{\s*)?{_WRONG}|\b{_IT}\s+{_WRONG}|{_WRONG_ELSEWHERE}", re.I
)
_FOLLOWING_WRONG = re.compile(rf"\bfollowing\s+(?:\w+\s+)?{_WRONG}", re.I)
"""Behind a statement in its sentence, or in the next one: it is wrong."""
_OR_ELSE = re.compile(r"[\W_]*(?:alternatively|(?:or\s+)?(?:maybe|perhaps|possibly))\b", re.I)
_TAKES_BACK = re.compile(
    r"\b(?:no,?\s+)?(?:wait|hmm+|hold\s+on|oops|whoops)\b\s*(?:[,.!?:\u2026\u2013\u2014-]|that|this)"
    r"|\bscratch\s+that\b|\bon\s+second\s+thoughts?\b|\bnever\s?mind\b"
    r"|\b(?:disregard|ignore)\s+(?:that|this|my|the\s+(?:above|(?:\w+\s+)?(?:answer|result)))\b"
    r"|\bI\s+(?:have\s+|must\s+have\s+|just\s+)?(?:made|see|found|spot\w*|notic\w*)\s+(?:an?|my|the)\s+"
    r"(?:\w+\s+)?(?:mistake|error|slip)\b|\bI\s+(?:was|am)\s+(?:wrong|mistaken)\b"
    r"|\bI\s+(?:have\s+)?(?:retract|withdraw|withdrew|misread|miscounted|miscalculated)\b"
    r"|\bI\s+take\s+(?:that|it|this)\s+back\b|\bboth\s+(?:are|seem|could\s+be)\s+(?:acceptable|possible|plausible)\b"
    r"|\blet\s+me\s+(?:re-?(?!port|mind|cap|mark|peat|state|iter|phrase|write|view|mem)\w+|think\s+again"
    r"|check\s+again|try\s+again|start\s+over)\b"
    rf"|\b(?:my|the|that)\s+(?:(?:above|previous|final|last|first)\s+)?(?:answer|result)"
    rf"(?:\s+above)?\s+{_WRONG}",
    re.I,
)
_CONFIRMS = re.compile(
    r"\b(?:yes|indeed|confirm\w*|(?<!not )(?<!n't )correct|checks?\s+out|holds|stands|matches"
    r"|consistent|verified|(?<!not )fine|(?<!not )right)\b|\u2713|\u2714|\u2705",
    re.I,
)
_DECIDES = re.compile(
    r"\b(?:wait|actually|no|not|but|however|instead|rather|mistake|error|wrong|incorrect|forgot"
    r"|correct(?:ed|ing|ion)|check\w*|re-?(?:consider|check|examin|evaluat|calculat|read|do)\w*"
    r"|so|thus|therefore|hence|finally|overall|sorry|oops|scratch|correction|meant|myself)\b",
    re.I,
)
"""Between two statements: the second one replaces the first."""
_WORDS = re.compile(r"[^\W\d_]{2,}")
_JOINING = frozenset(
    ["or", "and", "either", "both", "also", "the", "is", "answer", "answers", "my", "correct", "right", "best", "maybe", "perhaps", "possibly", "alternatively", "else", "option", "choice", "text", "textbf", "mathrm", "mathbf", "quad", "qquad", "left", "boxed", "are", "be"]
)
_MOST_BETWEEN = 6
"""Words, but for joining ones, that may stand between sentences that stand together."""


def _denied(said: str, one: Statement) -> bool:
    """Return whether a statement is a condition, a denial or hearsay, or called wrong at once."""
    if _DENIES.search(one.text if one.value else one.more):
        return True
    before = said[max(0, one.start - 200) : one.start]
    before = before[before.rfind("\n") + 1 :]
    if one.form in ("box", "tag"):
        return bool(_NOT_BOXED.search(before) or _FOLLOWING_WRONG.search(before))
    sentence = _SENTENCE.sub("", before, count=1)
    return bool(_SUPPOSED.search(sentence) or _NOT_SAID.search(_CLAUSE.sub("", sentence, count=1)))


def _stand_together(said: str, one: Statement, after: Statement) -> bool:
    """Return whether nothing between two statements says that the second one replaces the first."""
    between = said[one.end : after.start]
    outranked = after.value and not one.value and (after.form == "line" or one.form == "sentence")
    if outranked or len(between) > LONGEST or _TAKES_BACK.search(between):
        return False
    words = [word for word in _WORDS.findall(between) if word.lower() not in _JOINING]
    most = _MOST_BETWEEN if "sentence" in (one.form, after.form) else 1
    return len(words) <= most and not _DECIDES.search(said, one.value or one.end, after.start)


def _taken_back(said: str, last: Statement) -> bool:
    """Return whether what follows the last statement takes it back and does not confirm it."""
    behind = said[last.end : last.end + TAIL]
    following = _SENTENCE_END.split(behind.lstrip(" .!*$\n"), maxsplit=1)[0]
    if _DENIES.search(following[:200]) or _OR_ELSE.match(following):
        return True
    found = None
    for found in _TAKES_BACK.finditer(behind):
        pass
    return found is not None and not _CONFIRMS.search(behind, found.end())


# --- statements ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Labels:
    """Words before a value, in small letters."""

    words: tuple[str, ...]
    foreign: tuple[str, ...]
    """Those of other languages, whose verbs stand where they like."""


_FOREIGN = (
    (
        "antwort r\u00e9ponse respuesta risposta resposta antwoord jawaban jibu cevap "
        "l\u00f6sung odpowied\u017a \u0111\u00e1p \u043e\u0442\u0432\u0435\u0442 "  # German to Russian
        "\u0627\u0644\u0625\u062c\u0627\u0628\u0629 \u0627\u0644\u0627\u062c\u0627\u0628\u0629 "  # Arabic
        "\u0627\u0644\u062c\u0648\u0627\u0628 \u0909\u0924\u094d\u0924\u0930 "  # Arabic, Hindi
        "\u0989\u09a4\u09cd\u09a4\u09b0 \u7b54\u6848 \u6545\u9009 "  # Bengali, Chinese
        "\u7b54\u3048 \u6b63\u89e3 \u56de\u7b54 \uc815\ub2f5 \ub2f5\ubcc0 \ub2f5"  # Japanese, Korean
    ).split()
)
"""Words for "answer": the languages into which MMLU was translated, and its users' own."""


ANSWERS = _Labels(("answer",), _FOREIGN)
CHOICES = _Labels(("answer", "choice", "option", "best", " one"), _FOREIGN)

_IS = (
    r"(?:is|are|was|equals|(?:must|should|would|will|has\s+to|have\s+to)\s+(?:(?!not\b)\w+\s+)?be|ist|lautet"
    r"|est|es|\u00e8|\u00e9|adalah|ni|l\u00e0)(?![\w'\u2019])"
)
_OF = r"(?:\s+(?:to|for|of|here|choice|option|letter|among|from|that|which|in|with)\b[^.:?!\n]{0,80}?)?"
_MARK = r"[ \t*_`\"'\u201c\u201d\u2018\u2019)\]]"
_ADVERB = (
    r"(?:thus|therefore|then|indeed|simply|clearly|still|hence|likely|probably|obviously|just|now|exactly|precisely|consequently|accordingly|actually|donc|also|daher|portanto|quindi"
    r"|equal\s+to|given\s+by)\b[\s,:*_]*|,\s[\w ]{1,30},\s*|not\s+[^,.;\n]{1,20}?,?\s+but\s+(?:rather\s+)?"
)
_AFTER_LABEL = re.compile(
    rf"s?(?:\s+(?:finale?|corr?e[ct]t?[aoe]|certa))?{_OF}{_MARK}{{0,8}}(?:(?:\s*(?<!\w){_IS}|[:=|\uff1a]|\s[-\u2013\u2014]\s|\u662f|\u4e3a|\u61c9\u70ba|\u5e94\u4e3a|\u306f"
    rf"|\uc740|\ub294|$)[ \t:*_`\uff1a]*(?:{_ADVERB})*|(?=[(\[]?[A-D](?:[)\].]|$))(?<=[\u4e00-\ud7a3]))",
    re.I | re.M,
)
"""What parts a label from its value; at the end of a line the value is on the next one."""
_AFTER_FOREIGN = re.compile(
    r"[\s*_\"'`:\uff1a]{0,6}(?:(?!(?:nicht|pas|no|non|n\u00e3o|\u043d\u0435|bukan|si|de\u011fil|\u4e0d)\b)[^\s.:?!*(\[]{1,12}\s+){0,4}?"
    r"[\s*_\"'`:\uff1a(\[$]{0,6}(?=[A-P](?![^\W_])|[A-P](?=[^\x00-\x7f]))",
    re.I,
)
"""The same where few words of another language stand between a label and a letter."""
_ALONE = re.compile(
    r"[\W_]*(?:(?:so|thus|therefore|hence|finally),?\s+)?(?:(?:the|my|your|la|die|der|el|a|o)\s+)?"
    r"(?:(?:final|correct|best|right|\u6700\u7ec8|\u6b63\u786e)\s*)?",
    re.I,
)
"""What may stand before a label on an answer line."""
_SENTENCE_END = re.compile(r"[.!?\u3002](?=[\"'\u201d\u2019)\]*$]*(?:\s|$))|\n")
_BEFORE_VALUE = re.compile(r"(?:[\s>#]|\.{2,}|\u2026)*")
_TRAILING = re.compile(
    r"[\s,;]*(?:\b(?:and|or|but|so|then|the|thus|therefore|hence|my|final|correct|right|best|that)\b[\s,;]*)*$",
    re.I,
)
"""What stands before the second label of a sentence."""
_MATHS = re.compile(
    r"\$\$(.{1,400}?)\$\$|(?<!\\)\$([^$]{1,400}?)(?<!\\)\$|\\\((.{1,400}?)\\\)|\\\[(.{1,400}?)\\\]",
    re.S,
)
_TAG = re.compile(r"<((?:final[_ -]?)?answer)>(.{0,2000}?)</\1>", re.S | re.I)
_QUOTES_FORMAT = re.compile(
    r"[\W_]*(?:(?:and|your|the|final|answer|here|value|letter|number|goes)[\W_]*)*", re.I
)
"""What tags hold that only show how they are used."""


def _statements(said: str, labels: _Labels) -> list[Statement]:
    """Return the boxes of a text and the tags and labels of its end, in order."""
    base = max(0, len(said) - TAIL)
    found = [*_boxes(said), *_tags(said, base), *_labelled(said, base, labels)]
    return (
        _outermost_last(said, sorted(found, key=lambda one: one.start)) if len(found) > 1 else found
    )


def _outermost_last(said: str, found: list[Statement]) -> list[Statement]:
    """Leave out what holds a statement that begins later: the inner one says it better.

    Of two labels in one sentence ("the answer is 3 and the answer is 4") each has its own value.
    """
    kept: list[Statement] = []
    for one in reversed(found):
        if not kept or kept[-1].start >= one.end or kept[-1].start <= one.start:
            kept.append(one)
        elif one.value and kept[-1].value:
            own = _TRAILING.sub("", said[one.value : kept[-1].start])
            if own:
                kept.append(replace(one, end=kept[-1].start, text=own, more=own))
    return kept[::-1]


def _boxes(said: str) -> Iterator[Statement]:
    r"""Yield the last boxes, an unclosed one too; empty ones quote the instruction."""
    end, found = len(said), 0
    while found < MOST_BOXES:
        box = _last_box(said, end)
        if box is None:
            return
        content, start, stop = box
        more = _SENTENCE_END.split(said[stop : stop + 200], maxsplit=1)[0]
        hedged = _OR_BOXED.search(said[max(0, start - 40) : start])
        yield Statement(
            "box", start, stop, "" if content is None else content, more if not hedged else "or"
        )
        end, found = start, found + 1


def _tags(said: str, base: int) -> Iterator[Statement]:
    if "answer>" not in said[base:].lower():
        return
    for tag in _TAG.finditer(said, base):
        content = tag.group(2)
        content = (
            content[content.lower().rfind("<answer>") + 8 :] if "<answer>" in content else content
        )
        if not _QUOTES_FORMAT.fullmatch(content):
            yield Statement(
                "tag", tag.end() - len(content) - len(tag[1]) - 4, tag.end(), content.strip()
            )


def _labelled(said: str, base: int, labels: _Labels) -> Iterator[Statement]:
    """Yield "Answer: C" and "the answer is 70" near the end."""
    tail = said[base:]
    lower = tail.encode("ascii", "replace").decode().lower()  # as long as the text; lower() is not
    places = [(at, len(word), _AFTER_LABEL) for word in labels.words for at in _places(lower, word)]
    small = lower if tail.isascii() else "".join(map(_small, tail))
    for word in labels.foreign:
        places += [(at, len(word), _AFTER_FOREIGN) for at in _places(small, word)]
    for at, length, after in places:
        if at and lower[at - 1].isalpha() and lower[at].isalpha():
            continue
        label = after.match(tail, at + length) or _AFTER_LABEL.match(tail, at + length)
        if label:
            one = _value_of(said, base + at, base + label.end())
            if said[one.end : one.end + 1] != "?" and not one.text.startswith("<answer"):
                yield one


def _small(char: str) -> str:
    return char.lower() if len(char.lower()) == 1 else char


def _places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _value_of(said: str, at: int, start: int) -> Statement:
    """Return the statement whose label stands at `at` and whose value begins at `start`."""
    line = said[said.rfind("\n", 0, at) + 1 : at]
    start = _BEFORE_VALUE.match(said, start).end()  # type: ignore[union-attr]
    maths = _MATHS.match(said, start)
    stop = maths.end() if maths else start
    end = _SENTENCE_END.search(said, stop, stop + LONGEST)
    end_of_line = said.find("\n", stop)
    last = end.start() if end else min(len(said), stop + LONGEST)
    whole = said[start : end_of_line if end_of_line >= 0 else len(said)][:LONGEST]
    form: Form = "line" if _ALONE.fullmatch(line) else "sentence"
    return Statement(form, at, last, said[start:last].strip(), whole.strip(), start)


# --- integers -----------------------------------------------------------------------------------

_OR = (
    r"(?:or|oder|ou|o|u|\u0438\u043b\u0438|\u307e\u305f\u306f|\u6216|\ub610\ub294|\u0623\u0648|\u092f\u093e)"
)
"""Words for "or"."""
_UNIT = re.compile(
    r"(?<=\d)\s*\\(?:text(?:rm)?|mathrm|mbox)\s*\{([^{}\d]*)\}(?:\s*\^\s*\{?[23]\}?)?\s*\.?\s*$"
)
_UNIT_WORDS = re.compile(
    r"(?<=\d)\s+(?:(?:square|cubic)\s+)?(?:units?|degrees?|cm|mm|km|m|inches|feet|meters?|metres?)\.?$"
)
_SCALE = r"(?:tausend|million(?:en|es)|milliarden|mil|mille|hundred|thousand|million|billion|trillion|dozen|percent|per\s*cent|half|halves|thirds?|k\b|bn\b)s?"
_CHANGES = re.compile(
    rf"\b(?:{_SCALE}|or|and|not|wrong|incorrect|more|less|about|approximately|mod|squared|cubed)\b",
    re.I,
)
_GOES_ON = re.compile(
    rf"[\s$}}]*(?:\\[,;:! ]|~|\s)*(?:\\text\w*\s*\{{\s*)?(?:{_SCALE}\b|or\b(?![\s$]*(?:\w\s*=\s*)?\\boxed))",
    re.I,
)
"""Behind a box: it is part of a larger number, or one of several answers."""
_PERCENT = re.compile(r"[\s$]*\\?%")
_DESCRIBES = re.compile(r"(?:an?|the|some)\s+[a-z]+", re.I)
"""What the answer is like: "an integer between 0 and 999"."""
_NUMBER = r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,30}))(?:\.0{0,9}(?!\d))?"
_WHOLE = re.compile(rf"{_NUMBER}\.?")
_TIMES = re.compile(r"\\cdot|\\times|[*\u00b7\u00d7]")
_TERM = r"\d{1,6}(?:\^(?:\d|\{\d\}))?"
_SUM = re.compile(rf"-?{_TERM}(?:\s*(?:[-+*\u00b7\u00d7]|\\cdot|\\times)\s*{_TERM}){{1,9}}")
_NOT_CONTINUED = (
    r"(?![A-Za-z\d]|[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2150-\u215f]|\.\d|,\s*\d"
    r"|\s*[-+/^*<>%=?!\u00d7\u00b7\u00f7\u221a\u03c0\d\\]|\s*_\{?\d"
    rf"|\s*{_OR}\s*\d|\s+(?:or|and|to|mod|modulo|times|plus|minus|divided|over|squared|cubed|sqrt|pi|{_SCALE})\b"
    r"|\s*[,;]\s*[A-Za-z](?:_?\w)?\s*=|\s*,?\s*(?:or|maybe|perhaps|possibly)\b)"
)
"""A number that goes on (`7,0`, `70/3`, `70 or 71`, `70, y = 3`) is not the answer 70."""
_LEADING = re.compile(rf"{_NUMBER}{_NOT_CONTINUED}", re.I)
_NAMED_NUMBER = re.compile(r"[^\s=\d]\S{0,40}\s*=\s*|[A-Za-z]\s*[-+]\s*[A-Za-z]\s*=\s*")
_DIGIT = re.compile(r"\d")
_ENDS_IN_NUMBER = re.compile(
    rf"(?:=|\b(?:is|are|equals|gives|get|be)\b)\s*(?:(?:equal\s+to|thus|therefore|then|hence|exactly|just)\s+)?"
    rf"{_NUMBER}(?P<unit>(?:\s+[a-z]+){{0,4}})[.!]?\s*$"
)
_ANOTHER_VALUE = re.compile(r"=[^,;=]{1,40}(?:[,;]|\band\b)\s*(?:and\s+)?[A-Za-z](?:_?\w)?\s*=\s*$")
"""What stands before the last number of `x = 70, y = 3`."""
_CONCLUDES = re.compile(
    r"(?:and |so |then )?(?:therefore|thus|hence|so|consequently|finally|in conclusion"
    r"|(?:from this |thus )?(?:we|I) (?:conclude|get|find|obtain|have)|(?:it|this) (?:follows|means|gives|yields|shows)"
    r"|the [^.]{1,80} (?:is|are|equals))\b",
    re.I,
)
"""How a sentence begins that gives the answer, where no word calls it so."""
_SECOND_THOUGHTS = re.compile(
    r"\b(?:wait|but|however|alternatively|hmm|check|verify|not|fails?|contradict\w*|impossible)\b",
    re.I,
)


def _read_integer(one: Statement) -> int | _Unclear | None:
    if one.form in ("box", "tag"):
        goes_on = _GOES_ON.match(one.more) or _PERCENT.match(one.more)
        found = None if goes_on else _whole_integer(one.text)
        return UNCLEAR if found is None else found
    found = _stated_integer(one.text)
    numbers = _DIGIT.search(one.text) and not _DESCRIBES.match(one.text)
    return UNCLEAR if found is None and numbers else found


def _whole_integer(text: str) -> int | None:
    """Return the integer that a piece of LaTeX or markdown is, or None when it is more or less."""
    if len(text) > TAIL:
        return None
    plain = " ".join(text.split())
    unit = _UNIT.search(plain)
    if unit and not _CHANGES.search(unit.group(1)):
        plain = plain[: unit.start()]
    plain = _UNIT_WORDS.sub("", without_markup(plain)).strip(" {}()[]_`\"'")
    if "=" in plain and not re.search("[,;]", plain):
        sides = [side.strip(" {}()") for side in plain.split("=")]
        numbers = {_sum(side) for side in sides} - {None}
        at_an_end = None not in (_number(sides[0]), _number(sides[-1])) or len(sides) == 2
        return (
            numbers.pop()
            if len(numbers) == 1 and (at_an_end or _number(sides[-1]) is not None)
            else None
        )
    return _number(plain)


def _number(plain: str) -> int | None:
    whole = _WHOLE.fullmatch(plain)
    return int(whole.group(1).replace(",", "")) if whole else None


def _sum(plain: str) -> int | None:
    """Return what sums, products and powers of a few small numbers come to; None for all else."""
    if not _SUM.fullmatch(plain):
        return _number(plain)
    terms = re.split(r"(?=[+-])", plain.replace(" ", ""))
    total = 0
    for term in filter(None, terms):
        value = -1 if term[0] == "-" else 1
        for factor in _TIMES.split(term.strip("+-")):
            number, _, power = factor.partition("^")
            value *= int(number or 0) ** int(power.strip("{}") or 1)
        total += value
    return total


def _stated_integer(value: str) -> int | None:
    whole = _whole_integer(value)
    if whole is not None:
        return whole
    plain = without_markup(value[:LONGEST]).lstrip(" \"'{(")
    named = _NAMED_NUMBER.match(plain)
    leading = _LEADING.match(plain, named.end() if named else 0)
    return int(leading.group(1).replace(",", "")) if leading else None


def _conclusion_integer(tail: str) -> int | None:
    """Read a last sentence such as "Therefore m+n = 70", or a reply that is a number."""
    lines = _without_pleasantry(tail)
    if _nothing_but_value(lines) and "=" not in lines[-1]:
        found = _whole_integer(lines[-1].lstrip("#"))
        if found is not None:
            return found
    for sentence in _last_sentences(lines):
        if _DIGIT.search(sentence):
            return _concluded_integer(sentence)
        if _SECOND_THOUGHTS.search(sentence):
            return None
    return None


def _nothing_but_value(lines: Sequence[str]) -> bool:
    """Return whether the last line is all there is, or set apart: bold, a formula, "#### 70"."""
    if not lines or len(lines[-1]) > 100:
        return False
    return len(lines) == 1 or bool(_BOLD_LINE.fullmatch(lines[-1]))


def _concluded_integer(sentence: str) -> int | None:
    """Return the number in which a sentence such as "Therefore m+n = 70" ends."""
    ending = _ENDS_IN_NUMBER.search(sentence) if _CONCLUDES.match(sentence) else None
    if ending is None or _SECOND_THOUGHTS.search(sentence):
        return None
    if _ANOTHER_VALUE.search(sentence, max(0, ending.start() - 60), ending.start(1)):
        return None
    if _CHANGES.search(ending["unit"]):
        return None
    return int(ending.group(1).replace(",", ""))


def _last_sentences(lines: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of the last lines without markup, the last one first."""
    tail = "\n".join(without_markup(line[-1000:]) for line in lines[-3:])
    yield from (found.lstrip() for found in reversed(re.split(r"(?<=[.!?])\s+|\n+", tail)))


_PLEASANTRY = re.compile(r"[\W_]*(?:I )?(?:hope (?:this|that|it)|let me know|feel free)\b", re.I)
_BOLD_LINE = re.compile(r"\s*(?:####\s.{1,60}|\*\*.{1,60}\*\*[.:]?|\$.{1,60}\$|\\\[.{1,60}\\\])\s*")


def _without_pleasantry(tail: str) -> list[str]:
    """Return the lines that are not blank, without those at the end that only wish well."""
    lines = [line for line in tail.splitlines() if line.strip()]
    while lines and _PLEASANTRY.match(lines[-1]):
        lines.pop()
    return lines


# --- letters ------------------------------------------------------------------------------------

_PREFIX = (
    r"(?:I(?:['\u2019](?:d|ll)|\s+would|\s+will)?\s+(?:go\s+with|choose|pick|select|say)\s+)?"
    r"(?:(?i:the\s+)?(?i:letter|option|choice|answer)\s+)?"
)
_ENDS = (
    r"(?=\s*$|[)\]}!](?!\s*=)|[.;:](?![A-Za-z]\b)|\s+\(|\s*</?[|a-z]|\s+[-\u2013\u2014]\s+(?!@\b)"
    r"|,?\s+(?:because|since|as|which|not|with|where|rather|instead|over|i\.e)\b|,\s+(?!@\b)(?!(?:or|and|but|maybe|perhaps)\b)"
    r"|\s+is\s+(?:the\s+)?(?:correct|right|best)\b|\s*(?!\u3067\u306f|\u3058\u3083|\uac00?\s*\uc544\ub2c8|\u4e0d|%s)[^\x00-\x7f])"
)
"""What may follow a letter that is an answer: not a word ("A function") and not a second letter."""
_TOO = (
    rf"(?![)\]}}]?\s*[,;(]?\s*(?:[,/&]|(?:{_OR}|and|but|maybe|perhaps|possibly|alternatively)\b[\s,]*){{1,3}}"
    r"(?:(?:else|possibly|maybe|perhaps|even|also)\b[\s,]*)?"
    r"(?:(?i:option|choice)\s+)?[(\[{]?[A-Z](?![\w'\u2019]))"
    r"(?![)\]}]?\s*[.;:]?\s*[(\[{]?@\s*(?:[.;)\]}]|$))"
)
"""A second letter: `A or B`, `(A)(B)`, `A; B; C`."""
_OTHERWISE = re.compile(
    r"(?:(?i:both|either|neither|options?|choices?)\s+)*[(\[{]?[A-Z][)\]}]?"
    r"(?:\s*$|[.?!]|\s*(?:[,/&]|\b(?:or|and|nor|to|but)\b)\s*(?:maybe\s+)?[(\[{]?[A-Z]\b)"
)
"""Letters, but none that could be read: E, or A or B."""
_ALSO = re.compile(r"also\b|.{1,40}\bbut\b.{0,60}\b(?:questioned|disputed|doubt\w*|outdated)\b", re.I)
_SAID_CORRECT = (
    r"(?<![A-P)\]] or )(?<![A-P)\]] nor )(?<![A-P)\]] and )(?:(?:\b(?i:option|choice|answer|letter)|[*_(\[])[\s*_]*[(\[]?"
    r"|(?:^|(?<=[.!?,:]\s)|(?<=\bso )|(?<=\bSo )|(?<=\bthus )|(?<=\bhence ))[*_]{0,2})(@)[)\]*_]*"
    r"(?::[^.\n]{1,80}?|\s*\([^()\n]{1,80}\))?\s+(?:is|must\s+be)[\s*_]+(?:\w+ly\s+|thus\s+|therefore\s+)?"
    r"(?:(?:the\s+)?(?:only\s+)?(?:correct|right|best|final|true)(?:\s+(?:answer|choice|option|one|statement))?"
    r"|the\s+(?:answer|one))"
    r"(?=[*_)]*(?:\s*$|[.!;,]|\s+(?:because|since|as|for|to|here)\b))"
)
_CORRECT = re.compile(r"\b(?:correct|right|best|final|true|is the (?:answer|one))\b")
_ONLY = r"(?:(?i:option|choice|answer)\s+)?[(\[{]?([@&])[)\]}]?[.:]?"
_OPTION_LINE = (
    r"(?:(?i:option|choice|answer)\s+)?[(\[]?(@)(?:[)\].:](?!\w).*|\s*$|\s+[-\u2013\u2014]\s.*|,?\s+(?:because|since)\s.*)"
)
_CONCLUDED = (
    r"(?:.{0,200}[.!?,:]\s+|)(?i:(?:therefore|thus|hence|so|consequently)[,:]?\s+(?:it\s+(?:is|must\s+be)\s+)?"
    r"(?:the\s+)?|(?:=>|->|\u2192|\u21d2)\s*|(?:[\w'\u2019]+\s+){0,4}(?:leaves|leaving|pick|choose|select|selects|with)\s+"
    r"|.{0,100}\b(?:matches|corresponds\s+to|agrees\s+with|fits|is\s+given\s+by|leads\s+to)\s+(?=option|choice|\())"
    r"(?:(?i:option|choice|answer)\s+)?[(\[]?(@)[)\]]?[.!]?"
    r"|(?i:(?:so\s+|thus\s+|hence\s+|therefore,?\s+)?only\s+(?:option|choice))\s+[(\[]?(@)[)\]]?\s+[a-z][^?]*"
)
_SMALL = re.compile(r"\(?[a-z]\)?(?=\.?$|\)?,?\s+(?:because|since)\b)")
_SYMBOLS = re.compile(r"(?:\s*[^\w\s)\]}.\x00-\x7f])+$")
"""A tick or a smile behind a letter."""
_INVISIBLE = dict.fromkeys(
    map(ord, "\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\ufeff")
)
"""Spaces, joiners and marks of direction without width."""


@lru_cache(maxsize=8)
def _of_letters(pattern: str, letters: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern with `@` for one of these letters and `&` for a small one."""
    some, small = f"[{letters}]", f"[{letters.lower()}]"
    return re.compile(
        pattern.replace("[@&]", f"[{letters}{letters.lower()}]")
        .replace("@", some)
        .replace("&", small),
        flags,
    )


@dataclass(frozen=True, slots=True)
class _Choices:
    """Reads letters, or the texts of these options in their place."""

    choices: tuple[str, ...]
    letters: str

    def read(self, one: Statement) -> str | _Unclear | None:
        """Return the letter that a statement names."""
        if one.form == "box" and not one.text:
            return UNCLEAR
        if one.form in ("box", "tag") and _GOES_ON.match(one.more):
            return UNCLEAR
        found = self.letter(one.more if one.form == "line" and one.more else one.text)
        if found is None or (found is UNCLEAR and self.choices):
            found = (
                letter_of_option(one.text, self.choices)
                or (letter_of_option(one.more, self.choices) if one.form == "line" else None)
                or found
            )
        return found

    def letter(self, text: str) -> str | _Unclear | None:
        """Return the letter that a text begins with, or is said by it to be the answer."""
        plain = without_markup(text[:LONGEST]).strip(" _'\"\u2018\u2019\u201c\u201d{},:")
        if not plain.isascii():
            plain = _SYMBOLS.sub("", plain)
        if small := _SMALL.match(plain):
            plain = small.group().upper() + plain[small.end() :]
        pattern = _of_letters(rf"{_PREFIX}[(\[{{]?(@){_TOO}{_ENDS}", self.letters)
        choice = pattern.match(plain)
        if choice:
            return choice.group(1)
        if _OTHERWISE.match(plain) or _ALSO.match(plain):
            return UNCLEAR
        nested = [one for one in _labelled(plain, 0, CHOICES) if one.text and one.text != plain]
        return self.letter(nested[-1].text) if nested else None

    def said_correct(self, said: str, base: int) -> list[Statement]:
        """Return the places near the end where a letter is said to be correct."""
        if not _CORRECT.search(said, base):
            return []
        pattern = _of_letters(_SAID_CORRECT, self.letters, re.M)
        return [
            Statement("sentence", found.start(), found.end(), found.group(1))
            for found in pattern.finditer(said, base)
        ]

    def conclusion(self, tail: str) -> str | None:
        """Read a reply that is a letter, or whose last or first line alone is an option."""
        lines = [without_markup(line[:LONGEST]) for line in _without_pleasantry(tail)]
        if not lines:
            return None
        only = _of_letters(_ONLY, self.letters).fullmatch(lines[-1]) if len(lines) == 1 else None
        if only:
            return only.group(1).upper()
        option = _of_letters(_OPTION_LINE, self.letters)
        named = [option.fullmatch(line) for line in lines]
        letters = {found.group(1) for found in named if found}
        for line, found, beside in (
            (lines[-1], named[-1], named[-2] if len(lines) > 1 else None),
            (lines[0], named[0], named[1] if len(lines) > 1 else None),
        ):
            if found and not beside and not _DENIES.search(line):
                return found.group(1) if len(letters) == 1 or line is lines[-1] else None
        sentences = [*_last_sentences(lines)]
        ended = _of_letters(_CONCLUDED, self.letters).fullmatch(sentences[0]) if sentences else None
        if not ended or _SUPPOSED.search(sentences[0]) or _NOT_SAID.search(sentences[0]):
            return None
        return ended.group(1) or ended.group(2)


def letter_of_option(stated: str, choices: Sequence[str]) -> str | None:
    """Return the letter of the one option that this text is; None for none, or for several alike.

    >>> letter_of_option("$42$ m.", ["41 m", "42 m", "43 m", "44 m"])
    'B'
    """
    if len(stated) > TAIL or not choices:
        return None
    said = _as_option(stated)
    alike = [
        name
        for name, option in zip("ABCDEFGHIJKLMNOP", choices, strict=False)
        if said and said in (_as_option(option), _as_option(f"{name} {option}"))
    ]
    return alike[0] if len(alike) == 1 else None


def _as_option(text: str) -> str:
    plain = without_markup(_folded(text))
    return " ".join(plain.split()).rstrip(".").strip("'\"").casefold()


def _folded(text: str) -> str:
    """Fold full-width letters and take away marks of direction; ASCII needs neither."""
    return text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_INVISIBLE)


# --- expressions and texts ----------------------------------------------------------------------

_REMARK = re.compile(
    r"\s+\((?!or\b)[A-Za-z][^()]*\s[^()]*\)\s*$|[.!]?\s+(?:I\s+hope|Hope)\b.*$"
    r"|,?\s+(?:because|since|where|which|who|as)\s.*$",
    re.S,
)
_VERB = re.compile(r".*(\b(?:is|are|equals|gives|be|get)\b|=)\s*:?\s*", re.S)


def _read_expressions(one: Statement) -> tuple[str, ...] | _Unclear | None:
    if one.form == "box":
        hedged = not one.text or _GOES_ON.match(one.more)
        return UNCLEAR if hedged else (one.text.strip(),)
    value = _value(one.text)
    return (value,) if value else None


def _value(text: str) -> str | None:
    """Return a value without emphasis, quotes and remarks; a formula that is all of it without `$`."""
    plain = _REMARK.sub("", text.strip(" *_`")).strip(' *_`"').rstrip(".,").strip(" *_`")
    plain = plain.removesuffix('"}')
    maths = _MATHS.fullmatch(plain)
    if maths:
        plain = next(group for group in maths.groups() if group is not None).strip()
    return plain or None


def _conclusion_expression(tail: str) -> tuple[str, ...] | None:
    """Read "Therefore the sum is $x$." at the end, or a reply that is nothing but a value."""
    lines = _without_pleasantry(tail)
    if _nothing_but_value(lines) and _is_bare(value := _value(lines[-1].lstrip("# ")) or ""):
        return (value,)
    for sentence in reversed(re.split(r"(?<=[.!?])\s+|\n+", "\n".join(lines[-3:]))):
        if _SECOND_THOUGHTS.search(sentence):
            return None
        if _DIGIT.search(sentence) or "$" in sentence or "\\" in sentence:
            return _concluded_value(sentence.strip(" *"))
    return None


def _is_bare(value: str) -> bool:
    """Return whether a text is a value and no sentence: `9 cm`, `\\frac{1}{2}`, `ribosome`."""
    if not value or "\\boxed" in value or "<answer" in value:
        return False
    words = re.findall(r"(?<![\\A-Za-z])[A-Za-z]{3,}", value)
    named = len(words) <= 3 and (value[0].isdigit() or value[0] in "$-\\(+.")
    return not words or named or (len(words) == 1 and len(value.split()) == 1)


def _concluded_value(sentence: str) -> tuple[str, ...] | None:
    """Return what a sentence says behind its last verb, or the formula in which it ends."""
    if not _CONCLUDES.match(sentence) and not _CONCLUDES.match(sentence.partition(", ")[2]):
        return None
    maths = [*_MATHS.finditer(sentence)]
    plain = _MATHS.sub(lambda found: "#" * len(found.group()), sentence)
    verb = _VERB.match(plain)
    if verb and not (
        maths and maths[0].start() >= verb.end() and len(maths) == 1 and verb.group(1) == "="
    ):
        if _ANOTHER_VALUE.search(sentence[: verb.end()]):
            return None
        value = _value(sentence[verb.end() :])
    elif maths and not sentence[maths[-1].end() :].strip(" .!*"):
        value = _value(maths[-1].group())
    else:
        return None
    plain = value and len(value) <= 60 and not re.search(r"[;:]\s", value)
    return (value,) if value and plain else None


def _read_text(one: Statement) -> tuple[str, ...] | _Unclear | None:
    if one.form == "box":
        return UNCLEAR if not one.text or _GOES_ON.match(one.more) else (one.text.strip(),)
    value = one.text if one.form == "tag" else _value(one.text)
    return (value,) if value else None


# --- programs -----------------------------------------------------------------------------------

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+.#-]*)[^\n`]*$")


def _fenced_program(said: str) -> str | None:
    blocks = _fenced_blocks(said)
    python = [text for tag, text in blocks if tag.lower() in ("python", "py", "python3")]
    return (python or [text for _, text in blocks] or [None])[-1]


def _fenced_blocks(said: str) -> list[tuple[str, str]]:
    """Return (tag, text) of every complete fenced block that is not blank, in order."""
    blocks: list[tuple[str, str]] = []
    fence, tag, indent, lines = "", "", 0, list[str]()
    for line in said.splitlines():
        mark = _FENCE.match(line)
        if not fence and mark:
            fence, tag, lines = mark.group(1), mark.group(2), []
            indent = mark.start(1)
        elif mark and mark.group(1).startswith(fence) and not mark.group(2):
            if any(text.strip() for text in lines):
                blocks.append((tag, "\n".join(lines)))
            fence = ""
        elif fence:
            margin = len(line) - len(line.lstrip(" \t"))
            lines.append(line[min(indent, margin) :])
    return blocks


# --- what is left of a reply --------------------------------------------------------------------

_TURN_ENDS = re.compile(
    r"<\|(?:im_end|eot_id|endoftext|end|eom_id)\|>|<end_of_turn>|</s>\s*$|<\uff5c[^>]{1,30}\uff5c>"
)
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![a-zA-Z])\s*")
_BARE = re.compile(r"[^\s$}]*")
_BRACE = re.compile(r"\\.|[{}]")
_FONT = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|it|sf|tt)?|mbox|bm)\s*\{([^{}]*)\}")
_DEGREES = re.compile(r"\^? ?\{? ?(?:\\circ|\u00b0|\\degree) ?\}?")
_SPACING = re.compile(
    r"\\(?:[;: ]|(?:q?quad|displaystyle|left|right|bf|rm|it|[lL]arge|LARGE|[hH]uge)(?![a-zA-Z]))"
)
_HTML = re.compile(r"</?(?:b|i|u|em|strong|code|p|span|br)\s*/?>", re.I)
_DIGITS_APART = re.compile(r"(?<=\d)\\,(?=\d)")
_MATHS_SIGN = re.compile(r"\\[()\[\]]")
_STARS = re.compile(r"(?<![0-9A-Za-z])\*+|\*+(?![0-9A-Za-z])")


def parted(reply: str) -> tuple[str, str, bool]:
    """Return what was thought, what was said after it, and whether that is thinking cut off."""
    ended = _TURN_ENDS.search(reply) if "<" in reply else None
    if ended and reply[: ended.start()].strip():
        reply = reply[: ended.start()]
    closed = max(reply.rfind("</think>"), reply.rfind("</thinking>"))
    if closed < 0:
        return "", reply, "<think>" in reply or "<thinking>" in reply
    said = reply[closed:].partition(">")[2]
    return reply[:closed], said, "<think>" in said or "<thinking>" in said


def last_box(said: str) -> tuple[str | None, int] | None:
    r"""Return the content of the last box (None when it was cut off) and its end; None: no box.

    Empty boxes are skipped: they quote the instruction ("put your answer within \boxed{}").
    """
    found = _last_box(said, len(said))
    return (found[0], found[2]) if found else None


def _last_box(said: str, end: int) -> tuple[str | None, int, int] | None:
    """Return content, start and end of the last box that begins before `end`."""
    while (end := said.rfind("box", 0, end)) >= 0:  # from the end: most replies are long
        start = said.rfind("\\", max(0, end - len("\\frame")), end)
        box = _BOX.match(said, start) if start >= 0 else None
        if box:
            content, stop = _braced(said, box.end())
            if content is None or content.strip():
                return content, start, stop
    return None


def _braced(said: str, at: int) -> tuple[str | None, int]:
    """Return what the balanced braces at `at` enclose, and where that ends."""
    if at < len(said) and said[at] != "{":
        bare = _BARE.match(said, at)
        return (bare.group(), bare.end()) if bare else (None, at)
    depth = 0
    for brace in _BRACE.finditer(said, at):
        depth += {"{": 1, "}": -1}.get(brace.group(), 0)
        if depth == 0 and brace.group() == "}":
            return said[at + 1 : brace.start()], brace.end()
    return None, len(said)


def without_markup(text: str) -> str:
    """Take away markup that does not change a number: fonts, maths signs, degrees, thin spaces."""
    plain = " ".join(text.split()).replace("{,}", ",").replace("\u2212", "-")
    plain = _without_latex(plain) if "\\" in plain or "\u00b0" in plain else plain
    plain = _HTML.sub("", plain) if "<" in plain else plain
    plain = plain.replace("~", " ").replace("$", "").replace("`", "").replace("__", "")
    return (_STARS.sub("", plain) if "*" in plain else plain).strip()


def _without_latex(text: str) -> str:
    plain = _DIGITS_APART.sub(",", text).replace("\\!", "").replace("\\,", " ")
    if "circ" in plain or "\u00b0" in plain or "degree" in plain:
        plain = _DEGREES.sub("", plain)
    plain = _SPACING.sub(" ", plain)
    for _ in range(4 if "{" in plain else 0):
        plain = _FONT.sub(r"\1", plain)
    return _MATHS_SIGN.sub("", plain)
