"""Podium in Python: all that a notebook, a script or a suite of your own names.

    import podium

    podium.run("practice-integer", ["single", "moa-lite"], limit=20, log_dir="logs/first")
    print(podium.report("logs/first").text)
    calls = podium.load_runs("logs/first").calls

These names are stable; whatever is imported from the packages behind them may move. Nothing but
this file is loaded before a name is first used.
"""

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from os.path import realpath
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

NAMES = ("harness", "suites", "baselines", "conductor", "sandbox", "reports")
"""A notebook, a script and `python -c` look into their own folder first, and many a project has a
`suites/` or a `reports/` there: the folder that podium stands in answers for our names instead."""
HOME = Path(realpath(__file__)).parent.parent


class PackageFinder:
    """A finder of Python's import system that answers for `NAMES` and for nothing else."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a package of ours is; None for all others."""
        return PathFinder.find_spec(name, [str(HOME)]) if name in NAMES else None


def take_our_names() -> None:
    """Answer for our names from now on; ImportError where another package has one already."""
    for name in NAMES:
        ours = HOME / name / "__init__.py"
        if (module := sys.modules.get(name)) is None:
            continue
        theirs = Path(realpath(module.__file__ or next(iter(module.__path__))))
        if theirs != ours:
            raise ImportError(
                f"Another package {name!r} is loaded already, {theirs}, and podium has one of its "
                f"own, {ours}: rename yours, or use podium in a process of its own."
            )
    if PackageFinder not in sys.meta_path:
        sys.meta_path.insert(0, PackageFinder)


take_our_names()

__all__ = [
    "Answer", "Budget", "Card", "DatasetSuite", "Grade", "PodiumError", "Pool", "PoolSpec",
    "Question", "Reply", "Report", "Reward", "RewardClient", "RewardItem", "RewardOutcome",
    "RewardSettings", "RunFrames", "RunOutcome", "Sampling", "Session", "SpendLimit", "Step",
    "Suite", "SuiteSplit", "System", "SystemCard", "TrlReward", "Usage", "UserError", "WorkerError",
    "Workflow", "as_solver", "as_task", "choice_metadata", "choice_text", "curves", "exactly",
    "execute", "extract_choice", "extract_integer", "figure", "grade", "grade_choice", "load_runs",
    "load_training_split", "normalised", "open_box", "openrlhf_reward", "planned", "read_pool",
    "registered", "report", "run", "suites", "systems", "trl_rows", "verifiers_reward",
    "verl_reward", "vote",
]  # fmt: skip

if TYPE_CHECKING:
    from baselines.common import registered
    from baselines.voting import vote
    from harness.errors import PodiumError, SpendLimit, UserError, WorkerError
    from harness.execute import Budget, Session, execute
    from harness.extract import extract_choice, extract_integer, normalised
    from harness.inspect_adapters import as_solver, as_task
    from harness.pool import Pool
    from harness.pool_config import PoolSpec, read_pool
    from harness.records import Answer, Grade, Question, Reply, Usage
    from harness.rewards.outcome import RewardClient, RewardItem, RewardOutcome
    from harness.rewards.reward import Reward, RewardSettings
    from harness.rewards.splits import SuiteSplit, load_training_split
    from harness.rewards.trainers import (
        TrlReward,
        openrlhf_reward,
        trl_rows,
        verifiers_reward,
        verl_reward,
    )
    from harness.run.evaluate import RunOutcome
    from harness.suite import Card, Suite
    from harness.system import System, SystemCard, exactly, planned
    from harness.workflow import Sampling, Step, Workflow
    from podium.cli.functions import grade, report, run, suites, systems
    from reports.report import Report, RunFrames, figure, load_runs
    from reports.training_plot import curves
    from sandbox import open_box
    from suites.base import DatasetSuite, choice_metadata, choice_text, grade_choice
else:

    def __getattr__(name: str) -> Any:
        """Return what has a public name, and load the file that it is in."""
        if name not in __all__:
            raise AttributeError(f"module 'podium' has no attribute {name!r}")
        globals()[name] = found = getattr(import_module(homes()[name]), name)
        return found


@cache
def homes() -> dict[str, str]:
    """Return the file of each public name, by the imports above, which are for type checkers."""
    import ast  # half the time of `import podium`, and no command needs it

    own = ast.parse(Path(__file__).read_text())
    block = next(one for one in own.body if isinstance(one, ast.If))
    imports = [one for one in block.body if isinstance(one, ast.ImportFrom)]
    return {alias.name: one.module or "" for one in imports for alias in one.names}


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
