"""Podium in Python: the public names for notebooks, scripts and your own suites.

    import podium

    podium.run("practice-integer", ["single", "moa-lite"], limit=20, log_dir="logs/first")
    print(podium.report("logs/first").text)
    calls = podium.load_runs("logs/first").calls

These names are stable; the modules that define them may change. A name's module is loaded when the
name is first used. Each subpackage (`podium.harness`, `podium.suites`, ...) is a folder next to
this file, in a checkout a symbolic link.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "Answer", "Budget", "Calls", "Card", "DatasetSuite", "Effort", "Grade", "PodiumError", "Pool",
    "PoolSpec", "Question", "Reply", "Report", "Reward", "RewardClient", "RewardItem",
    "RewardOutcome", "RewardSettings", "RunFrames", "RunOutcome", "Sampling", "Session",
    "SpendLimit", "Status", "Step", "Suite", "SuiteSplit", "System", "SystemCard", "SystemMethods",
    "TrlReward", "Usage", "UserError", "WorkerError", "Workflow", "as_solver", "as_task",
    "choice_metadata", "choice_text", "curves", "exactly", "execute", "extract_choice",
    "extract_integer", "figure", "grade", "grade_choice", "load_runs", "load_training_split",
    "normalised", "open_box", "openrlhf_reward", "planned", "read_pool", "registered", "report",
    "run", "suites", "systems", "trl_rows", "verifiers_reward", "verl_reward", "vote",
]  # fmt: skip

if TYPE_CHECKING:
    from podium.baselines.common import registered
    from podium.cli.functions import grade, report, run, suites, systems
    from podium.harness.errors import PodiumError, SpendLimit, UserError, WorkerError
    from podium.harness.execute import Budget, Session, execute, vote
    from podium.harness.extract import extract_choice, extract_integer, normalised
    from podium.harness.inspect_adapters import as_solver, as_task
    from podium.harness.pool import Pool
    from podium.harness.pool_config import PoolSpec, read_pool
    from podium.harness.records import Answer, Grade, Question, Reply, Usage
    from podium.harness.rewards.outcome import (
        Effort,
        RewardClient,
        RewardItem,
        RewardOutcome,
        Status,
    )
    from podium.harness.rewards.reward import Reward, RewardSettings
    from podium.harness.rewards.splits import SuiteSplit, load_training_split
    from podium.harness.rewards.trainers import (
        TrlReward,
        openrlhf_reward,
        trl_rows,
        verifiers_reward,
        verl_reward,
    )
    from podium.harness.run.evaluate import RunOutcome
    from podium.harness.suite import Card, Suite
    from podium.harness.system import (
        Calls,
        System,
        SystemCard,
        SystemMethods,
        exactly,
        planned,
    )
    from podium.harness.workflow import Sampling, Step, Workflow
    from podium.reports.report import Report, RunFrames, figure, load_runs
    from podium.reports.training_plot import curves
    from podium.sandbox import open_box
    from podium.suites.base import DatasetSuite, choice_metadata, choice_text, grade_choice
else:

    def __getattr__(name: str) -> Any:
        """Import a public name's module and return its object; AttributeError if not public."""
        home = next((home for home, names in HOMES.items() if name in names.split()), None)
        if home is None:
            raise AttributeError(f"module 'podium' has no attribute {name!r}")
        # `podium.suites` is the subpackage, which also works as the mapping of suites.
        room = name == "suites"
        value = import_module("podium.suites") if room else getattr(import_module(home), name)
        globals()[name] = value
        return value


HOMES = {
    "podium.baselines.common": "registered",
    "podium.harness.errors": "PodiumError SpendLimit UserError WorkerError",
    "podium.harness.execute": "Budget Session execute vote",
    "podium.harness.extract": "extract_choice extract_integer normalised",
    "podium.harness.inspect_adapters": "as_solver as_task",
    "podium.harness.pool": "Pool",
    "podium.harness.pool_config": "PoolSpec read_pool",
    "podium.harness.records": "Answer Grade Question Reply Usage",
    "podium.harness.rewards.outcome": "Effort RewardClient RewardItem RewardOutcome Status",
    "podium.harness.rewards.reward": "Reward RewardSettings",
    "podium.harness.rewards.splits": "SuiteSplit load_training_split",
    "podium.harness.rewards.trainers": (
        "TrlReward openrlhf_reward trl_rows verifiers_reward verl_reward"
    ),
    "podium.harness.run.evaluate": "RunOutcome",
    "podium.harness.suite": "Card Suite",
    "podium.harness.system": "Calls System SystemCard SystemMethods exactly planned",
    "podium.harness.workflow": "Sampling Step Workflow",
    "podium.cli.functions": "grade report run suites systems",
    "podium.reports.report": "Report RunFrames figure load_runs",
    "podium.reports.training_plot": "curves",
    "podium.sandbox": "open_box",
    "podium.suites.base": "DatasetSuite choice_metadata choice_text grade_choice",
}
"""Module -> its public names, separated by spaces; a test compares them with the imports above."""


def __dir__() -> list[str]:
    """Return the public names of the package `podium`, sorted."""
    return sorted(__all__)
