"""`podium run --dry-run`: what a run will ask and cost, before anything is asked or written.

Expected is what past answers of the same system took, else its plan at what its workers' past calls
took, else unknown. It refuses what `podium run` would, keys, servers and sandboxes apart.
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

Pair = tuple[Question, int]  # a sealed question as an epoch asks it, and the epoch
CHOOSING = "choosing best-single"
TRAINING = "training"


@dataclass(frozen=True, slots=True)
class PendingWork:
    """Pairs to ask, by one entry; several are alternatives, and nobody knows which."""

    suite: Suite[Any]
    title: str
    pairs: tuple[Pair, ...]
    entries: tuple[Entry, ...]
    purpose: str = "eval"
    budget: int | None = None
    """Worker calls, of tries that are not known beforehand; `pairs` are some of their questions."""
    steps: int | None = None
    """The most worker calls of a question, of a system that has not learnt yet what it will ask."""


def pending_work(job: Job) -> Iterator[PendingWork]:
    """Yield what is to be asked: every entry that is there, then new ones, as a run makes them."""
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
        given = system == BEST_SINGLE or (choosing and entries.is_given_best(job, system))
        workers = job.spec.names if given else ()
        best = [{"worker": name, "chosen_on": "train", "n": 1} for name in workers] or [EMPTY]
        choices = tuple(entries.new_entry(job, suite, system, one) for one in best)
        made = _entry_work(job, suite, choices)
        if card.learns and (span := card.calls.span(len(job.spec.names), choices[0].args)):
            made = replace(made, steps=span[1])
        yield made
    late = (one == BEST_SINGLE or entries.is_deferred(one, job) for one in systems)
    if taught is None and any(late):
        rows = job.experiment.entries
        known = {*systems, *(row.system for row in rows if row.suite == suite.name)}
        alone = (row for row in lessons.single_entries(job, suite) if row.system not in known)
        for row in alone:  # the best of whom is chosen in hindsight
            yield _entry_work(job, suite, (row,))


def _entry_work(job: Job, suite: Suite[Any], rows: tuple[Entry, ...]) -> PendingWork:
    done = answered_pairs(job.request.log_dir).get(rows[0].name, frozenset())
    pairs = tuple(
        (at_epoch(suite, one, epoch).sealed(), epoch)
        for epoch in range(1, job.experiment.epochs[suite.name] + 1)
        for one in job.questions(suite)
        if (one.id, epoch) not in done
    )
    return PendingWork(suite, rows[0].system, pairs, rows)


def _choice(job: Job, taught: TrainingQuestions) -> Iterator[PendingWork]:
    done = answered_pairs(job.request.log_dir / SELECTION)
    earlier = earlier_answers(job)
    asked_alone = lessons.asked_alone(job, taught, earlier)
    for suite in taught.suites:
        questions = asked_alone[suite.name]
        ids = [question.id for question in questions]
        for row in lessons.left_to_ask(job, suite, ids, earlier):
            asked = done.get(task_name(suite.name, row.system, SELECTION), frozenset())
            pairs = tuple((one.sealed(), 1) for one in questions if (one.id, 1) not in asked)
            yield PendingWork(suite, f"{CHOOSING}: {row.system}", pairs, (row,), SELECTION)


def _training(task: FitTask) -> PendingWork:
    """Return the tries by which a system will learn: their number is known, and no more."""
    entries.refuse_untriable(task)
    left = max(0, task.given.calls - task.spent)
    pairs = tuple((question, 1) for question in task.given.questions[:left])
    made = task.job.entry(task.suite, task.system, {})
    return PendingWork(task.suite, f"{TRAINING} {task.system}", pairs, (made,), SELECTION, left)


FirstCall = tuple[Decimal, str]  # what a call that a question begins with can cost, and whose it is


@dataclass(frozen=True, slots=True)
class EstimateLine:
    """One suite and system; dollars are None where they are unknown."""

    suite: str
    system: str
    left: int  # questions times epochs without an answer
    expected: CallTotals = NO_CALLS
    most: CallTotals = NO_CALLS
    basis: str = "nothing left"
    dearest: Decimal | None = Decimal(0)  # what one question can cost at most, without a judge
    first: FirstCall | None = None
    """The cheapest call that it may begin with; None where nothing bounds one."""
    judges: bool = False

    @property
    def one(self) -> Decimal | None:
        """What one question is expected to cost; where that is not known, at most."""
        usd = self.most.usd if self.expected.usd is None else self.expected.usd
        return None if usd is None else usd / self.left


PLANNED = "its plan, at its workers' past calls"


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run will take."""

    lines: tuple[EstimateLine, ...]
    unknown: tuple[str, ...]
    already: Decimal  # dollars that earlier attempts of the experiment have spent
    label: str
    book: str
    batched: bool = False  # whether some are asked in batches
    tokens_per_second: float | None = None  # output tokens of the whole pool

    @property
    def expected(self) -> CallTotals:
        """All lines together."""
        return sum((line.expected for line in self.lines), NO_CALLS)

    @property
    def most(self) -> CallTotals:
        """All lines together, at most."""
        return sum((line.most for line in self.lines), NO_CALLS)


def learning_text(job: Job) -> str:
    """Return what learning takes before the questions of a run; empty if nothing is learnt."""
    found = estimate(job, purpose=SELECTION)
    calls = int(found.most.calls)
    if not calls:
        return ""
    teachers = (one.name for suite in job.suites for one in lessons.training_suites(job, suite))
    suites = ", ".join(dict.fromkeys(teachers))
    usd = found.most.usd
    bound = "dollars that nothing bounds" if usd is None else f"at most ${usd:.2f} at list prices"
    return f"Learning on {suites}: {calls:,} calls, {bound}."


def estimate(job: Job, like: Sequence[Path] = (), purpose: str = "") -> Estimate:
    """Return what a job will take, or its part for one purpose.

    UserError where `podium run` would refuse it.
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


def duration_text(found: Estimate) -> str:
    """Return how long the pool's workers will write; empty if the pool states no rate."""
    rate = found.tokens_per_second
    totals = {"about": found.expected.output, "at most": found.most.output}
    parts = [f"{word} {float(n) / rate / 3600:.1f} h" for word, n in totals.items() if n and rate]
    if not parts:
        return ""
    return f"At {rate:g} output tokens a second, as the pool file states: {', '.join(parts)}."


SAMPLE = 20
"""Questions by which the cost of one is told: as many shards as there are need no more."""


def cost_of_one(job: Job, row: Entry, ids: Sequence[str]) -> float | None:
    """Return the list dollars that an entry's question is expected to take, if that is known."""
    few = replace(row, questions=tuple(ids[:SAMPLE]))
    asked = replace(job, experiment=replace(job.experiment, entries=(few,)))
    work = _entry_work(asked, job.catalogue.suites[row.suite], (few,))
    spec = with_conductor(job.spec, conductor_override(row.system, job.catalogue))
    past = read_past([job.request.log_dir], spec, job.book)
    usd = _line(asked, work, Estimator(spec, job.book, past, row.suite)).one if work.pairs else None
    return None if usd is None else float(usd)


def _line(job: Job, work: PendingWork, estimator: Estimator) -> EstimateLine:
    suite, title = work.suite.name, work.title
    if not work.pairs:
        return EstimateLine(suite, title, 0)
    options = _options(job, work, estimator)
    left, basis = len(options[0].most), options[0].basis
    firsts = [one.first for one in options if one.first is not None]
    if len(options) > 1:
        basis = f"mean and dearest of {len(options)} workers; {basis}"
    expected = mean_of([one.expected for one in options])
    if past := estimator.past.of_system(suite, title):
        expected = mean_of(past).times(left)
        basis = f"{len(past)} past answers of the same system"
        if work.steps is not None:
            basis = f"{pluralise(len(past), 'past answer')} of the same system; not trained yet"
    return EstimateLine(
        suite,
        title,
        left,
        expected,
        max((sum(one.most, NO_CALLS) for one in options), key=by_cost),
        basis,
        dearest=max((take for one in options for take in one.most), key=by_cost).usd,
        first=min(firsts) if len(firsts) == len(options) else None,
    )


@dataclass(frozen=True, slots=True)
class _Option:
    """What an entry takes, and how that is known."""

    expected: CallTotals  # all questions together
    most: tuple[CallTotals, ...]  # each question, at most
    basis: str
    first: FirstCall | None = None  # the cheapest call that a question begins with


def _options(job: Job, work: PendingWork, estimator: Estimator) -> list[_Option]:
    """Return what each of the entries takes, of which nobody knows which it will be."""
    if work.budget is not None:
        return [_by_budget(work, work.budget, estimator)]
    if work.steps is None:
        return [_option(job, row, work, estimator) for row in work.entries]
    most = (_chain(work.steps, work, estimator),) * len(work.pairs)
    basis = f"not trained yet; at most {pluralise(work.steps, 'call')} a question"
    return [_Option(UNKNOWN_CALL.times(work.steps * len(most)), most, basis)]


def _by_budget(work: PendingWork, calls: int, estimator: Estimator) -> _Option:
    """Return what tries to learn by take: at most, each call reads four replies."""
    before = _chain(MAX_STEPS - 1, work, estimator).times(-1)
    one = _chain(MAX_STEPS, work, estimator) + before
    names = estimator.spec.names
    found = [estimator.past.of_worker(work.suite.name, name) for name in names]
    known = [past.per(past.calls) for past in found if past is not None]
    expected, basis = UNKNOWN_CALL, "its budget of worker calls"
    if len(known) == len(names):
        expected, basis = mean_of(known), "its budget, at its workers' mean past call"
    basis = f"{basis}; at most: each reads four replies"
    return _Option(expected.times(calls), (one,) * calls, basis)


def _chain(steps: int, work: PendingWork, estimator: Estimator) -> CallTotals:
    """Return the most that so many calls take, each reading all before it, of the longest text."""
    size = max(len(one.text.encode()) for one, _ in work.pairs)
    return estimator.dearest(chained_calls(name, size, steps) for name in estimator.spec.names)


def _option(job: Job, row: Entry, work: PendingWork, estimator: Estimator) -> _Option:
    if isinstance(work.suite, TaskSuite):
        estimator.unknown[f"{work.suite.name} decides how many turns a question has"] = None
        turns = (UNKNOWN_CALL,) * len(work.pairs)
        return _Option(sum(turns, NO_CALLS), turns, "a call or more of each turn")
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
        most = _worst(work, stop.first, estimator, (planning, steps))
        asked = pluralise(planning, "conductor call"), pluralise(steps, "step")
        basis = f"at most: {' and '.join(asked)} a question"
        none = UNKNOWN_CALL.times(sum(most, NO_CALLS).calls)
        return _Option(none, most, basis, _first([(stop.first,)], estimator))
    except Exception as error:  # plans not made yet, a solver of others: the run itself may do
        why = str(error).rstrip(".") if isinstance(error, UserError) else type(error).__name__
        estimator.unknown[f"{row.system} cannot be planned: {why}"] = None
        most = (UNKNOWN_CALL,) * len(work.pairs)
        return _Option(sum(most, NO_CALLS), most, "unknown")
    expected = sum((estimator.expected(calls) for calls in each), NO_CALLS)
    least = (allowed[1] if allowed else 0) if "adaptive" in card.traits else None
    most = tuple(_at_most(calls, least, estimator) for calls in each)
    blind = {call.worker for calls in each for call in calls} & estimator.bounded
    basis = f"its plan; no past call of {min(blind)}" if blind else PLANNED
    return _Option(expected, most, basis, _first(each, estimator))


def _first(each: Sequence[tuple[CountedCall, ...]], estimator: Estimator) -> FirstCall | None:
    found = [(estimator.at_most(calls[:1]).usd, calls[0].worker) for calls in each if calls]
    known = [(usd, worker) for usd, worker in found if usd is not None]
    return min(known, default=None) if len(known) == len(each) else None


def _at_most(
    calls: tuple[CountedCall, ...], allowed: int | None, estimator: Estimator
) -> CallTotals:
    """Return a question's most: of an adaptive system as many of its longest call as it may."""
    if allowed is None or not calls:
        return estimator.at_most(calls)
    longest = max(calls, key=lambda call: (len(call.reads), call.prompt_bytes))
    asked = (replace(longest, worker=name) for name in estimator.spec.names)
    return estimator.dearest((one,) * max(allowed, len(calls)) for one in asked)


def _worst(
    work: PendingWork, first: CountedCall, estimator: Estimator, shape: tuple[int, int]
) -> tuple[CallTotals, ...]:
    """Return the most that a model's plan can take, per question: the dearest worker does it all.

    `shape` says how often a conductor may be asked, and how many steps its plans may have.
    The first request is the first question's; others are longer by what their question is longer.
    """
    base, found = len(work.pairs[0][0].text.encode()), list[CallTotals]()
    for question, _ in work.pairs:
        longer = max(0, len(question.text.encode()) - base)
        request = replace(first, prompt_bytes=first.prompt_bytes + longer)
        asked = (worst_case(one, request, question, *shape) for one in estimator.spec.names)
        found.append(estimator.dearest(asked))
    return tuple(found)


def _judging(work: PendingWork, past: PastRuns) -> Iterator[EstimateLine]:
    """Yield the line of a judge, where only a model can grade; its prompts are not known before."""
    suite, judged = work.suite, judged_among(work.suite, [question for question, _ in work.pairs])
    if not judged:
        return
    known = past.judges.get(suite.name)
    one = known.per(known.calls) if known else UNKNOWN_CALL
    totals = one.times(judged), UNKNOWN_CALL.times(judged)
    basis = "past judgements" if known else "a judge reads replies that are not there yet"
    yield EstimateLine(suite.name, f"grader of {work.title}", judged, *totals, basis, judges=True)


COLUMNS = (
    "suite", "system", "left", "calls", "tokens in", "tokens out", "usd", "usd at most", "from",
)  # fmt: skip
CENT = Decimal("0.01")


def estimate_text(found: Estimate, request: RunRequest | None = None) -> str:
    """Return the table of a dry run and what the limits of a request allow; a dash is unknown."""
    limits = _limits(found, request) if request else ()
    return "\n".join((*_lines(found), *limits)) + "\n"


def _lines(found: Estimate) -> Iterator[str]:
    rows = [
        (one.suite, one.system, str(one.left), *_cells(one.expected, one.most), one.basis)
        for one in found.lines
    ]
    left = sum(line.left for line in found.lines)
    rows.append(("total", "", str(left), *_cells(found.expected, found.most), ""))
    yield from _table(rows)
    yield ""
    yield (
        f"Prices: {found.book}. usd is expected, by past calls: a dash where there are none.\n"
        "At most, as a limit counts it: every prompt byte a token and some for a chat\n"
        "template, every reply as long as max_tokens lets it be; HTTP retries on top."
    )
    if found.batched:
        yield (
            "usd has the discount of batches. At most has not: a limit holds back what a request\n"
            "costs if it is served at its list price."
        )
    if found.label != "live":
        yield f"This pool is labelled {found.label}: nothing will be paid."
    yield from filter(None, [duration_text(found)])
    for reason in found.unknown:
        yield f"Unknown: {reason}."
    if found.most.usd is None:
        yield "No --max-usd is known to be enough: see what is unknown above."
        return
    enough = (found.most.usd + found.already).quantize(CENT, rounding=ROUND_UP)
    spent = f", ${found.already:.4f} of it spent already" if found.already else ""
    yield f"--max-usd {enough:f} would be enough but for HTTP retries{spent}."


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the rows, with suites on rows of their own and bases below if they are too wide."""
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


def _cells(expected: CallTotals, most: CallTotals) -> list[str]:
    counts = (expected.calls, expected.input, expected.output)
    cells = ["-" if one is None else f"{one.to_integral_value():,}" for one in counts]
    return cells + ["-" if one is None else f"{one:.4f}" for one in (expected.usd, most.usd)]


def _set_limits(found: Estimate, request: RunRequest) -> Iterator[tuple[str, Decimal, Decimal]]:
    """Yield each limit of a request: its option, its dollars, and those of it that are spent."""
    if request.max_usd is not None:
        yield "--max-usd", request.max_usd, found.already
    if request.max_usd_per_query is not None:
        yield "--max-usd-per-query", request.max_usd_per_query, Decimal(0)


def _limits(found: Estimate, request: RunRequest) -> Iterator[str]:
    """Yield a line for each limit of a request that may stop something before its end."""
    if refused := [*reasons_of(refuse_too_little, found, request)]:
        yield from refused
        return
    left = [line for line in found.lines if line.left and not line.judges]
    for name, limit, already in _set_limits(found, request):
        expected, most, what, whose = found.expected.usd, found.most.usd, "the run", ""
        if name == "--max-usd-per-query":
            if not left:
                return
            one = max(left, key=lambda line: (line.dearest is None, line.dearest or Decimal(0)))
            expected = max((line.expected.usd or Decimal(0)) / line.left for line in left)
            most, what, whose = one.dearest, "questions", f" ({one.system} on {one.suite})"
        spent = f" (${already:.4f} of it is spent)" if already else ""
        if said := _too_little(expected, most, limit - already, what):
            yield f"{name} {limit:f}{spent} {said}{whose}."


def _too_little(expected: Decimal | None, most: Decimal | None, left: Decimal, what: str) -> str:
    """Return how a limit stands to what is expected and at most; empty where it is enough."""
    if expected is not None and expected > left:
        return f"is too little: ${expected:.4f} is expected"
    if most is None:
        return f"may stop {what} before the end: nothing bounds the cost"
    return f"may stop {what} before the end: up to ${most:.4f} is possible" if most > left else ""


def refuse_too_little(found: Estimate, request: RunRequest) -> None:
    """Raise UserError where a limit is less than the first call of every question can cost."""
    firsts = [line.first for line in found.lines if line.left]
    known = [first for first in firsts if first is not None]
    if not known or len(known) < len(firsts):
        return
    usd, worker = min(known)
    for name, limit, already in _set_limits(found, request):
        if limit - already < usd:
            leaves = f"leaves ${limit - already:.4f}" if already else "allows"
            raise UserError(
                f"One call of {worker!r} can cost ${usd:.4f}, more than {name} "
                f"{limit:f} {leaves}: raise it, or set a smaller max_tokens for the worker."
            )


def limit_warning(found: Estimate, request: RunRequest) -> str:
    """Return a line when a limit does not pay for one question; empty when it does, or may."""
    costs = ((line.one, line) for line in found.lines if line.left)
    known = [(usd, line) for usd, line in costs if usd is not None]
    for name, limit, already in _set_limits(found, request) if known else ():
        usd, line = min(known, key=lambda pair: pair[0])
        if usd > limit - already:
            leaves = " leaves" if name == "--max-usd" else ""
            spent = f", of which ${already:.4f} is spent" if already else ""
            return (
                f"one question of {line.system} on {line.suite} may cost ${usd:.4f}, "
                f"more than {name} {limit:f}{leaves}{spent} ({line.basis})."
            )
    return ""
