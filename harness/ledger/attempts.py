"""What each question got, and what all calls of a sitting come to, read from Inspect logs alone.

Calls are told apart by event uuid, because the logs of a resumed run repeat each other, and
Inspect's own totals leave out cache reads and failed attempts. Logs are read raw and one sample at
a time, newest log first; calls are added up as they pass (harness/ledger/tally.py). What is in one
event is harness/ledger/events.py; which logs make a sitting is harness/sittings.py.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from pathlib import Path
from typing import Any, cast

from harness.errors import UserError
from harness.ledger.events import CallEvent, events_of, lost_in, solver_seconds
from harness.ledger.plans import PLANNING, SECRET, fault_of
from harness.ledger.raw_log import Json, naming, open_log
from harness.ledger.tally import Kind, Money, QueryTotals, Tallies, Tally, priced, query_totals
from harness.ledger.votes import vote
from harness.logs import RunFacts, facts_in
from harness.prices import Book, book_from_json
from harness.prices.pricing import Price, Service
from harness.private import said
from harness.records import CONDUCTOR, FALLBACK, PODIUM

GROUPINGS = ("difficulty", "platform")
"""Facts of a question by which a report breaks an exam down, in this order."""
NOTHING: Json = {}


@dataclass(frozen=True, slots=True)
class Attempt:
    """One (question, epoch) pair as its newest log left it: verdict, shape of the work, tokens."""

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
    totals: QueryTotals
    """What its calls come to."""
    official: float | None = None
    """The published evaluator's verdict, where the suite gives one beside its own."""
    fragile: bool = False
    """True when a little more or less time might have changed the verdict."""
    erratum: bool = False
    """True when the question is known to be faulty."""
    vote: str | None = None
    """Digest of the answer that was found, the same for what means the same in another order of
    options; None where none was. For counting votes alone: it shows no text."""
    fallback: str = ""
    """What its system noted of falling back: a sentence of our own."""
    planned: bool = False
    """Whether a model was asked for the plan."""
    plan_fault: str | None = None
    """What kind of fault its plan had, so that nothing was carried out; None for one that was."""
    groups: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the question belongs to, e.g. its difficulty; one of `GROUPINGS` to a key."""

    @property
    def graded(self) -> bool:
        """Say whether there is a verdict."""
        return self.value is not None


@dataclass(frozen=True, slots=True)
class Figures:
    """What the logs of a sitting come to."""

    attempts: tuple[Attempt, ...]
    """One for each pair that was begun, sorted by question and epoch."""
    spend: Tallies
    """Every call of all attempts once, by kind."""


def read_figures(paths: Sequence[Path]) -> Figures:
    """Read the logs of one sitting, newest first; each pair counts as the newest log has it.

    UserError for a damaged log, and for one that `podium run` did not write.
    """
    attempts: dict[tuple[str, int], Attempt] = {}
    spend: dict[Kind, Tally] = {}
    seen: set[str] = set()
    for entry in entries(paths):
        with naming(entry.about.path):
            paid = [(call, entry.about.money(call)) for call in entry.calls]
            attempt = _attempt(entry, query_totals(paid)) if entry.current else None
            counted = attempt is not None and attempt.graded
            for call, money in paid:
                if call.id not in seen:
                    kind = _kind(entry, call, counted)
                    spend.setdefault(kind, Tally()).add(call, money)
                    _see(seen, call)
        if attempt:
            attempts[attempt.question, attempt.epoch] = attempt
    return Figures(tuple(attempts[pair] for pair in sorted(attempts)), spend)


def _see(seen: set[str], call: CallEvent) -> None:
    if call.id:  # events of very old logs have no uuid, and are no copies of each other
        seen.add(call.id)


@dataclass(frozen=True, slots=True)
class About:
    """What a log says of all its samples."""

    path: Path
    facts: RunFacts
    book: Book
    served: Mapping[str, tuple[Price | None, Service]]
    """The price of each worker, and how it is served."""

    def money(self, call: CallEvent) -> Money:
        """Return what a call costs at the book in the log."""
        if found := self.served.get(call.role):
            return priced(call, *found)
        return priced(call, self.book.price(call.model), "standard")


@dataclass(frozen=True, slots=True)
class Entry:
    """The calls of one attempt at a sample."""

    about: About
    sample: Json
    """Of an attempt that was made again, its names alone."""
    calls: tuple[CallEvent, ...]
    current: bool
    """True in the newest log that has the pair."""
    newest: bool
    """True for the newest log of all."""


def entries(paths: Sequence[Path]) -> Iterator[Entry]:
    """Yield the samples of some logs, newest log first; at last what is left of failed attempts."""
    pairs: set[tuple[str, int]] = set()
    lost: list[Entry] = []
    for path in paths:
        with open_log(path) as log:
            about, newest = about_log(log.header, path), path == paths[0]
            for sample in log.samples():
                with naming(path):
                    pair = (str(sample["id"]), sample["epoch"])
                    calls, gone = tuple(events_of(sample)), tuple(lost_in(sample))
                    names = {name: sample.get(name) for name in ("id", "epoch", "uuid")}
                if gone:
                    lost.append(Entry(about, names, gone, current=False, newest=newest))
                yield Entry(about, sample, calls, pair not in pairs, newest)
                pairs.add(pair)
    yield from lost


def about_log(header: Json, path: Path) -> About:
    """Return what a log's header says of its run; UserError when podium did not write it."""
    with naming(path):
        facts = facts_in(header["eval"].get("metadata"), path)
    if facts is None:
        raise UserError(
            f"{path} was not written by `podium run`: it names no system and no prices."
        )
    book = book_from_json(facts.prices)
    served: dict[str, tuple[Price | None, Service]] = {
        name: (book.price(worker.price), worker.service) for name, worker in facts.workers.items()
    }
    return About(path, facts, book, served)


def _kind(entry: Entry, call: CallEvent, counted: bool) -> Kind:
    billable = call.cache != "read"
    return Kind(entry.newest, call.role, call.model, call.phase, counted, billable)


def _attempt(entry: Entry, totals: QueryTotals) -> Attempt:
    sample, metadata = entry.sample, entry.sample.get("metadata") or NOTHING
    score = _score(sample)
    found: Json = score.get("metadata") or NOTHING
    shape: Json = metadata.get(PODIUM) or NOTHING
    value = verdict(sample)
    planned = any(_asks_for_plan(call) for call in entry.calls)
    return Attempt(
        question=str(sample["id"]),
        epoch=sample["epoch"],
        sample=sample.get("uuid") or "",
        value=value,
        reason="" if value is not None else said(_why_unscored(sample), _shown(entry)),
        parsed=bool(found.get("parsed", True)),
        kind=str(metadata.get("kind", "")),
        topic=str(metadata.get("topic", "")),
        steps=shape.get("steps"),
        depth=shape.get("depth"),
        stopped=shape.get("stopped"),
        latency_s=solver_seconds(sample),
        totals=totals,
        official=None if found.get("official") is None else float(found["official"]),
        fragile=bool(found.get("fragile")),
        erratum=bool(found.get("errata")),
        vote=vote(metadata, score.get("answer")),
        fallback=str((shape.get("noted") or NOTHING).get(FALLBACK) or ""),
        planned=planned,
        plan_fault=_plan_fault(shape) if planned else None,
        groups=_groups(metadata, found),
    )


def _asks_for_plan(call: CallEvent) -> bool:
    return call.role == CONDUCTOR and (call.step or "").startswith(PLANNING)


def _plan_fault(shape: Json) -> str | None:
    """Return the kind of fault of a sample's plan; older redacted copies do not say which."""
    plan = shape.get("plan")
    hidden = str(plan).startswith("sha256:") and not shape.get("steps") and not shape.get("stopped")
    return SECRET if hidden else fault_of(plan)


def _shown(entry: Entry) -> bool:
    return entry.about.facts.publishable


def _score(sample: Json) -> Json:
    return (sample.get("scores") or NOTHING).get(PODIUM) or NOTHING


def verdict(sample: Json) -> float | None:
    """Return a sample's grade; Inspect writes "unscored" as not-a-number."""
    value = _score(sample).get("value")
    if sample.get("error") or not isinstance(value, int | float) or isnan(value):
        return None
    return float(value)


def _groups(metadata: Json, found: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what a question belongs to, from its grade or from its own facts."""
    question: object = metadata.get("question")
    own = cast(Json, question) if isinstance(question, dict) else NOTHING
    named = {name: found.get(name) or own.get(name) for name in GROUPINGS}
    return {name: str(value) for name, value in named.items() if value}


def _why_unscored(sample: Json) -> str:
    if sample.get("error"):
        return sample["error"]["message"]
    score = _score(sample)
    if not score:
        return "no score in the log"
    return score.get("explanation") or str(score.get("reason") or "unscored")
