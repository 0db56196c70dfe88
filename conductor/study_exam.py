"""A study in the shape that a trainer knows: a suite, exams of it, and a pool of its workers.

Nothing here asks or grades: the suite's grader refuses, and the pool's workers are names with
numbers. What a plan is worth is said in verdict_reward.py.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conductor.study import Study, questions
from harness.errors import UserError
from harness.learning.matrix import Matrix
from harness.pool_config import PoolSpec, WorkerSpec
from harness.records import Grade, Question
from harness.rewards.splits import SuiteSplit
from harness.suite import NONE_PUBLISHED, Card, Split

POOL = "verdicts"
_OTHERS = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class VerdictSuite:
    """The questions of a study as a suite; verdicts are recorded, so it grades nothing."""

    name: str
    data_revision: str
    publishable: bool
    parts: Mapping[Split, Mapping[str, Question]]
    version: str = "1-A"
    dates: str = "of its source"
    needs_box: bool = False
    image: str = ""

    @property
    def splits(self) -> tuple[Split, ...]:
        """Return what there is: what is judged is no part of a study."""
        return tuple(self.parts)

    @property
    def card(self) -> Card:
        """Say what it is; no command lists it."""
        sizes: dict[Split, int] = {split: len(part) for split, part in self.parts.items()}
        about = "Questions with recorded verdicts of real models (role study)."
        return Card(self.name, self.data_revision, sizes, "its source's", NONE_PUBLISHED, about, ())

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the questions of a part, without targets."""
        if split not in self.parts:
            raise UserError(f"{self.name} has no {split!r} split: podium route judges studies.")
        return tuple(self.parts[split].values())

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Refuse: its questions come with their verdicts."""
        raise UserError(f"{self.name} reads no file of problems.")

    def grade(self, question: Question, reply: str, box: None = None) -> Grade:
        """Refuse: nobody is asked, so there is no reply."""
        raise UserError(f"{self.name} has verdicts already, and grades no reply.")


def exams_of(study: Study) -> tuple[SuiteSplit, SuiteSplit]:
    """Return what teaches, and what picks the checkpoint."""
    teaches, validates = questions(study.teaches), questions(study.validates)
    suite = VerdictSuite(
        name=study.declared.suite,
        data_revision=study.teaches.source,
        publishable=study.publishable,
        parts={"train": teaches, "validation": validates},
    )
    return SuiteSplit(suite, teaches), SuiteSplit(suite, validates)


def pool_of(matrix: Matrix) -> PoolSpec:
    """Return a pool of a matrix's workers, in its order; nobody in it can be asked.

    They have names that a pool allows, and their true ones as cards.
    """
    names = [_OTHERS.sub("-", name).strip("-._") or "worker" for name in matrix.workers]
    if len(set(names)) < len(names):
        names = [f"{at}-{name}" for at, name in enumerate(names)]
    workers = tuple(
        WorkerSpec(name=name, model=f"recorded/{name}", card=card)
        for name, card in zip(names, matrix.workers, strict=True)
    )
    digest = hashlib.sha256("\n".join(matrix.workers).encode()).hexdigest()
    said = f"Recorded verdicts: {matrix.name}."
    return PoolSpec(
        name=POOL, label="recorded", prices="none", description=said, workers=workers, sha256=digest
    )
