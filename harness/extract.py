"""Find the answer that a reply gives, for grading, rewards and voting.

- A statement is a box, an `<answer>` tag, a label with its value ("Answer: C", "the answer is 70")
  or a letter that is said to be correct. What is denied, supposed or quoted states nothing.
- The last statement counts. Statements that stand together and differ, one that is taken back and
  one that goes on ("70 or 71", "70 thousand") are no answer.
- Without any statement the conclusion counts ("Therefore m+n = 70.", a last line "**C**"), or a
  reply that is nothing but an answer; an arbitrary last number or letter never does.
- What is said outside reasoning counts (reasoning.py); in reasoning that was cut off only boxes,
  tags and answer lines do.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, TypeVar

from podium.harness import statements
from podium.harness.program_text import extract_program
from podium.harness.reasoning import spoken
from podium.harness.records import Kind
from podium.harness.statements import (
    LONGEST,
    MATHS,
    OR,
    TAIL,
    VERB,
    Statement,
    folded,
    without_markup,
)


class _Unclear(Enum):
    UNCLEAR = 0


UNCLEAR: Final = _Unclear.UNCLEAR  # names several answers, or none of those that can be
ValueT = TypeVar("ValueT")
Read = Callable[[Statement], ValueT | _Unclear | None]
Join = Callable[[Sequence[ValueT]], ValueT | _Unclear]


def extract_integer(reply: str) -> int | None:
    r"""Return the integer that the reply gives as its answer, or None.

    It may lie outside 0-999: that is for the grader.

    >>> extract_integer(r"Hence \boxed{\text{070}}."), extract_integer("ANSWER: 7,0")
    (70, None)
    """
    return _answer(reply, statements.find, _integer_of, _concluded_integer)


def extract_choice(reply: str, choices: Sequence[str] = (), letters: str = "ABCD") -> str | None:
    r"""Return the letter that the reply gives, or that of the one option whose text it gives.

    Letters are Latin: the place of a Cyrillic or Arabic one in its alphabet and its looks point to
    different options.

    >>> extract_choice("**Answer: $B$**"), extract_choice("Answer: Because")
    ('B', None)
    """
    reader = _Choices(tuple(choices), letters)
    return _answer(folded(reply), reader.find, reader.read, reader.concluded)


def extract_expressions(reply: str) -> tuple[str, ...]:
    r"""Return the LaTeX or text that the reply gives; several where statements stand together.

    Whether several are one answer in two forms, a list or a hedge is for the grader.

    >>> extract_expressions(r"Not \boxed{3}. So $x=\boxed{1}$ or $x=\boxed{-2}$.")
    ('1', '-2')
    >>> extract_expressions("The answer is $7$. Wait, that is wrong.")
    ()
    """
    return _answer(reply, statements.find, _expression_of, _concluded_expression, _joined) or ()


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
    return "".join(extract_expressions(reply)[-1:]) or reply.strip() or None


# --- the rule -----------------------------------------------------------------------------------


def _alike(values: Sequence[ValueT]) -> ValueT | _Unclear:
    return values[-1] if all(value == values[-1] for value in values) else UNCLEAR


def _joined(values: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part for value in values for part in value))


def _answer(
    reply: str,
    find: Callable[[str], list[Statement]],
    read: Read[ValueT],
    conclude: Callable[[str], ValueT | None],
    joined: Join[ValueT] = _alike,
) -> ValueT | None:
    said, cut_off = spoken(reply)
    found = [one for one in find(said) if not cut_off or one.explicit]
    value = _decided(said, found, read, joined)
    if value is None and not cut_off:
        stated = max((one.end for one in found if read(one) is not None), default=0)
        value = conclude(said[max(len(said) - TAIL, stated) :])
    return None if isinstance(value, _Unclear) else value


def _decided(
    said: str, found: Sequence[Statement], read: Read[ValueT], joined: Join[ValueT]
) -> ValueT | _Unclear | None:
    """Return what the last statements say, unclear where they are taken back or hedged."""
    kept: list[Statement] = []
    values: list[ValueT] = []
    for one in reversed(found):
        value = read(one)
        if value is None or statements.denied(said, one):
            continue
        after = kept[-1] if kept else None
        if after and not statements.stand_together(said, one, after):
            break
        if isinstance(value, _Unclear):
            if after and after.value and one.value:  # a later answer line decides
                break
            return UNCLEAR
        kept.append(one)
        values.append(value)
    if not kept:
        return None
    return UNCLEAR if statements.taken_back(said, kept[0]) else joined(values[::-1])


# --- conclusions --------------------------------------------------------------------------------

_HOPE = re.compile(r"\s+(?:I\s+)?hope\b.*", re.I)
_APART = re.compile(r"\s*(?:####\s.{1,60}|\*\*.{1,60}\*\*[.:]?|\$.{1,60}\$|\\\[.{1,60}\\\])\s*")
"""A line that is nothing but a value: bold, a formula, or as in grade-school data."""
_CONCLUDES = re.compile(
    r"(?i)(?:and |so |then )?(?:therefore|thus|hence|so|consequently|finally|in conclusion"
    r"|(?:from this |thus )?(?:we|I) (?:conclude|get|find|obtain|have)"
    r"|(?:it|this) (?:follows|means|gives|yields|shows)|the [^.]{1,80} (?:is|are|equals))\b"
)  # how a sentence begins that gives the answer, where no word calls it so
_SECOND_THOUGHTS = re.compile(
    r"(?i)\b(?:wait|but|however|alternatively|hmm|check|verify|not|fails?|contradict\w*"
    r"|impossible)\b"
)
_ANOTHER_VALUE = re.compile(r"=[^,;=]{1,40}(?:[,;]|\band\b)\s*(?:and\s+)?[A-Za-z](?:_?\w)?\s*=\s*$")
"""What stands before the last number of `x = 70, y = 3`."""


def _concluded_expression(tail: str) -> tuple[str, ...] | None:
    lines = statements.last_lines(tail)
    if lines and statements.contradicted(lines[-1]):
        return None
    if lines and len(lines[-1]) <= 100 and (len(lines) == 1 or _APART.fullmatch(lines[-1])):
        value = _value(lines[-1].lstrip("# ")) or ""
        if statements.is_bare(value):
            return (value,)
    for number, sentence in enumerate(statements.last_sentences(lines)):
        if _SECOND_THOUGHTS.search(sentence) or (number and sentence.startswith(("The ", "the "))):
            return None  # "the sum is 70" concludes at the very end alone
        if re.search(r"[\d$\\]", sentence):
            return _concluded_value(sentence)
    return None


def _concluded_value(sentence: str) -> tuple[str, ...] | None:
    if not _CONCLUDES.match(sentence) and not _CONCLUDES.match(sentence.partition(", ")[2]):
        return None
    maths = [*MATHS.finditer(sentence)]
    verb = VERB.match(MATHS.sub(lambda found: "#" * len(found.group()), sentence))
    value = None
    if verb and not _ANOTHER_VALUE.search(sentence[: verb.end()]):
        value = _value(sentence[verb.end() :])
    elif not verb and maths and not sentence[maths[-1].end() :].strip(" .!*"):
        value = _value(maths[-1].group())
    return (value,) if value and len(value) <= 60 and not re.search(r"[;:]\s", value) else None


# --- expressions --------------------------------------------------------------------------------

_SCALE = (
    r"(?:tausend|million(?:en|es)|milliarden|mil|mille|hundred|thousand|million|billion|trillion"
    r"|dozen|half|halves|thirds?|k\b|bn\b)s?"
)
_GOES_ON = re.compile(
    rf"(?i)[\s$}}]*(?:\\[,;:! ]|\\q?quad|~|\s)*(?:\\text\w*\s*\{{\s*)?"
    rf"(?:{_SCALE}\b|or\b(?![\s$]*(?:\w\s*=\s*)?\\boxed))"
)  # behind a box: it is part of a larger number, or one of several answers
_UNIT_BEHIND = re.compile(
    r"[\s$]*(?:\\[,;:! ]|~|\s)*"
    r"(\\(?:text(?:rm)?|mathrm|mbox)\s*\{[^{}]{1,40}\}(?:\s*\^\s*\{?[23]\}?)?"
    r"|(?:cents|dollars|euros|pounds|radians|degrees|percent|[ckm]?m|feet|inches)\b)"
)
_REMARK = re.compile(
    r"(?s)\s+\((?!(?:or|alternatively|maybe|perhaps|possibly)\b)[A-Za-z][^()]*\s[^()]*\)\s*$|[.!]?\s+(?:I\s+hope|Hope)\b.*$"
    r"|(?<!as well),?\s+(?:because|since|where|which|who|as(?!\s+well))\s.*$"
)
_NO_VALUE = re.compile(r"(?:that|not)\s|(?:correct|right|valid|verified|consistent)\b", re.I)
_BOLD = re.compile(r"\*\*([^*]+)\*\*")
_QUOTED = re.compile(
    r"[\"\u201c](?=[A-Za-z])([^\"\u201c\u201d]{1,60})[\"\u201d](?=[\s.]*$|\s+(?:by|from|of|in|for|at)\b)"
)


def _expression_of(one: Statement) -> tuple[str, ...] | _Unclear | None:
    if one.form == "box":
        if other := re.fullmatch(r"or (\S+)", one.more):
            return other[1].strip("$"), one.text.strip()
        if not one.text or _GOES_ON.match(one.more):
            return UNCLEAR
        unit = _UNIT_BEHIND.match(one.more)
        text = _BOLD.sub(r"\1", one.text.strip().replace('"', ""))
        return (f"{text} {unit[1]}" if unit else text,)
    value = one.text if one.form == "tag" else _value(one.text)
    return (value,) if value and not _NO_VALUE.match(value) else None


def _value(text: str) -> str | None:
    """Return a value without emphasis, quotes and remarks; of a formula what its signs enclose."""
    plain = _REMARK.sub("", text.strip(" *_`")).strip(' *_`"').rstrip(".,!").strip(" *_`")
    plain = _BOLD.sub(r"\1", plain)
    quoted = _QUOTED.match(text.strip(" *_`"))
    plain = quoted[1] if quoted else re.sub('["`]', "", plain.removesuffix('"}'))
    plain = plain.rstrip("}") if re.fullmatch(r"[^{}\s]+\}", plain) else plain
    if maths := MATHS.fullmatch(plain):
        plain = next(group for group in maths.groups() if group is not None).strip()
    return plain or None


# --- integers -----------------------------------------------------------------------------------

_UNIT = re.compile(
    r"(?<=\d)(?:\\[,;:! ]|~|\s)*\\(?:text(?:rm)?|mathrm|mbox)\s*\{([^{}\d]*)\}"
    r"(?:\s*\^\s*\{?[23]\}?)?\s*\.?\s*$"
)
_UNIT_WORDS = re.compile(
    r"(?<=\d)\s+(?:(?:square|cubic)\s+)?(?:units?|degrees?|[cmk]?m|inches|feet|met(?:er|re)s?)\.?$"
)
_CHANGES = re.compile(
    rf"(?i)\b(?:{_SCALE}|or|and|not|wrong|incorrect|more|less|about|approximately|mod|squared|cubed|per\s?cent)\b"
)
_PERCENT = re.compile(r"[\s$]*(?:\\?%|per\s?cent)", re.I)
_NUMBERED = re.compile(r"[\W_]*(?:[^\W\d]+[\W_]+){0,2}\d")
"""A value that begins with a number, and not what an answer is like: "an integer from 0 to 9"."""
_NUMBER = r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d{1,30}))(?:\.0{0,9}(?!\d))?"
_WHOLE = re.compile(rf"{_NUMBER}\.?")
_TIMES = re.compile(r"\\cdot|\\times|[*\u00b7\u00d7]")
_TERM = r"\d{1,6}(?:\^(?:\d|\{\d\}))?"
_SUM = re.compile(rf"-?{_TERM}(?:\s*(?:[-+*\u00b7\u00d7]|\\cdot|\\times)\s*{_TERM}){{0,9}}")
_LEADING = re.compile(
    rf"(?i)(?:[^\s=\d]\S{{0,40}}\s*=\s*|[A-Za-z]\s*[-+]\s*[A-Za-z]\s*=\s*)?{_NUMBER}"
    r"(?![A-Za-z\d]|[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2079\u2150-\u215f]|\.\d|\s*[,;&]\s*\d"
    r"|\s*[-+/^*<>%=?!\u00d7\u00b7\u00f7\u221a\u03c0\d\\]|\s*_\{?\d"
    r"|\s+(?:and|to|versus|vs|as\s+well\s+as|per\s?cent|mod|modulo|times|plus|minus|divided|over|squared|cubed|sqrt|pi)\b"
    r"|\s*[,;|(]*\s*(?:(?:or|alternatively|although|along\s+with|and)\s+\d|but\s+(?:possibly|maybe)\b|\|\s*\d)"
    rf"|\s+{_SCALE}\b|\s*{OR}\s*\d|\s*,?\s*(?:or|maybe|perhaps|possibly|alternatively)\b"
    r"|\s*[,;]\s*[A-Za-z](?:_?\w)?\s*=)"
)  # A number that goes on (`7,0`, `70/3`, `70 or 71`, `70, y = 3`) is not the answer 70
_ENCLOSING = re.compile(
    r"^(?:(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|hundred"
    r"|and)[ -]+)+(?=\(\d+\)\W*$)|[()\[\]{}\"\u201c\u201d*]|^\s+"
)  # what encloses a number, and the number in words before it: "fifty-six (56)"


def _integer_of(one: Statement) -> int | _Unclear | None:
    if one.form in ("box", "tag"):
        goes_on = _GOES_ON.match(one.more) or _PERCENT.match(one.more)
        found = None if goes_on else _whole_integer(one.text)
        return UNCLEAR if found is None else found
    found = _stated_integer(one.text)
    return UNCLEAR if found is None and _NUMBERED.match(one.text) else found


def _concluded_integer(tail: str) -> int | None:
    value = _concluded_expression(tail)
    return _stated_integer(value[0]) if value else None


def _stated_integer(value: str) -> int | None:
    value = _HOPE.sub("", value)
    if (whole := _whole_integer(value)) is not None:
        return whole
    leading = _LEADING.match(_ENCLOSING.sub("", without_markup(value[:LONGEST])))
    return int(leading[1].replace(",", "")) if leading else None


def _whole_integer(text: str) -> int | None:
    """Return the integer that a piece of LaTeX or markdown is, or None when it is more or less."""
    if len(text) > TAIL:
        return None
    plain = " ".join(text.split())
    unit = _UNIT.search(plain)
    if unit and not _CHANGES.search(unit[1]):
        plain = plain[: unit.start()]
    plain = _UNIT_WORDS.sub("", without_markup(plain)).strip(" {}()[]_`\"'")
    if "=" not in plain or re.search("[,;]", plain):
        return _number(plain)
    texts = [side.strip(' {}()*"') for side in plain.split("=")]
    sides = [_sum(side) for side in texts]
    numbers = {side for side in sides if side is not None}
    ends = sides[-1] is not None or (len(sides) == 2 and not texts[-1][:1].isdigit())
    return numbers.pop() if len(numbers) == 1 and ends else None


def _number(plain: str) -> int | None:
    return int(whole[1].replace(",", "")) if (whole := _WHOLE.fullmatch(plain)) else None


def _sum(plain: str) -> int | None:
    """Return what sums, products and powers of a few small numbers come to; None for all else."""
    if not _SUM.fullmatch(plain):
        return _number(plain)
    total = 0
    for term in filter(None, re.split(r"(?=[+-])", plain.replace(" ", ""))):
        value = -1 if term[0] == "-" else 1
        for factor in _TIMES.split(term.strip("+-")):
            number, _, power = factor.partition("^")
            value *= int(number) ** int(power.strip("{}") or 1)
        total += value
    return total


# --- letters ------------------------------------------------------------------------------------

_READ = (
    r"(?:I(?:['\u2019](?:d|ll)|\s+would|\s+will)?\s+(?:go\s+with|choose|pick|select|say)\s+)?"
    r"(?:(?i:the\s+)?(?i:letter|option|choice|answer)\s+)?[(\[{]?(@)"
    # no second letter: `A or B`, `(A)(B)`, `A; B; C`
    r"(?![)\]}]?\s*(?:[,;/&]\s*|\(\s*(?=or|alternatively|maybe|perhaps|possibly)|(?:#OR|and|but|as\s+well\s+as|maybe|perhaps|possibly"
    r"|alternatively|else|even|also)\b[\s,]*){1,4}(?:(?i:option|choice)\s+)?[(\[{]?[A-Z](?![\w'\u2019]))"
    r"(?![)\]}]?\s*[.;:]?\s*[(\[{]?@\s*(?:[.;)\]}]|$))"
    # nor a word: `A function`
    r"(?=\s*$|[)\]}!](?!\s*=)|[.;:](?![A-Za-z]\b)|\s+\(|\s*</?[|a-z]|\s+[-\u2013\u2014]\s+(?!@\b|or\b)"
    r"|,?\s+(?:because|since|as|which|not|with|where|rather|instead|over|i\.e)\b"
    r"|,\s+(?!@\b)(?!(?:or|and|but|maybe|perhaps)\b)|\s+is\s+(?:the\s+)?(?:correct|right|best)\b"
    r"|\s*(?!\u3067\u306f|\u3058\u3083|\uac00?\s*\uc544\ub2c8|\u4e0d|#OR)[^\x00-\x7f])"
)
_SEVERAL = re.compile(
    r"(?:(?i:both|either|neither|options?|choices?)\s+)*[(\[{]?[A-Z][)\]}]?"
    r"(?:\s*$|[.?!]|\s*(?:[,/&]|\b(?:or|and|nor|to|but)\b)\s*(?:maybe\s+)?[(\[{]?[A-Z]\b)"
    r"|(?i:none\s+of\b|also\b|.{1,40}\bbut\b.{0,60}\b(?:questioned|disputed|doubt\w*|outdated)\b)"
)  # letters, but none that could be read: E, or A or B
_LISTED = (
    r"(?:[,;&|)\]]|\\lor|\\vee|\b(?:and|or|else|versus|vs|possibly|even|alternatively|as|with))\W{0,8}"
    r"[(\[]@[)\]]"
    r"|[.!?]\s+[(\[]?@(?:[)\]:]|\.\s)"
)
_REASONS = re.compile(
    r"(?i)\b(?:not|than|because|since|although|though|however|but|which|while|others?|wrong|incorrect)\b"
)
_IS_CORRECT = re.compile(
    r"(?m)\s+(?:is|must\s+be)[\s*_]+(?:(?!part)\w+ly\s+|thus\s+|therefore\s+)?"
    r"(?:(?:the\s+)?(?:only\s+)?(?:correct|right|best|final|true)"
    r"(?:\s+(?:answer|choice|option|one|statement)|(?![^.\n]{0,80}\bbut\b))|the\s+(?:answer|one))"
    r"(?=[*_)]*(?:\s*$|[.!;,]|\s+(?:because|since|as|for|to|here)\b))"
)
_WHICH_IS = (
    r"(?<![A-P)\]] or )(?<![A-P)\]] nor )(?<![A-P)\]] and )"
    r"(?:(?:\b(?i:option|choice|answer|letter)|[*_(\[])[\s*_]*[(\[]?"
    r"|(?:^|(?<=[.!?,:]\s)|(?<=\b[Ss]o )|(?<=\bthus )|(?<=\bhence ))[*_]{0,2})(@)[)\]*_]*"
    r"(?::(?!\s*(?:This|That|It|The|These|While|Here|In|As)\b)[^.\n]{1,80}?|\s*\([^()\n]{1,80}\))?\Z"
)  # A letter that is said to be correct, up to its verb; not `A: This is correct`, one of several
_ONLY = r"(?:(?i:option|choice|answer)\s+)?[(\[{]?((?i:@))[)\]}]?[.:]?"
_OPTION_LINE = (
    r"(?:(?i:option|choice|answer)\s+)?[(\[]?(@)"
    r"(?:[)\].:](?!\w).*|\s*$|\s+[-\u2013\u2014]\s+(?!or\b).*|,?\s+(?:because|since)\s.*)"
)
_CONCLUDED = (
    r"(?:.{0,200}[.!?,:]\s+|)(?i:(?:therefore|thus|hence|so|consequently)[,:]?\s+"
    r"(?:it\s+(?:is|must\s+be)\s+|choose\s+|pick\s+|select\s+)?(?:the\s+)?|(?:=>|->|\u2192|\u21d2)\s*"
    r"|(?:I|we)(?:['\u2019]\w+)?\s+(?:\w+\s+){0,2}(?:pick|choose|select|go\s+with)\s+|it['\u2019]s\s+"
    r"|(?:[\w'\u2019]+\s+){0,4}(?:leaves|leaving|selects)\s+"
    r"|.{0,100}\b(?:matches|corresponds\s+to|agrees\s+with|fits|is\s+given\s+by|leads\s+to)\s+"
    r"(?=option|choice|\())(?:(?i:option|choice|answer)\s+)?[(\[]?(@)[)\]]?[.!]?"
    r"|(?i:(?:so\s+|thus\s+|hence\s+|therefore,?\s+)?only\s+(?:option|choice))\s+[(\[]?(@)[)\]]?\s+[a-z][^?]*"
)
_PREDICATE = r"\b(?:is|are|as|be)\s+(?:an?\s+)?(@)\.\s+\w"
"""A sentence whose predicate is an option: "The best test is C. What does a lamp cost?"."""
_MENTION = r"(?i:option|choice)[\s*]*[(\[]?(@)(?!\w)"
_REJECTS = re.compile(
    r"\b(?:not|wrong|incorrect|eliminat\w*|ruled?|none|cannot|neither|worse)\b", re.I
)
_SMALL = re.compile(r"\(?[a-z]\)?(?=\.?\s*[^\x00-\x7f]*$|\)?,?\s+(?:because|since)\b)")


@lru_cache(maxsize=16)
def _of_letters(pattern: str, letters: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("@", f"[{letters}]").replace("#OR", OR), re.M)


@dataclass(frozen=True, slots=True)
class _Choices:
    """Reads letters, or the texts of these options in their place."""

    choices: tuple[str, ...]
    letters: str

    def find(self, said: str) -> list[Statement]:
        """Return what statements.py finds, and where a letter is said to be correct."""
        found, others = statements.find(said, statements.CHOICE_WORDS), [*self._said_correct(said)]
        if found and len({one.text for one in others}) > 1:  # options looked at one by one
            return found
        return statements.in_order(said, [*found, *others]) if others else found

    def _said_correct(self, said: str) -> Iterator[Statement]:
        base = max(0, len(said) - TAIL)
        for at in (
            *statements.places(said, " is", base),
            *statements.places(said, " must be", base),
        ):
            if not (correct := _IS_CORRECT.match(said, at)):
                continue
            start = max(base, at - LONGEST // 2, said.rfind("\n", 0, at) + 1)
            letter = self._of(_WHICH_IS).search(said[start:at])
            if letter and not re.match(r"[A-P][)\]]", letter[0]):  # `A) is true`, an option
                place = start + letter.start()
                yield Statement("sentence", place, correct.end(), letter[1], explicit=False)

    def read(self, one: Statement) -> str | _Unclear | None:
        """Return the letter that a statement names."""
        if one.form in ("box", "tag") and (not one.text or _GOES_ON.match(one.more)):
            return UNCLEAR
        texts = [one.more, one.text] if one.form == "line" else [one.text]
        found = self.letter(texts[0])
        if found and self.lists(texts[0]):
            return UNCLEAR
        if found is None or (found is UNCLEAR and self.choices):
            options = [letter_of_option(text, self.choices) for text in texts]
            found = next(filter(None, options), found)
        return found

    def letter(self, text: str) -> str | _Unclear | None:
        """Return the letter that a text begins with and says no more about."""
        plain = without_markup(text[:LONGEST]).strip(" _'\u2018\u2019\u201c\u201d{},:")
        plain = _HOPE.sub("", plain.replace('"', ""))
        if small := _SMALL.match(plain):
            plain = small.group().upper() + plain[small.end() :]
        if choice := self._of(_READ).match(plain):
            return choice[1]
        return UNCLEAR if _SEVERAL.match(plain) else None

    def lists(self, text: str) -> bool:
        """Return whether a text gives several options, each a letter of its own."""
        named = set(self._of(r"[(\[](@)[)\]]").findall(text))
        listed = len(named) > 2 or self._of(_LISTED).search(text)
        return bool(listed) and not _REASONS.search(text)

    def concluded(self, tail: str) -> str | None:
        """Return what a reply is that is a letter, or whose last or first line is an option."""
        lines = [without_markup(line[:LONGEST]) for line in statements.last_lines(tail)]
        if not lines or self.lists(lines[-1]) or statements.contradicted(lines[-1]):
            return None
        if len(lines) == 1:
            only = self._of(_ONLY).fullmatch(lines[0])
            if found := only[1].upper() if only else letter_of_option(lines[0], self.choices):
                return found
        if lines[-1].endswith(":"):  # cut off in its working
            return None
        return self._option_line(lines) or self._last_sentence(lines)

    def _option_line(self, lines: Sequence[str]) -> str | None:
        named = [self._of(_OPTION_LINE).fullmatch(line) for line in lines]
        letters = {found[1] for found in named if found}
        before = named[-2] if len(lines) > 1 else None
        if named[-1] and not before and len(letters) < 3:
            return None if statements.contradicted(lines[-1][named[-1].end(1) :]) else named[-1][1]
        return letters.pop() if len(letters) == 1 and (named[0] or before) else None

    def _last_sentence(self, lines: Sequence[str]) -> str | None:
        sentence = statements.last_sentences(lines)[0]
        if statements.doubted(sentence):
            return None
        if ended := self._of(_CONCLUDED).fullmatch(sentence):
            return ended[1] or ended[2]
        found = set(self._of(_PREDICATE).findall("\n".join(lines[-2:])))
        if not found and sentence[-1:] in ".!)]*" and not _REJECTS.search(sentence):
            found = set(self._of(_MENTION).findall(sentence))
        return found.pop() if len(found) == 1 else None

    def _of(self, pattern: str) -> re.Pattern[str]:
        return _of_letters(pattern, self.letters)


def letter_of_option(stated: str, choices: Sequence[str]) -> str | None:
    """Return the letter of the one option that this text is; None for none, or for several alike.

    >>> letter_of_option("$42$ m.", ["41 m", "42 m", "43 m", "44 m"])
    'B'
    """
    said = _as_option(stated[:TAIL]) if choices else ""
    alike = [
        name
        for name, option in zip("ABCDEFGHIJKLMNOP", choices, strict=False)
        if said and said in (_as_option(option), _as_option(f"{name} {option}"))
    ]
    return alike[0] if len(alike) == 1 else None


def _as_option(text: str) -> str:
    return " ".join(without_markup(folded(text)).split()).rstrip(".").strip("'\"").casefold()
