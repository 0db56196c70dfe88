r"""The rules that grade RLPR without a model: what a reply states, and whether it is the reference.

Follows OpenBMB/RLPR at 8490fca: `compute_score` and `match_answer` of
verl/utils/reward_score/prime_math/__init__.py and, for letters, reward_score/multi_choice.py.
Numbers are in suites/quantities.py, expressions in suites/equality.py: RLPR's `math_equal` runs
`eval` on a reply. Where we differ, on purpose:

- Only the last statement counts. There, the reference in any box of a reply is enough.
- Prose without a marker (`<answer>`, `\boxed`, "answer:", "answer is") is no answer.
- Of a box that was cut off nobody knows what it would have said.

A reference in prose is none of these: only a model can judge it (`kind_of`).
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from harness.extract import extract_choice, extract_expressions
from harness.statements import without_markup
from suites.equality import choice
from suites.latex import spelled
from suites.quantities import alike, contradicts_itself, quantity

Kind = Literal["number", "choice", "words", "expression", "text"]
Equal = Callable[[str, str], bool]
"""Whether two expressions, the reference first, are mathematically equal."""

LONGEST = 200
"""Characters of an expression; whatever is longer is prose."""
LETTERS = "ABCDEFGHIJKLMNOP"
WORDS = 3
"""A reference of so many words at most is compared as it stands, a longer one is prose."""

MOST_WORDS = 12
"""Words of an answer that a yes or no may lead."""

_SEVERAL = re.compile(r"[,;]\s|\bor\b|\band\b|\n")
_CUT = re.compile(r"=|:\s|\b(?:is|are|be|approximately)\s|\u2248|\\approx\b")
_A_WORD = r"[^\W\d_](?:[^\W\d_]|['\u2019-])*"
_LETTER = re.compile(r"\(?([A-P])\)?\.?")
_PLAIN_WORDS = re.compile(rf"{_A_WORD}(?: {_A_WORD}){{0,{WORDS - 1}}}")
_YES_OR_NO = ("yes", "no")
_YES_OR_NO_FIRST = re.compile(
    r"(yes|no)(?:\s*[,.;:!]|\s+[-\u2013\u2014]|\s+(?:it|they|this|that)\b)", re.I
)
_TAKES_NO_BACK = re.compile(
    r"\b(?:yes|or|but|however|maybe|sometimes|perhaps|unless|except)\b", re.I
)
_TAKES_YES_BACK = re.compile(rf"\bnot?\b|n['\u2019]t\b|{_TAKES_NO_BACK.pattern}", re.I)
_MATHEMATICAL = re.compile(r"[\d=^_\\+*/<>()\[\]|\u221a\u03c0\u221e-]|\b[A-Za-z]\b")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_FUNCTIONS = re.compile(
    r"arc(?:sin|cos|tan)|(?:sin|cos|tan)h?|cot|sec|csc|log|exp|sqrt|lim|max|min|inf|sup|mod|det|gcd"
    r"|lcm|int|sum|prod|frac|[pbvBV]?matrix|cases|array|aligned",
    re.I,
)


@lru_cache(maxsize=4096)
def kind_of(reference: str) -> Kind:
    """Return how a reference can be compared; `text` is prose, which only a model can judge.

    >>> [kind_of(gold) for gold in ("1.13e4 N", "(B)", "Business", "F=qvB", "It falls over time.")]
    ['number', 'choice', 'words', 'expression', 'text']
    """
    plain = _plain(reference)
    if _LETTER.fullmatch(plain):
        return "choice"
    if quantity(reference) is not None:
        return "number"
    if _PLAIN_WORDS.fullmatch(plain) and "\\" not in spelled(plain):
        return "words"
    words = [word for word in _WORD.findall(plain) if not _FUNCTIONS.fullmatch(word)]
    if len(words) <= 1 and len(plain) <= LONGEST and _MATHEMATICAL.search(plain):
        return "expression"
    return "text"


def stated(reply: str, kind: Kind = "text") -> tuple[str, ...]:
    """Return what a reply gives as its answer to a question of a kind.

    Several where they stand together, none where there is no answer.
    """
    if kind != "choice":
        return extract_expressions(reply)
    found = extract_choice(reply, letters=LETTERS)
    return (found,) if found else ()


def agrees(reference: str, answer: str, equal: Equal) -> bool:
    """Return whether an answer that was stated is the reference, by the rules of its kind."""
    kind = kind_of(reference)
    if kind == "choice":
        return choice(_plain(answer)) == _plain(reference).strip("().")
    forms = [] if contradicts_itself(answer) else _forms(answer)
    if kind == "words":
        word = _plain(reference).casefold()
        if word in _YES_OR_NO and _leads(answer) == word:
            return True
        return any(_bare(form) == _bare(reference) for form in [answer, *forms])
    if kind != "number" and any(_compact(form) == _compact(reference) for form in [answer, *forms]):
        return True
    return any(_same(reference, form, equal) for form in forms if 0 < len(form) <= LONGEST)


def _same(reference: str, answer: str, equal: Equal) -> bool:
    gold, said = quantity(reference), quantity(answer)
    return alike(gold, said) if gold and said else equal(reference, answer)


def _leads(answer: str) -> str | None:
    """Return the yes or no with which a short answer begins and that nothing in it takes back."""
    plain = _plain(answer)
    found = _YES_OR_NO_FIRST.match(plain)
    if not found or len(plain.split()) > MOST_WORDS:
        return None
    word = found[1].lower()
    back = _TAKES_YES_BACK if word == "yes" else _TAKES_NO_BACK
    return None if back.search(plain, found.end(1)) else word


def _forms(answer: str) -> list[str]:
    """Return an answer as it stands and, where it is one statement, what comes after "x =".

    `match_answer` cuts there, too, but also in "a=5, b=6, c=7", which states three answers.
    """
    plain = answer.strip().rstrip(".").strip()
    cuts = list(_CUT.finditer(plain[: 2 * LONGEST]))
    if not cuts or _SEVERAL.search(plain[: cuts[-1].start()]):
        return [plain]
    return [plain, plain[cuts[-1].end() :].strip()]


def _plain(text: str) -> str:
    """Return a text without markup, escapes of signs and a full stop at its end."""
    plain = without_markup(text[: 4 * LONGEST].replace("\\$", "").replace("\\%", "%"))
    return plain.removesuffix(".").strip() or text.strip()


@lru_cache(maxsize=4096)
def _compact(text: str) -> str:
    plain = _plain(text).replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
    return re.sub(r"\s+", "", plain).casefold()


@lru_cache(maxsize=4096)
def _bare(text: str) -> str:
    """Return words without an article, hyphens, signs and a last s."""
    words = re.sub(r"[^\w\s]", " ", re.sub("['\u2019]", "", _plain(text).casefold())).split()
    plain = " ".join(words[1:] if words[0:1] and words[0] in _SMALL and words[1:] else words)
    return plain.removesuffix("s")


_SMALL = ("a", "an", "the", "it", "they")
