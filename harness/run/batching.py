"""Checks of runs that use providers' batch APIs (`--batch`, or a worker's setting `batch`).

A provider may take a day for a batch, so a call that needs another call's reply may wait a day.
"""

from collections.abc import Iterator

from podium.harness.pool_config import PoolSpec
from podium.harness.records import EMPTY
from podium.harness.run import entries
from podium.harness.run.evaluate import Job, planned_system
from podium.harness.run.forecast import counted_all
from podium.harness.task_suite import TaskSuite

PROVIDERS = ("openai", "anthropic")
ELSEWHERE = ("azure", "bedrock", "vertex")
"""Services that sell the same models, but whose batch APIs podium does not support."""
HOURS = 24
"""Hours within which a provider must complete a batch."""
KEEPING = (
    f"a batch may take {HOURS} h. After a stop the same command waits for its batches and sends no "
    "request twice; --max-usd then also counts each of these requests at its maximum cost."
)


def why_unbatched(spec: PoolSpec) -> Iterator[str]:
    """Yield the reasons why models of a pool cannot use their providers' batch APIs."""
    for slot in spec.batched:
        provider, _, model_name = slot.model.partition("/")
        if provider not in PROVIDERS or model_name.partition("/")[0] in ELSEWHERE:
            yield (
                f"Worker {slot.name!r} ({slot.model}) cannot be asked in batches: podium "
                f"supports batches of {' and '.join(PROVIDERS)} only. Leave --batch out, and set "
                "config = { batch = true } for the supported workers only."
            )
        for name in ("timeout", "attempt_timeout"):
            if getattr(slot.config, name) is not None:
                yield (
                    f"Worker {slot.name!r} sets {name}, after which a request would be sent again "
                    f"while its batch is running. Remove {name} from the worker's config."
                )


def why_unpredictable(job: Job) -> Iterator[str]:
    """Yield an error for each system whose waiting time with batch APIs is not known beforehand."""
    tasks = any(isinstance(suite, TaskSuite) for suite in job.suites)
    for name in job.systems if job.spec.batched and job.suites else ():
        if tasks or not _rounds(job, name):
            yield (
                f"{name} may send another request after each reply, and each can take {HOURS} h in "
                "batches. Leave it out, or run it without batches."
            )


def batch_notes(job: Job) -> Iterator[str]:
    """Yield sentences for the user on the duration and cost of batches, if workers use them."""
    if not job.spec.batched:
        return
    yield KEEPING
    for name in job.systems if job.suites else ():
        if (rounds := _rounds(job, name)) > 1:
            yield (
                f"{name} sends {rounds} rounds of requests, each after the replies to the previous "
                f"one: up to {rounds * HOURS} h in batches."
            )


def _rounds(job: Job, name: str) -> int:
    """Return the length of a system's longest chain of dependent calls per question; 0: unknown."""
    card, suite = job.catalogue.card(name), job.suites[0]
    decides = "conductor" in card.needs or card.explores or "adaptive" in card.traits
    if decides or card.group == "frameworks":
        return 0
    try:
        row = entries.new_entry(job, suite, name, EMPTY)
        span = card.calls.span(len(job.spec.names), row.args) or (0, 1)
        if span == (1, 1) or span[0] != span[1]:
            return int(span == (1, 1))
        system = planned_system(job, row.solver, row.args, job.spec)
        pairs = [(job.questions(suite)[0].sealed(), 1)]
        (calls,) = counted_all(system, pairs, job.spec.names, job.spec)
    except Exception:  # the system is not trained yet, or a model plans its calls
        return 0
    depths: list[int] = []
    for call in calls:
        depths.append(1 + max((depths[index] for index in call.reads), default=0))
    return max(depths, default=0)
