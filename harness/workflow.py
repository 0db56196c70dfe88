"""A `Workflow` of a few `Step`s for a pool, or the reason why a plan is `Malformed`."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal, cast

MAX_STEPS = 5  # for the Conductor (arXiv 2512.04388, section 4.1), not for baselines
REPLIES = "{replies}"  # in a system message: replaced by the numbered replies that the step reads
Reads = tuple[int, ...] | Literal["all"]  # earlier steps by index from 0, `()` for none


@dataclass(frozen=True, slots=True)
class Sampling:
    """A step's changes to its worker's own settings, if a method prescribes them."""

    temperature: float | None = None
    """Sampling temperature; None keeps the worker's. Models without a temperature ignore it, as in
    Inspect."""
    times_max_tokens: int = 1
    """Factor on the worker's own token limit; no effect on a worker without a limit."""
    regex: str | None = None
    """Pattern of the whole reply, for providers that enforce it: vLLM's `structured_outputs`."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a workflow: a request to a worker, and the earlier steps that it reads."""

    worker: str
    subtask: str = ""
    """Text that is appended to the question; empty for the canonical single-worker request."""
    reads: Reads = ()
    system: str | None = None
    """Optional system message; may contain `REPLIES`, the place of earlier replies (faithful
    Mixture-of-Agents needs it)."""
    sampling: Sampling | None = None
    """Changes to the worker's settings; None keeps the settings of the pool file."""


@dataclass(frozen=True, slots=True)
class Workflow:
    """Steps in order; the last reply is the answer. `check` says whether a pool can run it."""

    steps: tuple[Step, ...]

    def reads(self, index: int) -> tuple[int, ...]:
        """Return the indices of the steps that step `index` reads, with "all" expanded."""
        reads = self.steps[index].reads
        return tuple(range(index)) if reads == "all" else reads

    def depths(self, *, replied: int = 0, depth: int = 0) -> tuple[int, ...]:
        """Return, for each step, the length of its longest chain of reads, itself included.

        The first `replied` steps have the depth `depth`: later steps waited for all of them.

        >>> Workflow((Step("a"), Step("b"), Step("c", reads="all"))).depths()
        (1, 1, 2)
        """
        depths = [depth] * replied
        for index in range(replied, len(self.steps)):
            depths.append(1 + max((depths[read] for read in self.reads(index)), default=depth))
        return tuple(depths)

    @property
    def shape(self) -> str:
        """The workers in one line, each with the numbers of the steps that it reads.

        >>> Workflow((Step("a"), Step("b"), Step("c", reads="all"))).shape
        'a, b, c(1 2)'
        """
        every = (self.reads(index) for index in range(len(self.steps)))
        reads = (" ".join(str(read + 1) for read in indices) for indices in every)
        pairs = zip(self.steps, reads, strict=True)
        return ", ".join(f"{step.worker}({read})" if read else step.worker for step, read in pairs)

    def without_texts(self) -> "Workflow":
        """Return the workflow without subtasks and system messages: only workers and reads."""
        return Workflow(tuple(Step(step.worker, "", step.reads) for step in self.steps))

    def as_json(self) -> str:
        """Return the workflow as one line of JSON, for logs."""
        return json.dumps([_as_dict(step) for step in self.steps], ensure_ascii=False)


def workflow_of(plan: str | None) -> Workflow | None:
    """Return the workflow that a log's plan (JSON) holds; None if it is malformed or withheld."""
    try:
        steps = [
            Step(
                str(step["worker"]),
                str(step.get("subtask") or ""),
                "all" if step["reads"] == "all" else tuple(int(read) for read in step["reads"]),
                step.get("system"),
            )
            for step in cast(list[dict[str, Any]], json.loads(plan or ""))
        ]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return Workflow(tuple(steps)) if steps else None


def _as_dict(step: Step) -> dict[str, Any]:
    """Return a step as plain data; its sampling settings only if the step has any."""
    fields: dict[str, Any] = {name: getattr(step, name) for name in Step.__dataclass_fields__}
    sampling = fields.pop("sampling")
    if sampling is not None:
        values = {name: getattr(sampling, name) for name in Sampling.__dataclass_fields__}
        fields["sampling"] = {
            name: values[name] for name in values if values[name] is not None or name != "regex"
        }
    return fields


MALFORMED = "malformed: "  # prefix in an answer whose plan could not be run


@dataclass(frozen=True, slots=True)
class Malformed:
    """A plan that cannot be run, and why. It is a model's mistake, so a value, not an exception."""

    reason: str


def check(
    workflow: Workflow, workers: Collection[str], max_steps: int = MAX_STEPS
) -> Workflow | Malformed:
    """Return the workflow if these workers can run it, else its first mistake as `Malformed`."""
    if not workflow.steps:
        return Malformed("a workflow needs at least one step")
    if len(workflow.steps) > max_steps:
        return Malformed(f"{len(workflow.steps)} steps, at most {max_steps} are allowed")
    for index, step in enumerate(workflow.steps):
        if step.worker not in workers:
            names = ", ".join(sorted(workers))
            return Malformed(f"step {index + 1}: unknown worker {step.worker!r} (known: {names})")
        strangers = [read for read in workflow.reads(index) if not 0 <= read < index]
        if strangers:
            return Malformed(f"step {index + 1} reads step {strangers[0] + 1}, which has not run")
    return workflow
