"""Find the answer that a reply gives, for grading, rewards and voting.

- A statement is a LaTeX box, an `<answer>` tag, a label with its value ("Answer: C", "the answer is
  70") or a letter that is called correct. A denied, supposed or quoted answer is no statement.
- The last statement counts. There is no answer if adjacent statements differ, if the statement is
  taken back, or if it goes on ("70 or 71", "70 thousand").
- Without any statement the conclusion counts ("Therefore m+n = 70.", a last line "**C**"), or a
  reply that is nothing but an answer; an arbitrary last number or letter never counts.
- Only text outside reasoning counts (reasoning.py). If a reply was cut off in its reasoning, only
  boxes, tags and answer lines count.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import cache, lru_cache, partial
from typing import Final, Generic, TypeVar

from podium.harness import statements
from podium.harness.program_text import extract_program
from podium.harness.reasoning import spoken
from podium.harness.records import TOOL_CALLS, Kind
from podium.harness.rules import RULE, may_match, pattern, rules
from podium.harness.statements import LONGEST, MATHS, TAIL, Statement, folded, without_markup


class _Unclear(Enum):
    UNCLEAR = 0


UNCLEAR: Final = _Unclear.UNCLEAR  # a statement names several answers, or an impossible answer
ValueT = TypeVar("ValueT")
Step = tuple[str, str, str, str]  # stage, rule, the statement's text, result
Concluded = tuple[ValueT | None, str]  # a value, and the rule that found it
Read = Callable[[Statement], ValueT | _Unclear | None]
Join = Callable[[Sequence[ValueT]], ValueT | _Unclear]
Other = Callable[[str, ValueT], str]  # (remark behind the answer, answer) -> rule or ""


@dataclass(frozen=True, slots=True)
class Reading(Generic[ValueT]):
    """The answer that a reply gives, and the rule that decided on it."""

    value: ValueT | None
    rule: str
    """Name of the deciding rule in harness/rules; `conflict` if statements disagree; `none` if
    there is no statement."""
    steps: tuple[Step, ...] = ()
    """The result of each stage of reading for each statement, for `podium grade --explain`."""


def read_integer(reply: str) -> Reading[int]:
    """Read the integer that the reply gives; it may lie outside 0-999, which the grader checks."""
    other = statements.another_number
    return _read(reply, statements.find, _integer_of, _concluded_integer, other=other)


def read_choice(reply: str, choices: Sequence[str] = (), letters: str = "ABCD") -> Reading[str]:
    """Read the option letter that the reply gives, or the letter of the option whose text it gives.

    Only Latin letters are read: the Cyrillic letter that looks like B is the third of its alphabet,
    so it may mean option B or C.
    """
    reader, text = _Choices(tuple(choices), letters), folded(reply)
    other = partial(statements.another_letter, letters=letters)
    reading = _read(text, reader.find, reader.read, reader.concluded, other=other)
    if reading.value is None and (short := reader.without_options(text)) != text:
        # An option's own words are no hedge: `Answer: D) No, unless it can be shown that ...`
        return _read(short, reader.find, reader.read, reader.concluded, other=other)
    return reading


def read_expressions(reply: str) -> Reading[tuple[str, ...]]:
    """Read the reply's answer, as LaTeX or text; several if its last answers belong together.

    The grader decides whether several are one answer in two forms, a list or a hedge.
    """
    return _read(reply, statements.find, _expression_of, _concluded_expression, _joined)


def extract_integer(reply: str) -> int | None:
    r"""Return the integer that the reply gives as its answer, or None.

    >>> extract_integer(r"Hence \boxed{\text{070}}."), extract_integer("ANSWER: 7,0")
    (70, None)
    """
    return read_integer(reply).value


def extract_choice(reply: str, choices: Sequence[str] = (), letters: str = "ABCD") -> str | None:
    r"""Return the letter of the option that the reply gives, by letter or by text; else None.

    >>> extract_choice("**Answer: $B$**"), extract_choice("Answer: Because")
    ('B', None)
    """
    return read_choice(reply, choices, letters).value


def extract_expressions(reply: str) -> tuple[str, ...]:
    r"""Return the reply's answer, as LaTeX or text; several if its last answers belong together.

    >>> extract_expressions(r"Not \boxed{3}. So $x=\boxed{1}$ or $x=\boxed{-2}$.")
    ('1', '-2')
    >>> extract_expressions("The answer is $7$. Wait, that is wrong.")
    ()
    """
    return read_expressions(reply).value or ()


def normalised(kind: Kind, reply: str) -> str | None:
    """Return a reply's answer in a form that is the same for equal answers; None without answer."""
    if kind == "integer":
        number = extract_integer(reply)
        return None if number is None else str(number)
    if kind == "choice":
        return extract_choice(reply)
    if kind == "program":
        program = extract_program(reply)
        return None if program is None else program.rstrip()
    _, marker, calls = f"\n{reply}".rpartition(f"\n{TOOL_CALLS}")
    if marker:  # tool calls are compared whole; words before them are ignored
        return calls
    return "".join(extract_expressions(reply)[-1:]) or reply.strip() or None


# --- the stages ---------------------------------------------------------------------------------


def _alike(values: Sequence[ValueT]) -> ValueT | _Unclear:
    return values[-1] if all(value == values[-1] for value in values) else UNCLEAR


def _joined(values: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for value in values for text in value))


def _read(
    reply: str,
    find: Callable[[str], list[Statement]],
    read: Read[ValueT],
    conclude: Callable[[str], Concluded[ValueT]],
    joined: Join[ValueT] = _alike,
    other: Other[ValueT] = lambda remark, value: "",
) -> Reading[ValueT]:
    """Read a reply's answer: strip reasoning, find statements, drop some, rank the rest."""
    text, cut_off = spoken(reply)
    text = statements.without_struck(text)
    steps: list[Step] = []
    candidates = [each for each in find(text) if not cut_off or each.explicit]
    value, rule = _decided(text, candidates, read, joined, other, steps)
    if value is None and not cut_off:
        ends = (each.end_in(text) for each in candidates if read(each) is not None)
        value, rule = conclude(text[max(len(text) - TAIL, *ends, 0) :])
        steps.append(("conclude", rule, text[-LONGEST // 4 :], _shown(value)))
    return Reading(None if isinstance(value, _Unclear) else value, rule, tuple(steps))


def _shown(value: object) -> str:
    return "no answer" if value is None or isinstance(value, _Unclear) else f"gives {value!r}"


def _decided(
    text: str,
    candidates: Sequence[Statement],
    read: Read[ValueT],
    joined: Join[ValueT],
    other: Other[ValueT],
    steps: list[Step],
) -> tuple[ValueT | _Unclear | None, str]:
    """Return the value of the last statements (UNCLEAR if withdrawn or hedged) and its rule."""
    final: list[Statement] = []
    values: list[ValueT] = []
    for statement in reversed(candidates):
        value, rule = _judged(text, statement, read(statement))
        if value is None or rule:
            steps.append(("drop", rule, statement.text, "dropped"))
            continue
        successor = final[-1] if final else None
        if successor and not statements.stand_together(text, statement, successor):
            steps.append(("rank", statement.rule, statement.text, "replaced by what follows"))
            break
        if isinstance(value, _Unclear):
            steps.append(("rank", statement.rule, statement.text, "unclear"))
            if successor and successor.value and statement.value:  # a later answer line decides
                break
            return UNCLEAR, "conflict"
        steps.append(("rank", statement.rule, statement.text, _shown(value)))
        final.append(statement)
        values.append(value)
    if not final:
        return None, "none"
    remark = text[final[0].end :]
    if rule := statements.withdrawn(text, final[0]) or other(remark, values[0]):
        steps.append(("withdraw", rule, final[0].text, "withdrawn"))
        return UNCLEAR, rule
    value = joined(values[::-1])
    return value, "conflict" if isinstance(value, _Unclear) else final[0].rule


def _judged(
    text: str, statement: Statement, value: ValueT | _Unclear | None
) -> tuple[ValueT | _Unclear | None, str]:
    """Return a statement's value, and the rule that drops the statement; empty if it is kept."""
    rule = "no-value" if value is None else statements.dropped(text, statement)
    return (UNCLEAR, "") if rule == "hedging-before" else (value, rule)


# --- conclusions --------------------------------------------------------------------------------


def _concluded_expression(tail: str) -> Concluded[tuple[str, ...]]:
    lines = statements.last_lines(tail)
    if lines and statements.contradicted(lines[-1]):
        return None, "denies"
    if lines and len(lines[-1]) <= 100 and (len(lines) == 1 or RULE["apart"].fullmatch(lines[-1])):
        value = _value(lines[-1].lstrip("# ")) or ""
        if statements.is_bare(value):
            return (value,), "apart"
    for number, sentence in enumerate(statements.last_sentences(lines)):
        if RULE["second-thoughts"].search(sentence):
            return None, "second-thoughts"
        if number and sentence.startswith(("The ", "the ")):
            return None, "none"  # "the sum is 70" concludes at the very end alone
        if re.search(r"[\d$\\]", sentence):
            value = _concluded_value(sentence)
            return value, "concludes" if value else "none"
    return None, "none"


def _concluded_value(sentence: str) -> tuple[str, ...] | None:
    if not any(map(RULE["concludes"].match, (sentence, sentence.partition(", ")[2]))):
        return None
    maths, verb, value = [*MATHS.finditer(sentence)], _verb_end(sentence), None
    if verb and not RULE["another-value"].search(sentence[:verb]):
        value = _value(sentence[verb:])
    elif not verb and maths and not sentence[maths[-1].end() :].strip(" .!*"):
        value = _value(maths[-1].group())
    return (value,) if value and len(value) <= 60 and not re.search(r"[;:]\s", value) else None


# --- expressions --------------------------------------------------------------------------------

_EMPHASIS = re.compile(
    r"(?<![\w)\]}*])\*\*(?=[^\s*])|(?<=[^\s*])\*\*(?![\w(\[{\\*])|(?<![\w)*])\*([^\s*][^*]*)\*(?![\w(*])"
)
"""Markdown's stars for bold and italics; the stars of `2 * 3` and `2**3` do not match."""


def _expression_of(statement: Statement) -> tuple[str, ...] | _Unclear | None:
    if statement.form == "box":
        if alternative := re.fullmatch(r"or (\S+)", statement.more):
            return alternative[1].strip("$"), statement.text.strip()
        if not statement.text or RULE["goes-on"].match(statement.more):
            return UNCLEAR
        unit = RULE["unit-behind"].match(statement.more)
        text = _EMPHASIS.sub(r"\1", re.sub('["`]', "", statement.text.strip()))
        return (f"{text} {unit[1]}" if unit else text,)
    value = statement.text if statement.form == "tag" else _value(_behind_verb(statement.text))
    if value and "\\boxed{" in value:
        return None
    return (value,) if value and not RULE["no-value"].match(value) else None


def _verb_end(sentence: str) -> int:
    """Return the index behind a sentence's last verb outside formulas; 0 without such a verb."""
    verb = RULE["verb"].match(MATHS.sub(lambda maths: "#" * len(maths.group()), sentence))
    return verb.end() if verb else 0


def _behind_verb(text: str) -> str:
    """Return the text behind the verb: `$9$` of "The value of $x$ is $9$"; else the whole text."""
    if not RULE["value-sentence"].match(text):
        return text
    verb = _verb_end(text)
    behind = text[verb:] if verb else ""
    return behind if re.match(r"[*_]*[\d$\\-]", behind) else text


def _value(text: str) -> str | None:
    """Return a text without emphasis, quotes, remarks and formula signs; None for a placeholder."""
    text = _EMPHASIS.sub(r"\1", text).strip(" *_`")
    plain = RULE["remark"].sub("", text).strip(' *_`"').rstrip(".,!").strip(" *_`")
    plain = plain.rstrip("$ ") if plain.count("$") % 2 else plain
    plain = plain if re.search(r"\\[\[(]", plain) else re.sub(r"\\[])]$", "", plain).rstrip()
    quoted = RULE["quoted"].match(text)
    plain = quoted[1] if quoted else re.sub('["`]', "", plain.removesuffix('"}'))
    plain = plain.rstrip("}") if re.fullmatch(r"[^{}\s]+\}", plain) else plain
    if maths := MATHS.fullmatch(plain):
        plain = next(group for group in maths.groups() if group is not None).strip()
    return None if statements.is_placeholder(plain) else plain or None


# --- integers -----------------------------------------------------------------------------------

_TIMES = re.compile(r"\\cdot|\\times|[*\u00b7\u00d7]")
_TERM = r"\d{1,6}(?:\^(?:\d|\{\d\}))?"
_SUM = re.compile(rf"-?{_TERM}(?:\s*(?:[-+*\u00b7\u00d7]|\\cdot|\\times)\s*{_TERM}){{0,9}}")


def _integer_of(statement: Statement) -> int | _Unclear | None:
    if statement.form in ("box", "tag"):
        goes_on = RULE["goes-on"].match(statement.more) or RULE["percent"].match(statement.more)
        number = None if goes_on else _whole_integer(statement.text)
        return UNCLEAR if number is None else number
    number = _stated_integer(statement.text)
    return UNCLEAR if number is None and RULE["numbered"].match(statement.text) else number


def _concluded_integer(tail: str) -> Concluded[int]:
    value, rule = _concluded_expression(tail)
    return (_stated_integer(value[0]), rule) if value else (None, rule)


def _stated_integer(value: str) -> int | None:
    value = RULE["hope"].sub("", value)
    if RULE["approximate"].match(value):
        return None
    if (number := _whole_integer(value)) is not None:
        return number
    leading = RULE["leading"].match(RULE["enclosing"].sub("", without_markup(value[:LONGEST])))
    return int(leading[1].replace(",", "")) if leading else None


def _whole_integer(text: str) -> int | None:
    """Return the integer that a whole text of LaTeX or markdown states; None for other texts."""
    if len(text) > TAIL or text.isdecimal():
        return int(text) if len(text) <= 30 else None
    plain = " ".join(text.split())
    unit = RULE["unit"].search(plain)
    if unit and not RULE["changes"].search(unit[1]):
        plain = plain[: unit.start()]
    plain = without_markup(plain).strip(" {}()[]_`\"'€£¥₹")
    unit = RULE["unit-words"].search(plain)
    plain = plain[: unit.start()] if unit and not RULE["changes"].search(unit[1]) else plain
    if scientific := RULE["scientific"].fullmatch(plain):
        value = Decimal(scientific[1]).scaleb(int(scientific[2]))
        return int(value) if value == int(value) else None
    if re.search(r"[<>\u2264\u2265\u2248]", plain):
        return None
    if "=" not in plain or re.search("[,;]", plain):
        return _number(plain)
    texts = [side.strip(' {}()*"') for side in plain.split("=")]
    sides = [_sum(side) for side in texts]
    numbers = {side for side in sides if side is not None}
    ends = sides[-1] is not None or (len(sides) == 2 and not texts[-1][:1].isdigit())
    return numbers.pop() if len(numbers) == 1 and ends else None


def _number(plain: str) -> int | None:
    return int(match[1].replace(",", "")) if (match := RULE["whole"].fullmatch(plain)) else None


def _sum(plain: str) -> int | None:
    """Return the value of sums, products and powers of a few small numbers; else None."""
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

AROUND_LETTER = " _'{},:\u2018\u2019\u201c\u201d\u00ab\u2039\u201e\u3010\u300c\u300e\u3014\u300a"
CLOSING_TAIL = 2000  # characters at the end that are searched for a picked letter
_COLON, _PARENTHESIS = re.compile(r":.{0,4}$", re.M), re.compile(r"\([^()]*\)")
CLOSING = ("pick", "must-be", "named-option", "bold-option")
"""Names of the rules that read closing sentences, the strongest rule first."""


@dataclass(frozen=True, slots=True)
class _Choices:
    """Reads which option of a question a reply gives, by the option's letter or by its text."""

    choices: tuple[str, ...]
    letters: str

    def find(self, text: str) -> list[Statement]:
        """Return statements of an answer: boxes, tags, labels, letters that are called correct."""
        hits, claims = statements.find(text, statements.CHOICE_WORDS), [*self._said_correct(text)]
        if hits and len({claim.text for claim in claims}) > 1:  # options discussed one by one
            return hits
        return statements.in_order(text, [*hits, *claims]) if claims else hits

    def _said_correct(self, text: str) -> Iterator[Statement]:
        base = max(0, len(text) - TAIL)
        for correct in RULE["said-correct"].finditer(text, base):
            position = correct.start()
            start = max(base, position - LONGEST // 2, text.rfind("\n", 0, position) + 1)
            letter = pattern("which-is", self.letters).search(text[start:position])
            if letter and not re.match(r"[A-P][)\]]", letter[0]):  # `A) is true`, an option
                start += letter.start()
                yield Statement(
                    "sentence", start, correct.end(), letter[1], "", 0, False, "said-correct"
                )

    def read(self, statement: Statement) -> str | _Unclear | None:
        """Return the option letter that a statement names; UNCLEAR for several, None for none."""
        explicit = statement.form in ("box", "tag")
        if explicit and (not statement.text or RULE["goes-on"].match(statement.more)):
            return UNCLEAR
        texts = [statement.more, statement.text] if statement.form == "line" else [statement.text]
        letter = self.letter(texts[0])
        # An option's own text may begin with a letter: `C. elegans`.
        unread = letter is None or letter is UNCLEAR
        for text in texts if self.choices else ():
            if (unread or len(text) > 2) and (option := letter_of_option(text, self.choices)):
                return option
        return UNCLEAR if letter and self.lists(texts[0]) else letter

    def without_options(self, text: str) -> str:
        """Return a text in which options that read like a hedge are replaced by their letters."""
        for letter, option in _hedges_among(self.choices, self.letters):
            text = option.sub(letter, text)
        return text

    def letter(self, text: str) -> str | _Unclear | None:
        """Return the option letter that begins a text; UNCLEAR if several do, None without any."""
        plain = without_markup(text[:LONGEST]).strip(AROUND_LETTER)
        plain = RULE["hope"].sub("", plain.replace('"', ""))
        if small := RULE["small"].match(plain):
            plain = small.group().upper() + plain[small.end() :]
        if choice := pattern("letter", self.letters).match(plain):
            return choice[1]
        return UNCLEAR if RULE["several"].match(plain) else None

    def lists(self, text: str) -> bool:
        """Return whether a text lists several options of a question by their letters."""
        letters = set(_of(self.letters, r"[(\[](@)[)\]]").findall(text))
        listed = len(letters) > 2 or pattern("listed", self.letters).search(text)
        return bool(listed) and not RULE["reasons"].search(text)

    def concluded(self, tail: str) -> Concluded[str]:
        """Return the option letter at the end of a reply without statements, and the rule used."""
        if may_match("rejected-list", tail.lower()):
            tail = RULE["rejected-list"].sub("\n", tail)
        lines = statements.last_lines(tail)
        if not lines or statements.contradicted(lines[-1]):
            return None, "none"
        last_line = without_markup(lines[-1][:LONGEST])
        if len(lines) == 1 and (letter := self._only(last_line)):
            return letter, "only"
        if closing := self._closing(tail):
            return closing
        if self.lists(last_line) or last_line.endswith(":"):  # the reply was cut off before its end
            return None, "none"
        for name, conclude in (
            ("option-line", self._option_line),
            ("concluded-letter", self._last_sentence),
            ("option-text", self._option_text),
        ):
            if letter := conclude(lines):
                return letter, name
        return None, "none"

    def _only(self, line: str) -> str | None:
        only = pattern("only", self.letters).fullmatch(line)
        return only[1].upper() if only else letter_of_option(line, self.choices)

    def _closing(self, tail: str) -> Concluded[str] | None:
        """Return (letter that the last lines pick, None if doubtful; rule); None without a pick."""
        text = self._lines_with_letters(f"{tail[-CLOSING_TAIL:]}\n")
        small = text.replace("\u0130", "I").lower()  # of the same length as the text
        for name in CLOSING if text else ():
            places = [start for need in rules()[name].needs if (start := small.find(need)) >= 0]
            if not places:
                continue
            line = text.rfind("\n", 0, min(places))  # a pick begins on this line or the one before
            begin = text.rfind("\n", 0, max(0, line)) + 1
            picks = [*pattern(name, self.letters).finditer(text, begin)]
            letters = {next(filter(None, pick.groups())).upper() for pick in picks}
            listed = any(self.lists(pick[0]) for pick in picks)
            if listed or len(letters) > 1 or (letters and self._is_doubted(text, picks[-1])):
                return None, name
            if letters:
                return letters.pop(), name
        return None

    def _lines_with_letters(self, tail: str) -> str:
        """Return the lines that name an option's letter or end with a colon ("It is:")."""
        token = pattern("letter-token", self.letters)
        places = (place for letter in self.letters for place in statements.places(tail, letter))
        spans = [match.span() for place in places if (match := token.match(tail, place))]
        spans += [match.span() for match in _of(self.letters.lower(), r"\(@\)").finditer(tail)]
        first_start = min((start for start, end in spans if end - start != 2), default=-1)
        if first_start < 0:
            return ""
        # A pick begins at most LONGEST before its letter; its whole line is needed.
        begin = tail.rfind("\n", 0, max(0, first_start - LONGEST)) + 1
        spans += [match.span() for match in _COLON.finditer(tail, begin)]
        starts = sorted({tail.rfind("\n", 0, start) + 1 for start, _ in spans if start >= begin})
        lines = [tail[start : tail.index("\n", start)] for start in starts]
        return "\n".join(line[-2 * LONGEST :] for line in lines)

    def _is_doubted(self, text: str, pick: re.Match[str]) -> bool:
        start = pick.start(pick.lastindex or 0)
        line_start = text.rfind("\n", 0, start) + 1
        behind = text[pick.end() : pick.end() + LONGEST]
        prefix = _PARENTHESIS.sub("", text[line_start:start][-300:])
        letters = {*pattern("letter-alone", self.letters).findall(behind[:40])}
        return (
            bool(letters - {pick[pick.lastindex or 0].upper()})
            or bool(RULE["no-pick"].search(prefix.rpartition(",")[2]))
            or behind.lstrip(" *").startswith("?")
            or bool(statements.doubted_sentence(prefix))
            or statements.contradicted(behind)
        )

    def _option_line(self, lines: Sequence[str]) -> str | None:
        option = pattern("option-line", self.letters)
        begins = pattern("option-begins", self.letters)
        if not any(begins.match(line) for line in (lines[0], *lines[-2:])):
            return None
        matches = [
            option.fullmatch(without_markup(line[:LONGEST])) if begins.match(line) else None
            for line in lines
        ]
        letters = {match[1] for match in matches if match}
        previous = matches[-2] if len(lines) > 1 else None
        if matches[-1] and not previous and len(letters) < 3:
            denied = statements.contradicted(matches[-1][0][matches[-1].end(1) :])
            return None if denied else matches[-1][1]
        return letters.pop() if len(letters) == 1 and (matches[0] or previous) else None

    def _last_sentence(self, lines: Sequence[str]) -> str | None:
        lines = [without_markup(line[:LONGEST]) for line in lines[-2:]]
        sentence = statements.last_sentences(lines[-1:])[0]
        if conclusion := pattern("concluded-letter", self.letters).fullmatch(sentence):
            letters = {*filter(None, conclusion.groups())}
        else:
            letters = {*pattern("predicate", self.letters).findall("\n".join(lines))}
            if not letters and sentence[-1:] in ".!)]*":
                letters = {*pattern("mention", self.letters).findall(sentence)}
                letters = set[str]() if letters and RULE["rejects"].search(sentence) else letters
        return letters.pop() if len(letters) == 1 and not statements.doubted(sentence) else None

    def _option_text(self, lines: Sequence[str]) -> str | None:
        """Return the letter of the option whose text the last sentence ends with or has in bold."""
        sentence = statements.last_sentences(lines[-1:])[0] if self.choices else ""
        verb = RULE["verb"].match(sentence)
        concluded = verb and RULE["concludes"].match(sentence) and not sentence.startswith("The ")
        texts = [
            *RULE["option-text"].findall(f"{sentence}**"),
            sentence[verb.end() :] if verb and concluded else "",
        ]
        letters = {letter_of_option(text, self.choices) for text in texts if text.strip(" *.")}
        letters.discard(None)
        denied = len(letters) != 1 or statements.doubted(sentence)
        return None if denied or RULE["rejects"].search(sentence) else letters.pop()


@cache
def _of(letters: str, text: str) -> re.Pattern[str]:
    return re.compile(text.replace("@", f"[{letters}]"))


STATED = ("Answer: {}) {}", "The correct answer is **{}. {}**.")


@lru_cache(maxsize=256)
def _hedges_among(choices: tuple[str, ...], letters: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return (letter, pattern) of each option that is misread even in a clear text (`STATED`)."""
    reader, hedges = _Choices(choices, letters), list[tuple[str, re.Pattern[str]]]()
    for name, option in zip(letters, choices, strict=False):
        texts = [folded(form.format(name, option)) for form in STATED]
        read = {_read(text, reader.find, reader.read, reader.concluded).value for text in texts}
        words = r"\s+".join(map(re.escape, folded(option).split()))
        if words and read != {name}:
            hedges.append((name, re.compile(rf"\b{name}[\s.):*_\]]{{1,5}}{words}")))
    return hedges


def letter_of_option(stated: str, choices: Sequence[str]) -> str | None:
    """Return the letter of the option whose text equals `stated`; None unless exactly one does.

    >>> letter_of_option("$42$ m.", ["41 m", "42 m", "43 m", "44 m"])
    'B'
    """
    text = _as_option(stated[:TAIL]) if choices else ""
    alike = [name for name, texts in _texts_of(tuple(choices)) if text in texts] if text else []
    return alike[0] if len(alike) == 1 else None


@lru_cache(maxsize=256)  # called for each line of all replies to a question
def _texts_of(choices: tuple[str, ...]) -> list[tuple[str, tuple[str, str]]]:
    return [
        (name, (_as_option(option), _as_option(f"{name} {option}")))
        for name, option in zip("ABCDEFGHIJKLMNOP", choices, strict=False)
    ]


def _as_option(text: str) -> str:
    return " ".join(without_markup(folded(text)).split()).rstrip(".").strip("'\"").casefold()
