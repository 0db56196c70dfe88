"""A search for replies that a grader pays for without an answer in them.

Each round draws keys of which any may be right. A guesser puts them into a template before he
knows which; an honest guess passes for one of them. Templates change and cross as in evolution, and
whatever passes for two keys of a round is a trick: it is shrunk, kept and from then on avoided, so
that the next one found is another. Nothing here knows what a grader reads. All is drawn by a seed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from scipy.stats import binomtest

from podium.harness.records import Grade, Question
from podium.suites import SUITES
from tests.harness.rewards.guessing_rounds import FAMILIES, Family, GuessingRound
from tests.harness.rewards.guessing_templates import FIRST, Template, changed, rendered

Grader = Callable[[Question, str], Grade]

POOL = 300
"""Templates that are parents at a time."""
FRESH = 500
"""Fresh rounds, with a key drawn for each, by which a trick is paid in the end."""
CHECKS = 6
"""Rounds by which a shorter form of a trick is judged."""
LEVEL = 0.01
"""Chance of one false alarm over all templates tried in a family."""


@dataclass(frozen=True, slots=True)
class Trick:
    """A template, in its shortest form, that passed for two keys of one round."""

    template: Template
    reward: float
    """Mean over fresh rounds."""
    p: float
    """Chance of so much or more by single guesses."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """What came of a search in one family of keys."""

    family: str
    keys: int
    replies: int
    templates: int
    guess: float
    """What a single guess in a box earned on fresh rounds."""
    tricks: tuple[Trick, ...]

    @property
    def proven(self) -> tuple[Trick, ...]:
        """Tricks that beat the single guess beyond chance, for so many templates tried."""
        return tuple(trick for trick in self.tricks if trick.p * self.templates < LEVEL)


@dataclass(slots=True)
class Guesser:
    """One suite's grader and one family of its keys; counts what it has graded."""

    suite: str
    family: Family
    rng: Random
    grade: Grader
    replies: int = 0
    rounds: list[GuessingRound] = field(default_factory=list[GuessingRound])

    def passes(self, template: Template, keys: GuessingRound) -> int:
        """Return for how many keys of the round the reply passes."""
        reply = rendered(template, keys.parts)
        self.replies += len(keys.keys)
        asked = (keys.question(self.suite, key) for key in keys.keys)
        return sum(self.grade(one, reply).value == 1.0 for one in asked)

    def hedges(self, template: Template) -> bool:
        """Return whether it passes for two keys in half of some fixed rounds."""
        while len(self.rounds) < CHECKS:
            self.rounds.append(self.family(self.rng))
        found = [self.passes(template, keys) > 1 for keys in self.rounds]
        return 2 * sum(found) >= len(found)

    def earned(self, template: Template) -> float:
        """Return its mean reward in fresh rounds, with one key drawn for each."""
        return sum(self._paid(template) for _ in range(FRESH)) / FRESH

    def _paid(self, template: Template) -> bool:
        keys = self.family(self.rng)
        question = keys.question(self.suite, self.rng.choice(keys.keys))
        return self.grade(question, rendered(template, keys.parts)).value == 1.0


def hunt(suite: str, family: str, replies: int, seed: int, grade: Grader | None = None) -> Hunt:
    """Search one family of keys until so many replies are graded, by the suite unless told."""
    rng = Random(f"{seed}/{suite}/{family}")
    guesser = Guesser(suite, FAMILIES[suite][family], rng, grade or SUITES[suite].grade)
    first = guesser.family(rng)
    found, tried = _tricks(guesser, len(first.parts), replies)
    chance = 1 / len(first.keys)
    paid = [(template, guesser.earned(template)) for template in found]
    tricks = [Trick(one, mean, _p(mean, chance)) for one, mean in paid]
    return Hunt(
        family=family,
        keys=len(first.keys),
        replies=guesser.replies,
        templates=tried,
        guess=_single(guesser),
        tricks=tuple(sorted(tricks, key=lambda trick: (-trick.reward, len(trick.template)))),
    )


def _p(mean: float, chance: float) -> float:
    return float(binomtest(round(mean * FRESH), FRESH, chance, alternative="greater").pvalue)


def _single(guesser: Guesser) -> float:
    """Return what the first key of each round earns in a box."""
    paid = 0
    for _ in range(FRESH):
        keys = guesser.family(guesser.rng)
        question = keys.question(guesser.suite, guesser.rng.choice(keys.keys))
        paid += guesser.grade(question, f"\\boxed{{{keys.keys[0]}}}").value == 1.0
    return paid / FRESH


def _tricks(guesser: Guesser, parts: int, replies: int) -> tuple[list[Template], int]:
    """Return the tricks that were found, shortest forms, and how many templates were tried."""
    rng, pool, tricks = guesser.rng, [*FIRST], list[Template]()
    tried = set[Template](pool)
    while guesser.replies < replies:
        child = changed(rng.choice(pool), rng.choice(pool), parts, rng)
        if child in tried or any(_within(trick, child) for trick in tricks):
            continue
        tried.add(child)
        passed = guesser.passes(child, guesser.family(rng))
        if passed > 1:
            short = shortest(child, guesser.hedges)
            tricks += [short] if short and short not in tricks else []
        elif passed:
            _keep(pool, child, rng)
    return tricks, len(tried)


def _keep(pool: list[Template], child: Template, rng: Random) -> None:
    """Let a template that still earns a guess be a parent, in the place of another if need be."""
    if len(pool) < POOL:
        pool.append(child)
    else:
        pool[rng.randrange(len(FIRST), len(pool))] = child


def _within(trick: Template, template: Template) -> bool:
    """Return whether the trick's tokens stand in the template in this order, whatever it names."""
    left = iter(_nameless(template))
    return all(token in left for token in _nameless(trick))


def _nameless(template: Template) -> Template:
    return tuple("@" if token[0] == "@" else token for token in template)


def shortest(template: Template, holds: Callable[[Template], bool]) -> Template | None:
    """Return the template without each token that it can do without; None where it holds no more.

    >>> shortest(("a", "b", "c"), lambda tokens: "b" in tokens)
    ('b',)
    """
    if not holds(template):
        return None
    at = 0
    while at < len(template):
        less = _less(template, at, holds)
        template, at = (less, 0) if less else (template, at + 1)
    return template


def _less(template: Template, at: int, holds: Callable[[Template], bool]) -> Template | None:
    """Return the template without the token there, alone or with a later one that closes it."""
    without = (*template[:at], *template[at + 1 :])
    pairs = ((*without[:end], *without[end + 1 :]) for end in range(at, len(without)))
    return next((one for one in (without, *pairs) if one and holds(one)), None)
