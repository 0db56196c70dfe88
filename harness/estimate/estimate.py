"""`podium run --dry-run`: what a run will ask and cost, before anything is asked or written.

Per suite and system: questions left to ask, calls, tokens and dollars, expected and at most. It
refuses what `podium run` would, keys, servers and sandboxes apart, which it does not need. Expected
is what past answers of the same system took (`--log-dir`, `--like`), else its plan at what its
workers' past calls took, else unknown. Not here: what is left to ask (work.py), how a plan is
counted (plans.py) and priced (cost.py), what the past says (past.py), the table (text.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from harness.asked import read_request
from harness.compose import Catalogue, Request, manifest_key, seat_of
from harness.entries import refuse_unfit
from harness.errors import UserError
from harness.estimate.cost import Estimator, Take, dearness, mean_of
from harness.estimate.line import FirstCall, Line, unlearnt
from harness.estimate.past import Past, p95, read_past
from harness.estimate.plans import CountedCall, Unplannable, counted_all, worst_case
from harness.estimate.work import Pair, Work, works
from harness.experiment import Entry, check_experiment
from harness.job import Controls, Job
from harness.judges import judged_among
from harness.ledger.sitting_files import has_sittings
from harness.ledger.spending import spent
from harness.place import Place, standing_at
from harness.plural import counted
from harness.pool_file import PoolSpec
from harness.seating import seated
from harness.solver import system_of
from harness.system import Manifest
from harness.workflow import MAX_STEPS

JUDGING = "grader"
PLANNED = "its plan, at its workers' past calls"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will take."""

    lines: tuple[Line, ...]
    unknown: tuple[str, ...]
    already: Decimal
    """Dollars that earlier attempts of the experiment have spent."""
    label: str
    book: str

    @property
    def expected(self) -> Take:
        """All lines together."""
        return sum((line.expected for line in self.lines), Take())

    @property
    def most(self) -> Take:
        """All lines together, at most."""
        return sum((line.most for line in self.lines), Take())


def estimate(
    request: Request, catalogue: Catalogue, controls: Controls, like: Sequence[Path] = ()
) -> Estimate:
    """Return what a request will take; UserError where `podium run` would refuse it."""
    asked = read_request(request, catalogue, ready=False)
    spec, book = asked.spec, asked.book
    for folder in like:
        if not folder.is_dir():
            raise UserError(f"There is no {folder}; name a directory that `podium run` wrote.")
        if not has_sittings(folder):
            raise UserError(f"There is no run in {folder}; name a directory that holds one.")
    experiment = check_experiment(request.log_dir, asked.experiment)
    job = Job(request, asked.catalogue, controls, spec, book, None)
    refuse_unfit(job, asked.suites, asked.systems, experiment)
    past = read_past([request.log_dir, *like], spec, book)
    unknown: dict[str, None] = {}
    lines: list[Line] = []
    for work in works(job, asked.suites, asked.systems, experiment):
        here = seated(spec, seat_of(work.entries[0].system, asked.catalogue))
        estimator = Estimator(here, book, past, work.suite.name)
        lines.append(_line(job, work, estimator))
        if work.purpose == "eval" and work.pairs:
            lines.extend(_judging(work, past))
        unknown.update(estimator.unknown if work.pairs else {})
    already = spent(request.log_dir, book) if request.log_dir.is_dir() else Decimal(0)
    return Estimate(tuple(lines), tuple(unknown), already, spec.label, book.name)


def _line(job: Job, work: Work, estimator: Estimator) -> Line:
    count = Decimal(len(work.pairs))
    if not work.pairs:
        return Line(work.suite.name, work.title, 0, Take(), Take(), 0, "nothing left", Take())
    if work.budget is not None or work.steps is not None:
        return unlearnt(work, estimator)
    options = [_option(job, row, work, estimator) for row in work.entries]
    each = (take for option in options for take in option.most)
    most = max((sum(one.most, Take()) for one in options), key=dearness)
    expected = sum((one.expected for one in options), Take()).times(1 / Decimal(len(options)))
    basis = options[0].basis
    if len(options) > 1:
        basis = f"mean and dearest of {len(options)} workers; {basis}"
    calls = int(most.calls)
    past = estimator.past.of_system(work.suite.name, work.title)
    if past:
        expected = mean_of(past).times(count)
        basis = f"{len(past)} past answers of the same system"
        calls = p95([one.calls for one in past]) * len(work.pairs)
    return Line(
        work.suite.name,
        work.title,
        len(work.pairs),
        expected,
        most,
        max(calls, 1),
        basis,
        (most if expected.usd is None else expected).times(1 / count),
        max(each, key=dearness).usd,
        None if expected.usd is None else expected.usd / count,
        _cheapest(options),
    )


def _cheapest(options: Sequence["_Option"]) -> FirstCall | None:
    """Return the cheapest first call of all options; None where one of them knows none."""
    found = [one.first for one in options if one.first is not None]
    return min(found, key=lambda one: one.usd) if len(found) == len(options) else None


def _first(each: Sequence[tuple[CountedCall, ...]], estimator: Estimator) -> FirstCall | None:
    """Return the cheapest call that a question begins with; None if one is unbounded."""
    found: list[FirstCall] = []
    for calls in each:
        usd = estimator.first(calls)
        if usd is None:
            return None
        found.append(FirstCall(calls[0].worker, usd))
    return min(found, key=lambda one: one.usd, default=None)


@dataclass(frozen=True, slots=True)
class _Option:
    """What an entry takes, and how that is known."""

    expected: Take
    """All questions together."""
    most: tuple[Take, ...]
    """Each question, at most."""
    basis: str
    first: FirstCall | None = None
    """The cheapest call that a question begins with."""


def _option(job: Job, row: Entry, work: Work, estimator: Estimator) -> _Option:
    try:
        each = _planned(job, row, work.pairs)
    except Unplannable as stop:
        manifest = job.catalogue.systems[manifest_key(row.system)]
        steps = _most_steps(manifest, row, estimator)
        found = _worst(work, stop.first, estimator, (manifest.conductor_calls, steps))
        none = Take(sum((one.calls for one in found), Decimal(0)), None, None, None)
        planning, answering = counted(manifest.conductor_calls, "conductor call"), "step"
        basis = f"at most: {planning} and {counted(steps, answering)} a question"
        return _Option(none, found, basis, _first([(stop.first,)], estimator))
    except Exception as error:  # plans not made yet, a solver of others: the run itself may do
        why = str(error).rstrip(".") if isinstance(error, UserError) else type(error).__name__
        estimator.unknown[f"{row.system} cannot be planned: {why}"] = None
        none = Take(Decimal(1), None, None, None)
        return _Option(none.times(Decimal(len(work.pairs))), (none,) * len(work.pairs), "unknown")
    expected = sum((estimator.expected(calls) for calls in each), Take())
    manifest = job.catalogue.systems[manifest_key(row.system)]
    most = tuple(_at_most(calls, manifest, row, estimator) for calls in each)
    blind = {call.worker for calls in each for call in calls} & estimator.bounded
    basis = f"its plan; no past call of {min(blind)}" if blind else PLANNED
    return _Option(expected, most, basis, _first(each, estimator))


def _at_most(
    calls: tuple[CountedCall, ...], manifest: Manifest, row: Entry, estimator: Estimator
) -> Take:
    """Return the most that one question can take.

    Where replies decide whom a system asks next, that is as many calls as it may make, each as long
    as the longest that was counted, all of the dearest worker.
    """
    if not (manifest.adaptive and calls):
        return estimator.at_most(calls)
    workers = estimator.spec.names
    allowed = manifest.expected(len(workers), row.args)[1] if manifest.expected else 0
    longest = max(calls, key=lambda call: (len(call.reads), call.prompt_bytes))
    count = max(allowed, len(calls))
    asked = ((replace(longest, worker=name),) * count for name in workers)
    return max(map(estimator.at_most, asked), key=dearness)


def _most_steps(manifest: Manifest, row: Entry, estimator: Estimator) -> int:
    """Return the most worker calls of a question, by a manifest that says it."""
    said = manifest.expected(len(estimator.spec.names), row.args) if manifest.expected else None
    return said[1] if said else MAX_STEPS


def _planned(job: Job, row: Entry, pairs: Sequence[Pair]) -> list[tuple[CountedCall, ...]]:
    spec: PoolSpec = seated(job.spec, seat_of(row.system, job.catalogue))
    with standing_at(Place(job.request.log_dir, spec)):
        args = {**row.args, "pool": spec.name}
        system = system_of(lambda: job.catalogue.solver(row.solver, args))
    return counted_all(system, pairs, spec.names, spec)


def _worst(
    work: Work, first: CountedCall, estimator: Estimator, shape: tuple[int, int]
) -> tuple[Take, ...]:
    """Return the most that a model's plan can take, per question: the dearest worker does it all.

    `shape` says how often a conductor may be asked, and how many steps its plans may have.
    The first request is the first question's; others are longer by what their question is longer.
    """
    base = len(work.pairs[0][0].text.encode())
    found: list[Take] = []
    for question, _ in work.pairs:
        longer = max(0, len(question.text.encode()) - base)
        request = replace(first, prompt_bytes=first.prompt_bytes + longer)
        asked = (
            worst_case(worker, request, question, planning=shape[0], steps=shape[1])
            for worker in estimator.spec.names
        )
        found.append(max(map(estimator.at_most, asked), key=dearness))
    return tuple(found)


def _judging(work: Work, past: Past) -> Iterator[Line]:
    """Yield the line of a judge, where only a model can grade; its prompts are not known before."""
    questions = [question for question, _ in work.pairs]
    judged = judged_among(work.suite, questions)
    if not judged:
        return
    known = past.judges.get(work.suite.name)
    one = Take(Decimal(1), None, None, None)
    if known is not None and known.calls:
        one = mean_of([known]).times(1 / Decimal(known.calls))
    most = Take(Decimal(judged), None, None, None)
    basis = "past judgements" if known else "a judge reads replies that are not there yet"
    title = f"{JUDGING} of {work.title}"
    yield Line(work.suite.name, title, judged, one.times(Decimal(judged)), most, judged, basis, one)
