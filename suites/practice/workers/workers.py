# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""The rehearsal workers: their parameters, how they read a chat, and their working memory.

A worker sees chat messages and nothing else: no `Question`, no target, no suite.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import Literal

from inspect_ai.model import ChatMessage

from podium.harness.errors import UserError

Facts = Literal["none", "common", "elements", "planets", "all"]
Manner = Literal[
    "solve", "part", "recite", "verify", "format", "plan", "act", "advise", "user", "dispatch"
]

ARITHMETIC = frozenset(
    {"sum", "difference", "product", "quotient", "floor quotient", "power", "remainder"}
)
SCHOOL = ARITHMETIC | {
    "common divisor", "common multiple", "digit sum", "digit count", "factorial", "binomial",
    "logarithm", "arithmetic series", "search", "divisible", "even", "odd", "square", "prime",
}  # fmt: skip
SCHOLARLY = SCHOOL | {"divisor count", "base conversion", "base reading", "geometric series"}
NOTHING = frozenset({"nothing"})
FACTORS = frozenset(
    {"divisor count", "divisor sum", "common divisor", "common multiple", "largest prime factor"}
)
DIGITS = frozenset({"digit sum", "base conversion", "base reading"})


@dataclass(frozen=True, slots=True)
class Worker:
    """A rehearsal worker: a program that answers chats, with its parameters."""

    name: str
    manner: Manner = "solve"
    slip: float = 0.01  # slips per elementary operation at temperature 1
    digits: int = 60  # longest number that it can hold
    reach: int = 20_000  # longest search or table, in steps
    knows: frozenset[str] = field(default_factory=frozenset[str])
    """Operations learnt; empty means all, `{"nothing"}` means none."""
    floats: bool = False  # computes powers in floating point, as a hasty program does
    facts: Facts = "none"
    formulas: bool = False
    stories: bool = False  # reads word problems about prices, rates and rows
    families: int = 0  # how many operations of programs it knows, commonest first
    code_slip: float = 0.0  # slips per line of a program
    passes: int = 1
    """How often the worker computes a problem; a third result decides if two differ."""
    verbosity: float = 1.0
    prose: bool = False  # ends in prose ("So it is 42.") rather than in the asked form
    latency_s: float = 1.0
    tokens_per_s: float = 80.0


# Skills belong to the worker; pools may override slips, limits and verbosity (model arguments).
WORKERS: dict[str, Worker] = {
    worker.name: worker
    for worker in (
        Worker("abacus", slip=0.02, digits=400, stories=True, latency_s=0.6, tokens_per_s=120),
        Worker("scribe", slip=0.03, digits=12, knows=ARITHMETIC, families=103, code_slip=0.05,
               latency_s=1.2, tokens_per_s=90),
        Worker("scholar", "recite", slip=0.03, knows=NOTHING, facts="all", formulas=True,
               verbosity=1.2, latency_s=0.9, tokens_per_s=100),
        Worker("sage", slip=0.035, digits=30, reach=400, knows=SCHOLARLY, facts="common",
               formulas=True, stories=True, passes=2, families=38, code_slip=0.03, verbosity=1.6,
               latency_s=3.0, tokens_per_s=45),
        Worker("swift", slip=0.04, digits=16, reach=120, knows=SCHOOL, floats=True, facts="common",
               formulas=True, families=27, code_slip=0.04, verbosity=0.7, prose=True,
               latency_s=0.2, tokens_per_s=250),
        Worker("planner", "plan", slip=0.03, digits=12, reach=100, knows=ARITHMETIC, verbosity=1.2,
               latency_s=1.0, tokens_per_s=100),
        Worker("verifier", "verify", slip=0.01, digits=60, reach=2000, knows=SCHOLARLY, families=27,
               code_slip=0.012, verbosity=1.3, latency_s=1.5, tokens_per_s=80),
        Worker("polymath", slip=0.004, digits=400, facts="all", formulas=True, stories=True,
               families=400, code_slip=0.003, latency_s=0.5, tokens_per_s=150),
        Worker("formatter", "format", slip=0.0, knows=NOTHING, verbosity=0.5, latency_s=0.2,
               tokens_per_s=200),
        Worker("chemist", "recite", knows=NOTHING, facts="elements"),
        Worker("astronomer", "recite", knows=NOTHING, facts="planets"),
        Worker("divider", "part", slip=0.004, knows=FACTORS),
        Worker("counter", "part", slip=0.004, knows=frozenset({"binomial"})),
        Worker("converter", "part", slip=0.004, knows=DIGITS),
        Worker("clerk", "part", slip=0.004, knows=ARITHMETIC, verbosity=0.5, latency_s=0.2,
               tokens_per_s=250),
        Worker("essayist", knows=NOTHING, verbosity=2.0, latency_s=3.0, tokens_per_s=40),
        Worker("guesser", "part", slip=0.9, facts="all", verbosity=0.5, latency_s=0.2),
        # Of agentic tasks (agents.py); slips per turn, whatever the temperature.
        Worker("concierge", "act", slip=0.02, knows=NOTHING, latency_s=2.5, tokens_per_s=50),
        Worker("steward", "act", slip=0.06, knows=NOTHING, latency_s=1.2, tokens_per_s=90),
        Worker("deputy", "act", slip=0.12, knows=NOTHING, latency_s=0.6, tokens_per_s=150),
        Worker("trainee", "act", slip=0.3, knows=NOTHING, latency_s=0.2, tokens_per_s=250),
        Worker("adviser", "advise", slip=0.02, knows=NOTHING, latency_s=2.0, tokens_per_s=60),
        Worker("dispatcher", "dispatch", slip=0.0, knows=NOTHING, latency_s=0.5, tokens_per_s=100),
        Worker("customer", "user", slip=0.0, knows=NOTHING, latency_s=0.5, tokens_per_s=100),
    )
}  # fmt: skip


def find_worker(name: str) -> Worker:
    """Return a rehearsal worker by name; UserError, which lists the known names, if unknown."""
    if name not in WORKERS:
        known = ", ".join(WORKERS)
        raise UserError(f"There is no rehearsal worker {name!r}; known workers: {known}.")
    return WORKERS[name]


Number = int | Fraction


class OutOfReach(Exception):
    """Raised if a computation passes a worker's limits; the worker then gives a weaker reply."""


@dataclass(slots=True)
class Scratch:
    """Working memory of a worker for one reply: random errors (slips) and lines of working."""

    random: random.Random
    worker: Worker
    slip: float  # probability that one elementary operation goes wrong
    lines: list[str] = field(default_factory=list[str])
    slipped: int = 0

    def learnt(self, operation: str) -> None:
        """Raise OutOfReach (a worker's limit) if the worker has not learnt an operation."""
        if self.worker.knows and operation not in self.worker.knows:
            raise OutOfReach(f"I do not know how to work out a {operation}")

    def slips(self, operations: float = 1.0) -> bool:
        """Return whether one of `operations` elementary operations goes wrong, at random.

        It draws one random number, so that workers that share a stream stay in step even if their
        rates of slips differ.
        """
        wrong = self.random.random() < 1.0 - (1.0 - self.slip) ** operations
        self.slipped += wrong
        return wrong

    def hold(self, value: Number, operations: float = 1.0) -> Number:
        """Return a result as the worker writes it, sometimes wrong; OutOfReach if too long."""
        size = len(str(abs(value.numerator))) if abs(value.numerator) < 10**4000 else 4001
        if size > self.worker.digits:
            raise OutOfReach(f"a number of {size} digits is too long for me")
        if not self.slips(operations):
            return value
        bump = 10 ** random.Random(f"{self.slipped}/{value}").randrange(min(size, 3))
        return value - bump if value > bump and self.slipped % 2 else value + bump

    def search(self, steps: int) -> None:
        """Raise OutOfReach (a worker's limit) if a search has more steps than the worker can."""
        if steps > self.worker.reach:
            raise OutOfReach(f"a search of {steps} steps is too long for me")

    def note(self, line: str) -> None:
        """Add a line of working to those of the reply, which has at most 40."""
        if len(self.lines) < 40:
            self.lines.append(line[:300])


AnswerKind = Literal["number", "choice", "program", "plan"]
_OPTION = re.compile(r"^\s*\(?([A-J])[).:]\s+(\S.*?)\s*$", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d{1,2})\. ", re.MULTILINE)
_PROGRAM = re.compile(
    r"class Solution|standard input|\bstdin\b|```python|(?:write|implement"
    r"|complete)\b[^.]{0,40}\b(?:program|function|method|code)"
    r"|first line (?:of (?:the )?input )?contains|\bpython (?:program|3)|input format"
    r"|\bpython\b|\bprint (?:the|its|yes|true|it|how|them|all|one|each|whether|out"
    r"|a single|every)\b",
    re.IGNORECASE,
)
_FORMAT_END = re.compile(
    r"boxed|answer: ?\$?[a-jx]|final answer|python block|code block|```", re.IGNORECASE
)
_BOXED = re.compile(r"\\boxed\s*\{\s*([^{}]*?)\s*\}")
_LETTER = re.compile(r"answer\s*(?:is)?\s*:?\s*\**\(?([A-J])\b", re.IGNORECASE)
_CODE = re.compile(r"```(?:python)?[ \t]*\n(.*?)```", re.DOTALL)
_PROSE = re.compile(
    r"(?:answer|result|it|that makes|total)\s*(?:is|=|:|equals)\s*\**(-?\d+)\b(?![.,]?\d)",
    re.IGNORECASE,
)
MAX_CHARS = 20_000


@dataclass(frozen=True, slots=True)
class Chat:
    """A request as a worker understands it: question, subtask, earlier replies, kind of answer."""

    question: str
    subtask: str
    earlier: tuple[str, ...]  # what other workers replied, in order
    system: str
    options: tuple[tuple[str, str], ...]  # the choices, as (letter, text)
    asked: AnswerKind
    gathered: bool = False
    """Whether earlier replies are a numbered list, so that the worker must make one of them."""

    @property
    def everything(self) -> str:
        """The question, followed by the worker's own subtask."""
        return f"{self.question}\n\n{self.subtask}".strip()


def read_chat(messages: Sequence[ChatMessage]) -> Chat:
    """Return a request as question, subtask, earlier replies ...; any messages can be read."""
    system = _bounded("\n".join(m.text for m in messages if m.role == "system"))
    users = [_bounded(m.text) for m in messages if m.role == "user"]
    earlier = [_bounded(m.text) for m in messages if m.role == "assistant"]
    first = users[0] if users else ""
    question, subtask = _split(first)
    if len(users) > 1:
        subtask = "" if users[-1].strip() == "Continue." else users[-1]
    numbered = _numbered(system)
    options = tuple((m[1], m[2]) for m in _OPTION.finditer(question))
    options = options if len(options) >= 2 and options[0][0] == "A" else ()
    replies = (*earlier, *numbered)
    return Chat(
        question, subtask, replies, system, options, _answer_kind(first, options), bool(numbered)
    )


def _bounded(text: str) -> str:
    """Return a text cut at MAX_CHARS characters, with each number in it cut at 400 digits."""
    return re.sub(r"\d{400,}", lambda run: run[0][:400], text[:MAX_CHARS])


def _answer_kind(text: str, options: tuple[tuple[str, str], ...]) -> AnswerKind:
    if "USER QUESTION:" in text and "AVAILABLE LANGUAGE MODELS:" in text:
        return "plan"
    if _PROGRAM.search(text):
        return "program"
    return "choice" if options else "number"


def _split(text: str) -> tuple[str, str]:
    """Split a first turn into question and subtask, which follows the answer-format paragraph."""
    paragraphs = text.split("\n\n")
    for at in range(len(paragraphs) - 1, 1, -1):
        if _FORMAT_END.search(paragraphs[at - 1]) and not _OPTION.search(paragraphs[-1]):
            return "\n\n".join(paragraphs[:at]), "\n\n".join(paragraphs[at:])
    return text, ""


def _numbered(system: str) -> list[str]:
    marks = list(_NUMBERED.finditer(system))
    ends = [*[mark.start() for mark in marks[1:]], len(system)]
    return [system[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=False)]


def final_answer(reply: str, asked: AnswerKind) -> str | None:
    """Return the answer with which an earlier reply ends, or None if the reply states none."""
    if asked == "program":
        blocks = _CODE.findall(reply)
        return str(blocks[-1]).strip("\n") if blocks else None
    if asked == "choice":
        letters = _LETTER.findall(reply)
        return str(letters[-1]).upper() if letters else None
    boxed = _BOXED.findall(reply) or _PROSE.findall(reply)
    return str(boxed[-1]).strip() if boxed and re.fullmatch(r"-?\d+", boxed[-1].strip()) else None


_UNIT_WORDS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
    "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TEN_WORDS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ORDINAL_WORDS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
    "eleventh", "twelfth",
)  # fmt: skip
UNITS = {word: value for value, word in enumerate(_UNIT_WORDS)}
TENS = {word: 10 * value for value, word in enumerate(_TEN_WORDS, start=2)}
ORDINALS = {word: value for value, word in enumerate(_ORDINAL_WORDS, start=1)}
_WORD = "|".join([*UNITS, *TENS])
_NUMBER_WORDS = re.compile(
    rf"\b(?:a hundred|a thousand|(?:{_WORD}|hundred|thousand)(?![a-z]))"
    rf"(?:(?:[ -]| and )(?:{_WORD}|hundred|thousand)(?![a-z]))*"
)
_TENTHS = {word.removesuffix("y") + "ieth": value for word, value in TENS.items()}
_TEENTH = {f"{word}th": value for word, value in UNITS.items() if value > 12}
_PLACES = {**{w: v for w, v in ORDINALS.items() if v > 2}, **_TEENTH, **_TENTHS, "hundredth": 100}
_ORDINAL = re.compile(rf"\b(?:({'|'.join(TENS)})-)?({'|'.join([*ORDINALS, *_PLACES])})\b")
_LATEX = [
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\\left|\\right|\\displaystyle|\\,|\\;|\\!|\\\(|\\\)|\\\[|\\\]|\$", " "),
        (r"\\(?:text|mathrm|operatorname|mathbf)\s*\{([^{}]*)\}", r" \1 "),
        (r"\\d?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"((\1)/(\2))"),
        (r"\\d?t?binom\s*\{([^{}]*)\}\s*\{([^{}]*)\}", r"binom(\1,\2)"),
        (r"\\(?:times|cdot|ast)\b|[×·⋅∗]", "*"),
        (r"\\div\b|÷", "/"),
        (r"\\pmod\s*\{([^{}]*)\}", r"(mod \1)"),
        (r"\\b?mod\b|\\bmod\b", " mod "),
        (r"\\equiv\b", "≡"),
        (r"\\(gcd|lcm|binom|max|min|log|phi|tau|sigma)\b", r"\1"),
        (r"\\(?:leq?|le)\b", "≤"),
        (r"\\(?:geq?|ge)\b", "≥"),
        (r"\\(?:dots|ldots|cdots)\b|…", "..."),
        (r"[−–—]", "-"),
        (r"\*\*", "^"),
    )
]
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_PRONOUN_ONE = re.compile(
    r"\b(the|each|every|this|that|another|any|only|other|last|next|previous|than|which|no) one\b"
    r"|\bone (?=(?:choose|select|form|pick|make|arrange|write|find|get|obtain|by|another|after|before|who|that|which|can|way|or more)\b)"
)
_FORMAT = re.compile(
    r"boxed|final answer|answer:|between 0 and 999|from 0 to 999|0-999|last line|four options"
    r"|answer is (?:always )?an integer|reply with|step by step|your answer|show "
    r"your (?:work|reasoning)",
    re.IGNORECASE,
)


def spell_out(text: str) -> str:
    """Return the text with number words replaced by digits.

    >>> spell_out("twenty-three apples and one hundred and five pears")
    '23 apples and 105 pears'
    """
    return _NUMBER_WORDS.sub(lambda found: _as_digits(found[0]), text)


def _in_order(found: re.Match[str]) -> str:
    """Return an ordinal in digits; `first` and `second` stay words, since they have other uses."""
    tens, last = TENS.get(found[1] or "", 0), found[2]
    if not tens and last not in _PLACES:
        return found[0]
    return f"{tens + {**ORDINALS, **_PLACES}[last]}th"


def _as_digits(words: str) -> str:
    total, group, said = 0, 0, ""
    numbers: list[str] = []
    for word in re.split(r"[ -]+", words):
        if word == "and" and said in ("hundred", "thousand"):
            continue
        if word == "and" or (said in UNITS and word in {**UNITS, **TENS}):
            numbers.append(str(total + group))
            total, group = 0, 0
        if word == "hundred":
            group = max(group, 1) * 100
        elif word == "thousand":
            total, group = total + max(group, 1) * 1000, 0
        else:
            group = 1 if word == "a" else group + UNITS.get(word, TENS.get(word, 0))
        said = word
    numbers.append(str(total + group))
    return (" and " if " and " in words and len(numbers) > 1 else " ").join(numbers)


@lru_cache(maxsize=8192)
def plain_words(text: str) -> str:
    r"""Return lower-case text with digits for number words and + - * / ^ for operators.

    >>> plain_words(r"Find $7^{13} \times 2$, then add Twelve.")
    'find 7^(13) * 2 , then add 12.'
    """
    text = re.sub(r"([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", lambda run: "^" + run[0].translate(_SUPERSCRIPTS), text)
    for pattern, replacement in _LATEX:
        text = pattern.sub(replacement, text)
    text = text.replace("{", "(").replace("}", ")").replace("’", "'").lower()
    text = re.sub(r"(?<![\d,])(\d{1,3}(?:,\d{3})+)(?![\d,])", lambda n: n[0].replace(",", ""), text)
    text = re.sub(r"(\d)\s+x\s+(\d)", r"\1 * \2", text)
    text = re.sub(r"(\d)\s?_\s?\(?(\d+)\)?", r"\1 base \2", text)
    text = _ORDINAL.sub(_in_order, text)
    text = _PRONOUN_ONE.sub(lambda found: f"{found[1] or 'a'} item ", text)
    text = re.sub(r"(?<=[a-z])-(?=\d)|(?<=\d)-(?=[a-z]{2})", " ", spell_out(text))
    return re.sub(r"[ \t]+", " ", text).strip()


def without_format(text: str) -> str:
    """Return the text without the sentences that only say how to write the answer."""
    kept = [part for part in re.split(r"(?<=[.!?:])\s+|\n+", text) if not _FORMAT.search(part)]
    return "\n".join(kept)


_N = r"(\d+)"
_INTO = r"(?:goes|go|fits?)(?: evenly| exactly| in)? into"
_NOUN = r"(?:(?:whole |natural |positive )*(?:numbers?|integers?)|value)"
_THESAURUS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        # dividing
        (r"\b(?:can be|could be) (?:evenly |exactly )?divided (?:evenly |exactly )?by", "are divisible by"),
        (rf"divisible by {_N} (or|and|nor) by {_N}", r"divisible by \1 \2 \3"),
        (rf"sum of (?:all )?(?:the )?{_NOUN} (?:that|which) (?:divide|{_INTO})(?: evenly)? {_N}", r"sum of the divisors of \1"),
        # ways
        (r"\b(?:everybody|everyone|each(?: of them| one| person| \w+)?)\b[^.?#]{0,40}?\b(?:once )?(?:with |to |against )?(?:everybody|everyone|all the|each of the|all) (?:else|others?)", "everyone shakes hands with each other"),
        # plain arithmetic
        (rf"\b(?:and )?(?:then )?take away {_N}(?! from)", r"and then subtract \1"),
    )
)  # fmt: skip
_BOTH = re.compile(r"(\d+)(?=[^.,;?\d]*\bboth\b)|\bboth\b[^.,;?\d]*?(\d+)")


@lru_cache(maxsize=4096)
def usual_words(text: str) -> str:
    """Return a plain text with everyday words replaced by the usual words of mathematics.

    >>> usual_words("Which of 14, 15 and 16 can be evenly divided by 7?")
    'Which of 14, 15 and 16 are divisible by 7?'
    """
    for pattern, words in _THESAURUS:
        text = pattern.sub(words, text)
    return text


# A deterministic tokenizer, nobody's real one: usage is counted offline and the same everywhere.
_PIECES = re.compile(r"[^\W\d_]{1,6}|\d{1,3}|\n+|[^\w\s]|_")


def count_tokens(text: str) -> int:
    """Return the number of tokens in a text, by a deterministic tokenizer that no real model has.

    >>> count_tokens("The answer is 1234.")
    6
    """
    return sum(1 for _ in _PIECES.finditer(text))


def cut_tokens(text: str, limit: int) -> str:
    """Return the text up to and including its `limit`-th token."""
    if limit <= 0:
        return ""
    if limit > len(text):
        return text  # a token has a character at least
    kept = list(islice(_PIECES.finditer(text), limit))
    return text if len(kept) < limit else text[: kept[-1].end()]
