"""Invariants over records: journal and log agree in calls (I4) and texts (I15), both plausible."""

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
"""Counts that only a provider's own usage has; a log may have lost it."""
TOLERATED_S = 60.0
"""An event ends between its call's two lines, but for a busy process and a clock set right."""
GONE = (
    "its calls were written down in a journal that is not here: the `ledger/` folder belongs to "
    "the logs"
)


def records_agree(evidence: Evidence, found: InvariantCheck) -> Faults:
    """Every call of a log is one call of a journal and the other way round, with equal tokens."""
    twice = [(f"event {uuid}", "a sample lists it twice") for uuid in evidence.copies]
    twice += [("journals", said) for said in evidence.twice]
    yield from twice
    found.skipped[SERVED] += evidence.is_served
    if evidence.journals:
        yield from _escaped(evidence, found)
        yield from _lost(evidence)
        yield from _disagree(evidence)
        for journal in evidence.journals:
            yield from ((f"journal {journal.name}", one) for one in _journal(evidence, journal))
        return
    gone = [
        (f"log {log.name}", GONE)
        for log in evidence.logs
        if _journaled(log.facts) and any(one.events or one.lost for one in log.samples)
    ]
    yield from gone
    if not (twice or gone):
        found.gaps[evidence.why_no_journal()] += 1


def _journaled(facts: RunFacts | None) -> bool:
    return facts is not None and facts.journal is not None and not facts.redacted


def _escaped(evidence: Evidence, found: InvariantCheck) -> Faults:
    journals = evidence.journals
    begun = min((str(one.head.get("at", "")) for one in journals), default="")
    for uuid in evidence.escaped:
        seen = evidence.seen[uuid]
        older = seen.event.started[:19] < begun[:19]
        if older and not _journaled(seen.log.facts):
            found.weak["calls older than the first journal"] += 1
            continue
        sample = seen.sample
        asked = f"sample {sample.question} epoch {sample.epoch}"
        yield f"event {uuid}", f"{asked}: the log has a call that no journal has"


def _lost(evidence: Evidence) -> Faults:
    """Yield calls whose reply a log should have."""
    newest = evidence.logs[0] if evidence.logs else None
    for call, record in evidence.calls.items():
        outcome = record.outcome
        if evidence.events_of[call] or outcome is None or not outcome.get("event"):
            continue
        asked = record.intent.get("sample")
        if not asked or record.intent["scope"] in ("training", "serving") or newest is None:
            continue
        sample = evidence.newest.get((str(asked["question"]), int(asked["epoch"])))
        if sample is None and newest.status == "success":
            yield f"call {call}", f"no log has question {asked['question']} epoch {asked['epoch']}"
        elif sample and sample.uuid == asked["uuid"] and not sample.retried:
            asked = f"sample {sample.question} epoch {sample.epoch}"
            yield f"call {call}", f"{asked}: the log lacks the call"


def _disagree(evidence: Evidence) -> Faults:
    for call, record in evidence.calls.items():
        for seen in evidence.events_of[call][-1:]:
            said = [*_asked_otherwise(record.intent, seen)]
            if record.outcome is not None:
                said += _unlike(record.outcome, seen.event)
                said += _ended_otherwise(record.intent, record.outcome, seen.event)
            yield from ((f"call {call}", one) for one in said)


def not_as_journaled(record: CallRecord | None, seen: LoggedEvent) -> Iterator[str]:
    """Yield in what an event is not what a journal has of its call, by the texts too."""
    if record is None:
        yield f"no journal has the call of its event {seen.event.id}"
        return
    yield from _asked_otherwise(record.intent, seen)
    outcome = record.outcome or NOTHING
    if outcome.get("event") == seen.event.id:
        yield from _unlike(outcome, seen.event)
        yield from _ended_otherwise(record.intent, outcome, seen.event)
        yield from _call(record, [seen], InvariantCheck())
    elif not (seen.event.error or seen.event.pending):
        yield f"the journal's call ended with another event than {seen.event.id}"


def _unlike(outcome: Json, event: CallEvent) -> Iterator[str]:
    ours, theirs = usage_of(outcome), event.usage
    if theirs is not None and ours is not None and event.raw_usage is None:
        theirs = replace(theirs, **{name: getattr(ours, name) for name in OWN})
    if (rest := minus(_five(ours), _five(theirs))) != NO_TOKENS:
        yield f"the journal's tokens less the log's: {said_tokens(rest)}"
    elif (ours is None) != (theirs is None):
        who, other = ("journal", "log") if theirs is None else ("log", "journal")
        yield f"the {who} has counts of its tokens, and the {other} has none"
    elif ours != theirs:
        named = ("reasoning", "total_reported", *OWN)
        counts = [
            ", ".join(f"{getattr(usage, name)} {name.replace('_', ' ')}" for name in named)
            for usage in (ours, theirs)
        ]
        yield f"the journal counts {counts[0]}, the log {counts[1]}"
    if outcome.get("refused") and not event.refused and not event.error:
        yield "the journal says that it was refused, and the log has a reply"


def _ended_otherwise(intent: Json, outcome: Json, event: CallEvent) -> Iterator[str]:
    if event.error or outcome.get("event") != event.id:
        return
    # A header may have named the model of a reply that repeats the name of its gateway.
    unnamed = may_be_alias(event.model, event.served_model)
    for name, ours, theirs in (
        ("served model", None if unnamed else outcome.get("served_model"), event.served_model),
        ("stop reason", outcome.get("stop"), event.stop),
        ("cache", outcome.get("cache"), event.cache),
    ):
        if ours is not None and ours != theirs:
            yield f"the journal names {name} {ours}, the log {theirs}"
    ids = {one.get("id") for one in event.request_ids}
    if ids and (told := outcome.get("request_id")) and told not in ids:
        yield f"the journal names request {told}, the log {', '.join(sorted(map(str, ids)))}"
    late = _seconds_late(event, intent, outcome)
    if late is not None and late > TOLERATED_S:
        yield f"by the journal's times the log's are {late:,.0f} s off"


def _seconds_late(event: CallEvent, intent: Json, outcome: Json) -> float | None:
    """Return how far an event lies outside its call's lines, which frame it; None if unknown."""
    try:
        ended = seconds_between(str(outcome["at"]), event.completed or event.started)
        begun = seconds_between(event.completed or event.started, str(intent["at"]))
        dispatched = seconds_between(str(outcome["at"]), event.started)
    except (KeyError, ValueError, TypeError):  # what is no time is named elsewhere
        return None
    return max(ended, begun, dispatched)


def _asked_otherwise(intent: Json, seen: LoggedEvent) -> Iterator[str]:
    event, sample, facts = seen.event, seen.sample, seen.log.facts
    for name, theirs in (("model", event.model), ("role", event.role), ("step", event.step)):
        if intent.get(name) != theirs and (name != "step" or theirs is not None):
            yield f"the journal names {name} {intent.get(name)}, the log {theirs}"
    asked: Json = intent.get("sample") or {}
    ours, theirs = (asked.get("question"), asked.get("epoch")), (sample.question, sample.epoch)
    if asked and ours != theirs:
        yield "the journal names question {} epoch {}, the log {} epoch {}".format(*ours, *theirs)
    journaled = facts is not None and facts.journal is not None and event.phase == "solve"
    worker = facts.workers.get(event.role) if facts and journaled else None
    named = intent.get("price_ref"), intent.get("service") or STANDARD
    if worker and named != (known := (worker.price, worker.service)):
        yield "the journal names price {} ({}), the log {} ({})".format(*named, *known)


def _five(usage: Usage | None) -> Tokens:
    if usage is None:
        return NO_TOKENS
    cached = (usage.cache_read, usage.cache_write)
    return (usage.input, usage.output, *cached, usage.reasoning or 0)


def _journal(evidence: Evidence, journal: JournalRecord) -> Iterator[str]:
    """Compare a journal with Inspect's own hooks, which counted while it was open, and the log."""
    theirs = {str(line["model"]): told(line) for line in journal.totals}
    ours = spent(row for row in evidence.counted if row.journal == journal.name)
    # Without totals the process was killed, or made no call that was counted.
    for model, rest in differences(theirs, ours) if theirs else ():
        yield f"model {model}: Inspect's hooks less the journal's calls: {said_tokens(rest)}"
    for name in ("label", "system", "suite") if evidence.facts else ():
        ours, theirs = journal.head.get(name), getattr(evidence.facts, name)
        if ours != theirs:
            yield f"it names {name} {ours}, the log {theirs}"


NO_REPLY = reply_digest({"choices": [{"message": {"content": ""}}]})
"""Of what Inspect makes the output of a call that failed."""
OLDER = "calls of an older journal: of their replies it has the completion's digest alone"
MERGED = "not comparable: requests whose turns the provider's adapter put together (older journal)"
OTHERWISE = "requests of an older journal that the log has in other words, by hand or by an adapter"


def texts_agree(evidence: Evidence, found: InvariantCheck) -> Faults:
    """Requests, replies and answers in a log are those whose digests the journal holds."""
    if not evidence.journals:
        found.gaps[evidence.why_no_journal()] += 1
        return
    if evidence.is_served:
        yield from _kept(evidence, found)
    else:
        yield from _logged(evidence, found)


def _logged(evidence: Evidence, found: InvariantCheck) -> Faults:
    for call, record in evidence.calls.items():
        for said in _call(record, evidence.events_of[call], found):
            yield f"call {call}", said
    for log in evidence.logs:
        for sample in log.samples:
            if log.facts is None or log.facts.redacted or sample.failed:
                continue
            for said in _answer(evidence, sample, found):
                yield f"sample {sample.question} epoch {sample.epoch}", f"{said} ({log.name})"


def _kept(evidence: Evidence, found: InvariantCheck) -> Faults:
    """Yield texts that a server kept (--keep-texts) and whose digest no journal holds."""
    kept = {trace for journal in evidence.journals for trace in kept_traces(journal.path)}
    found.skipped["served, and no text was kept (--keep-texts)"] += not kept
    for one in evidence.requests if kept else ():
        yield from ((f"sample {one.trace} epoch 1", said) for said in kept_texts(one).refused)
    for trace in sorted(kept - {one.trace for one in evidence.requests}):
        yield f"sample {trace} epoch 1", "texts of it were kept, and no journal has the request"


def _call(
    record: CallRecord, events: Sequence[LoggedEvent], found: InvariantCheck
) -> Iterator[str]:
    if not events:
        found.notes["not comparable: calls that no log has"] += 1
        return
    if events[-1].log.facts is not None and events[-1].log.facts.redacted:
        found.notes["not comparable: calls whose texts were taken out of the log"] += 1
        return
    digests = ((seen.sample.digests, seen.event.id) for seen in events)
    known = [one.calls.get(event) if one else None for one, event in digests]
    sent = (record.outcome or {}).get("sent_sha256")
    for texts in known:
        if texts is None or texts.sent in (record.intent.get("prompt_sha256"), sent):
            continue
        if sent:
            yield "the log's request is not the one whose digest the journal holds"
        elif texts.merged:
            found.notes[MERGED] += 1
        else:
            found.weak[OTHERWISE] += 1
    if known[-1] is not None and record.outcome is not None:
        yield from _said(record.outcome, known[-1], found)


def _said(outcome: Json, texts: CallTexts, found: InvariantCheck) -> Iterator[str]:
    ours = outcome.get("output_sha256")
    if texts.said is None:
        if ours not in (None, text_digest("")):
            yield "the journal holds the digest of a reply, and the log has none"
    elif ours is None and texts.reply == NO_REPLY:
        return
    elif ours is None:
        failed = outcome.get("error") and texts.said == text_digest("")
        found.weak["replies in the log of which the journal holds no digest"] += bool(
            outcome.get("event") and not failed
        )
    elif texts.said != ours:
        yield "the log's reply is not the one whose digest the journal holds"
    elif "reply_sha256" not in outcome:
        found.notes[OLDER] += 1
    elif texts.reply != outcome["reply_sha256"]:
        yield "the reply's reasoning, tool calls or content is not what the journal has a digest of"


def _answer(evidence: Evidence, sample: SampleRecord, found: InvariantCheck) -> Iterator[str]:
    digests = sample.digests
    if digests is None:
        return
    for where in digests.elsewhere:
        yield f"{where} shows another answer than the one that was graded"
    lines = evidence.answer_lines.get(sample.uuid)
    if lines is None:
        if sample.uuid in evidence.written_down:
            found.weak["answers that no journal has, though it has their calls"] += 1
        else:
            found.notes["not comparable: answers that no journal has"] += 1
        return
    if all(line.get("answer_sha256") != digests.answer for line in lines):
        yield "its answer is not the one whose digest the journal holds"
    if all(line.get("shape_sha256") != digests.shape for line in lines):
        yield "its plan, steps or depth are not those that the journal holds a digest of"


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


def complete(evidence: Evidence, found: InvariantCheck) -> Faults:
    """Steps are calls, as many as the manifest says, and a conductor's own calls are counted."""
    facts = evidence.facts
    if evidence.is_served:
        yield from _requests(evidence, found)
        return
    if facts is None:
        found.skipped["not a run of podium: what it should have called is not declared"] += 1
        return
    by_sample: dict[str, list[Call]] = defaultdict(list)
    for row in evidence.rows:
        if row.counted and row.scope == "inference":
            by_sample[row.sample].append(row)
    for sample in evidence.newest.values():
        if sample.graded:
            rows = by_sample.get(sample.uuid, [])
            for said in _uncalled(sample, rows, facts):
                yield f"sample {sample.question} epoch {sample.epoch}", said


OPEN = "requests without an end: in flight, or their process was killed"
LOST = "requests without an end, though their process ended in good order"


def _requests(evidence: Evidence, found: InvariantCheck) -> Faults:
    """Yield requests whose calls are not those of their answer, and calls of no request."""
    known = {one.trace for one in evidence.requests}
    for one in evidence.requests:
        where = f"sample {one.trace} epoch 1"
        if one.ending == "in flight":
            closed = one.journal.closed
            (found.weak if closed else found.notes)[LOST if closed else OPEN] += 1
        elif one.ending == "answered":
            calls = len(_answered(one.rows))
            if _is_unlike(one.steps, calls, stopped=one.stopped is not None):
                yield where, UNLIKE.format(one.steps, calls)
        yield from (
            (f"call {row.call}", f"made to serve, and its scope is {row.scope}")
            for row in one.rows
            if row.scope != "serving"
        )
    for sample in sorted({row.sample for row in evidence.rows} - known):
        yield f"sample {sample} epoch 1", "its calls were made for no request that was written down"
    for sample in sorted(evidence.answer_lines.keys() - known):
        yield f"sample {sample} epoch 1", "it was answered, and no request was written down"


def _uncalled(sample: SampleRecord, rows: Sequence[Call], facts: RunFacts) -> Iterator[str]:
    steps = sample.plan.get("steps")
    asked = {row.call for row in rows if row.role != CONDUCTOR}
    answered = _answered(rows)
    calls, stopped = len(answered), sample.plan.get("stopped") is not None
    if _is_unlike(steps, calls, stopped=stopped):
        yield UNLIKE.format(steps, calls)
    planned = [row for row in rows if row.role == CONDUCTOR]
    uncalled = facts.plans_uncalled or "plans" in facts.args
    conducted = facts.system.startswith(CONDUCTOR) and not uncalled
    if conducted and not any(row.input_total or row.output for row in planned):
        yield "a conductor planned it, and no token of the conductor is counted"
    if facts.calls_expected is None:
        return
    # What a limit has stopped, or a call that got no reply, may leave fewer than its manifest says.
    turns = sample.plan.get(TURN_COUNT, 1)  # of a task that asks more than once
    least, most = (count * turns for count in facts.calls_expected)
    if stopped or asked != answered:
        least = 0
    if not least <= calls <= most and not (stopped and TURN_COUNT in sample.plan):
        promised = format_range((least, most))
        yield f"{calls} calls of workers with a reply, and its manifest says {promised}"


UNLIKE = "{} replies of workers in its answer, and {} calls with a reply"


def _answered(rows: Iterable[Call]) -> set[str]:
    return {row.call for row in rows if row.role != CONDUCTOR and row.error is None}


def _is_unlike(steps: object, calls: int, *, stopped: bool) -> bool:
    return isinstance(steps, int) and (calls < steps or (not stopped and calls > steps))


def plausible(evidence: Evidence, found: InvariantCheck) -> Faults:
    """Counts differ as prompts do, replies have tokens as their texts have, time runs forward."""
    by_model: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for row in evidence.rows:
        if row.input_uncached is not None:
            by_model[row.role, row.model].append(row)
        yield from ((f"call {row.call}", said) for said in _times(evidence, row))
        found.weak["calls answered by another model than was asked for"] += _other_model(row)
    for id, calls in _shared(evidence.rows):
        yield f"request {id}", f"the provider gave {calls} billed requests the same id"
    for (role, model), rows in by_model.items():
        for said in (*_constant(rows), *_band(evidence, rows), *_reasoning(evidence, rows)):
            yield f"{role} ({model})", said


def _shared(rows: Iterable[Call]) -> Iterator[tuple[str, int]]:
    """Yield ids that stand for several requests: an invoice could not tell these apart."""
    asked = Counter(
        row.request_id
        for row in rows
        if row.request_id and row.label == LIVE and row.cache != "read" and row.billable != "no"
    )
    yield from ((id, count) for id, count in asked.items() if id and count > 1)


def _other_model(row: Call) -> bool:
    if row.label != LIVE or not row.served_model:
        return False
    asked = row.model.rsplit("/", 1)[-1].removesuffix("-latest")
    return not row.served_model.rsplit("/", 1)[-1].startswith(asked)


def _times(evidence: Evidence, row: Call) -> Iterator[str]:
    if row.latency_s is not None and row.latency_s < 0:
        yield "it took less than no time"
    record = evidence.calls.get(row.call)
    if record and record.outcome and str(record.outcome["at"]) < str(record.intent["at"]):
        yield "it ended before it began"
    seen = evidence.seen.get(row.event or "")
    if seen and seen.event.completed and seen.event.completed < seen.event.started:
        yield "its event ended before it began"


def _constant(rows: Iterable[Call]) -> Iterator[str]:
    """Yield counts that hardly differ over distinct prompts (as a leaderboard entry once had)."""
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
        seen = evidence.seen.get(row.event or "")
        length = seen.sample.chars.get(seen.event.id) if seen else None
        if length and row.reasoning is not None and row.output is not None:
            tokens += row.output - row.reasoning
            chars += length
            replies += 1
    too_many = tokens > chars * MOST + SLACK * replies
    if replies >= ENOUGH and (too_few_tokens(tokens, chars) or too_many):
        yield f"{tokens:,} visible output tokens for {chars:,} characters in {replies} replies"


def too_few_tokens(tokens: int, chars: int) -> bool:
    """Say whether so many characters of replies cannot be so few output tokens.

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
        yield f"it is set to reason, and none of {len(rows)} replies has reasoning tokens"


def archives(evidence: Evidence, found: InvariantCheck) -> Faults:
    """Each log is as Inspect writes it, and no file is there twice."""
    for log in evidence.logs:
        where = f"log {log.name}"
        for oddity in log.oddities:
            if oddity.grave:
                yield where, f"{oddity.where}: {oddity.said}"
            else:
                found.weak[f"{where}: {oddity.where}: {oddity.said}"] += 1
        yield from ((where, said) for said in _passed_over(evidence, log))
    yield from _twice(evidence)


def _twice(evidence: Evidence) -> Faults:
    # Inspect's id of a run and the time tell a file: of a run that was killed it recovers another.
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
        for said in _unlike_a_failure(evidence, log, copy):
            yield f"{member}: it stands there again, and readers pass this copy over: {said}"


def _unlike_a_failure(evidence: Evidence, log: LogRecord, copy: SampleRecord) -> Iterator[str]:
    """Yield why no run left a copy behind: it did not fail, or no other record has it so."""
    if any(replace(one, newest=copy.newest) == copy for one in log.samples):
        return  # a run that is stopped while it writes a sample writes it once more
    if not copy.failed:
        yield "it did not fail, so no run asked it again"
        return
    samples = (one for record in evidence.logs for one in record.samples)
    same = [replace(one, newest=copy.newest) for one in samples if one.uuid == copy.uuid]
    if same and copy not in same:
        yield "the same attempt stands elsewhere, and is another one there"
    elif not same and evidence.journals:
        yield from _unlike_journals(evidence, log, copy)


def _unlike_journals(evidence: Evidence, log: LogRecord, copy: SampleRecord) -> Iterator[str]:
    asked = [one.intent.get("sample") or NOTHING for one in evidence.calls.values()]
    if not any(one.get("uuid") == copy.uuid for one in asked):
        yield "no older log has it, and no journal has a call of it"
    for event in (*copy.events, *copy.lost):
        call = evidence.call_of.get(event.id) or evidence.call_of.get(event.span or "")
        record = evidence.calls[call] if call else None
        yield from not_as_journaled(record, LoggedEvent(event, copy, log, final=False))
