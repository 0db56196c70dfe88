"""A training on recorded verdicts: what stands in for the pool, the suites and the workers' work.

Everything else of a training is as always: rows by id, warm start, GRPO, validation, checkpoints.
Not here: what a study is (conductor/study.py) and which questions may teach (harness/cli).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from conductor.checkpoint import About
from conductor.form import Form
from conductor.study import Study, about_of, write_study
from conductor.study_exam import exams_of, pool_of
from conductor.training.rows import Asking, Row, Shown
from conductor.verdict_reward import VerdictReward, recorded
from harness.errors import UserError
from harness.pool_config import PoolSpec
from harness.records import Question
from harness.rewards.outcome import RewardCounter
from harness.rewards.reward import OutcomeValues
from harness.rewards.splits import SuiteSplit


@dataclass(frozen=True, slots=True)
class Studied:
    """What a training needs of a study."""

    spec: PoolSpec
    exams: Mapping[str, SuiteSplit]
    held_out: Mapping[str, SuiteSplit]


def studied(study: Study, form: Form) -> Studied:
    """Return a study as pool and exams; UserError for a form that allows more than one step."""
    if form.max_steps != 1:
        raise UserError("Recorded verdicts are of one worker alone: set form.max_steps = 1.")
    teaches, validates = exams_of(study)
    name = study.declared.suite
    return Studied(pool_of(study.teaches), {name: teaches}, {name: validates})


def verdict_rewards(
    study: Study, form: Form, values: OutcomeValues, max_masked: float
) -> tuple[VerdictReward, VerdictReward]:
    """Return the rewards of what teaches, and of what picks the checkpoint."""
    names, suite = pool_of(study.teaches).names, study.declared.suite
    teaches, validates = (
        VerdictReward(recorded(suite, part, names), form, values, RewardCounter(max_masked, 32))
        for part in (study.teaches, study.validates)
    )
    return teaches, validates


def vocabulary(study: Study, asking: Asking) -> list[Shown]:
    """Return prompts with public texts, for a tokenizer that may hold no word of the questions."""
    if not study.public:
        raise UserError(
            f"{study.declared.source}: its texts must not be published, and there are no others "
            "here to train a tokenizer on."
        )
    row = Row(study.declared.suite, "")
    made = (replace(asking, question=_said(text)) for text in study.public)
    return [one.shown(row) for one in made]


def _said(text: str) -> Callable[[Row], Question]:
    return lambda row: Question(row.question, text, "text")


def as_study(about: About, study: Study, form: Form, folder: Path) -> About:
    """Return what a study's checkpoint says about itself, and write `study.json` beside it."""
    said = study.declared
    write_study(about_of(study, form, about.seed), folder)
    return replace(
        about,
        role="study",
        graders={},  # its verdicts were recorded
        suites=(said.exam,) if said.exam else about.suites,
        split=f"{said.split} (seed {said.split_seed}) of {said.source}",
        taught=(),  # of cut texts, digests would say nothing; study.json has the ids
    )
