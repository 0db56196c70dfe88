"""The demo: every kind of system on the practice suites, and recorded AIME25, in one table.

No key, no GPU, no network: our own programs answer, or recorded replies of real models.
"""

from pathlib import Path

from harness.errors import UserError, WorkerError
from harness.pool_config import read_pool
from harness.run.catalogue import ANY_SINGLE, Catalogue, RunRequest
from harness.run.evaluate import Controls
from harness.run.run import run
from harness.run.systems import default_systems, moved_graders, why_unfit
from harness.text import say

PRACTICE = ("practice-integer", "practice-choice", "practice-code", "practice-composed")
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
"""Train questions per worker and suite; `podium run` takes more, the demo has two minutes."""


def demo(out: Path, catalogue: Catalogue, controls: Controls, questions: int) -> list[Path]:
    """Run the demo below `out` and return its log directories; the same call resumes it."""
    practice = RunRequest(
        suites=PRACTICE,
        systems=(*SYSTEMS, *released(catalogue)),
        pool="rehearsal",
        log_dir=out / "practice",
        limit=questions,
        selection_limit=SELECTION,
    )
    for line in moved_graders(practice.systems, catalogue):
        say(line)
    recorded = RunRequest(suites=("aime25",), systems=(), pool=RECORDED, log_dir=out / "aime25")
    _run(practice, catalogue, controls)
    try:
        _run(recorded, catalogue, controls)
    except UserError as error:
        say(f"AIME25 on recorded replies is left out: {error}")
        return [practice.log_dir]
    say(_left_out(recorded, catalogue))
    return [practice.log_dir, recorded.log_dir]


def released(catalogue: Catalogue) -> tuple[str, ...]:
    """Return the trained conductors whose checkpoints ship with this version."""
    spec = read_pool("rehearsal")
    known = (name for name in CHECKPOINTS if name in catalogue.systems)
    return tuple(name for name in known if why_unfit(name, catalogue, spec) is None)


def _run(request: RunRequest, catalogue: Catalogue, controls: Controls) -> None:
    if not (outcome := run(request, catalogue, controls)).finished:
        raise WorkerError(f"the demo did not finish: {'; '.join(outcome.trouble)}")


def _left_out(request: RunRequest, catalogue: Catalogue) -> str:
    spec = read_pool(request.pool)
    ran = {ANY_SINGLE, *default_systems(catalogue, spec)}
    left = [name for name in catalogue.systems if name not in ran]
    why = why_unfit(left[0], catalogue, spec) if left else None
    others = f" (nor can {', '.join(left[1:])})" if left[1:] else ""
    return f"AIME25: {why}{others}" if why else "AIME25: every system ran."
