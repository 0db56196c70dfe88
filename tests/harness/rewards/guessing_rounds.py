"""Rounds of a guessing game for graders: keys that differ, of which a guesser knows all but which.

A family draws its keys anew each round. They differ so that no careful examiner would mark one
reply right for two of them: a reply that passes for two is paid for a hedge.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from podium.harness.records import Question
from tests.suites.battery import KINDS


@dataclass(frozen=True, slots=True)
class GuessingRound:
    """Some keys, one of them right, and the texts that a guesser may put into a reply."""

    keys: tuple[str, ...]
    parts: tuple[str, ...]
    choices: tuple[str, ...] = ()

    def question(self, suite: str, key: str) -> Question:
        """Return the question whose key is this one."""
        metadata = {"choices": [*self.choices]} if self.choices else {}
        return Question("guess", "?", KINDS[suite], key, metadata=metadata)


Family = Callable[[Random], GuessingRound]


def _plain(*keys: str) -> GuessingRound:
    return GuessingRound(keys, keys)


def _integers(rng: Random) -> GuessingRound:
    return _plain(*map(str, rng.sample(range(1000), 4)))


def _neighbours(rng: Random) -> GuessingRound:
    first = rng.randrange(2, 90)
    return _plain(*map(str, rng.sample([first, first + 1, 10 * first, 10 * first + 1], 4)))


def _sums(rng: Random) -> GuessingRound:
    one, two = rng.sample(range(11, 400), 2)
    return _plain(str(one), str(two), str(one + two), str(abs(one - two)))


def _letters(rng: Random) -> GuessingRound:
    return _plain(*rng.sample("ABCD", 4))


def _options(rng: Random) -> GuessingRound:
    """Letters with options: parts are letters in some order, then their texts."""
    letters = rng.sample("ABCD", 4)
    texts = rng.sample(["12 kPa", "a violet solution", "the outer shell", "3.5 m", "helium"], 4)
    named = [texts["ABCD".index(letter)] for letter in letters]
    return GuessingRound(tuple(letters), (*letters, *named), tuple(texts))


def _small(rng: Random) -> GuessingRound:
    return _plain(*map(str, rng.sample([n for n in range(-30, 31) if n], 4)))


def _scaled(rng: Random) -> GuessingRound:
    first = rng.choice((2, 3, 4, 6, 7, 8, 9, 12, 15))
    return _plain(str(first), str(first * 100), str(first * 1000), str(first * 1000000))


def _fractions(rng: Random) -> GuessingRound:
    over, under = rng.sample((2, 3, 5, 7, 11, 13), 2)
    forms = (rf"\frac{{{over}}}{{{under}}}", rf"\frac{{{under}}}{{{over}}}")
    return _plain(*forms, *(f"-{form}" for form in forms))


def _intervals(rng: Random) -> GuessingRound:
    """The four intervals of two numbers; parts are the ends."""
    one, two = sorted(rng.sample(range(-9, 10), 2))
    both = f"{one},{two}"
    return GuessingRound((f"({both})", f"[{both}]", f"({both}]", f"[{both})"), (str(one), str(two)))


def _solutions(rng: Random) -> GuessingRound:
    """Two numbers as a list, and the intervals that a bare list cannot be meant for."""
    one, two = sorted(rng.sample(range(-9, 10), 2))
    both = f"{one},{two}"
    return GuessingRound((both, f"[{both}]", f"({both}]", f"[{both})"), (str(one), str(two)))


def _points(rng: Random) -> GuessingRound:
    one, two = rng.sample(range(1, 30), 2)
    keys = f"({one},{two})", f"({two},{one})", f"(-{one},{two})", f"({one},-{two})"
    return GuessingRound(keys, (str(one), str(two)))


def _lists(rng: Random) -> GuessingRound:
    """Solutions alone, by twos and all three."""
    one, two, three = map(str, rng.sample(range(2, 40), 3))
    keys = one, two, f"{one},{two}", f"{one},{three}", f"{one},{two},{three}"
    return GuessingRound(keys, (one, two, three))


def _roots(rng: Random) -> GuessingRound:
    one, two = rng.sample((2, 3, 5, 7, 11), 2)
    return _plain(rf"\sqrt{{{one}}}", rf"\sqrt{{{two}}}", rf"{one}\sqrt{{{two}}}", rf"{one}\pi")


def _text_letters(rng: Random) -> GuessingRound:
    letters = rng.sample("ABCDE", 4)
    return GuessingRound(tuple(rf"\text{{({letter})}}" for letter in letters), tuple(letters))


def _text_words(rng: Random) -> GuessingRound:
    words = rng.sample(("even", "odd", "circle", "ellipse", "parabola", "Monday", "Navin"), 4)
    return GuessingRound(tuple(rf"\text{{{word}}}" for word in words), tuple(words))


def _polynomials(rng: Random) -> GuessingRound:
    one, two = rng.sample(range(2, 12), 2)
    return _plain(f"x^2+{one}", f"x^2-{one}", f"x^2+{two}", f"{two}x^2+{one}")


def _many_letters(rng: Random) -> GuessingRound:
    return _plain(*rng.sample("ABCDEFGHIJ", 10))


def _words(rng: Random) -> GuessingRound:
    words = "increases", "decreases", "Business", "zero", "Marxism", "entropy", "copper", "oxygen"
    return _plain(*rng.sample(words, 4))


def _yes_or_no(rng: Random) -> GuessingRound:
    return _plain(*rng.sample(("Yes", "No"), 2))


def _decimals(rng: Random) -> GuessingRound:
    return _plain(*(f"{n / 100:.2f}" for n in rng.sample(range(101, 9999), 4)))


HEDGED: Mapping[str, Sequence[str]] = {
    "aime25": ("integers",),
    "gpqa-diamond": ("letters", "letters with options"),
    "math500": ("integers", "fractions", "letters", "words"),
    "rlpr": ("letters", "words", "integers", "yes or no"),
}
"""By suite, the families in which a key is a single value, so that two of them conflict."""

FAMILIES: Mapping[str, Mapping[str, Family]] = {
    "aime25": {"integers": _integers, "neighbours": _neighbours, "sums": _sums},
    "gpqa-diamond": {"letters": _letters, "letters with options": _options},
    "math500": {
        "integers": _small,
        "scaled": _scaled,
        "fractions": _fractions,
        "intervals": _intervals,
        "lists and intervals": _solutions,
        "points": _points,
        "lists": _lists,
        "roots": _roots,
        "letters": _text_letters,
        "words": _text_words,
        "polynomials": _polynomials,
    },
    "rlpr": {
        "letters": _many_letters,
        "words": _words,
        "yes or no": _yes_or_no,
        "integers": _integers,
        "decimals": _decimals,
    },
}
"""By suite, what its keys look like."""

ALGEBRA = frozenset(("intervals", "lists and intervals", "points", "lists", "roots", "polynomials"))
"""Families whose keys go to math-verify for most replies, some 30 ms each."""
SHARE = 0.1
"""Of other families' replies, for those."""


def budget(suite: str, replies: int, families: Sequence[str] = ()) -> dict[str, int]:
    """Return how many of a suite's replies each family of keys gets."""
    named = families or [*FAMILIES[suite]]
    weights = {name: SHARE if name in ALGEBRA else 1.0 for name in named}
    return {name: int(replies * weight / sum(weights.values())) for name, weight in weights.items()}
