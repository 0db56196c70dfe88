"""Practice suites: questions that small generators (topics) draw at random from a seed.

The three splits `train`, `validation` and `eval` have no question in common.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import Any

from podium.harness.errors import UserError
from podium.harness.records import EMPTY, Grade, Question
from podium.harness.suite import Card, Split
from podium.sandbox import Box
from podium.suites.base import DatasetSuite, card

GENERATOR = "1"
"""Version of all generators together: raise it with any change to a question text or answer."""

SEED = 20251
SPLITS: tuple[Split, ...] = ("train", "validation", "eval")
SIZES: Mapping[Split, int] = {"train": 200, "validation": 60, "eval": 300}

RESIDUES: tuple[Split, ...] = (
    *("train", "train", "train", "train", "validation", "validation", "eval", "eval"),
)

PATIENCE = 400
"""Number of successive draws without a new question after which a topic counts as exhausted."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A generated question before it has an id."""

    key: str
    """Identifies the question whatever its wording: topic and parameters, such as `gcd 12 18`."""
    text: str
    target: str
    options: tuple[str, ...] = ()
    """The wrong options of a multiple-choice question; empty for other questions."""
    metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)


Topic = Callable[[Random], Draft | None]
"""A function that generates one random question, or None if the question is unusable, e.g. because
its answer is out of range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PracticeSuite(DatasetSuite):
    """A suite whose questions are drawn by its topics: functions that return a question each."""

    topics: Mapping[str, Topic]
    write: Callable[[str, Draft], Question]
    judge: Callable[[Question, str, Box | None], Grade]
    seed: int = SEED
    sizes: Mapping[Split, int] = field(default_factory=lambda: SIZES)
    dates: str = "generated"
    splits: tuple[Split, ...] = SPLITS

    @property
    def data_revision(self) -> str:
        """Version of the question generators, and the seed of the random draws."""
        return f"generator-{GENERATOR}-seed-{self.seed}"

    @property
    def card(self) -> Card:
        """The suite's description (card), with the number of questions in each split."""
        return replace(card(self.name), sizes=self.sizes)

    def questions(self, split: Split) -> Sequence[Question]:
        """Generate a split's questions; if its size grows, the first questions stay the same."""
        seed = f"{self.name}/{self.seed}/{split}"
        drafts = _drafts(tuple(self.topics.items()), split, self.sizes[split], seed)
        return [
            replace(self.write(f"{self.name}-{split}-{number:04d}", draft), topic=topic)
            for number, (topic, draft) in enumerate(drafts, start=1)
        ]

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Raise UserError always: generated questions do not come from a file."""
        raise UserError(f"Suite {self.name!r} generates its questions, so leave out --problems.")

    def grade(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        """Grade a reply to a question, which must have its target (the correct answer)."""
        return self.judge(question, reply, box)


def split_of_key(key: str) -> Split:
    """Return the only split in which a question may appear, by the hash of its key.

    >>> split_of_key("gcd 12 18") in SPLITS
    True
    """
    return RESIDUES[int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % 8]


@lru_cache(maxsize=16)
def _drafts(
    topics: tuple[tuple[str, Topic], ...], split: Split, size: int, seed: str
) -> Sequence[tuple[str, Draft]]:
    rng, open_topics, drafts = Random(seed), dict(topics), dict[str, tuple[str, Draft]]()
    while len(drafts) < size:
        if not open_topics:
            raise UserError(
                f"Only {len(drafts)} different questions exist, but {size} were requested. Lower "
                "the suite's `sizes`, or add topics."
            )
        for name, topic in list(open_topics.items()):
            for _ in range(PATIENCE):
                draft = topic(rng)
                if draft and draft.key not in drafts and split_of_key(draft.key) == split:
                    drafts[draft.key] = name, draft
                    break
            else:
                del open_topics[name]
    return [*drafts.values()][:size]


def any_of(*variants: Topic) -> Topic:
    """Return a topic that calls one of `variants`, chosen at random with equal probability."""
    return lambda rng: rng.choice(variants)(rng)


@dataclass(frozen=True, slots=True)
class IntegerProblem:
    """A generated question with an integer answer, before it has words."""

    rng: Random
    key: str
    answer: int

    def worded(self, *phrasings: str) -> Draft | None:
        """Return the question in a random phrasing, or None if the answer is not in 0-999."""
        if not 0 <= self.answer <= 999:
            return None
        return Draft(self.key, self.rng.choice(phrasings), str(self.answer))
