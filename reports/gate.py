"""A gate: rules in a TOML file, each of which a run keeps, breaks, or cannot show that it keeps."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError, model_validator

from podium.harness.errors import UserError, did_you_mean, first_fault, no_such
from podium.harness.files import SETTINGS, parse_toml, read_limited, refuse_absent
from podium.harness.ledger.totals import SystemRun
from podium.harness.text import pluralise
from podium.reports import render, stats
from podium.reports.against import counterpart
from podium.reports.audit import Audit
from podium.reports.blocks import reference_of
from podium.reports.columns import DECLARED
from podium.reports.comparison_rows import Pair
from podium.reports.intervals import difference, grades_of, question_means
from podium.reports.report import Report, refuse_unfinished
from podium.reports.row import TableRow
from podium.reports.stats import Bounds

Outcome = Literal["holds", "cannot be shown", "fails"]
WORST: tuple[Outcome, ...] = ("fails", "cannot be shown", "holds")
ITSELF = "itself"
"""In place of another system: the same system in the run of `--against`."""
NUMBERS = {int, float, Decimal}
NUMERIC = [one.name for one in fields(TableRow) if NUMBERS & {one.type, *get_args(one.type)}]
INTERVALS = {"accuracy": "ci", "usd_per_query": "usd", "paired_diff": "paired"}
"""Column -> what the columns of its 95 % interval begin with."""
SURE = 1 - stats.LEVEL
FORM = (
    "A rule states system, perhaps suite, and either not_worse_than and points, or column and one "
    "of at_most and at_least, numbers in the column's unit"
)


class GateRule(BaseModel):
    """What a system must keep, on one suite or on every suite of the run."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    system: str
    suite: str | None = None
    not_worse_than: str | None = None
    points: Annotated[float, Field(gt=0, lt=100)] | None = None
    column: str | None = None
    at_most: FiniteFloat | None = None
    at_least: FiniteFloat | None = None

    @model_validator(mode="after")
    def _of_one_form(self) -> "GateRule":
        limits = [self.at_most, self.at_least].count(None)
        missing = [self.not_worse_than, self.points].count(None)
        if (self.column is None, limits, missing) not in ((True, 2, 0), (False, 1, 2)):
            raise ValueError("Something is missing, or there is too much")
        if self.system == self.not_worse_than:
            raise ValueError(f"For a system in two runs, say not_worse_than = '{ITSELF}'")
        return self

    @property
    def limit(self) -> float:
        """What its column may be at most, or at least."""
        return (self.at_most if self.at_least is None else self.at_least) or 0.0

    def sentence(self, suite: str) -> str:
        """Return the rule in words."""
        said = f"{self.column} at {'most' if self.at_least is None else 'least'} {self.limit:g}"
        if self.column is None:
            said = f"not worse than {self.not_worse_than} by more than {self.points:g} points"
        return f"{self.system} on {suite}: {said}"


class Gate(BaseModel):
    """What a gate file states: an audit, and `[[rule]]` as often as needed."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    audit: Literal["clean", "strict"] | None = None
    rule: tuple[GateRule, ...] = ()


class RuleResult(NamedTuple):
    """What became of a rule on one suite, or of one directory's audit."""

    place: str
    sentence: str
    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """What became of a gate; `stated` says whether it was written before the run."""

    name: str
    stated: str
    results: tuple[RuleResult, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of all rules."""
        return next(one for one in WORST if one in {rule.outcome for rule in self.results})

    @property
    def headline(self) -> str:
        """The outcome in a line."""
        kept = [one.outcome for one in self.results].count("holds")
        return f"Gate {self.name}: {self.outcome} ({kept} of {len(self.results)} rules hold)"


def read_gate(path: Path) -> tuple[Gate, str]:
    """Return the gate in a file, and the file's sha256; UserError for the first mistake in it."""
    refuse_absent(path)
    content = read_limited(path, SETTINGS)
    try:
        gate = Gate.model_validate_json(json.dumps(parse_toml(content), default=str))
    except ValidationError as error:
        where, said = first_fault(error)
        said = said.removeprefix("Value error, ")
        raise UserError(f"Gate {path}, at {where}: {said}. {FORM}.") from error
    except ValueError as error:
        raise UserError(f"Gate {path} is not valid TOML: {error}. Correct it.") from error
    if not (gate.rule or gate.audit):
        raise UserError(f"Gate {path} has no rule. Add a [[rule]], or audit = 'clean'.")
    for rule in gate.rule:
        if rule.column is not None and rule.column not in NUMERIC:
            near, every = did_you_mean(rule.column, NUMERIC), "podium report DIR --columns list"
            said = f"There is no column of numbers {rule.column!r} for gate {path}"
            raise UserError(f"{near}{said}; `{every}` prints all.")
    return gate, sha256(content).hexdigest()


Check = tuple[GateRule, TableRow, SystemRun, SystemRun | None]
"""A rule, the row that it is about, that row's run, and the run that it is compared with."""


def gate_checks(gate: Gate, report: Report, before: Sequence[SystemRun] | None) -> list[Check]:
    """Return each rule on each row that it names; UserError for a name that is not there.

    `before` is the run of `--against`; None without one.
    """
    suites, found = sorted({row.suite for row in report.rows}), list[Check]()
    for rule in gate.rule:
        if rule.suite is not None and rule.suite not in suites:
            raise no_such("suite", rule.suite, suites, "the gate may name: ")
        if rule.not_worse_than == ITSELF and before is None:
            raise UserError(f"A rule on {rule.system} needs an earlier run: add --against DIR.")
        for block in report.shown.pairs:
            if rule.suite in (None, block[0][0].suite):
                found += _checks(rule, block, before or ())
    return found


def _checks(rule: GateRule, block: Sequence[Pair], before: Sequence[SystemRun]) -> Iterator[Check]:
    suite, whom = block[0][0].suite, rule.not_worse_than
    names = dict.fromkeys(row.system for row, _ in block)
    for name in (rule.system, whom):
        if name not in (None, ITSELF, *names):
            raise no_such("system", name, names, f"on {suite} the gate may name: ")
    reference = reference_of([run for _, run in block], whom) if whom in names else None
    for row, run in block:
        if row.system == rule.system or run is reference:
            refuse_unfinished(row, run)
        if row.system == rule.system:
            earlier = [one for one in before if one.facts.purpose == "eval"]
            other = counterpart(run, earlier) if whom == ITSELF else reference
            if whom == ITSELF and other is None:
                raise UserError(f"{row.system} on {suite} is not in the run of --against.")
            yield rule, row, run, other


def gate_result(
    name: str, stated: str, checks: Sequence[Check], audits: Mapping[Path, Audit]
) -> GateResult:
    """Return what became of a gate; `audits` are those that it asks for, by directory."""
    results = [
        RuleResult(check[1].suite, check[0].sentence(check[1].suite), *_judged(check))
        for check in checks
    ]
    for folder, audit in audits.items():
        failing = [f"{one.invariant} {one.title}" for one in audit.verdicts if one.status == "fail"]
        why = f"`podium audit` fails on {', '.join(failing)}" if failing else "no invariant fails"
        results.append(
            RuleResult("audit", f"audit of {folder.name}", "holds" if audit.ok else "fails", why)
        )
    return GateResult(name, stated, tuple(results))


def when_stated(digest: str, report: Report) -> str:
    """Return whether a gate was written before the run: whether all logs have its digest."""
    digests = {one.facts.gate_sha256 for one in report.system_runs if one.facts.purpose == "eval"}
    logs = "some logs lack" if digest in digests else "no log has"
    after = f"written after the run: {logs} its digest"
    return "written before the run" if digests == {digest} else after


def _judged(check: Check) -> tuple[Outcome, str]:
    """Return what became of a rule, and the figures that say so."""
    rule, row, run, other = check
    ours = grades_of(run.attempts)
    if other is None:
        return _of_column(rule, row, len(ours))
    theirs, margin = grades_of(other.attempts), (rule.points or 0) / 100
    found = difference(ours, theirs)
    if found is None:
        return "cannot be shown", "no question was graded for both"
    means, before = question_means(ours), question_means(theirs)
    deltas = np.array([means[one] - before[one] for one in means if one in before])
    less, more = stats.non_inferiority_p(deltas, margin, single=found.test == "mcnemar")
    outcome: Outcome = "holds" if less < SURE else "fails" if more < SURE else "cannot be shown"
    diff, bounds = found.paired_diff, render.interval_words(found.paired_low, found.paired_high)
    said = f"difference {render.points(diff)} points{bounds and f' (95 %: {bounds})'}, "
    said += f"p {render.p_value(more if outcome == 'fails' else less)}"
    variance = float(deltas.var(ddof=min(1, deltas.size - 1)))
    needed = stats.questions_to_tell(diff, -margin, variance)
    if needed and -margin < diff <= 0:
        needed = max(needed, stats.fewest_questions(margin))
    return outcome, said + _with_power(outcome, found.n_paired, needed, holds=diff > -margin)


def _of_column(rule: GateRule, row: TableRow, questions: int) -> tuple[Outcome, str]:
    """Hold a column's 95 % interval to a limit; a column without one as it was measured."""
    name, stated = rule.column or "", getattr(row, rule.column or "")
    if stated is None:
        return "cannot be shown", f"{name} is unknown, or nothing that this system has"
    value, limit = float(stated), rule.limit
    if in_shares := DECLARED[name].unit == "pairs" and 0 < limit < 1:
        value /= row.n_asked if name == "n_graded" else row.n_graded
    ends = [getattr(row, f"{INTERVALS.get(name)}_{end}", None) for end in ("low", "high")]
    known = [one for one in ends if one is not None]
    bounds = stats.wilson(value, questions) if in_shares else Bounds(*known) if known else None
    kept = [limit <= one if rule.at_most is None else one <= limit for one in bounds or [value]]
    outcome: Outcome = "holds" if all(kept) else "cannot be shown" if any(kept) else "fails"
    if bounds is None:
        return outcome, f"{value:.4g} as measured"
    binomial = in_shares or (name == "accuracy" and row.epochs == 1)
    half = max(bounds.high - value, value - bounds.low) / stats.normal_quantile(1 - SURE / 2)
    needed = stats.questions_to_tell(value, limit, None if binomial else questions * half**2)
    said = f"{value:.4g} (95 %: {bounds.low:.4g} to {bounds.high:.4g})"
    holds = limit <= value if rule.at_most is None else value <= limit
    return outcome, said + _with_power(outcome, questions, needed, holds=holds)


def _with_power(outcome: Outcome, questions: int, needed: int | None, *, holds: bool) -> str:
    """Return how many questions were asked and, if they are too few, how many would do."""
    said = f", {pluralise(questions, 'question')}"
    if outcome != "cannot be shown":
        return said
    if needed is None:
        return f"{said}; on the limit itself no number of questions shows anything"
    needed, way = max(needed, questions + 1), "holds" if holds else "fails"
    about = render.count(float(f"{needed:.2g}"))
    return f"{said}; if this stays, about {about} questions would show that it {way}"
