"""The models that gateways chose: how often, at which price, and how often they were right.

A gateway is a worker that picks a model for each question: its pool entry is `not_auditable`, or
its replies name several models. Only `single:` systems are read, because one call of a gateway
answers a question there.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from podium.harness.errors import UserError
from podium.harness.ledger.answered_by import UNNAMED, answering_price, plain_name
from podium.harness.ledger.call import Call, at_price
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.runs import RunFiles, system_runs_below
from podium.harness.ledger.totals import SystemRun, last_attempts
from podium.harness.prices import book_from_json
from podium.harness.text import columns, fitted_text
from podium.reports.blocks import BEST_SINGLE, SINGLE
from podium.reports.comparison_rows import Pair
from podium.reports.derived import oracle_router
from podium.reports.intervals import Values, accuracy, accuracy_interval, difference, grades_of
from podium.reports.render import figures_table, interval, percent, points, usd, usd_sum

NO_GATEWAY = (
    "No worker in these logs is a gateway (a pool entry with `not_auditable`, or replies that "
    "name several models). Run one as --system single:NAME, or leave out --choices."
)
NO_NAME = "no name"
HEADS = (
    *("answered by", "answers", "right %", "95 % interval", "USD per million in / out"),
    *("USD by the book", "USD it states", "most about"),
)
RIVALS = ("against", "acc %", "difference to it", "95 % interval", "questions")
NOT_ALONE = (
    "not run alone as a worker, so best-single and the oracle do not include it: {}. "
    "Run each model behind the gateway as a worker of the pool (--system single:NAME)"
)


@dataclass(frozen=True, slots=True)
class ChoiceTable:
    """A table on one gateway (worker that picks a model), header first, with notes below."""

    title: str
    lines: tuple[Sequence[str], ...]
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """The table and its notes as text for a terminal."""
        table = columns(self.lines[0], self.lines[1:])
        return fitted_text("\n".join((self.title, table, *(f"- {note}" for note in self.notes))))

    @property
    def markdown(self) -> str:
        """The table and its notes as a section of table.md."""
        notes = "".join(f"\n- {note}" for note in self.notes)
        return f"## {self.title}\n\n{figures_table(self.lines)}\n{notes}".rstrip() + "\n"


def gateway_choices(blocks: Sequence[Sequence[Pair]], dirs: Sequence[Path]) -> list[ChoiceTable]:
    """Return two tables per gateway: the models that it chose; a comparison with single workers.

    A gateway is a worker that picks a model for each question. UserError if the logs have none.
    """
    files = [run for folder in dirs for run in system_runs_below(folder)]
    tables = [table for block in blocks for table in _of_block(block, files)]
    if not tables:
        raise UserError(NO_GATEWAY)
    return tables


def _of_block(block: Sequence[Pair], files: Sequence[RunFiles]) -> Iterator[ChoiceTable]:
    gateways: dict[str, tuple[SystemRun, list[Call]]] = {}
    rivals: list[Pair] = []
    alone = {NO_NAME}
    for row, run in block:
        name = row.system.removeprefix(SINGLE)
        worker = run.facts.workers.get(name) if name != row.system else None
        calls = [*_calls(run, files)] if worker else []
        names = {plain_name(call.served_model) for call in calls if call.served_model}
        if worker and (worker.not_auditable or len(names) > 1):
            gateways[row.system] = run, calls
            alone.add(plain_name(worker.model))
        elif worker and "@" not in row.system:  # no variants, as in the oracle router
            rivals.append((row, run))
            alone |= {*names, plain_name(worker.model)}
    best = [run for row, run in block if row.system == BEST_SINGLE]
    best = [run for run in best if f"{SINGLE}{run.facts.args['worker']}" not in gateways]
    for run, calls in gateways.values():
        chosen = _chosen(run, calls)
        yield chosen
        lacking = [line[0] for line in chosen.lines[1:] if plain_name(line[0]) not in alone]
        yield _rivals(run, best, rivals, (NOT_ALONE.format(", ".join(lacking)),) * bool(lacking))


def _calls(run: SystemRun, files: Sequence[RunFiles]) -> Iterator[Call]:
    """Yield the calls with a reply that belong to a system run's graded answers."""
    graded = {(attempt.question, attempt.epoch) for attempt in run.attempts if attempt.graded}
    rows = (row for group in files if {*group.logs} & {*run.paths} for row in rows_of(group))
    for row in last_attempts(rows):
        if row.scope == "inference" and not row.error and (row.question, row.epoch) in graded:
            yield row


def _chosen(run: SystemRun, calls: Sequence[Call]) -> ChoiceTable:
    by_model: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_model[call.served_model or ""].append(call)
    publishable = run.facts.publishable
    book, lines, notes = book_from_json(run.facts.prices), list[Sequence[str]]([HEADS]), list[str]()
    for model, model_calls in sorted(by_model.items(), key=lambda pair: (-len(pair[1]), pair[0])):
        key, price = answering_price(model_calls[0], run.facts.workers, book)
        keys = {(call.question, call.epoch) for call in model_calls}
        attempts = [result for result in run.attempts if (result.question, result.epoch) in keys]
        grades = grades_of(attempts)
        topics = Counter(result.topic for result in attempts if result.topic and publishable)
        cells = (
            NO_NAME if key == UNNAMED else model,
            str(len(attempts)),
            percent(accuracy(grades)),
            interval(*(accuracy_interval(grades) or (None, None))),
            f"{price.input:f} / {price.output:f} ({key})" if price else "no price",
            usd(usd_sum([at_price(call, price).usd for call in model_calls])),
            usd(usd_sum([call.usd_provider for call in model_calls])),
            ", ".join(f"{topic} {count}" for topic, count in topics.most_common(2)),
        )
        lines.append(cells)
        notes += [] if price else [f"{cells[0]}: {key}"]
    title = f"Whom {run.facts.system} asked on {run.facts.suite}"
    return ChoiceTable(title, tuple(lines), tuple(notes))


def _rivals(
    run: SystemRun, best: Sequence[SystemRun], singles: Sequence[Pair], notes: tuple[str, ...]
) -> ChoiceTable:
    """Compare a gateway with `best-single`, the worker best in hindsight, and the oracle router."""
    ours, lines = grades_of(run.attempts), list[Sequence[str]]([RIVALS])
    opponents: list[tuple[str, Values]] = [
        (f"{BEST_SINGLE} ({peer.facts.args['worker']})", grades_of(peer.attempts)) for peer in best
    ]
    alone = [(f"{row.system}, in hindsight", grades_of(single.attempts)) for row, single in singles]
    opponents += [max(alone, key=lambda rival: accuracy(rival[1]) or 0.0)] if alone else []
    if oracle := oracle_router(singles):
        opponents.append((f"{oracle[0].system} of {len(singles)} workers", oracle[1]))
    for name, theirs in opponents:
        if delta := difference(ours, theirs):
            spread = interval(delta.paired_low, delta.paired_high, signed=True)
            cells = percent(accuracy(theirs)), points(delta.paired_diff), spread
            lines.append((name, *cells, str(delta.n_paired)))
    title = f"{run.facts.system} ({percent(accuracy(ours))} %) against workers asked alone"
    return ChoiceTable(title, tuple(lines), notes)
