"""I7 and I11: the calls that must be there are there, and their counts can be a provider's."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harness.audit.evidence import Evidence
from harness.audit.result import Checked, Fault
from harness.ledger.logged import SampleRecord
from harness.ledger.row import LedgerRow
from harness.logs import RunFacts
from harness.plural import from_to
from harness.records import CONDUCTOR

LIVE = "live"
"""Label of runs whose ids and models are a provider's."""
SAME = 0.9
"""A count that more than this share of distinct prompts have is no count."""
ENOUGH = 20
"""Distinct prompts from which on a constant count is told."""
LEAST, MOST = 1 / 40, 4.0
"""Visible output tokens per character of a reply: from one long word to four per character."""
SLACK = 16
"""Tokens of a chat format that a reply's text does not show, per reply."""


def complete(evidence: Evidence) -> Checked:
    """I7: steps are calls, as many as the manifest says, and a conductor's own are counted."""
    facts = evidence.facts
    if facts is None:
        return Checked(skipped="not a run of podium: what it should have called is not declared")
    found = Checked()
    by_sample: dict[str, list[LedgerRow]] = defaultdict(list)
    for row in evidence.rows:
        if row.counted and row.scope == "inference":
            by_sample[row.sample].append(row)
    for sample in evidence.newest.values():
        if sample.graded:
            rows = by_sample.get(sample.uuid, [])
            for said in (*_missing(sample, rows, facts), *_unexpected(sample, rows, facts)):
                where = f"sample {sample.question} epoch {sample.epoch}"
                found.faults.append(Fault("I7", evidence.name, where, said))
    return found


def _missing(sample: SampleRecord, rows: Sequence[LedgerRow], facts: RunFacts) -> Iterator[str]:
    steps = sample.plan.get("steps")
    answered = {row.call for row in rows if row.role != CONDUCTOR and row.error is None}
    exact = sample.plan.get("stopped") is None
    if isinstance(steps, int) and (len(answered) < steps or (exact and len(answered) > steps)):
        yield f"{steps} replies of workers in its answer, and {len(answered)} calls with a reply"
    if not facts.system.startswith(CONDUCTOR) or _replayed(facts):
        return
    planned = [row for row in rows if row.role == CONDUCTOR]
    if not any(row.input_total or row.output for row in planned):
        yield "a conductor planned it, and no token of the conductor is counted"


def _unexpected(sample: SampleRecord, rows: Sequence[LedgerRow], facts: RunFacts) -> Iterator[str]:
    """Yield calls outside what the system's manifest says, as the header repeats it.

    What a limit has stopped, or a call that got no reply, may leave fewer.
    """
    if facts.calls_expected is None:
        return
    least, most = facts.calls_expected
    asked = {row.call for row in rows if row.role != CONDUCTOR}
    answered = {row.call for row in rows if row.role != CONDUCTOR and row.error is None}
    cut = sample.plan.get("stopped") is not None or asked != answered
    if len(answered) > most or (len(answered) < least and not cut):
        promised = from_to(facts.calls_expected)
        yield f"{len(answered)} calls of workers with a reply, and its manifest says {promised}"


def _replayed(facts: RunFacts) -> bool:
    """Say whether a system declares that its plans were made earlier."""
    return "plans" in facts.args


def plausible(evidence: Evidence) -> Checked:
    """I11: counts differ as prompts do, replies have as many tokens as text, time runs on."""
    found = Checked()
    by_model: dict[tuple[str, str], list[LedgerRow]] = defaultdict(list)
    for row in evidence.rows:
        if row.input_uncached is not None:
            by_model[row.role, row.model].append(row)
        for said in _times(evidence, row):
            found.faults.append(Fault("I11", evidence.name, f"call {row.call}", said))
        found.weak["calls answered by another model than was asked for"] += _other_model(row)
    found.weak = +found.weak
    for id, calls in _shared(evidence.rows):
        said = f"the provider gave {calls} billed requests the same id"
        found.faults.append(Fault("I11", evidence.name, f"request {id}", said))
    for (role, model), rows in sorted(by_model.items()):
        for said in (*_constant(rows), *_band(evidence, rows), *_reasoning(evidence, rows)):
            found.faults.append(Fault("I11", evidence.name, f"{role} ({model})", said))
    return found


def _shared(rows: Iterable[LedgerRow]) -> Iterator[tuple[str, int]]:
    """Yield ids that stand for several requests: an invoice could not tell these apart."""
    asked = Counter(
        row.request_id
        for row in rows
        if row.request_id and row.label == LIVE and row.cache != "read" and row.billable != "no"
    )
    yield from ((id, count) for id, count in sorted(asked.items()) if id and count > 1)


def _other_model(row: LedgerRow) -> bool:
    """Say whether a reply names another model; a dated name of the one asked for is no other."""
    if row.label != LIVE or not row.served_model:
        return False
    asked = row.model.rsplit("/", 1)[-1].removesuffix("-latest")
    return not row.served_model.rsplit("/", 1)[-1].startswith(asked)


def _times(evidence: Evidence, row: LedgerRow) -> Iterator[str]:
    if row.latency_s is not None and row.latency_s < 0:
        yield "it took less than no time"
    record = evidence.merged.gathered.calls.get(row.call)
    if record and record.outcome and str(record.outcome["at"]) < str(record.intent["at"]):
        yield "it ended before it began"
    seen = evidence.seen.get(row.event) if row.event else None
    if seen and seen.event.completed and seen.event.completed < seen.event.started:
        yield "its event ended before it began"


def _constant(rows: Iterable[LedgerRow]) -> Iterator[str]:
    """Yield counts that hardly differ over distinct prompts (as a leaderboard entry once had)."""
    prompts: dict[Any, LedgerRow] = {}
    for row in rows:
        prompts.setdefault(row.prompt_sha256 or (row.question, row.step), row)
    if len(prompts) < ENOUGH:
        return
    sizes = {row.prompt_bytes for row in prompts.values()}
    if None not in sizes and len(sizes) < len(prompts) * (1 - SAME):
        return  # the prompts themselves are equally long
    for name, counts in (
        ("input", Counter(row.input_total for row in prompts.values())),
        ("total", Counter(row.total_reported for row in prompts.values() if row.total_reported)),
    ):
        for count, often in counts.most_common(1):
            if often > SAME * len(prompts):
                yield f"{often} of {len(prompts)} distinct prompts have {count} {name} tokens"


def _band(evidence: Evidence, rows: Iterable[LedgerRow]) -> Iterator[str]:
    tokens, chars, replies = 0, 0, 0
    for row in rows:
        seen = evidence.seen.get(row.event) if row.event else None
        length = seen.sample.chars.get(row.event or "") if seen else None
        if length and row.reasoning is not None and row.output is not None:
            tokens += row.output - row.reasoning
            chars += length
            replies += 1
    if replies < ENOUGH:
        return
    if tokens < chars * LEAST - SLACK or tokens > chars * MOST + SLACK * replies:
        yield f"{tokens:,} visible output tokens for {chars:,} characters in {replies} replies"


def _reasoning(evidence: Evidence, rows: Sequence[LedgerRow]) -> Iterator[str]:
    """Yield workers that are set to reason and of which no reply has reasoning tokens."""
    facts = evidence.facts
    worker = facts.workers.get(rows[0].role) if facts else None
    if worker is None or len(rows) < ENOUGH:
        return
    settings = worker.settings
    effort = settings.get("reasoning_effort")
    declared = effort not in (None, "none", "minimal") or bool(settings.get("reasoning_tokens"))
    if declared and all(row.reasoning == 0 for row in rows):
        yield f"it is set to reason, and none of {len(rows)} replies has reasoning tokens"
