"""Make the oracle's file of plans for an exam: what `podium run --system oracle` does first.

The grader comes in as a function, so this file knows no suite. Plans that the file already has are
kept: a resumed or enlarged run only chooses what is missing.
"""

from collections.abc import Sequence
from pathlib import Path

import anyio

from baselines.oracle import Choice, GradeText, expected, read_plans, realised, write_plans
from baselines.plan_set import enumerate_plans, singles
from harness.pool import Pool, pool_models
from harness.pool_config import PoolSpec
from harness.records import Question


def make_plans(path: Path, questions: Sequence[Question], spec: PoolSpec, grade: GradeText) -> None:
    """Choose a plan for every question that has none yet, and write each one down.

    On a recorded pool there is one draw, so the choice is realised: see `baselines.oracle`.
    """
    choices = read_plans(path) if path.is_file() else {}
    missing = [question for question in questions if question.id not in choices]

    def pool(seed: int) -> Pool:
        return Pool(models=pool_models(spec, seed), spec=spec)

    async def choose(question: Question) -> Choice:
        if spec.replayed:
            return await realised(singles(spec.names), question, pool=pool(0), grade=grade)
        plans = enumerate_plans(spec.names)
        return await expected(plans, question, pool_factory=pool, grade=grade)

    async def choose_all() -> None:
        for question in missing:
            choices[question.id] = await choose(question)
            write_plans(path, choices)  # now, so that Ctrl-C loses one question and not all

    if missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        anyio.run(choose_all)
