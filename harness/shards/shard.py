"""One shard as the process that a launcher starts: an ordinary run of what its directory plans."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from harness.errors import UserError
from harness.files import replace_file
from harness.ledger.system_runs import load_runs
from harness.run.catalogue import Catalogue, RunRequest
from harness.run.evaluate import Controls, RunOutcome
from harness.run.experiment import read_experiment
from harness.run.run import run
from harness.shards.figures import write_figures
from harness.shards.plan import parent_of, read_plan

ENDED = "outcome.json"


@dataclass(frozen=True, slots=True)
class ShardOutcome:
    """How a shard's last process ended, as `outcome.json` beside its logs has it."""

    finished: bool
    unscored: int = 0
    trouble: tuple[str, ...] = ()


def shard_request(folder: Path) -> RunRequest:
    """Return what a shard's directory asks for; UserError where it is none."""
    parent = parent_of(folder)
    plan, experiment = (read_plan(parent), read_experiment(folder)) if parent else (None, None)
    if plan is None or experiment is None:
        raise UserError(f"{folder} is no shard of a run: `podium run --shards N` makes them.")
    more: Mapping[str, Any] = plan.request
    suites = tuple(experiment.suite_versions)
    return RunRequest(suites, (), log_dir=folder, display="none", settled=True, **more)


def run_shard(folder: Path, catalogue: Catalogue, controls: Controls) -> RunOutcome:
    """Ask what is left of a shard, and write down how that ended; UserError as a run."""
    (folder / ENDED).unlink(missing_ok=True)
    outcome = run(shard_request(folder), catalogue, controls)
    ended = ShardOutcome(outcome.finished, outcome.unscored, outcome.trouble)
    replace_file(folder / ENDED, orjson.dumps(asdict(ended)) + b"\n")
    if any(folder.glob("*.eval")):
        write_figures(folder, load_runs([folder], deep=True)[0])
    return outcome
