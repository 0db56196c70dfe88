"""Two runs over a provider that commits every fault of a table, and what is left of each.

    for cell in faulty(folder).cells.values():
        cell.fault, cell.dialect, cell.lines, cell.rows, cell.tokens, cell.in_range, cell.failing

What stalls has a run of its own: only there a client must lose its patience, and Inspect renders
the tracebacks of a hundred failures in the same loop, for longer than anybody's patience.

Question N of `practice-integer` meets fault N, in three dialects at once. What the ledger says is
held against the server's own bill: requests, tokens, and dollars at the pool's prices.
"""

from collections.abc import Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from podium.cli import main
from podium.cli.list_commands import whole_catalogue
from podium.harness.ledger.call import Call
from podium.harness.ledger.system_runs import load_runs
from podium.harness.prices import read_book
from podium.harness.prices.cost import cost
from podium.harness.records import Question
from podium.reports.audit import Audit, audit
from tests.providers import Line, Server, serve
from tests.providers.faults import CHAT, FAULTS, MESSAGES, RESPONSES, Fault
from tests.reports.audit.audited_run import rows_below

SUITE = "practice-integer"
MODELS: Mapping[str, str] = {
    CHAT: "openai/gpt-4o-mini",
    RESPONSES: "openai/gpt-5-mini",
    MESSAGES: "anthropic/claude-sonnet-5",
}
BOOK = """\
date = "2026-01-02"
source = "made up for tests"

[usd_per_mtok]
"openai/gpt-4o-mini" = { input = "0.15", output = "0.6", cache_read = "0.075" }
"openai/gpt-5-mini" = { input = "0.25", output = "2", cache_read = "0.025" }
"anthropic/claude-sonnet-5" = { input = "3", output = "15", cache_read = "0.3", \
cache_write = "3.75" }
"""
WORKER = """
[[workers]]
name = "{name}"
model = "{model}"
knowledge_cutoff = "unknown"
config = {{ max_tokens = 64, max_retries = 1{patience} }}
args = {{ base_url = "{url}", api_key = "test-{name}", max_retries = 0 }}
"""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a fault in one dialect has left."""

    fault: Fault
    dialect: str
    lines: Sequence[Line]
    rows: Sequence[Call]
    value: float | None
    """The grade; None for a question without one."""
    billed: Decimal
    """Dollars of the lines that the server bills."""
    failing: frozenset[str]
    """Invariants that an audit finds broken by calls of this question."""

    @property
    def verdict(self) -> str:
        """How the question was graded."""
        return "unscored" if self.value is None else "right" if self.value == 1 else "wrong"

    @property
    def tokens(self) -> str:
        """Say whether the ledger counts what was billed: `equal`, `unknown` or `DIFFERENT`."""
        counted = [row.usage for row in self.rows if row.billable == "yes"]
        known = [usage for usage in counted if usage is not None]
        if len(known) != len(counted) or any(row.billable == "unknown" for row in self.rows):
            return "unknown"
        ours = [(usage.input_total, usage.output) for usage in known]
        theirs = [(one.usage.input_total, one.usage.output) for one in self.lines if one.billed]
        return "equal" if sorted(ours) == sorted(theirs) else "DIFFERENT"

    @property
    def low(self) -> Decimal:
        """Dollars at least; nothing where nobody counted."""
        return sum((row.usd_low or Decimal(0) for row in self.rows), Decimal(0))

    @property
    def high(self) -> Decimal | None:
        """Dollars at most; None where nothing bounds them."""
        highs = [row.usd_high for row in self.rows]
        known = [high for high in highs if high is not None]
        return sum(known, Decimal(0)) if len(known) == len(highs) else None

    @property
    def in_range(self) -> bool:
        """Say whether what was billed lies within the ledger's range."""
        return self.low <= self.billed and (self.high is None or self.billed <= self.high)

    @property
    def expected(self) -> frozenset[str]:
        """The invariants that its provider's own words contradict."""
        return frozenset(name for where, name in self.fault.fails.items() if where == self.dialect)

    @property
    def holds(self) -> bool:
        """Say whether all is as the table promises."""
        return (
            len(self.rows) == len(self.lines)
            and self.tokens != "DIFFERENT"
            and self.in_range
            and self.failing == self.expected
            and self.verdict == self.fault.verdict_in(self.dialect)
        )


@dataclass(frozen=True, slots=True)
class Faulty:
    """A whole run."""

    cells: Mapping[tuple[str, str], Cell]
    """By fault and dialect."""
    lines: Sequence[Line]
    rows: Sequence[Call]
    elsewhere: Sequence[str]
    """What an audit finds broken and belongs to no single question."""


def faulty(folder: Path, faults: Sequence[Fault] = FAULTS) -> Faulty:
    """Run one question for each fault, in every dialect, and audit what is left."""
    stalls = [fault for fault in faults if fault.stalls]
    others = [fault for fault in faults if not fault.stalls]
    found = [_run(folder / "others", others, "")]
    if stalls:
        found.append(_run(folder / "stalls", stalls, ", attempt_timeout = 10"))
    return Faulty(
        {name: cell for one in found for name, cell in one.cells.items()},
        [line for one in found for line in one.lines],
        [row for one in found for row in one.rows],
        [said for one in found for said in one.elsewhere],
    )


def _run(folder: Path, faults: Sequence[Fault], patience: str) -> Faulty:
    folder.mkdir()
    questions = whole_catalogue().suites[SUITE].load("train")[: len(faults)]
    assert len(questions) == len(faults), "the exam has a question for each fault"
    script = {
        f"{model.split('/')[1]}: {question.text}": fault.acts_in(dialect, _boxed(question))
        for dialect, model in MODELS.items()
        for question, fault in zip(questions, faults, strict=True)
    }
    home = folder / "run"
    with serve(script) as server:
        asked = ["--suite", SUITE, "--system", "single", "--pool", _pool(folder, server, patience)]
        asked += ["--yes"]
        words = [
            "run",
            *asked,
            "--split",
            "train",
            "--limit",
            str(len(faults)),
            "--log-dir",
            str(home),
        ]
        copy_context().run(main, words)
    return _left(home, server.bill.lines, dict(zip((q.id for q in questions), faults, strict=True)))


def _boxed(question: Question) -> str:
    return f"\\boxed{{{question.target}}}"


def _pool(folder: Path, server: Server, patience: str) -> str:
    urls = {MESSAGES: server.anthropic}
    tables = [
        WORKER.format(name=name, model=model, url=urls.get(name, server.openai), patience=patience)
        for name, model in MODELS.items()
    ]
    (folder / "book.toml").write_text(BOOK)
    path = folder / "pool.toml"
    path.write_text('label = "live"\nprices = "book.toml"\n' + "".join(tables))
    return str(path)


def _left(home: Path, lines: Sequence[Line], by_question: Mapping[str, Fault]) -> Faulty:
    rows, found = rows_below(home), audit(home)
    values = {
        (system_run.facts.system.removeprefix("single:"), attempt.question): attempt.value
        for system_run in load_runs([home])[0]
        for attempt in system_run.attempts
    }
    texts = {one.id: one.text for one in whole_catalogue().suites[SUITE].load("train")}
    cells: dict[tuple[str, str], Cell] = {}
    for dialect, model in MODELS.items():
        for question, fault in by_question.items():
            named = model.split("/")[1]
            mine = [one for one in lines if one.model == named and texts[question] in one.prompt]
            own = [row for row in rows if (row.role, row.question) == (dialect, question)]
            cells[fault.name, dialect] = Cell(
                fault=fault,
                dialect=dialect,
                lines=mine,
                rows=own,
                value=values.get((dialect, question)),
                billed=_billed(home.parent / "book.toml", model, mine),
                failing=_broken(found, dialect, question, own),
            )
    return Faulty(cells, lines, rows, _elsewhere(found, rows))


def _billed(book: Path, model: str, lines: Sequence[Line]) -> Decimal:
    price = read_book(str(book)).prices[model]
    parts = [cost(line.usage, price) for line in lines if line.billed]
    return sum((part for part in parts if part is not None), Decimal(0))


def _broken(found: Audit, dialect: str, question: str, rows: Sequence[Call]) -> frozenset[str]:
    """Return the invariants with a fault that names a call or the sample of a question."""
    names = {row.call for row in rows} | {row.event for row in rows if row.event}
    return frozenset(
        verdict.invariant
        for verdict in found.verdicts
        for fault in verdict.faults
        if any(name in fault.where for name in names)
        or (question in fault.where and dialect in fault.task)
    )


def _elsewhere(found: Audit, rows: Sequence[Call]) -> Sequence[str]:
    calls = {row.call for row in rows}
    return [
        f"{verdict.invariant} {fault.where}: {fault.said}"
        for verdict in found.verdicts
        for fault in verdict.faults
        if not any(call in fault.where for call in calls) and f"{SUITE}-train" not in fault.where
    ]
