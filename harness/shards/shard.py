"""One shard as the process that a launcher starts: an ordinary run of what its directory plans."""

import time
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.run.catalogue import Catalogue, RunRequest, with_own
from podium.harness.run.evaluate import Controls, RunOutcome
from podium.harness.run.experiment import lock_experiment, read_experiment
from podium.harness.run.run import run
from podium.harness.shards.figures import write_figures
from podium.harness.shards.lease_client import is_leased, open_lease
from podium.harness.shards.plan import ENDED, ShardOutcome, parent_of, read_plan, write_outcome

_REQUEST = TypeAdapter(RunRequest)


def shard_request(folder: Path) -> RunRequest:
    """Return what a shard's directory asks for; UserError where it is none."""
    parent = parent_of(folder)
    plan, experiment = (read_plan(parent), read_experiment(folder)) if parent else (None, None)
    if plan is None or experiment is None:
        raise UserError(f"{folder} is no shard of a run: `podium run --shards N` makes them.")
    asked = {"suites": tuple(experiment.suite_versions), "systems": (), "log_dir": folder}
    return _REQUEST.validate_python({**plan.request, **asked, "display": "none", "settled": True})


def shard_catalogue(folder: Path, known: Catalogue) -> Catalogue:
    """Return all parts that can be named, a user's own among them, as the run was given them."""
    parent = parent_of(folder)
    if plan := read_plan(parent) if parent else None:
        own = replace(shard_request(folder), suites=plan.own_suites, systems=plan.own_systems)
        return with_own(own, known)[1]
    return known


def run_shard(folder: Path, catalogue: Catalogue, controls: Controls) -> RunOutcome:
    """Ask what is left of a shard, and write down how that ended; UserError as a run."""
    request = shard_request(folder)
    _await_predecessor(folder)
    (folder / ENDED).unlink(missing_ok=True)
    outcome = run(request, catalogue, controls, open_lease if is_leased(folder) else None)
    ended = ShardOutcome(outcome.finished, outcome.unscored, outcome.trouble)
    write_outcome(folder, ended)
    if any(folder.glob("*.eval")):
        write_figures(folder, load_runs([folder], deep=True)[0])
    return outcome


PATIENCE_S = 30.0


def _await_predecessor(folder: Path) -> None:
    """Wait while an earlier process of the shard, whose launcher was killed, ends."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            with lock_experiment(folder):
                return
        except UserError:
            time.sleep(0.2)
