"""Audit checks of logs and journals: I4 (calls), I7, I11 (plausibility), I14 and I15 (texts)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from podium.harness.ledger.answered_by import may_be_alias
from podium.harness.ledger.call import Call
from podium.harness.ledger.hooks import CallTexts, reply_digest, text_digest
from podium.harness.ledger.join import LoggedEvent
from podium.harness.ledger.journal import usage_of
from podium.harness.ledger.kept_texts import kept_texts, kept_traces
from podium.harness.ledger.logs import NOTHING, SAMPLES, CallEvent, Json, seconds_between
from podium.harness.ledger.runs import CallRecord, JournalRecord, LogRecord, RunFacts, SampleRecord
from podium.harness.records import CONDUCTOR, TURN_COUNT, Usage
from podium.harness.request import STANDARD
from podium.harness.text import format_range
from podium.reports.audit.evidence import (
    NO_TOKENS,
    SERVED,
    Evidence,
    Faults,
    InvariantCheck,
    Tokens,
    differences,
    minus,
    said_tokens,
    spent,
    told,
)

OWN = ("cache_write_1h", "orchestration_in", "orchestration_in_cached", "orchestration_out")
"""Fields of token counts that logs may lack: only the provider's raw usage object has them."""
TOLERATED_S = 60.0
"""Tolerated seconds by which a call's times in a log lie outside its times in the journal."""
GONE = (
    "its calls were recorded in a journal that is missing: the `ledger/` folder belongs to the logs"
)


def records_agree(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Every call of a log is one call of a journal and the other way round, with equal tokens."""
    twice = [(f"event {uuid}", "a sample lists it twice") for uuid in evidence.copies]
    twice += [("journals", text) for text in evidence.twice]
    yield from twice
    check.skipped[SERVED] += evidence.is_served
    if evidence.journals:
        yield from _escaped(evidence, check)
        yield from _lost(evidence)
        yield from _disagree(evidence)
        for journal in evidence.journals:
            yield from ((f"journal {journal.name}", text) for text in _journal(evidence, journal))
        return
    gone = [
        (f"log {log.name}", GONE)
        for log in evidence.logs
        if _journaled(log.facts) and any(sample.events or sample.lost for sample in log.samples)
    ]
    yield from gone
    if not (twice or gone):
        check.gaps[evidence.why_no_journal()] += 1


def _journaled(facts: RunFacts | None) -> bool:
    return facts is not None and facts.journal is not None and not facts.redacted


def _escaped(evidence: Evidence, check: InvariantCheck) -> Faults:
    journals = evidence.journals
    start = min((str(journal.head.get("at", "")) for journal in journals), default="")
    for uuid in evidence.escaped:
        entry = evidence.seen[uuid]
        older = entry.event.started[:19] < start[:19]
        if older and not _journaled(entry.log.facts):
            check.weak["calls older than the first journal"] += 1
            continue
        sample = entry.sample
        place = f"sample {sample.question} epoch {sample.epoch}"
        yield f"event {uuid}", f"{place}: the log has a call that no journal has"


def _lost(evidence: Evidence) -> Faults:
    """Yield a fault for each ended call of a journal that is missing from the log of its sample."""
    newest = evidence.logs[0] if evidence.logs else None
    for call, record in evidence.calls.items():
        outcome = record.outcome
        if evidence.events_of[call] or outcome is None or not outcome.get("event"):
            continue
        key = record.intent.get("sample")
        if not key or record.intent["scope"] in ("training", "serving") or newest is None:
            continue
        sample = evidence.newest.get((str(key["question"]), int(key["epoch"])))
        if sample is None and newest.status == "success":
            yield f"call {call}", f"no log has question {key['question']} epoch {key['epoch']}"
        elif sample and sample.uuid == key["uuid"] and not sample.retried:
            place = f"sample {sample.question} epoch {sample.epoch}"
            yield f"call {call}", f"{place}: the log lacks the call"


def _disagree(evidence: Evidence) -> Faults:
    for call, record in evidence.calls.items():
        for entry in evidence.events_of[call][-1:]:
            texts = [*_asked_otherwise(record.intent, entry)]
            if record.outcome is not None:
                texts += _unlike(record.outcome, entry.event)
                texts += _ended_otherwise(record.intent, record.outcome, entry.event)
            yield from ((f"call {call}", text) for text in texts)


def not_as_journaled(record: CallRecord | None, entry: LoggedEvent) -> Iterator[str]:
    """Yield differences between a log's model event and its call in a journal, texts included."""
    if record is None:
        yield f"no journal has the call of its event {entry.event.id}"
        return
    yield from _asked_otherwise(record.intent, entry)
    outcome = record.outcome or NOTHING
    if outcome.get("event") == entry.event.id:
        yield from _unlike(outcome, entry.event)
        yield from _ended_otherwise(record.intent, outcome, entry.event)
        yield from _call(record, [entry], InvariantCheck())
    elif not (entry.event.error or entry.event.pending):
        yield f"the journal's call ended with a different event from {entry.event.id}"


def _unlike(outcome: Json, event: CallEvent) -> Iterator[str]:
    ours, theirs = usage_of(outcome), event.usage
    if theirs is not None and ours is not None and event.raw_usage is None:
        theirs = replace(theirs, **{name: getattr(ours, name) for name in OWN})
    if (difference := minus(_five(ours), _five(theirs))) != NO_TOKENS:
        yield f"the journal's tokens less the log's: {said_tokens(difference)}"
    elif (ours is None) != (theirs is None):
        holder, counterpart = ("journal", "log") if theirs is None else ("log", "journal")
        yield f"the {holder} has counts of its tokens, and the {counterpart} has none"
    elif ours != theirs:
        fields = ("reasoning", "total_reported", *OWN)
        counts = [
            ", ".join(f"{getattr(usage, name)} {name.replace('_', ' ')}" for name in fields)
            for usage in (ours, theirs)
        ]
        yield f"the journal counts {counts[0]}, the log {counts[1]}"
    if outcome.get("refused") and not event.refused and not event.error:
        yield "the journal states that it was refused, and the log has a reply"


def _ended_otherwise(intent: Json, outcome: Json, event: CallEvent) -> Iterator[str]:
    if event.error or outcome.get("event") != event.id:
        return
    # If a reply names the gateway instead of the model, the journal has the name from a header.
    unnamed = may_be_alias(event.model, event.served_model)
    for name, ours, theirs in (
        ("served model", None if unnamed else outcome.get("served_model"), event.served_model),
        ("stop reason", outcome.get("stop"), event.stop),
        ("cache", outcome.get("cache"), event.cache),
    ):
        if ours is not None and ours != theirs:
            yield f"the journal names {name} {ours}, the log {theirs}"
    ids = {request.get("id") for request in event.request_ids}
    if ids and (request_id := outcome.get("request_id")) and request_id not in ids:
        yield f"the journal names request {request_id}, the log {', '.join(sorted(map(str, ids)))}"
    late = _seconds_late(event, intent, outcome)
    if late is not None and late > TOLERATED_S:
        yield f"the log's times differ from the journal's by {late:,.0f} s"


def _seconds_late(event: CallEvent, intent: Json, outcome: Json) -> float | None:
    """Return how many seconds a call's event is outside its times in a journal; None: unknown."""
    try:
        after_end = seconds_between(str(outcome["at"]), event.completed or event.started)
        before_start = seconds_between(event.completed or event.started, str(intent["at"]))
        dispatched = seconds_between(str(outcome["at"]), event.started)
    except (KeyError, ValueError, TypeError):  # another check reports invalid times
        return None
    return max(after_end, before_start, dispatched)


def _asked_otherwise(intent: Json, entry: LoggedEvent) -> Iterator[str]:
    event, sample, facts = entry.event, entry.sample, entry.log.facts
    for name, theirs in (("model", event.model), ("role", event.role), ("step", event.step)):
        if intent.get(name) != theirs and (name != "step" or theirs is not None):
            yield f"the journal names {name} {intent.get(name)}, the log {theirs}"
    key: Json = intent.get("sample") or {}
    ours, theirs = (key.get("question"), key.get("epoch")), (sample.question, sample.epoch)
    if key and ours != theirs:
        yield "the journal names question {} epoch {}, the log {} epoch {}".format(*ours, *theirs)
    journaled = facts is not None and facts.journal is not None and event.phase == "solve"
    worker = facts.workers.get(event.role) if facts and journaled else None
    prices = intent.get("price_ref"), intent.get("service") or STANDARD
    if worker and prices != (logged_prices := (worker.price, worker.service)):
        yield "the journal names price {} ({}), the log {} ({})".format(*prices, *logged_prices)


def _five(usage: Usage | None) -> Tokens:
    if usage is None:
        return NO_TOKENS
    cached = (usage.cache_read, usage.cache_write)
    return (usage.input, usage.output, *cached, usage.reasoning or 0)


def _journal(evidence: Evidence, journal: JournalRecord) -> Iterator[str]:
    """Yield a journal's differences from its log and from the token totals of Inspect's hooks."""
    theirs = {str(line["model"]): told(line) for line in journal.totals}
    ours = spent(row for row in evidence.counted if row.journal == journal.name)
    # A journal has no totals if its process was killed or made no call with token counts.
    for model, difference in differences(theirs, ours) if theirs else ():
        yield f"model {model}: Inspect's hooks less the journal's calls: {said_tokens(difference)}"
    for name in ("label", "system", "suite") if evidence.facts else ():
        ours, theirs = journal.head.get(name), getattr(evidence.facts, name)
        if ours != theirs:
            yield f"it has {name} {ours}, the log {theirs}"


NO_REPLY = reply_digest({"choices": [{"message": {"content": ""}}]})
"""The digest of the empty output that Inspect writes for a failed call."""
OLDER = "calls of an older journal, which has only the completion's digest of their replies"
MERGED = "not comparable: requests whose turns the provider's adapter merged (older journal)"
OTHERWISE = "requests of an older journal that the log has in other words, by hand or by an adapter"


def texts_agree(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Requests, replies and answers in a log match the digests in the journal."""
    if not evidence.journals:
        check.gaps[evidence.why_no_journal()] += 1
        return
    if evidence.is_served:
        yield from _kept(evidence, check)
    else:
        yield from _logged(evidence, check)


def _logged(evidence: Evidence, check: InvariantCheck) -> Faults:
    for call, record in evidence.calls.items():
        for text in _call(record, evidence.events_of[call], check):
            yield f"call {call}", text
    for log in evidence.logs:
        for sample in log.samples:
            if log.facts is None or log.facts.redacted or sample.failed:
                continue
            for text in _answer(evidence, sample, check):
                yield f"sample {sample.question} epoch {sample.epoch}", f"{text} ({log.name})"


def _kept(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Yield faults: texts stored by `podium serve --keep-texts` whose digest no journal has."""
    traces = {trace for journal in evidence.journals for trace in kept_traces(journal.path)}
    check.skipped["served without stored texts (--keep-texts)"] += not traces
    for request in evidence.requests if traces else ():
        yield from (
            (f"sample {request.trace} epoch 1", text) for text in kept_texts(request).refused
        )
    for trace in sorted(traces - {request.trace for request in evidence.requests}):
        yield f"sample {trace} epoch 1", "its texts were stored, but no journal has the request"


def _call(
    record: CallRecord, events: Sequence[LoggedEvent], check: InvariantCheck
) -> Iterator[str]:
    if not events:
        check.notes["not comparable: calls that no log has"] += 1
        return
    if events[-1].log.facts is not None and events[-1].log.facts.redacted:
        check.notes["not comparable: calls whose texts were removed from the log"] += 1
        return
    digests = ((entry.sample.digests, entry.event.id) for entry in events)
    event_texts = [digest.calls.get(event) if digest else None for digest, event in digests]
    sent = (record.outcome or {}).get("sent_sha256")
    for texts in event_texts:
        if texts is None or texts.sent in (record.intent.get("prompt_sha256"), sent):
            continue
        if sent:
            yield "the log's request does not match the digest in the journal"
        elif texts.merged:
            check.notes[MERGED] += 1
        else:
            check.weak[OTHERWISE] += 1
    if event_texts[-1] is not None and record.outcome is not None:
        yield from _said(record.outcome, event_texts[-1], check)


def _said(outcome: Json, texts: CallTexts, check: InvariantCheck) -> Iterator[str]:
    ours = outcome.get("output_sha256")
    if texts.said is None:
        if ours not in (None, text_digest("")):
            yield "the journal has the digest of a reply, and the log has no reply"
    elif ours is None and texts.reply == NO_REPLY:
        return
    elif ours is None:
        failed = outcome.get("error") and texts.said == text_digest("")
        check.weak["replies in the log without a digest in the journal"] += bool(
            outcome.get("event") and not failed
        )
    elif texts.said != ours:
        yield "the log's reply does not match the digest in the journal"
    elif "reply_sha256" not in outcome:
        check.notes[OLDER] += 1
    elif texts.reply != outcome["reply_sha256"]:
        yield "the reply's reasoning, tool calls or content does not match the journal's digest"


def _answer(evidence: Evidence, sample: SampleRecord, check: InvariantCheck) -> Iterator[str]:
    digests = sample.digests
    if digests is None:
        return
    for place in digests.elsewhere:
        yield f"{place} shows a different answer from the graded one"
    lines = evidence.answer_lines.get(sample.uuid)
    if lines is None:
        if sample.uuid in evidence.written_down:
            check.weak["answers that no journal has, although it has their calls"] += 1
        else:
            check.notes["not comparable: answers that no journal has"] += 1
        return
    if all(line.get("answer_sha256") != digests.answer for line in lines):
        yield "its answer does not match the digest in the journal"
    if all(line.get("shape_sha256") != digests.shape for line in lines):
        yield "its plan, steps or depth do not match the digest in the journal"


LIVE = "live"
"""The label of runs whose request ids and model names come from a provider."""
SAME = 0.9
"""A token count is implausible if a larger share of distinct prompts has the same count."""
ENOUGH = 20
"""Minimum number of prompts or replies for checking whether token counts are plausible."""
LEAST, MOST = 1 / 40, 4.0
"""Minimum and maximum plausible number of visible output tokens per character of a reply."""
SLACK = 16
"""Tokens per reply that a chat format may add and the reply's text does not show."""


def complete(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Each step is a call, a system's manifest allows their number, and planning is counted."""
    facts = evidence.facts
    if evidence.is_served:
        yield from _requests(evidence, check)
        return
    if facts is None:
        check.skipped["not a run of podium: its expected calls are not declared"] += 1
        return
    by_sample: dict[str, list[Call]] = defaultdict(list)
    for row in evidence.rows:
        if row.counted and row.scope == "inference":
            by_sample[row.sample].append(row)
    for sample in evidence.newest.values():
        if sample.graded:
            rows = by_sample.get(sample.uuid, [])
            for text in _uncalled(sample, rows, facts):
                yield f"sample {sample.question} epoch {sample.epoch}", text


OPEN = "requests without an end: in flight, or their process was killed"
LOST = "requests without an end, although their process ended normally"


def _requests(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Yield faults: served requests with a wrong number or kind of calls, calls without request."""
    traces = {request.trace for request in evidence.requests}
    for request in evidence.requests:
        place = f"sample {request.trace} epoch 1"
        if request.ending == "in flight":
            closed = request.journal.closed
            (check.weak if closed else check.notes)[LOST if closed else OPEN] += 1
        elif request.ending == "answered":
            calls = len(_answered(request.rows))
            if _is_unlike(request.steps, calls, stopped=request.stopped is not None):
                yield place, UNLIKE.format(request.steps, calls)
        yield from (
            (f"call {row.call}", f"made to serve, but its scope is {row.scope}")
            for row in request.rows
            if row.scope != "serving"
        )
    for sample in sorted({row.sample for row in evidence.rows} - traces):
        yield f"sample {sample} epoch 1", "its calls belong to no recorded request"
    for sample in sorted(evidence.answer_lines.keys() - traces):
        yield f"sample {sample} epoch 1", "it was answered, but no request was recorded"


def _uncalled(sample: SampleRecord, rows: Sequence[Call], facts: RunFacts) -> Iterator[str]:
    steps = sample.plan.get("steps")
    call_ids = {row.call for row in rows if row.role != CONDUCTOR}
    answered = _answered(rows)
    calls, stopped = len(answered), sample.plan.get("stopped") is not None
    if _is_unlike(steps, calls, stopped=stopped):
        yield UNLIKE.format(steps, calls)
    planned = [row for row in rows if row.role == CONDUCTOR]
    uncalled = facts.plans_uncalled or "plans" in facts.args
    conducted = facts.system.startswith(CONDUCTOR) and not uncalled
    if conducted and not any(row.input_total or row.output for row in planned):
        yield "a conductor planned it, but none of the conductor's tokens are counted"
    if facts.calls_expected is None:
        return
    # After a limit or a call without a reply, there may be fewer calls than the manifest says.
    turns = sample.plan.get(TURN_COUNT, 1)  # of a multi-turn task
    minimum, maximum = (count * turns for count in facts.calls_expected)
    if stopped or call_ids != answered:
        minimum = 0
    if not minimum <= calls <= maximum and not (stopped and TURN_COUNT in sample.plan):
        promised = format_range((minimum, maximum))
        yield f"{calls} worker calls with a reply, but its manifest states {promised}"


UNLIKE = "{} replies of workers in its answer, and {} calls with a reply"


def _answered(rows: Iterable[Call]) -> set[str]:
    return {row.call for row in rows if row.role != CONDUCTOR and row.error is None}


def _is_unlike(steps: object, calls: int, *, stopped: bool) -> bool:
    return isinstance(steps, int) and (calls < steps or (not stopped and calls > steps))


def plausible(evidence: Evidence, check: InvariantCheck) -> Faults:
    """Token counts vary with the prompts and fit the replies' texts, and time runs forward."""
    by_model: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for row in evidence.rows:
        if row.input_uncached is not None:
            by_model[row.role, row.model].append(row)
        yield from ((f"call {row.call}", text) for text in _times(evidence, row))
        check.weak["calls answered by a different model from the requested one"] += _other_model(
            row
        )
    for id, calls in _shared(evidence.rows):
        yield f"request {id}", f"the provider gave {calls} billed requests the same id"
    for (role, model), rows in by_model.items():
        for text in (*_constant(rows), *_band(evidence, rows), *_reasoning(evidence, rows)):
            yield f"{role} ({model})", text


def _shared(rows: Iterable[Call]) -> Iterator[tuple[str, int]]:
    """Yield a provider's request ids that several billed calls have, with the number of calls."""
    ids = Counter(
        row.request_id
        for row in rows
        if row.request_id and row.label == LIVE and row.cache != "read" and row.billable != "no"
    )
    yield from ((id, count) for id, count in ids.items() if id and count > 1)


def _other_model(row: Call) -> bool:
    if row.label != LIVE or not row.served_model:
        return False
    name = row.model.rsplit("/", 1)[-1].removesuffix("-latest")
    return not row.served_model.rsplit("/", 1)[-1].startswith(name)


def _times(evidence: Evidence, row: Call) -> Iterator[str]:
    if row.latency_s is not None and row.latency_s < 0:
        yield "its duration is negative"
    record = evidence.calls.get(row.call)
    if record and record.outcome and str(record.outcome["at"]) < str(record.intent["at"]):
        yield "it ended before it began"
    entry = evidence.seen.get(row.event or "")
    if entry and entry.event.completed and entry.event.completed < entry.event.started:
        yield "its event ended before it began"


def _constant(rows: Iterable[Call]) -> Iterator[str]:
    """Yield a fault for a token count that most distinct prompts share: real counts vary."""
    prompts: dict[Any, Call] = {}
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


def _band(evidence: Evidence, rows: Iterable[Call]) -> Iterator[str]:
    tokens, chars, replies = 0, 0, 0
    for row in rows:
        entry = evidence.seen.get(row.event or "")
        length = entry.sample.chars.get(entry.event.id) if entry else None
        if length and row.reasoning is not None and row.output is not None:
            tokens += row.output - row.reasoning
            chars += length
            replies += 1
    too_many = tokens > chars * MOST + SLACK * replies
    if replies >= ENOUGH and (too_few_tokens(tokens, chars) or too_many):
        yield f"{tokens:,} visible output tokens for {chars:,} characters in {replies} replies"


def too_few_tokens(tokens: int, chars: int) -> bool:
    """Return whether `tokens` output tokens are too few for `chars` characters of replies.

    >>> too_few_tokens(7, 200 * len("word ")), too_few_tokens(25, 200 * len("word "))
    (True, False)
    """
    return tokens < chars * LEAST - SLACK


def _reasoning(evidence: Evidence, rows: Sequence[Call]) -> Iterator[str]:
    facts = evidence.facts
    worker = facts.workers.get(rows[0].role) if facts else None
    if worker is None or len(rows) < ENOUGH:
        return
    settings = worker.settings
    effort = settings.get("reasoning_effort")
    declared = effort not in (None, "none", "minimal") or bool(settings.get("reasoning_tokens"))
    if declared and all(row.reasoning == 0 for row in rows):
        yield f"it is set to reason, but none of {len(rows)} replies has reasoning tokens"


def archives(evidence: Evidence, check: InvariantCheck) -> Faults:
    """I14: each log is as Inspect writes it, and no log exists twice."""
    for log in evidence.logs:
        place = f"log {log.name}"
        for oddity in log.oddities:
            if oddity.grave:
                yield place, f"{oddity.where}: {oddity.said}"
            else:
                check.weak[f"{place}: {oddity.where}: {oddity.said}"] += 1
        yield from ((place, text) for text in _passed_over(evidence, log))
    yield from _twice(evidence)


def _twice(evidence: Evidence) -> Faults:
    # Eval id and time identify a log, but a killed run's (`started`) may have a recovered copy.
    same: dict[tuple[str, str], list[str]] = defaultdict(list)
    for log in evidence.logs:
        if log.eval_id and log.status != "started":
            same[log.eval_id, log.created].append(log.name)
    for (_, created), names in same.items():
        if len(names) > 1:
            yield f"log {', '.join(sorted(names))}", f"the same log of {created} twice"


def _passed_over(evidence: Evidence, log: LogRecord) -> Iterator[str]:
    for copy in log.superseded:
        member = f"{SAMPLES}{copy.question}_epoch_{copy.epoch}.json"
        for text in _unlike_a_failure(evidence, log, copy):
            yield f"{member}: it occurs twice, and readers skip this copy: {text}"


def _unlike_a_failure(evidence: Evidence, log: LogRecord, copy: SampleRecord) -> Iterator[str]:
    """Yield reasons why a skipped copy of a sample is suspect, e.g. that this copy did not fail."""
    if any(replace(sample, newest=copy.newest) == copy for sample in log.samples):
        return  # a run that stops while it writes a sample writes it again later
    if not copy.failed:
        yield "it did not fail, so no run retried it"
        return
    samples = (sample for record in evidence.logs for sample in record.samples)
    same = [replace(sample, newest=copy.newest) for sample in samples if sample.uuid == copy.uuid]
    if same and copy not in same:
        yield "the same attempt occurs elsewhere with different contents"
    elif not same and evidence.journals:
        yield from _unlike_journals(evidence, log, copy)


def _unlike_journals(evidence: Evidence, log: LogRecord, copy: SampleRecord) -> Iterator[str]:
    samples = [call.intent.get("sample") or NOTHING for call in evidence.calls.values()]
    if not any(sample.get("uuid") == copy.uuid for sample in samples):
        yield "no older log has it, and no journal has a call of it"
    for event in (*copy.events, *copy.lost):
        call = evidence.call_of.get(event.id) or evidence.call_of.get(event.span or "")
        record = evidence.calls[call] if call else None
        yield from not_as_journaled(record, LoggedEvent(event, copy, log, final=False))
