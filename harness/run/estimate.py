"""`podium run --dry-run`: estimates the calls and cost of a run, without any call or file.

Expected cost: from the system's past answers, else from its planned calls and its workers' past
calls, else unknown. Raises the errors of `podium run`, but not for keys, servers and sandboxes.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError, reasons_of
from podium.harness.ledger.runs import has_system_runs
from podium.harness.ledger.system_runs import spent
from podium.harness.pool_config import with_conductor
from podium.harness.records import EMPTY, Question
from podium.harness.run import entries, lessons
from podium.harness.run.catalogue import BEST_SINGLE, RunRequest, conductor_override
from podium.harness.run.earlier_lessons import earlier_answers
from podium.harness.run.equal_budgets import most_calls_of
from podium.harness.run.evaluate import Job, answered_pairs, planned_system
from podium.harness.run.experiment import SELECTION, Entry, check_experiment, task_name
from podium.harness.run.forecast import (
    NO_CALLS,
    UNKNOWN_CALL,
    CallTotals,
    CountedCall,
    Estimator,
    PastRuns,
    Unplannable,
    by_cost,
    chained_calls,
    counted_all,
    mean_of,
    read_past,
    worst_case,
)
from podium.harness.run.lessons import FitTask, TrainingQuestions
from podium.harness.suite import Suite, at_epoch, judged_among
from podium.harness.task_suite import TaskSuite
from podium.harness.text import aligned, columns, pluralise, terminal_width
from podium.harness.workflow import MAX_STEPS

Pair = tuple[Question, int]  # a question without target, in its form for an epoch; the epoch
CHOOSING = "choosing best-single"
TRAINING = "training"


@dataclass(frozen=True, slots=True)
class PendingWork:
    """Unanswered (question, epoch) pairs of a system; `entries`: its possible settings."""

    suite: Suite[Any]
    title: str
    pairs: tuple[Pair, ...]
    entries: tuple[Entry, ...]
    purpose: str = "eval"
    budget: int | None = None
    """Worker calls left to train the system on questions such as `pairs`; None: no training."""
    steps: int | None = None
    """Maximum worker calls per question of a system that is not trained yet; None for others."""


def pending_work(job: Job) -> Iterator[PendingWork]:
    """Yield a run's work yet to do: of the entries in experiment.json, then of its new entries."""
    for row in {row.name: row for row in job.experiment.entries}.values():
        if row.suite in job.experiment.suite_versions:
            yield _entry_work(job, job.catalogue.suites[row.suite], (row,))
    for suite in job.suites:
        yield from _new_works(job, suite)


def _new_works(job: Job, suite: Suite[Any]) -> Iterator[PendingWork]:
    systems = job.missing(suite)
    taught = lessons.questions_for(job, suite)
    choosing = taught and any(entries.is_chosen(job, name) for name in systems)
    if choosing and taught:
        yield from _choice(job, taught)
    for system in systems:
        card = job.catalogue.card(system)
        if card.explores and taught:
            yield _training(FitTask(job, suite, system, taught))
        needs_best = system == BEST_SINGLE or (choosing and entries.is_given_best(job, system))
        workers = job.spec.names if needs_best else ()
        best = [{"worker": name, "chosen_on": "train", "n": 1} for name in workers] or [EMPTY]
        choices = tuple(entries.new_entry(job, suite, system, arguments) for arguments in best)
        work = _entry_work(job, suite, choices)
        if card.learns and (span := card.calls.span(len(job.spec.names), choices[0].args)):
            work = replace(work, steps=span[1])
        yield work
    late = (name == BEST_SINGLE or entries.is_deferred(name, job) for name in systems)
    if taught is None and any(late):
        rows = job.experiment.entries
        names = {*systems, *(row.system for row in rows if row.suite == suite.name)}
        alone = (row for row in lessons.single_entries(job, suite) if row.system not in names)
        for row in alone:  # after the run, the best of these single workers is chosen
            yield _entry_work(job, suite, (row,))


def _entry_work(job: Job, suite: Suite[Any], rows: tuple[Entry, ...]) -> PendingWork:
    answered = answered_pairs(job.request.log_dir).get(rows[0].name, frozenset())
    pairs = tuple(
        (at_epoch(suite, question, epoch).sealed(), epoch)
        for epoch in range(1, job.experiment.epochs[suite.name] + 1)
        for question in job.questions(suite)
        if (question.id, epoch) not in answered
    )
    return PendingWork(suite, rows[0].system, pairs, rows)


def _choice(job: Job, taught: TrainingQuestions) -> Iterator[PendingWork]:
    answered = answered_pairs(job.request.log_dir / SELECTION)
    earlier = earlier_answers(job)
    asked_alone = lessons.asked_alone(job, taught, earlier)
    for suite in taught.suites:
        questions = asked_alone[suite.name]
        ids = [question.id for question in questions]
        for row in lessons.left_to_ask(job, suite, ids, earlier):
            answered_ids = answered.get(task_name(suite.name, row.system, SELECTION), frozenset())
            pairs = tuple((q.sealed(), 1) for q in questions if (q.id, 1) not in answered_ids)
            yield PendingWork(suite, f"{CHOOSING}: {row.system}", pairs, (row,), SELECTION)


def _training(task: FitTask) -> PendingWork:
    """Return the pending calls to train a system; only their maximum number is known."""
    entries.refuse_untriable(task)
    calls = max(0, task.given.calls - task.spent)
    pairs = tuple((question, 1) for question in task.given.questions[:calls])
    entry = task.job.entry(task.suite, task.system, {})
    return PendingWork(task.suite, f"{TRAINING} {task.system}", pairs, (entry,), SELECTION, calls)


FirstCall = tuple[Decimal, str]  # maximum dollars of a question's first call, and its worker


@dataclass(frozen=True, slots=True)
class EstimateLine:
    """The estimated calls and cost of a system on a suite; unknown dollars are None."""

    suite: str
    system: str
    left: int  # (question, epoch) pairs without an answer
    expected: CallTotals = NO_CALLS
    most: CallTotals = NO_CALLS
    basis: str = "nothing left"
    dearest: Decimal | None = Decimal(0)  # maximum cost of a question, grading excluded
    first: FirstCall | None = None
    """Dollars and worker of the cheapest first call; None if some first call has no maximum."""
    judges: bool = False  # whether the calls are those of a model that grades

    @property
    def one(self) -> Decimal | None:
        """Expected (if unknown, maximum) dollars of one question; None if both are unknown."""
        usd = self.most.usd if self.expected.usd is None else self.expected.usd
        return None if usd is None else usd / self.left


PLANNED = "its plan, at its workers' past calls"


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated calls and cost of a run: lines per system and suite, training, grading."""

    lines: tuple[EstimateLine, ...]
    unknown: tuple[str, ...]  # reasons why some values are unknown
    already: Decimal  # dollars spent by earlier attempts of the experiment
    label: str
    book: str
    batched: bool = False  # whether some workers are asked by batch APIs
    tokens_per_second: float | None = None  # output rate of the whole pool, if its file states it

    @property
    def expected(self) -> CallTotals:
        """Expected calls, tokens and dollars of all lines together."""
        return sum((line.expected for line in self.lines), NO_CALLS)

    @property
    def most(self) -> CallTotals:
        """Maximum calls, tokens and dollars of all lines together."""
        return sum((line.most for line in self.lines), NO_CALLS)


def learning_text(job: Job) -> str:
    """Return a sentence on calls that train systems or choose a worker; empty if there are none."""
    learning = estimate(job, purpose=SELECTION)
    calls = int(learning.most.calls)
    if not calls:
        return ""
    teachers = (train.name for suite in job.suites for train in lessons.training_suites(job, suite))
    suites = ", ".join(dict.fromkeys(teachers))
    usd = learning.most.usd
    bound = "with no known maximum cost" if usd is None else f"at most ${usd:.2f} at list prices"
    return f"Learning on {suites}: {calls:,} calls, {bound}."


def estimate(job: Job, like: Sequence[Path] = (), purpose: str = "") -> Estimate:
    """Return the estimate of a run, or only of its calls for a `purpose` (`eval`, `selection`).

    Reads past calls from the run's directory and from `like`. Raises the UserErrors of the run.
    """
    request = job.request
    for folder in like:
        if not folder.is_dir():
            raise UserError(f"There is no {folder}; name a directory that `podium run` wrote.")
        if not has_system_runs(folder):
            raise UserError(f"There is no run in {folder}; name a directory that holds one.")
    job = replace(job, experiment=check_experiment(request.log_dir, job.experiment))
    for reason in entries.why_taught(job):
        raise UserError(reason)
    spec, book = job.spec, job.book
    past = read_past([request.log_dir, *like], spec, book)
    unknown: dict[str, None] = {}
    lines: list[EstimateLine] = []
    for work in (work for work in pending_work(job) if purpose in ("", work.purpose)):
        here = with_conductor(spec, conductor_override(work.entries[0].system, job.catalogue))
        estimator = Estimator(here, book, past, work.suite.name)
        lines.append(_line(job, work, estimator))
        if work.purpose == "eval" and work.pairs:
            lines.extend(_judging(work, past))
        unknown.update(estimator.unknown if work.pairs else {})
    already = spent(request.log_dir, book) if request.log_dir.is_dir() else Decimal(0)
    batched, rate = bool(spec.batched), spec.tokens_per_second
    return Estimate(tuple(lines), tuple(unknown), already, spec.label, book.name, batched, rate)


def duration_text(forecast: Estimate) -> str:
    """Return a sentence on the hours that replies take; empty if `tokens_per_second` is unknown."""
    rate, most = forecast.tokens_per_second, [line.most.output for line in forecast.lines]
    known = [tokens for tokens in most if tokens is not None]
    if not rate or not known:
        return ""
    hours = float(sum(known)) / rate / 3600
    more = "" if len(known) == len(most) else ", and more for systems whose calls are unknown"
    pace = f"At {rate:g} output tokens a second (pool file)"
    return f"{pace}, replies take at most {hours:.1f} h{more}."


SAMPLE = 20
"""Number of questions from which the mean cost of a question is estimated, to size shards."""


def cost_of_one(job: Job, row: Entry, ids: Sequence[str]) -> float | None:
    """Return an entry's mean dollars per question: expected, else maximum; None if unknown."""
    few = replace(row, questions=tuple(ids[:SAMPLE]))
    small = replace(job, experiment=replace(job.experiment, entries=(few,)))
    work = _entry_work(small, job.catalogue.suites[row.suite], (few,))
    spec = with_conductor(job.spec, conductor_override(row.system, job.catalogue))
    past = read_past([job.request.log_dir], spec, job.book)
    usd = _line(small, work, Estimator(spec, job.book, past, row.suite)).one if work.pairs else None
    return None if usd is None else float(usd)


def _line(job: Job, work: PendingWork, estimator: Estimator) -> EstimateLine:
    suite, title = work.suite.name, work.title
    if not work.pairs:
        return EstimateLine(suite, title, 0)
    options = _options(job, work, estimator)
    remaining, basis = len(options[0].most), options[0].basis
    firsts = [option.first for option in options if option.first is not None]
    if len(options) > 1:
        basis = f"mean and dearest of {len(options)} workers; {basis}"
    expected = mean_of([option.expected for option in options])
    if past := estimator.past.of_system(suite, title):
        expected = mean_of(past).times(remaining)
        basis = f"{len(past)} past answers of the same system"
        if work.steps is not None:
            basis = f"{pluralise(len(past), 'past answer')} of the same system; not trained yet"
    return EstimateLine(
        suite,
        title,
        remaining,
        expected,
        max((sum(option.most, NO_CALLS) for option in options), key=by_cost),
        basis,
        dearest=max((take for option in options for take in option.most), key=by_cost).usd,
        first=min(firsts) if len(firsts) == len(options) else None,
    )


@dataclass(frozen=True, slots=True)
class _Option:
    """The estimate for one possible entry (system on suite) of pending work, and its basis."""

    expected: CallTotals  # of all questions together
    most: tuple[CallTotals, ...]  # maximum of each question
    basis: str
    first: FirstCall | None = None  # cheapest first call of a question


def _options(job: Job, work: PendingWork, estimator: Estimator) -> list[_Option]:
    """Return an estimate per possible entry of pending work; training has only one estimate."""
    if work.budget is not None:
        return [_by_budget(work, work.budget, estimator)]
    if work.steps is None:
        return [_option(job, row, work, estimator) for row in work.entries]
    maxima = (_chain(work.steps, work, estimator),) * len(work.pairs)
    basis = f"not trained yet; at most {pluralise(work.steps, 'call')} a question"
    return [_Option(UNKNOWN_CALL.times(work.steps * len(maxima)), maxima, basis)]


def _by_budget(work: PendingWork, calls: int, estimator: Estimator) -> _Option:
    """Return the estimate of training calls; its maximum assumes four earlier replies a prompt."""
    shorter = _chain(MAX_STEPS - 1, work, estimator).times(-1)
    call = _chain(MAX_STEPS, work, estimator) + shorter
    names = estimator.spec.names
    totals = [estimator.past.of_worker(work.suite.name, name) for name in names]
    per_call = [past.per(past.calls) for past in totals if past is not None]
    expected, basis = UNKNOWN_CALL, "its budget of worker calls"
    if len(per_call) == len(names):
        expected, basis = mean_of(per_call), "its budget, at its workers' mean past call"
    basis = f"{basis}; at most: four replies in each prompt"
    return _Option(expected.times(calls), (call,) * calls, basis)


def _chain(steps: int, work: PendingWork, estimator: Estimator) -> CallTotals:
    """Return the maximum cost of `steps` calls on the longest question, each with prior replies."""
    size = max(len(question.text.encode()) for question, _ in work.pairs)
    return estimator.dearest(chained_calls(name, size, steps) for name in estimator.spec.names)


def _option(job: Job, row: Entry, work: PendingWork, estimator: Estimator) -> _Option:
    if isinstance(work.suite, TaskSuite):
        estimator.unknown[f"{work.suite.name} decides how many turns a question has"] = None
        turns = (UNKNOWN_CALL,) * len(work.pairs)
        return _Option(sum(turns, NO_CALLS), turns, "at least one call per turn")
    card, spec = job.catalogue.card(row.system), estimator.spec
    allowed = card.calls.span(len(spec.names), row.args)
    most_calls = most_calls_of(job)
    try:
        system = planned_system(job, row.solver, row.args, spec)
        each = counted_all(system, work.pairs, spec.names, spec)
        each = [calls[:most_calls] for calls in each]
    except Unplannable as stop:
        steps, planning = allowed[1] if allowed else MAX_STEPS, card.calls.most_planning(row.args)
        if most_calls is not None:
            planning = min(planning, most_calls)
            steps = min(steps, most_calls - 1)
        maxima = _worst(work, stop.first, estimator, (planning, steps))
        counts = pluralise(planning, "conductor call"), pluralise(steps, "step")
        basis = f"at most: {' and '.join(counts)} a question"
        none = UNKNOWN_CALL.times(sum(maxima, NO_CALLS).calls)
        return _Option(none, maxima, basis, _first([(stop.first,)], estimator))
    except Exception as error:  # no plans yet, or a user's own solver: the run itself may work
        reason = str(error).rstrip(".") if isinstance(error, UserError) else type(error).__name__
        estimator.unknown[f"{row.system} cannot be planned: {reason}"] = None
        maxima = (UNKNOWN_CALL,) * len(work.pairs)
        return _Option(sum(maxima, NO_CALLS), maxima, "unknown")
    expected = sum((estimator.expected(calls) for calls in each), NO_CALLS)
    least = (allowed[1] if allowed else 0) if "adaptive" in card.traits else None
    maxima = tuple(_at_most(calls, least, estimator) for calls in each)
    blind = {call.worker for calls in each for call in calls} & estimator.bounded
    basis = f"its plan; no past call of {min(blind)}" if blind else PLANNED
    return _Option(expected, maxima, basis, _first(each, estimator))


def _first(each: Sequence[tuple[CountedCall, ...]], estimator: Estimator) -> FirstCall | None:
    costs = [(estimator.at_most(calls[:1]).usd, calls[0].worker) for calls in each if calls]
    bounded = [(usd, worker) for usd, worker in costs if usd is not None]
    return min(bounded, default=None) if len(bounded) == len(each) else None


def _at_most(
    calls: tuple[CountedCall, ...], allowed: int | None, estimator: Estimator
) -> CallTotals:
    """Return a question's maximum cost: of its `calls`, or of `allowed` copies of the longest."""
    if allowed is None or not calls:
        return estimator.at_most(calls)
    longest = max(calls, key=lambda call: (len(call.reads), call.prompt_bytes))
    longest_calls = (replace(longest, worker=name) for name in estimator.spec.names)
    return estimator.dearest((call,) * max(allowed, len(calls)) for call in longest_calls)


def _worst(
    work: PendingWork, initial: CountedCall, estimator: Estimator, shape: tuple[int, int]
) -> tuple[CallTotals, ...]:
    """Return each question's maximum cost if a model writes plans with one worker in all steps.

    `shape` has the maximum number of conductor calls and of steps in a plan. `initial` is the
    request for the first question; other requests grow with the length of their question.
    """
    base, maxima = len(work.pairs[0][0].text.encode()), list[CallTotals]()
    for question, _ in work.pairs:
        longer = max(0, len(question.text.encode()) - base)
        request = replace(initial, prompt_bytes=initial.prompt_bytes + longer)
        plans = (worst_case(name, request, question, *shape) for name in estimator.spec.names)
        maxima.append(estimator.dearest(plans))
    return tuple(maxima)


def _judging(work: PendingWork, past: PastRuns) -> Iterator[EstimateLine]:
    """Yield a line with the cost of grading by a model, if needed; its maximum is unknown."""
    suite, judged = work.suite, judged_among(work.suite, [question for question, _ in work.pairs])
    if not judged:
        return
    judged_before = past.judges.get(suite.name)
    per_judgement = judged_before.per(judged_before.calls) if judged_before else UNKNOWN_CALL
    totals = per_judgement.times(judged), UNKNOWN_CALL.times(judged)
    basis = "past judgements" if judged_before else "no past judgements"
    yield EstimateLine(suite.name, f"grader of {work.title}", judged, *totals, basis, judges=True)


COLUMNS = (
    "suite", "system", "left", "calls", "tokens in", "tokens out", "usd", "usd at most", "from",
)  # fmt: skip
CENT = Decimal("0.01")


def estimate_text(forecast: Estimate, request: RunRequest | None = None) -> str:
    """Return a dry run's table, then the limits that may stop the run; a dash means unknown."""
    limits = _limits(forecast, request) if request else ()
    return "\n".join((*_lines(forecast), *limits)) + "\n"


def _lines(forecast: Estimate) -> Iterator[str]:
    rows = [
        (line.suite, line.system, str(line.left), *_cells(line.expected, line.most), line.basis)
        for line in forecast.lines
    ]
    remaining = sum(line.left for line in forecast.lines)
    rows.append(("total", "", str(remaining), *_cells(forecast.expected, forecast.most), ""))
    yield from _table(rows)
    yield ""
    yield (
        f"Prices: {forecast.book}. usd is expected, from past calls; a dash means unknown.\n"
        "usd at most is the maximum, as a limit counts it: one token per prompt byte plus\n"
        "some for a chat template, and replies of max_tokens. HTTP retries cost extra."
    )
    if forecast.batched:
        yield (
            "usd includes the batch discount; usd at most does not, because a limit reserves\n"
            "the list price of each request."
        )
    if forecast.label != "live":
        yield f"This pool is labelled {forecast.label}: nothing will be paid."
    yield from filter(None, [duration_text(forecast)])
    for reason in forecast.unknown:
        yield f"Unknown: {reason}."
    if forecast.most.usd is None:
        yield "No --max-usd is known to be enough. See the unknown values above."
        return
    enough = (forecast.most.usd + forecast.already).quantize(CENT, rounding=ROUND_UP)
    spent = f"; ${forecast.already:.4f} of it is already spent" if forecast.already else ""
    yield f"--max-usd {enough:f} would be enough without HTTP retries{spent}."


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield an estimate's table; if too wide, with suites in rows of their own and `from` below."""
    width = terminal_width() or sys.maxsize
    if max(map(len, aligned([COLUMNS, *rows]))) <= width:
        yield columns(COLUMNS, rows)
        return
    narrow, bases, suite = list[tuple[str, ...]](), dict[str, list[str]](), ""
    for name, system, *cells, basis in rows:
        if system and name != suite:
            narrow.append((name, *[""] * len(cells)))
        suite = name
        narrow.append((system or name, *cells))
        if system:
            bases.setdefault(re.sub(r"(no past call) of \S+", r"\1", basis), []).append(system)
    yield columns(COLUMNS[1:-1], narrow)
    yield from (f"from {basis}: {', '.join(dict.fromkeys(of))}" for basis, of in bases.items())


def _cells(expected: CallTotals, maximum: CallTotals) -> list[str]:
    counts = (expected.calls, expected.input, expected.output)
    cells = ["-" if count is None else f"{count.to_integral_value():,}" for count in counts]
    return cells + ["-" if usd is None else f"{usd:.4f}" for usd in (expected.usd, maximum.usd)]


def _set_limits(forecast: Estimate, request: RunRequest) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Yield each dollar limit of a request: its option, its dollars, and the dollars spent."""
    if request.max_usd is not None:
        yield "--max-usd", request.max_usd, forecast.already
    if request.max_usd_per_query is not None:
        yield "--max-usd-per-query", request.max_usd_per_query, Decimal(0)


def _limits(forecast: Estimate, request: RunRequest) -> Iterator[str]:
    """Yield a line for each dollar limit of a request that may stop the run or a question early."""
    if refused := [*reasons_of(refuse_too_little, forecast, request)]:
        yield from refused
        return
    pending = [line for line in forecast.lines if line.left and not line.judges]
    for name, limit, already in _set_limits(forecast, request):
        expected, maximum, scope, whose = forecast.expected.usd, forecast.most.usd, "the run", ""
        if name == "--max-usd-per-query":
            if not pending:
                return
            top = max(pending, key=lambda line: (line.dearest is None, line.dearest or Decimal(0)))
            expected = max((line.expected.usd or Decimal(0)) / line.left for line in pending)
            maximum, scope, whose = top.dearest, "questions", f" ({top.system} on {top.suite})"
        spent = f" (${already:.4f} of it is spent)" if already else ""
        if warning := _too_little(expected, maximum, limit - already, scope):
            yield f"{name} {limit:f}{spent} {warning}{whose}."


def _too_little(expected: Decimal | None, usd: Decimal | None, limit: Decimal, scope: str) -> str:
    """Return why a dollar limit may be too little for a cost; empty if it is enough."""
    if expected is not None and expected > limit:
        return f"is too little: ${expected:.4f} is expected"
    if usd is None:
        return f"may stop {scope} before the end: the cost has no known maximum"
    return f"may stop {scope} before the end: up to ${usd:.4f} is possible" if usd > limit else ""


def refuse_too_little(forecast: Estimate, request: RunRequest) -> None:
    """Raise UserError if a dollar limit does not even allow the cheapest first call."""
    firsts = [line.first for line in forecast.lines if line.left]
    bounded = [cost for cost in firsts if cost is not None]
    if not bounded or len(bounded) < len(firsts):
        return
    usd, worker = min(bounded)
    for name, limit, already in _set_limits(forecast, request):
        if limit - already < usd:
            leaves = f"leaves (${limit - already:.4f})" if already else "allows"
            raise UserError(
                f"One call of {worker!r} can cost ${usd:.4f}, more than {name} "
                f"{limit:f} {leaves}: raise it, or set a smaller max_tokens for the worker."
            )


def limit_warning(forecast: Estimate, request: RunRequest) -> str:
    """Return a warning if a dollar limit is below the cost of the cheapest question; else empty."""
    costs = ((line.one, line) for line in forecast.lines if line.left)
    priced = [(usd, line) for usd, line in costs if usd is not None]
    for name, limit, already in _set_limits(forecast, request) if priced else ():
        usd, line = min(priced, key=lambda pair: pair[0])
        if usd > limit - already:
            leaves = " leaves" if name == "--max-usd" else ""
            spent = f" (${already:.4f} is spent)" if already else ""
            return (
                f"one question of {line.system} on {line.suite} may cost ${usd:.4f} "
                f"({line.basis}), more than {name} {limit:f}{leaves}{spent}. Raise the limit."
            )
    return ""
