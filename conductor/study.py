"""Recorded verdicts as a study: which questions teach, which pick the checkpoint, how they are put.

A study trains one-step conductors on verdicts of real models (role `study`): the split is declared,
what is judged is never handed to a trainer, and a checkpoint says so in `study.json` beside it.
Rows carry ids only; texts are looked up in memory. Not here: what a plan is worth
(verdict_reward.py), reading sources and splitting off what is judged (harness/cli/train.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from conductor.form import Form
from harness.errors import UserError
from harness.files import DOCUMENT, read_limited
from harness.learning.matrix import Matrix, MatrixQuestion
from harness.records import Question
from harness.rewards.splits import question_digest

STUDY = "study.json"
VALIDATES = 0.2
"""Share of what may teach that picks the checkpoint instead: a choice of ours."""


@dataclass(frozen=True, slots=True)
class Declared:
    """What a study says of itself before anything is trained."""

    source: str
    """As `podium route` names it: `lcb-leaderboard`."""
    exam: str
    """The suite that asks these questions: a checkpoint of the study may not sit it."""
    split: str
    """How what is judged was split off, as `podium route --split` names it."""
    split_seed: int = 0

    @property
    def suite(self) -> str:
        """What rows and rewards call it; no suite has such a name."""
        return f"verdicts:{self.source}"


@dataclass(frozen=True, slots=True)
class Study:
    """What a trainer may see of a source."""

    declared: Declared
    teaches: Matrix
    validates: Matrix
    public: tuple[str, ...] = field(default=(), repr=False)
    """Where its own texts must not be published: others, for a tokenizer to be trained on."""

    @property
    def publishable(self) -> bool:
        """False where its texts may stand in no file."""
        return self.teaches.publishable


class About(BaseModel):
    """The study of a checkpoint, as its `study.json` has it: ids, no text."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["podium-study-1"] = "podium-study-1"
    role: Literal["study"] = "study"
    source: str
    pinned: str
    """The source with the digests of its files."""
    exam: str
    split: str
    split_seed: int
    workers: tuple[str, ...]
    taught: tuple[str, ...]
    validated: tuple[str, ...]
    form: Form
    seed: int
    """Of the training."""


def study_of(declared: Declared, may_teach: Matrix, public: Sequence[str] = ()) -> Study:
    """Return the study of the questions that may teach; UserError when they are too few to split.

    The checkpoint is picked on the latest of them where all have a date, as the judged are later
    still; else on some drawn by the split's seed. Equal questions stay together.
    """
    if not all(asked.text.strip() for asked in may_teach.questions):
        raise UserError(
            f"{may_teach.name}: some questions have no text here, and a conductor reads nothing "
            "else."
        )
    groups = _grouped(may_teach.questions, declared.split_seed)
    wanted = max(1, round(len(may_teach.questions) * VALIDATES))
    picks: list[int] = []
    while groups and len(picks) < wanted:
        picks += groups.pop()
    teaches = sorted(at for group in groups for at in group)
    if not teaches:
        raise UserError(f"{may_teach.name}: too few questions may teach to train on.")
    parts = may_teach.rows(teaches), may_teach.rows(sorted(picks))
    return Study(declared, *parts, public=tuple(public))


def _grouped(asked: Sequence[MatrixQuestion], seed: int) -> list[list[int]]:
    """Return indices of equal questions together: by last date, or shuffled where one has none."""
    groups: dict[str, list[int]] = {}
    for at, one in enumerate(asked):
        groups.setdefault(question_digest(one.text), []).append(at)
    found = list(groups.values())
    if all(one.date for one in asked):
        return sorted(found, key=lambda group: max((asked[at].date, asked[at].id) for at in group))
    Random(f"study/{seed}").shuffle(found)
    return found


def rows(suite: str, part: Matrix) -> list[dict[str, Any]]:
    """Return a data set's rows for a trainer: ids only."""
    return [
        {"suite": suite, "question": asked.id, "epoch": 1, "workers": [], "first": ""}
        for asked in part.questions
    ]


def questions(part: Matrix) -> Mapping[str, Question]:
    """Return the questions by id, without targets."""
    return {asked.id: Question(asked.id, asked.text, asked.kind) for asked in part.questions}


def cards(form: Form, workers: Sequence[str]) -> tuple[str, ...]:
    """Return what is said of each worker: its bare name, or nothing where the form hides it."""
    return tuple(name if form.cards else "" for name in workers)


def about_of(study: Study, form: Form, seed: int) -> About:
    """Return what a checkpoint says of the study it comes from."""
    said = study.declared
    return About(
        source=said.source,
        pinned=study.teaches.source,
        exam=said.exam,
        split=said.split,
        split_seed=said.split_seed,
        workers=study.teaches.workers,
        taught=tuple(asked.id for asked in study.teaches.questions),
        validated=tuple(asked.id for asked in study.validates.questions),
        form=form,
        seed=seed,
    )


def write_study(about: About, folder: Path) -> None:
    """Write `study.json` into a checkpoint's folder."""
    path = folder / STUDY
    path.write_text(about.model_dump_json(indent=1) + "\n", encoding="utf-8")


def read_study(folder: Path) -> About:
    """Return the study of a checkpoint; UserError when it has none or it is damaged."""
    path = folder / STUDY
    try:
        return About.model_validate_json(read_limited(path, DOCUMENT))
    except FileNotFoundError:
        raise UserError(
            f"{folder} has no {STUDY}: it is no conductor trained on recorded verdicts."
        ) from None
    except (OSError, ValidationError) as error:
        raise UserError(f"{path} cannot be read ({type(error).__name__}): train anew.") from None


def refuse_taught(about: About, judged: Matrix, folder: Path) -> None:
    """Raise UserError when a checkpoint may not be judged so: other verdicts, or it was taught."""
    if about.pinned != judged.source or about.workers != judged.workers:
        raise UserError(
            f"{folder} was trained on other verdicts ({about.source}): judge it on those."
        )
    seen = {*about.taught, *about.validated}
    both = [asked.id for asked in judged.questions if asked.id in seen]
    if both:
        raise UserError(
            f"{len(both)} of the judged questions taught {folder} or picked it, first {both[0]}: "
            f"judge it with --split {about.split} --seed {about.split_seed}."
        )
