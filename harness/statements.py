"""Where a reply states its answer: boxes, tags, labels, and what takes a statement back.

Every rule is linear in the length of the reply. What a statement says is read in extract.py.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from podium.harness.reasoning import INVISIBLE

TAIL = 4000  # Characters at the end of a reply in which labels and conclusions are looked for
LONGEST = 400  # Characters of a value behind a label
MOST_BOXES = 10  # Boxes that are looked at, from the end
MOST_BETWEEN = 6  # Words, but for joining ones, between two sentences that stand together
ANSWER_WORDS = ("answer", "ans")
CHOICE_WORDS = ("answer", "ans", "decision", "choice", "option", "best", " one")
"""Words before a value, in small letters."""
FOREIGN_WORDS = (
    *("antwort", "r\u00e9ponse", "respuesta", "risposta", "resposta", "antwoord", "l\u00f6sung"),
    *("jawaban", "jibu", "cevap", "\u043e\u0442\u0432\u0435\u0442"),  # to Russian
    *("\u0627\u0644\u0625\u062c\u0627\u0628\u0629", "\u0627\u0644\u062c\u0648\u0627\u0628"),
    *("\u0627\u0644\u0627\u062c\u0627\u0628\u0629",),  # Arabic, without its hamza
    *("\u0909\u0924\u094d\u0924\u0930", "\u0989\u09a4\u09cd\u09a4\u09b0"),  # Hindi, Bengali
    *("\u7b54\u6848", "\u6545\u9009", "\u9009\u62e9"),  # Chinese
    *("\u7b54\u3048", "\u6b63\u89e3", "\u56de\u7b54"),  # Japanese
    *("\uc815\ub2f5", "\ub2f5\ubcc0", "\ub2f5"),  # Korean
    *("\u00ecd\u00e1h\u00f9n", "idahun"),  # Yoruba
)  # the same in the languages into which MMLU was translated, German to Korean
OR = (
    r"(?:or|oder|ou|o|u|\u0438\u043b\u0438|\u307e\u305f\u306f|\u6216|\ub610\ub294|\u0623\u0648"
    r"|\u092f\u093e)"
)
SENTENCE_END = re.compile(r"(?<!\bvs)(?<!\\)[.!?\u3002](?=[\"'\u201d\u2019)\]*$]*(?:\s|$))|\n")
MATHS = re.compile(
    r"(?s)\$\$(.{1,400}?)\$\$|(?<!\\)\$([^$]{1,400}?)(?<!\\)\$|\\\((.{1,400}?)\\\)"
    r"|\\\[(.{1,400}?)\\\]"
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A place in a reply that gives an answer."""

    form: Literal["box", "tag", "line", "sentence"]
    start: int
    end: int
    text: str  # What it gives, as it is written
    more: str = ""  # What follows a box in its sentence; the rest of the line of a label
    value: int = 0  # Where the value behind a label begins
    explicit: bool = True  # an answer wherever it stands: a box, a tag, `Answer: C`


_IS = (
    r"(?:is|are|was|equals|(?:must|should|would|will|has\s+to|have\s+to)\s+(?:(?!not\b)\w+\s+)?be"
    r"|ist|lautet|est|es|\u00e8|\u00e9|adalah|ni)(?![\w'\u2019])"
)
_OF = (
    r"(?:\s+(?:to|for|of|here|choice|option|letter|among|from|that|which|in|with)\b"
    r"[^.:?!\n]{0,80}?)?"
)
_ADVERB = (
    r"(?:thus|therefore|then|indeed|simply|clearly|still|hence|likely|probably|obviously|just|now"
    r"|exactly|precisely|consequently|accordingly|actually|donc|daher|portanto|quindi"
    r"|equal\s+to|given\s+by)\b[\s,:*_]*|,\s[\w ]{1,30},\s*|not\s+[^,.;\n]{1,20}?,?\s+but\s+"
)
_AFTER = re.compile(
    rf"(?im)s?(?:\s+(?:finale?|corr?e[ct]t?[aoe]|certa))?{_OF}"
    r"[ \t*_`\"'\u201c\u201d\u2018\u2019)\]]{0,8}"
    rf"(?:\s*(?<!\w){_IS}|[:=|\uff1a]|\s[-\u2013\u2014]\s|\s+of\s+(?=[$\\*\d(-])|[\u662f\u4e3a\u306f\uc740\ub294]|$)"
    rf"[ \t:*_`\uff1a]*(?:{_ADVERB})*"
)  # what parts a label from its value; at the end of a line the value is on the next one
_AFTER_FOREIGN = re.compile(
    r"(?i)[\s*_\"'`:\uff1a]{0,6}(?:(?!(?:nicht|pas|no|non|n\u00e3o|\u043d\u0435|bukan|si|\u4e0d)\b)"
    r"[^\s.:?!*(\[]{1,12}\s+){0,4}?[\s*_\"'`:\uff1a(\[$]{0,6}"
    r"(?=[A-P](?![^\W_])|[A-P](?=[^\x00-\x7f]))"
)  # the same where few words of another language stand between a label and a letter
_ALONE = re.compile(
    r"(?i)[\W_]*(?:(?:so|thus|therefore|hence|finally),?\s+)?(?:(?:the|my|your|la|die|der|el|a"
    r"|o)\s+)?"
    r"(?:(?:final|correct|best|right|\u6700\u7ec8|\u6b63\u786e)\s*)?"
)  # what may stand before a label on an answer line
_BEFORE_VALUE = re.compile(r"(?:\s*\n[>#]+|\s*\n```\w*\n|\s|\.{2,}|\u2026)*")
_NEXT_LINE = re.compile(r"[.]?\s*\n\s*(?:and/or|or|and)\b[^\n]{0,80}(?:\s*\n[^\n]{0,80})?", re.I)
"""A value that goes on: "70", a line with "or", "71"."""
_OPTIONS = re.compile(r"[*(\[]*A[)\].:][^\n]*\n+\s*[*(\[]*B[)\].:]")
_TRAILING = re.compile(
    r"(?i)[\s,;]*(?:\b(?:and|or|but|so|then|the|thus|therefore|hence|my|final|correct|right|best|that)\b"
    r"[\s,;]*)*$"
)  # what stands before the second label of a sentence
_TAG = re.compile(r"<((?:final[_ -]?)?answer)>(.{0,2000}?)</\1>", re.S | re.I)
_SHOWS_FORMAT = re.compile(
    r"[\W_]*(?:(?:and|your|the|final|answer|here|value|letter|number|goes)[\W_]*)*", re.I
)  # what tags hold that only show how they are used
_OR_BOXED = re.compile(r"([^\s=,;$]{0,39}[\d})])\s*\$?,?\s*(?:\\text\{\s*)?\bor\b[\s$*}(]*$", re.I)


def find(said: str, words: Sequence[str] = ANSWER_WORDS) -> list[Statement]:
    """Return the last boxes of a text and the tags and labels near its end, in order."""
    base = max(0, len(said) - TAIL)
    return in_order(said, [*_boxes(said), *_tags(said, base), *_labelled(said, base, words)])


def in_order(said: str, found: list[Statement]) -> list[Statement]:
    """Return statements by their place; of two, one inside the other, the inner says it better."""
    kept: list[Statement] = []
    for one in sorted(found, key=lambda each: -each.start):
        inner = kept[-1] if kept and kept[-1].start < one.end else None
        if inner is None or inner.start == one.start:
            kept.append(one)
        elif one.form == "box" and inner.value:
            kept[-1] = replace(one, text=said[inner.value : one.end].strip(" {}$"))
        elif (
            one.value and inner.value and (own := _TRAILING.sub("", said[one.value : inner.start]))
        ):
            kept.append(replace(one, end=inner.start, text=own, more=own))
    return kept[::-1]


def _boxes(said: str) -> Iterator[Statement]:
    """Yield the last boxes, the last one first; empty ones quote the instruction."""
    end = len(said)
    for _ in range(MOST_BOXES):
        box = _box_before(said, end)
        if box is None:
            return
        content, end, stop = box
        if said[stop : stop + 3].strip(" $*").startswith("?"):
            continue
        more = SENTENCE_END.split(said[stop : stop + 200], maxsplit=1)[0]
        if hedged := _OR_BOXED.search(said[max(0, end - 40) : end]):
            more = f"or {hedged[1]}"
        sign = "-" if content and said[max(0, end - 1) : end] in ("-", "\u2212") else ""
        yield Statement("box", end, stop, f"{sign}{content or ''}", more)


def _tags(said: str, base: int) -> Iterator[Statement]:
    for tag in _TAG.finditer(said, base) if "</" in said[base:] else ():
        content = tag[2].rpartition("<answer>")[2]
        if not _SHOWS_FORMAT.fullmatch(content):
            start = tag.end() - len(content) - len(tag[1]) - 4
            yield Statement("tag", start, tag.end(), content.strip())


def _labelled(said: str, base: int, words: Sequence[str]) -> Iterator[Statement]:
    """Yield "Answer: C" and "the answer is 70" near the end."""
    tail = said[base:]
    lower = tail.encode("ascii", "replace").decode().lower()  # as long as the text; lower() is not
    labels = [(at, len(word), _AFTER) for word in words for at in places(lower, word)]
    small = lower if tail.isascii() else tail.replace("\u0130", "I").lower()  # as long, too
    for word in (word for word in FOREIGN_WORDS if word in small):
        labels += [(at, len(word), _AFTER_FOREIGN) for at in places(small, word)]
    for at, length, after in labels:
        if at and lower[at - 1].isalpha() and lower[at].isalpha():
            continue
        label = after.match(tail, at + length) or _AFTER.match(tail, at + length)
        one = _valued(said, base + at, base + label.end()) if label else None
        if one and _below(said[base + at + length : one.value], one, said):
            continue
        if one and said[one.end : one.end + 1] != "?" and not one.text.startswith("<answer"):
            yield one


def _below(gap: str, one: Statement, said: str) -> bool:
    # A verb or a bare label must lead to a value on the next line, and that be no list of options.
    head, below, _ = gap.partition("\n")
    bare = one.form == "line" and not head.strip(" *_#`\"'")
    led = bare or re.search(rf"[:=\uff1a]|\b{_IS}", head)
    return bool(below) and (not led or bool(_OPTIONS.match(said, one.value)))


def places(text: str, word: str, start: int = 0) -> Iterator[int]:
    """Yield where a word stands in a text."""
    at = text.find(word, start)
    while at >= 0:
        yield at
        at = text.find(word, at + len(word))


def _valued(said: str, at: int, start: int) -> Statement:
    """Return the statement whose label stands at `at` and whose value begins behind `start`."""
    before = said[said.rfind("\n", 0, at) + 1 : at]
    while (blank := _BEFORE_VALUE.match(said, start)) and blank.end() > start:
        start = blank.end()
    maths = MATHS.match(said, start)
    stop = maths.end() if maths else start
    end = SENTENCE_END.search(said, stop, stop + LONGEST)
    last = end.start() if end else min(len(said), stop + LONGEST)
    line = said[start : stop + LONGEST].partition("\n")[0] if not maths else said[start:last]
    if goes_on := _NEXT_LINE.match(said, last):
        last = goes_on.end()
        line = said[start:last]
    form = "line" if _ALONE.fullmatch(before) else "sentence"
    explicit = form == "line" and bool(re.search(r"[:=\uff1a\n]", said[at:start]))
    return Statement(form, at, last, said[start:last].strip(), line.strip(), start, explicit)


# --- what is said against a statement -----------------------------------------------------------

_SENTENCE = re.compile(
    r".*(?:[.!?][\"'\u201d\u2019)\]*$]*\s|\b(?:so|thus|therefore|hence)\b)", re.I
)
_CLAUSE = re.compile(r".*(?:[,;:]|\b(?:and|but|because)\b)", re.I)
_SUPPOSED = re.compile(
    r"(?i)(?<!even )\b(?:if|suppose|assum(?:e|ing)|unless|had"
    r"|according\s+to\s+(?:an?|some|my|one))\b"
)
_NOT_SAID = re.compile(
    r"(?i)\b(?:not|never|cannot|wrong|incorrect|false|might|may|could|would\s+be|whether|doubt"
    r"|unlikely"
    r"|thinks|thought|says|said|untrue|claims?|claimed|believes|nobody|no\s+one|perhaps|maybe|hardly|den(?:y|ies)"
    r"|to\s+say|(?<!\bI )(?<!\bwe )think)\b"
    r"|\b(?:some|many|most|people|others|they)\s+(?:\w+\s+)?(?:say|argue|believe|think)\b"
    r"|\b(?:second|next)[- ]best\b|\bno\s+way\b"
    r"|n['\u2019]t\b"
)  # before a statement in its clause: it is denied, only possible, or somebody else's
_RELATIVE = re.compile(
    r"(?i)\b(?:that|which|who)\s+(?:\w+\s+)?(?:do|does|did|are|is|were|has|have)\s*(?:not|n['\u2019]t)\s+\w+"
)  # what a clause says of something else: "those that don't work"
_WRONG = (
    r"(?:(?:is|was|are|seems|looks|must\s+be|would\s+be|turns\s+out\s+to\s+be)\s+(?:\w+ly\s+)?(?:wrong|incorrect|false"
    r"|mistaken|impossible|not\s+(?:\w+\s+){0,2}(?:correct|right|answer|true|possible|valid))"
    r"|(?:isn|wasn)['\u2019]t\s+(?:\w+\s+){0,2}(?:correct|right|answer|true|possible|valid)"
    r"|can(?:not|['\u2019]t)\s+be\s+(?:\w+\s+)?(?:correct|right|true|answer))\b"
)
_NOT_BOXED = re.compile(
    r"(?i)(?:\b(?:not|never|instead\s+of|rather\s+than|anything\s+but|(?:perhaps|maybe|possibly)\s+it\s+is|by\s+no\s+means|unless\s+it\s+is|can(?:not|['\u2019]t)\s+be"
    r"|(?:might|may|could)\s+(?:\w+\s+)?be|(?:mistake|wrong|incorrect)\s+to\s+\w+)[\s$*(]*"
    rf"|(?:\\neq?\b|\u2260)[\s$*(]*|~~[\s$*]*)$|\bfollowing\s+(?:\w+\s+)?{_WRONG}"
)
_LABEL_BEFORE = re.compile(r"\b(?:the|my)?\s*answer\b[^.\n]{0,30}$", re.I)
_ABOUT = re.compile(
    r"(?i)\b(?:behind|for|of|to|about|get|reach|explain\w*|check\w*|verify)\s+(?:this|the|my|our|that)\s+"
    r"(?:\w+\s+)?$"
)  # before a label that speaks about an answer: "the reasoning behind this answer:"
_DENIES = re.compile(
    rf"(?i)(?:^|\\text\w*\s*\{{)[\W_]*(?:text\w*\s*\{{\s*)?{_WRONG}"
    r"|[({\[]\s*\(?(?:wrong|incorrect|false|rejected)\s*[)}\]]|\bunless\b|\bdepending\s+on\b|\b(?:is|are)\s+equally\s+(?:possible|likely|plausible)\b"
    rf"|\b(?:this|that|it|which|(?:my|the|that|this)\s+(?:answer|result|value|choice|option))\s+{_WRONG}"
    r"|\bI\s+(?:could\s+not|cannot|can['\u2019]t|couldn['\u2019]t)\s+(?:show|prove|verify|confirm)\b"
    r"|\b(?:das|dies|cela|c['\u2019]est|es|eso|esto|isso|questo)\b[^.\n]{0,20}\b(?:falsch|faux"
    r"|incorrect[oe]|falso|errad[oa]|errat[oa]|sbagliat[oa]|err\u00f3neo)\b"
    r"|(?:\u8fd9|\u4e0a\u9762|\u7b54\u6848)[^\u3002\n]{0,8}(?:\u9519|\u4e0d\u5bf9|\u4e0d\u6b63\u786e)"
)  # behind a statement in its sentence, or in the next one: it is wrong
_OR_ELSE = re.compile(
    r"(?i)[\W_]*(?:alternatively|(?:(?:or|but)\s+)?(?:maybe|perhaps|possibly)|or,? failing that"
    r"|along with|as well as)\b"
)
_TAKES_BACK = re.compile(
    r"(?i)\bactually,?\s+no\b|\bbut\s+let(?:['\u2019]s|\s+me)\s+(?:verify|check|double)|\b(?:no,?\s+)?(?:wait|hmm+|hold\s+on|oops|whoops)\b\s*(?:[,.!?:\u2026\u2013\u2014-]|that|this)"
    r"|\b(?:scratch|strike|forget)\s+that\b|\bon\s+second\s+thoughts?\b|\bnever\s?mind\b"
    r"|\b(?:disregard|ignore)\s+(?:(?:that|this)\s*(?=[.,;!\n]|$|answer\b|result\b)"
    r"|my\b|the\s+(?:above|(?:\w+\s+)?(?:answer|result))\b)"
    r"|\bI\s+(?:have\s+|must\s+have\s+|just\s+)?(?:made|see|found|spot\w*|notic\w*)\s+(?:an?|my|the)"
    r"\s+(?:\w+\s+)?(?:mistake|error|slip)\b|\bI\s+(?:was|am)\s+(?:wrong|mistaken)\b"
    r"|\bI\s+(?:have\s+)?(?:retract|withdraw|withdrew|misread|miscounted|miscalculated)\b"
    r"|\bI\s+take\s+(?:that|it|this)\s+back\b"
    r"|\bboth\s+(?:are|seem|could\s+be)\s+(?:acceptable|possible|plausible)\b"
    r"|\blet\s+me\s+(?:re-?(?!port|mind|cap|mark|peat|state|iter|phrase|write|view|mem)\w+"
    r"|think\s+again|check\s+again|try\s+again|start\s+over)\b"
    rf"|\b(?:my|the|that)\s+(?:(?:above|previous|final|last|first)\s+)?(?:answer|result|box)"
    rf"(?:\s+above)?\s+{_WRONG}"
)
_CONFIRMS = re.compile(
    r"(?i)\b(?:yes(?=[,!:])|indeed|confirm\w*|(?<!not )(?<!n't )correct|checks?\s+out|holds|stands"
    r"|matches|consistent|verified|(?<!not )fine|(?<!not )right)\b|\u2713|\u2714|\u2705"
)
_DECIDES = re.compile(
    r"(?i)\b(?:wait|actually|no|not|but|however|instead|rather|mistake|error|wrong|incorrect|forgot"
    r"|correct(?:ed|ing|ion)|check\w*|re-?(?:consider|check|examin|evaluat|calculat|read|do)\w*"
    r"|so|thus|therefore|hence|finally|overall|sorry|oops|scratch|meant|myself)\b"
)  # between two statements: the second one replaces the first
_FIRST = re.compile(r"\S+")
_WORDS = re.compile(r"[^\W\d_]{2,}")
MOST_WORDS = 3  # Words of a value; what is longer is a sentence
_JOINING = re.compile(
    r"(?i)or|and|either|both|also|the|is|are|be|answers?|my|correct|right|best|maybe|perhaps"
    r"|possibly"
    r"|alternatively|else|as|well|option|choice|text(?:bf)?|math(?:rm|bf)|q?quad|left|boxed"
)


def denied(said: str, one: Statement) -> bool:
    """Return whether a statement is a condition, a denial or hearsay, or called wrong at once."""
    if _DENIES.search(_ends(one.text)) or (not one.value and _DENIES.search(_ends(one.more))):
        return True
    before = said[max(0, one.start - 200) : one.start]
    before = before[before.rfind("\n") + 1 :]
    if one.form in ("box", "tag"):
        supposed = " if " in f"{one.text} {one.more}" and before.rstrip(" $").endswith("would be")
        if supposed or _NOT_BOXED.search(before):
            return True
        label = _LABEL_BEFORE.search(before)
        return bool(label) and doubted(_SENTENCE.sub("", before[: label.start()], count=1))
    if "would" in said[one.start : one.value] and " if " in one.text:
        return True
    return bool(_ABOUT.search(before)) or doubted(_SENTENCE.sub("", before, count=1))


def _ends(text: str) -> str:
    """Return a text without the middle of what is far longer than a statement can be."""
    return text if len(text) < 20_000 else f"{text[:9_000]}\n{text[-9_000:]}"


def contradicted(text: str) -> bool:
    """Return whether a text says that what it states is wrong."""
    return bool(_DENIES.search(text) or _TAKES_BACK.search(text))


def doubted(before: str) -> bool:
    """Return whether the words before a statement in its sentence suppose, deny or quote it."""
    before = _RELATIVE.sub("", before)
    return bool(_SUPPOSED.search(before) or _NOT_SAID.search(_CLAUSE.sub("", before, count=1)))


def stand_together(said: str, one: Statement, after: Statement) -> bool:
    """Return whether nothing between two statements says that the second replaces the first."""
    between = said[one.end : after.start]
    if after.value:
        outranked = not one.value and (after.form == "line" or one.form == "sentence")
    else:
        outranked = one.value and len(_WORDS.findall(one.text)) > MOST_WORDS
    if outranked or len(between) > LONGEST or _TAKES_BACK.search(between):
        return False
    words = [word for word in _WORDS.findall(between) if not _JOINING.fullmatch(word)]
    if _OR_ELSE.match(between):
        return True
    most = MOST_BETWEEN if "sentence" in (one.form, after.form) else 1
    value = _FIRST.match(said, one.value)
    behind = value.end() if one.value and value else one.end
    return len(words) <= most and not _DECIDES.search(said, behind, after.start)


def taken_back(said: str, last: Statement) -> bool:
    """Return whether what follows the last statement takes it back and does not confirm it."""
    behind = said[last.end : last.end + TAIL]
    following = SENTENCE_END.split(behind.lstrip(" .!*$\n"), maxsplit=1)[0]
    if _DENIES.search(following[:200]) or _OR_ELSE.match(following):
        return True
    value, near = last.text.strip(" $.*()")[:20], behind[:LONGEST]
    # Compiling a pattern for each new value takes a hundred times what else there is to do.
    if value and value in near:
        again = rf"(?<![\w.])(?<!option ){re.escape(value)}[)$]?\s+{_WRONG}"
        if re.search(again, near):
            return True
    ends = [found.end() for found in _TAKES_BACK.finditer(behind)]
    return bool(ends) and not _CONFIRMS.search(behind, ends[-1])


_PLEASANTRY = re.compile(r"[\W_]*(?:I )?(?:hope (?:this|that|it)|let me know|feel free)\b", re.I)


def last_lines(tail: str) -> list[str]:
    """Return the lines that are not blank, without those at the end that only wish well."""
    lines = [line for line in tail.splitlines() if line.strip()]
    while lines and _PLEASANTRY.match(lines[-1]):
        lines.pop()
    return [] if any(line.strip().lower() in ("or", "and") for line in lines[-2:]) else lines


def last_sentences(lines: Sequence[str]) -> list[str]:
    """Return the sentences of the last three lines, the last one first."""
    found = re.split(r"(?<=[.!?])\s+|\n+", "\n".join(lines[-3:]))
    return [sentence.strip(" *") for sentence in reversed(found)]


VERB = re.compile(
    r"(?s).*(\b(?:is|are|equals|gives|be|get)\b|=)\s*:?\s*"
    r"(?:(?:equal\s+to|thus|therefore|then|hence|exactly|just)\s+)?"
)


def is_bare(value: str) -> bool:
    r"""Return whether a text is a value and no sentence: `9 cm`, `\frac{1}{2}`, `ribosome`."""
    if not re.search(r"[\w<>]", value) or "\\boxed" in value or "<answer" in value:
        return False
    if VERB.match(MATHS.sub("", value)):
        return False
    words = re.findall(r"(?<![\\A-Za-z])[A-Za-z]{3,}", value)
    counted = len(words) <= 3 and (value[0].isdigit() or value[0] in "$-\\(+.")
    return not words or counted or len(value.split()) == 1


# --- what is left of a reply --------------------------------------------------------------------

_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![a-zA-Z])\s*")
_BARE = re.compile(r"[^\s$}]*")
_BRACE = re.compile(r"\\.|(?:\{[^{}\\]*+\})++|[{}]")  # escaped; pairs with none inside; one alone
_FONT = re.compile(r"\\(?:text(?:bf|it|rm|sf|tt)?|math(?:bf|rm|it|sf|tt)?|mbox|bm)\s*\{([^{}]*)\}")
_DEGREES = re.compile(r"\^? ?\{? ?(?:\\circ|\u00b0|\\degree) ?\}?")
_SPACING = re.compile(
    r"\\(?:[;: ]|(?:q?quad|displaystyle|left|right|bf|rm|it|[lL]arge|LARGE|[hH]uge)(?![a-zA-Z]))"
)
_COLOUR = re.compile(r"\\(?:text)?color\s*\{\w+\}")
_HTML = re.compile(r"</?(?:b|i|u|em|strong|code|p|span|br)\s*/?>", re.I)
_DIGITS_APART = re.compile(r"(?<=\d)\\,(?=\d)")
_MATHS_SIGN = re.compile(r"\\[()\[\]]")
_STARS = re.compile(r"(?<![0-9A-Za-z])\*+|\*+(?![0-9A-Za-z])")


def _box_before(said: str, end: int) -> tuple[str | None, int, int] | None:
    while (end := said.rfind("box", 0, end)) >= 0:  # from the end: most replies are long
        start = said.rfind("\\", max(0, end - len("\\frame")), end)
        box = _BOX.match(said, start) if start >= 0 else None
        if box:
            content, stop = _braced(said, box.end())
            if content is None or content.strip():
                return content, start, stop
    return None


def _braced(said: str, at: int) -> tuple[str | None, int]:
    if at < len(said) and said[at] != "{":
        bare = _BARE.match(said, at)
        return (bare.group(), bare.end()) if bare else (None, at)
    depth = 1
    for brace in _BRACE.finditer(said, at + 1):
        if brace.end() - brace.start() > 1:
            continue
        depth += 1 if said[brace.start()] == "{" else -1
        if depth == 0:
            return said[at + 1 : brace.start()], brace.end()
    return None, len(said)


def folded(text: str) -> str:
    """Fold full-width letters and take away marks of direction; ASCII needs neither."""
    return text if text.isascii() else INVISIBLE.sub("", unicodedata.normalize("NFKC", text))


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
    plain = _SPACING.sub(" ", _COLOUR.sub("", plain) if "color" in plain else plain)
    for _ in range(4 if "{" in plain else 0):
        plain = _FONT.sub(r"\1", plain)
    return _MATHS_SIGN.sub("", plain)
