"""The ledger: one row per model call, and what each question got, read from Inspect logs alone.

Rows come from model events and are told apart by event uuid, because Inspect's own totals leave out
cache reads and failed attempts (harness/reconcile.py names each difference). This file reads one
log at a time; harness/sittings.py puts the logs of a resumed run together.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import isnan, nan
from pathlib import Path
from typing import Any, Literal, cast

from inspect_ai.event import (
    Event,
    EventTreeSpan,
    ModelEvent,
    SpanBeginEvent,
    SpanEndEvent,
    event_tree,
)
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.scorer import Score

from harness.errors import UserError
from harness.logs import RunFacts, read_log, run_facts
from harness.prices import Book, book_from_json
from harness.pricing import cost
from harness.private import said
from harness.records import EMPTY, PODIUM, Call
from harness.usage import usage_from

Phase = Literal["solve", "score"]

GROUPINGS = ("difficulty", "platform")
"""Facts of a question by which a report breaks an exam down, in this order."""

IN_FLIGHT = "in flight when the run was stopped"
"""The error of a call that a killed run left behind: what was billed for it is unknown."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One (question, epoch) pair as its newest log left it: verdict, shape of the work, calls."""

    question: str
    epoch: int
    sample: str
    value: float | None
    """None when unscored: we failed, or the run has not got there."""
    reason: str
    """Why it is unscored; empty when it was graded."""
    parsed: bool
    """False when it was graded wrong because no answer could be found in the reply."""
    kind: str
    topic: str
    steps: int | None
    depth: int | None
    stopped: str | None
    latency_s: float | None
    """Wall time of the solver, as measured in this run."""
    calls: tuple[Call, ...]
    official: float | None = None
    """The published evaluator's verdict, where the suite gives one beside its own."""
    fragile: bool = False
    """True when a little more or less time might have changed the verdict."""
    erratum: bool = False
    """True when the question is known to be faulty."""
    groups: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    """What the question belongs to, e.g. its difficulty; one of `GROUPINGS` to a key."""

    @property
    def graded(self) -> bool:
        """Say whether there is a verdict."""
        return self.value is not None


def attempts_of(log: EvalLog, facts: RunFacts, name: str) -> tuple[Attempt, ...]:
    """Return what each sample of a log got, with its calls; `name` is the log's file name."""
    writer = _Writer(facts, book_from_json(facts.prices), name)
    return tuple(writer.attempt(sample) for sample in log.samples or [])


def lost_calls(log: EvalLog, facts: RunFacts, name: str) -> tuple[Call, ...]:
    """Return what a log keeps of attempts that failed and were made again within the run.

    Inspect keeps only the events from an attempt's last model call on: earlier calls are gone.
    """
    writer = _Writer(facts, book_from_json(facts.prices), name)
    return tuple(call for sample in log.samples or [] for call in writer.lost(sample))


def read_calls(log: EvalLog, path: Path) -> tuple[Call, ...]:
    """Return the ledger of one log, each call once; UserError when podium did not write it."""
    facts = run_facts(log, path)
    if facts is None:
        raise UserError(
            f"{path} was not written by `podium run`: it names no system and no prices."
        )
    made = [call for attempt in attempts_of(log, facts, path.name) for call in attempt.calls]
    return distinct([*made, *lost_calls(log, facts, path.name)])


def spent_in(log_dir: Path) -> Decimal:
    """Return the would-be dollars of all attempts logged below a directory, for a spending limit.

    0 when there is no log yet. A call that failed or was cut off may have been billed, so it counts
    as the dearest call of its worker. UserError names a worker whose replies have no price.
    """
    logs = sorted(log_dir.glob("**/*.eval")) if log_dir.is_dir() else []
    calls: list[Call] = []
    for path in logs:
        log = read_log(path)
        if log and run_facts(log, path):
            calls.extend(read_calls(log, path))
    billed = [call for call in distinct(calls) if call.billable]
    dearest: dict[str, Decimal] = {}
    for call in billed:
        if call.usd is not None:
            dearest[call.role] = max(call.usd, dearest.get(call.role, Decimal(0)))
        elif call.error is None:
            raise UserError(
                f"Calls of {call.role!r} in {call.log} have no price, so --max-usd cannot hold: "
                "leave it out, or start in another --log-dir with a price book that has the worker."
            )
    assumed = (dearest.get(call.role, Decimal(0)) for call in billed if call.usd is None)
    return sum((call.usd for call in billed if call.usd is not None), Decimal(0)) + sum(assumed)


def distinct(calls: Iterable[Call]) -> tuple[Call, ...]:
    """Return each call once; the first copy wins, so the caller orders the best-known first."""
    kept: dict[str, Call] = {}
    for call in calls:
        kept.setdefault(call.id, call)
    return tuple(kept.values())


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes ledger rows for the samples of one log."""

    facts: RunFacts
    book: Book
    log: str

    def attempt(self, sample: EvalSample) -> Attempt:
        score = (sample.scores or {}).get(PODIUM)
        value = None if sample.error or score is None else _verdict(score)
        shape: dict[str, Any] = sample.metadata.get(PODIUM) or {}
        found: dict[str, Any] = (score.metadata if score else None) or {}
        shown = self.facts.publishable
        return Attempt(
            question=str(sample.id),
            epoch=sample.epoch,
            sample=sample.uuid or "",
            value=value,
            reason="" if value is not None else said(_why_unscored(sample), shown),
            parsed=bool(found.get("parsed", True)),
            kind=str(sample.metadata.get("kind", "")),
            topic=str(sample.metadata.get("topic", "")),
            steps=shape.get("steps"),
            depth=shape.get("depth"),
            stopped=shape.get("stopped"),
            latency_s=_solver_seconds(sample),
            calls=tuple(self.calls(sample, sample.events, counted=value is not None)),
            official=None if found.get("official") is None else float(found["official"]),
            fragile=bool(found.get("fragile")),
            erratum=bool(found.get("errata")),
            groups=_groups(sample, found),
        )

    def lost(self, sample: EvalSample) -> Iterator[Call]:
        """Yield what is left of attempts that failed and were made again within the run."""
        for failure in sample.error_retries or []:
            yield from self.calls(sample, failure.events or [], counted=False)

    def calls(
        self, sample: EvalSample, events: Sequence[Event], *, counted: bool
    ) -> Iterator[Call]:
        for phase, step, event in model_events(events):
            # A sample without an error may still be running: its pending calls are not over.
            if not event.pending or sample.error is not None:
                yield self.call(sample, (phase, step), event, counted)

    def call(
        self, sample: EvalSample, place: tuple[Phase, str | None], event: ModelEvent, counted: bool
    ) -> Call:
        role = event.role or event.model
        worker = self.facts.workers.get(role)
        price = self.book.prices.get(worker.price if worker else event.model)
        usage = usage_from(event.output.usage)
        usd = cost(usage, price) if usage is not None and price is not None else None
        return Call(
            id=event.uuid or "",
            log=self.log,
            suite=self.facts.suite,
            system=self.facts.system,
            question=str(sample.id),
            epoch=sample.epoch,
            sample=sample.uuid or "",
            role=role,
            model=event.model,
            phase=place[0],
            step=place[1],
            usage=usage,
            usd=usd,
            billable=event.cache != "read",
            latency_s=_call_seconds(event),
            started=event.timestamp.isoformat(),
            retries=event.retries or 0,
            error=IN_FLIGHT
            if event.pending
            else said(event.error or "", self.facts.publishable) or None,
            counted=counted,
        )


def model_events(events: Sequence[Event]) -> Iterator[tuple[Phase, str | None, ModelEvent]]:
    """Yield every model call with its phase and the innermost workflow step around it."""

    def walk(
        nodes: Iterable[EventTreeSpan | Event], phase: Phase, step: str | None
    ) -> Iterator[tuple[Phase, str | None, ModelEvent]]:
        for node in nodes:
            if isinstance(node, EventTreeSpan):
                inner = node.name if node.type == "workflow_step" else step
                top: Phase = "score" if node.name == "scorers" else phase
                yield from walk(node.children, top, inner)
            elif isinstance(node, ModelEvent):
                yield phase, step, node

    yield from walk(event_tree(_whole(events)), "solve", None)


def _whole(events: Sequence[Event]) -> list[Event]:
    """Return events without the ends of spans whose beginning an interrupted sample has lost."""
    begun = {event.id for event in events if isinstance(event, SpanBeginEvent)}
    return [one for one in events if not isinstance(one, SpanEndEvent) or one.id in begun]


def _verdict(score: Score) -> float | None:
    """Return the number of a score; Inspect writes "unscored" as not-a-number."""
    value = score.value
    if not isinstance(value, int | float) or isnan(value):
        return None
    return float(value)


def _groups(sample: EvalSample, said: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what a question belongs to, from its grade or from its own facts."""
    question: object = sample.metadata.get("question")
    own = cast(Mapping[str, Any], question) if isinstance(question, dict) else EMPTY
    found = {name: said.get(name) or own.get(name) for name in GROUPINGS}
    return {name: str(value) for name, value in found.items() if value}


def _why_unscored(sample: EvalSample) -> str:
    if sample.error:
        return sample.error.message
    score = (sample.scores or {}).get(PODIUM)
    if score is None:
        return "no score in the log"
    return score.explanation or str(score.reason or "unscored")


def _call_seconds(event: ModelEvent) -> float:
    if event.completed:
        return (event.completed - event.timestamp).total_seconds()
    return nan if event.working_time is None else event.working_time


def _solver_seconds(sample: EvalSample) -> float | None:
    for node in event_tree(_whole(sample.events)):
        if isinstance(node, EventTreeSpan) and node.name == "solvers" and node.end:
            return (node.end.timestamp - node.begin.timestamp).total_seconds()
    return None
