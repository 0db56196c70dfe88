"""The solvers Inspect finds: `inspect eval suites/aime25 --solver baselines/moa -S pool=NAME`."""

from baselines.mixture import moa, moa_lite
from baselines.oracle import oracle
from baselines.random_plans import random_worker, random_workflow
from baselines.roles import planner_executor_verifier
from baselines.self_consistency import self_consistency
from baselines.single import best_single, single

__all__ = [
    "best_single",
    "moa",
    "moa_lite",
    "oracle",
    "planner_executor_verifier",
    "random_worker",
    "random_workflow",
    "self_consistency",
    "single",
]
