"""I15: what a log says in words is what the journal holds digests of, for every call and answer.

Nothing is failed for what cannot be compared: a redacted log has no texts, an older journal has the
digest of a completion alone, and a call that its log has lost is the business of I4. All of it is
counted and said.
"""

from collections.abc import Iterator

from harness.audit.evidence import Evidence
from harness.audit.result import Checked, Fault
from harness.ledger.gather import CallRecord
from harness.ledger.logged import SampleRecord
from harness.ledger.merge import Seen
from harness.ledger.raw_log import Json
from harness.ledger.texts import CallTexts, text_digest

REDACTED = "not comparable: calls whose texts were taken out of the log"
NO_EVENT = "not comparable: calls that no log has"
OLDER = "calls of an older journal: of their replies it has the completion's digest alone"
MERGED = "not comparable: requests whose turns the provider's adapter put together (older journal)"
OTHERWISE = "requests of an older journal that the log has in other words, by hand or by an adapter"
UNTOLD = "replies in the log of which the journal holds no digest"
UNANSWERED = "not comparable: answers that no journal has"
LACKING = "answers that no journal has, though it has their calls"


def texts_agree(evidence: Evidence) -> Checked:
    """I15: prompts, replies and answers in the log are those of the journal's digests."""
    found = Checked()
    if not evidence.has_journal:
        found.skipped, found.matters = evidence.why_no_journal(), True
        return found
    for call, record in evidence.merged.gathered.calls.items():
        for said in _call(evidence, record, evidence.merged.events_of[call], found):
            found.faults.append(Fault("I15", evidence.name, f"call {call}", said))
    for log in evidence.logs:
        for sample in log.samples:
            if log.facts is None or log.facts.redacted or sample.failed:
                continue
            where = f"sample {sample.question} epoch {sample.epoch}"
            for said in _answer(evidence, sample, found):
                found.faults.append(Fault("I15", evidence.name, where, f"{said} ({log.name})"))
    return found


def _call(
    evidence: Evidence, record: CallRecord, events: list[Seen], found: Checked
) -> Iterator[str]:
    """Yield how the texts of one call differ."""
    if not events:
        found.notes[NO_EVENT] += 1
        return
    if events[-1].log.facts is not None and events[-1].log.facts.redacted:
        found.notes[REDACTED] += 1
        return
    for seen in events:
        texts = _texts(seen)
        if texts is not None:
            yield from _sent(record, texts, found)
    last = _texts(events[-1])
    if last is not None and record.outcome is not None:
        yield from _said(record.outcome, last, found)


def _texts(seen: Seen) -> CallTexts | None:
    return seen.sample.digests.calls.get(seen.event.id) if seen.sample.digests else None


def _sent(record: CallRecord, texts: CallTexts, found: Checked) -> Iterator[str]:
    if texts.sent in (
        record.intent.get("prompt_sha256"),
        (record.outcome or {}).get("sent_sha256"),
    ):
        return
    if (record.outcome or {}).get("sent_sha256"):
        yield "the log's request is not the one whose digest the journal holds"
    elif texts.merged:
        found.notes[MERGED] += 1
    else:
        found.weak[OTHERWISE] += 1


def _said(outcome: Json, texts: CallTexts, found: Checked) -> Iterator[str]:
    if texts.said is None:
        if outcome.get("output_sha256") not in (None, text_digest("")):
            yield "the journal holds the digest of a reply, and the log has none"
        return
    if outcome.get("output_sha256") is None:
        if outcome.get("event"):
            found.weak[UNTOLD] += 1
        return
    if texts.said != outcome["output_sha256"]:
        yield "the log's reply is not the one whose digest the journal holds"
    elif "reply_sha256" not in outcome:
        found.notes[OLDER] += 1
    elif texts.reply != outcome["reply_sha256"]:
        yield "the reply's reasoning, tool calls or content is not what the journal has a digest of"


def _answer(evidence: Evidence, sample: SampleRecord, found: Checked) -> Iterator[str]:
    """Yield where a sample's answer, or how it was made, is not what was written down."""
    digests = sample.digests
    if digests is None:
        return
    for where in digests.elsewhere:
        yield f"{where} shows another answer than the one that was graded"
    lines = evidence.merged.gathered.answer_lines.get(sample.uuid)
    if lines is None:
        if sample.uuid in evidence.written_down:
            found.weak[LACKING] += 1
        else:
            found.notes[UNANSWERED] += 1
        return
    if all(line.get("answer_sha256") != digests.answer for line in lines):
        yield "its answer is not the one whose digest the journal holds"
    if all(line.get("shape_sha256") != digests.shape for line in lines):
        yield "its plan, steps or depth are not those that the journal holds a digest of"
