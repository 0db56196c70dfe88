"""A gate: a TOML file with rules for a run; each rule holds, fails, or cannot be shown."""

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
"""Value of `not_worse_than` for the same system in the earlier run that `--against` names."""
NUMBERS = {int, float, Decimal}
NUMERIC = [col.name for col in fields(TableRow) if NUMBERS & {col.type, *get_args(col.type)}]
INTERVALS = {"accuracy": "ci", "usd_per_query": "usd", "paired_diff": "paired"}
"""Column -> the prefix of the columns of its 95 % interval."""
FRACTIONS = ("share", "points")
"""Units of columns whose values lie between -1 and 1."""
SURE = 1 - stats.LEVEL
FORM = (
    "A rule has system, optionally suite, and either not_worse_than and points, or column and one "
    "of at_most and at_least; numbers are in the column's unit"
)


class GateRule(BaseModel):
    """A rule that a system must keep, on one suite or on every suite of the run."""

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
            raise ValueError("Keys are missing, or there are too many")
        if self.system == self.not_worse_than:
            raise ValueError(
                f"To compare a system with its earlier run, set not_worse_than = '{ITSELF}'"
            )
        return self

    @property
    def limit(self) -> float:
        """The maximum or minimum that the rule sets for its column."""
        return (self.at_most if self.at_least is None else self.at_least) or 0.0

    def sentence(self, suite: str) -> str:
        """Return the rule in words, as applied to one suite."""
        text = f"{self.column} at {'most' if self.at_least is None else 'least'} {self.limit:g}"
        if self.column is None:
            text = f"not worse than {self.not_worse_than} by more than {self.points:g} points"
        return f"{self.system} on {suite}: {text}"


class Gate(BaseModel):
    """The content of a gate file: the required audit, if any, and a list of `[[rule]]`."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")
    audit: Literal["clean", "strict"] | None = None
    rule: tuple[GateRule, ...] = ()


class RuleResult(NamedTuple):
    """The result of a rule on one suite, or of one directory's audit."""

    place: str
    sentence: str
    outcome: Outcome
    why: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of a gate; `stated`: a text on whether the gate was written before the run."""

    name: str
    stated: str
    results: tuple[RuleResult, ...]

    @property
    def outcome(self) -> Outcome:
        """The worst outcome of all rules."""
        return next(worst for worst in WORST if worst in {rule.outcome for rule in self.results})

    @property
    def headline(self) -> str:
        """The gate's outcome in one line, with the number of rules that hold."""
        count = [rule.outcome for rule in self.results].count("holds")
        return f"Gate {self.name}: {self.outcome} ({count} of {len(self.results)} rules hold)"


def read_gate(path: Path) -> tuple[Gate, str]:
    """Return the gate (rules) in a file, and the file's sha256; UserError for the first mistake."""
    refuse_absent(path)
    content = read_limited(path, SETTINGS)
    try:
        gate = Gate.model_validate_json(json.dumps(parse_toml(content), default=str))
    except ValidationError as error:
        place, message = first_fault(error)
        message = message.removeprefix("Value error, ")
        raise UserError(f"Gate {path}, at {place}: {message}. {FORM}.") from error
    except ValueError as error:
        raise UserError(f"Gate {path} is not valid TOML: {error}. Correct it.") from error
    if not (gate.rule or gate.audit):
        raise UserError(f"Gate {path} has no rule. Add a [[rule]] or audit = 'clean'.")
    for rule in gate.rule:
        if rule.column is not None and rule.column not in NUMERIC:
            near, every = did_you_mean(rule.column, NUMERIC), "podium report DIR --columns list"
            message = f"There is no numeric column {rule.column!r} for gate {path}"
            raise UserError(f"{near}{message}; `{every}` prints all.")
        if rule.column and DECLARED[rule.column].unit in FRACTIONS and abs(rule.limit) > 1:
            raise UserError(
                f"Gate {path}: {rule.column} is a fraction of 1, so a limit of {rule.limit:g} "
                f"decides nothing. For {rule.limit:g} %, write {rule.limit / 100:g}."
            )
    return gate, sha256(content).hexdigest()


Check = tuple[GateRule, TableRow, SystemRun, SystemRun | None]
"""A rule, a table row that it applies to, the row's system run, and the run to compare with."""


def gate_checks(gate: Gate, report: Report, baseline: Sequence[SystemRun] | None) -> list[Check]:
    """Pair rules with the rows to check; UserError for unknown names. `baseline`: earlier run."""
    suites, checks = sorted({row.suite for row in report.rows}), list[Check]()
    for rule in gate.rule:
        if rule.suite is not None and rule.suite not in suites:
            raise no_such("suite", rule.suite, suites, "the gate can name: ")
        if rule.not_worse_than == ITSELF and baseline is None:
            raise UserError(f"A rule on {rule.system} needs an earlier run: add --against DIR.")
        for block in report.shown.pairs:
            if rule.suite in (None, block[0][0].suite):
                checks += _checks(rule, block, baseline or ())
    return checks


def _checks(rule: GateRule, block: Sequence[Pair], base: Sequence[SystemRun]) -> Iterator[Check]:
    suite, whom = block[0][0].suite, rule.not_worse_than
    names = dict.fromkeys(row.system for row, _ in block)
    for name in (rule.system, whom):
        if name not in (None, ITSELF, *names):
            raise no_such("system", name, names, f"on {suite} the gate can name: ")
    reference = reference_of([run for _, run in block], whom) if whom in names else None
    for row, run in block:
        if row.system == rule.system or run is reference:
            refuse_unfinished(row, run)
        if row.system == rule.system:
            earlier = [old for old in base if old.facts.purpose == "eval"]
            peer = counterpart(run, earlier) if whom == ITSELF else reference
            if whom == ITSELF and peer is None:
                raise UserError(
                    f"{row.system} on {suite} is not in the run of --against. Name a run that has "
                    "it."
                )
            yield rule, row, run, peer


def gate_result(
    name: str, stated: str, checks: Sequence[Check], audits: Mapping[Path, Audit]
) -> GateResult:
    """Return a gate's result from checks of its rules and, if required, audits of directories."""
    results = [
        RuleResult(check[1].suite, check[0].sentence(check[1].suite), *_judged(check))
        for check in checks
    ]
    for folder, audit in audits.items():
        failed = [verdict for verdict in audit.verdicts if verdict.status == "fail"]
        names = ", ".join(f"{verdict.invariant} {verdict.title}" for verdict in failed)
        text = f"`podium audit` fails on {names}" if failed else "no invariant fails"
        results.append(
            RuleResult("audit", f"audit of {folder.name}", "holds" if audit.ok else "fails", text)
        )
    return GateResult(name, stated, tuple(results))


def when_stated(digest: str, report: Report) -> str:
    """Return in words whether a gate was written before the run: then all logs have its digest."""
    digests = {run.facts.gate_sha256 for run in report.system_runs if run.facts.purpose == "eval"}
    logs = "some logs lack" if digest in digests else "no log has"
    text = f"written after the run: {logs} its digest"
    return "written before the run" if digests == {digest} else text


def _judged(check: Check) -> tuple[Outcome, str]:
    """Return the outcome of a rule for one table row, and the figures that prove the outcome."""
    rule, row, run, peer = check
    ours = grades_of(run.attempts)
    if peer is None:
        return _of_column(rule, row, len(ours))
    theirs, margin = grades_of(peer.attempts), (rule.points or 0) / 100
    delta = difference(ours, theirs)
    if delta is None:
        return "cannot be shown", "no question was graded for both"
    means, base = question_means(ours), question_means(theirs)
    deltas = np.array([means[question] - base[question] for question in means if question in base])
    p_hold, p_fail = stats.non_inferiority_p(deltas, margin, single=delta.test == "mcnemar")
    outcome: Outcome = "holds" if p_hold < SURE else "fails" if p_fail < SURE else "cannot be shown"
    diff, bounds = delta.paired_diff, render.interval_words(delta.paired_low, delta.paired_high)
    text = f"difference {render.points(diff)} points{bounds and f' (95 %: {bounds})'}, "
    text += f"p {render.p_value(p_fail if outcome == 'fails' else p_hold)}"
    variance = float(deltas.var(ddof=min(1, deltas.size - 1)))
    needed = stats.questions_to_tell(diff, -margin, variance)
    if needed and -margin < diff <= 0:
        needed = max(needed, stats.fewest_questions(margin))
    return outcome, text + _with_power(outcome, delta.n_paired, needed, holds=diff > -margin)


def _of_column(rule: GateRule, row: TableRow, questions: int) -> tuple[Outcome, str]:
    """Compare a column's 95 % interval or, if it has none, its value with the rule's limit."""
    name, stated = rule.column or "", getattr(row, rule.column or "")
    if stated is None:
        return "cannot be shown", f"{name} is unknown, or does not apply to this system"
    value, limit = float(stated), rule.limit
    if in_shares := DECLARED[name].unit == "pairs" and 0 < limit < 1:
        value /= row.n_asked if name == "n_graded" else row.n_graded
    ends = [getattr(row, f"{INTERVALS.get(name)}_{end}", None) for end in ("low", "high")]
    numbers = [end for end in ends if end is not None]
    bounds = stats.wilson(value, questions) if in_shares else Bounds(*numbers) if numbers else None
    within = [limit <= end if rule.at_most is None else end <= limit for end in bounds or [value]]
    outcome: Outcome = "holds" if all(within) else "cannot be shown" if any(within) else "fails"
    if bounds is None:
        return outcome, f"{value:.4g} as measured"
    binomial = in_shares or (name == "accuracy" and row.epochs == 1)
    half = max(bounds.high - value, value - bounds.low) / stats.normal_quantile(1 - SURE / 2)
    needed = stats.questions_to_tell(value, limit, None if binomial else questions * half**2)
    text = f"{value:.4g} (95 %: {bounds.low:.4g} to {bounds.high:.4g})"
    holds = limit <= value if rule.at_most is None else value <= limit
    return outcome, text + _with_power(outcome, questions, needed, holds=holds)


def _with_power(outcome: Outcome, questions: int, needed: int | None, *, holds: bool) -> str:
    """Return text: the number of questions asked and, if too few, the number that would suffice."""
    text = f", {pluralise(questions, 'question')}"
    if outcome != "cannot be shown":
        return text
    if needed is None:
        return f"{text}; the value equals the limit, so no number of questions decides"
    needed, way = max(needed, questions + 1), "holds" if holds else "fails"
    about = render.count(float(f"{needed:.2g}"))
    return f"{text}; if the value stays the same, about {about} questions would show that it {way}"
