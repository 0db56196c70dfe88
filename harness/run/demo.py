"""The demo: every kind of system on two practice suites, and recorded AIME25, in one table.

No key, no GPU, no network: our own programs answer, or recorded replies of real models.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from harness.errors import UserError, WorkerError
from harness.pool_config import read_pool
from harness.run.catalogue import Catalogue, RunRequest
from harness.run.evaluate import Controls
from harness.run.run import run
from harness.run.systems import default_systems, moved_graders, why_unfit
from harness.text import say

PRACTICE = ("practice-choice", "practice-composed")
"""One that a single worker can answer, and one for which a worker knows and another computes."""
SYSTEMS = (
    "single",
    "best-single",
    "self-consistency",
    "moa-lite",
    "planner-executor-verifier",
    "conductor-prompted",
    "conductor-best-single",
    "compute-matched-usd",
    "random-worker",
    "random-workflow",
    "oracle",
)
CHECKPOINTS = ("conductor", "conductor-untrained")
"""The trained conductor and where its training began: in NumPy, no torch is loaded."""
RECORDED = "recorded-aime25"
SELECTION = 20
"""Train questions per worker and suite; `podium run` takes more, the demo has a minute."""


def demo(
    out: Path,
    catalogue: Catalogue,
    controls: Controls,
    questions: int,
    show: Callable[[Path], None],
) -> list[Path]:
    """Run the demo below `out` and return its log directories; the same call resumes it.

    `show` gets the directory of every suite as soon as it is done: the quickest goes first.
    """
    systems = (*SYSTEMS, *released(catalogue))
    for line in moved_graders(systems, catalogue):
        say(line)
    controls = replace(controls, log_realtime=False)  # no call here is paid for
    dirs, left_out = [out / "practice"], not_run(systems, catalogue)
    recorded = RunRequest(suites=("aime25",), systems=(), pool=RECORDED, log_dir=out / "aime25")
    try:
        _run(recorded, catalogue, controls)
    except UserError as error:
        left_out = f"{left_out} AIME25 on recorded replies did not run: {error}"
    else:
        show(recorded.log_dir)
        dirs.append(recorded.log_dir)
    for suite in PRACTICE:
        practice = RunRequest(
            suites=(suite,),
            systems=systems,
            pool="rehearsal",
            log_dir=dirs[0] / suite,
            limit=questions,
            selection_limit=SELECTION,
        )
        _run(practice, catalogue, controls)
        show(practice.log_dir)
    say(left_out)
    return dirs


def not_run(systems: Sequence[str], catalogue: Catalogue) -> str:
    """Return, in a sentence, what the demo leaves out."""
    more = len([name for name in catalogue.systems if name not in systems])
    suites = [one for one in catalogue.suites if one.startswith("practice") and one not in PRACTICE]
    able = [name for name in default_systems(catalogue, read_pool(RECORDED)) if ":" not in name]
    return (
        f"Not run: {', '.join(suites)} and the public suites (`podium suites`); {more} further "
        "systems (`podium systems`); on AIME25 all but single workers, "
        f"{', '.join(able)}, because a recorded reply answers no other request."
    )


def released(catalogue: Catalogue) -> tuple[str, ...]:
    """Return the trained conductors whose checkpoints ship with this version."""
    spec = read_pool("rehearsal")
    known = (name for name in CHECKPOINTS if name in catalogue.systems)
    return tuple(name for name in known if why_unfit(name, catalogue, spec) is None)


def _run(request: RunRequest, catalogue: Catalogue, controls: Controls) -> None:
    if not (outcome := run(request, catalogue, controls)).finished:
        raise WorkerError(f"the demo did not finish: {'; '.join(outcome.trouble)}")
