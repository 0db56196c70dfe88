"""`podium run --dry-run`: what a run will ask and cost, before anything is asked or written.

Per suite and system: questions left to ask, calls, tokens and dollars, expected and at most. It
refuses what `podium run` would, keys, servers and sandboxes apart, which it does not need. Expected
is what past answers of the same system took (`--log-dir`, `--like`), else its plan at what its
workers' past calls took, else at most. Not here: what is left to ask (work.py), how a plan is
counted (plans.py) and priced (cost.py), what the past says (past.py), the table (text.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

from harness.asked import read_request
from harness.compose import Catalogue, Request
from harness.errors import UserError
from harness.estimate.cost import Estimator, Take, mean_of
from harness.estimate.past import Past, p95, read_past
from harness.estimate.plans import CountedCall, Unplannable, counted_all, worst_case
from harness.estimate.work import Pair, Work, works
from harness.experiment import Entry, check_experiment
from harness.job import Controls, Job
from harness.judges import judged_among
from harness.ledger.spending import spent
from harness.pool_file import PoolSpec
from harness.solver import Place, standing_at, system_of

JUDGING = "grader"


@dataclass(frozen=True, slots=True)
class Line:
    """One suite and system."""

    suite: str
    system: str
    left: int
    """Questions times epochs without an answer."""
    expected: Take
    most: Take
    most_calls: int
    """95th percentile of past answers times those left, or what the plan can come to."""
    basis: str
    one: Take
    """What one question is expected to take."""


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
    experiment = check_experiment(request.log_dir, asked.experiment)
    job = Job(request, asked.catalogue, controls, spec, book, None)
    past = read_past([request.log_dir, *like], spec, book)
    unknown: dict[str, None] = {}
    lines: list[Line] = []
    for work in works(job, asked.suites, asked.systems, experiment):
        estimator = Estimator(spec, book, past, work.suite.name)
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
    options = [_option(job, row, work, estimator) for row in work.entries]
    most = max((option[1] for option in options), key=_dearness)
    expected = sum((option[0] for option in options), Take()).times(1 / Decimal(len(options)))
    basis = options[0][2]
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
        expected.times(1 / count),
    )


def _dearness(take: Take) -> tuple[bool, Decimal]:
    return take.usd is None, take.usd or Decimal(0)


def _option(job: Job, row: Entry, work: Work, estimator: Estimator) -> tuple[Take, Take, str]:
    """Return what an entry is expected to take, what at most, and how that is known."""
    try:
        each = _planned(job, row, work.pairs)
    except Unplannable as stop:
        found = _worst(work, stop.first, estimator)
        return found, found, "at most: 2 conductor calls and 5 steps a question"
    except Exception as error:  # plans not made yet, a solver of others: the run itself may do
        why = str(error).rstrip(".") if isinstance(error, UserError) else type(error).__name__
        estimator.unknown[f"{row.system} cannot be planned: {why}"] = None
        none = Take(Decimal(len(work.pairs)), None, None, None)
        return none, none, "unknown"
    expected = sum((estimator.expected(calls) for calls in each), Take())
    most = sum((estimator.at_most(calls) for calls in each), Take())
    workers = {call.worker for calls in each for call in calls}
    blind = workers & estimator.bounded
    basis = "its plan, at its workers' past calls"
    if blind:
        basis = "its plan, at most" if blind == workers else f"{basis}, at most for {min(blind)}"
    return expected, most, basis


def _planned(job: Job, row: Entry, pairs: Sequence[Pair]) -> list[tuple[CountedCall, ...]]:
    spec: PoolSpec = job.spec
    with standing_at(Place(job.request.log_dir, spec)):
        args = {**row.args, "pool": spec.name}
        system = system_of(lambda: job.catalogue.solver(row.solver, args))
    return counted_all(system, pairs, spec.names, spec)


def _worst(work: Work, first: CountedCall, estimator: Estimator) -> Take:
    """Return the most that plans of a model's can take: every step done by the dearest worker.

    The first request is the first question's; others are longer by what their question is longer.
    """
    base = len(work.pairs[0][0].text.encode())
    total = Take()
    for question, _ in work.pairs:
        longer = max(0, len(question.text.encode()) - base)
        request = replace(first, prompt_bytes=first.prompt_bytes + longer)
        total += max(
            (
                estimator.at_most(worst_case(worker, request, question))
                for worker in estimator.spec.names
            ),
            key=_dearness,
        )
    return total


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
