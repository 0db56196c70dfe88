"""The sixteen invariants: what each one promises, and the function that checks it in a sitting."""

from collections.abc import Callable
from dataclasses import dataclass

from harness.audit.evidence import Evidence
from harness.audit.grades import grades_agree
from harness.audit.integrity import integrity, self_contained
from harness.audit.money import (
    cache_reads,
    failed_attempts,
    nothing_unpriced,
    pricing,
    scopes_apart,
)
from harness.audit.plausibility import complete, plausible
from harness.audit.records import records_agree
from harness.audit.result import Checked
from harness.audit.sums import run_sums, sample_sums
from harness.audit.texts import texts_agree
from harness.audit.tokens import token_partition


def _elsewhere(evidence: Evidence) -> Checked:
    """I10: a bill is of an account, not of a sitting; harness/audit/run.py compares it."""
    return Checked(skipped="no invoice was given (--invoice FILE)")


@dataclass(frozen=True, slots=True)
class Invariant:
    """One promise."""

    id: str
    title: str
    meaning: str
    check: Callable[[Evidence], Checked]


INVARIANTS = (
    Invariant(
        "I1",
        "token partition",
        "A call's parts are the total that its provider reports, and its provider's own counts.",
        token_partition,
    ),
    Invariant(
        "I2",
        "calls = sample",
        "The calls of a sample's last attempt add up to Inspect's total, by model and by role.",
        sample_sums,
    ),
    Invariant(
        "I3",
        "samples = run",
        "All attempts add up to Inspect's totals of the run; each group it leaves out has a name.",
        run_sums,
    ),
    Invariant(
        "I4",
        "log = ledger",
        "Every call of a log is one call of a journal and the other way round, with equal tokens.",
        records_agree,
    ),
    Invariant(
        "I5",
        "pricing",
        "Tokens at the embedded book give the dollars that were written down, digit by digit.",
        pricing,
    ),
    Invariant(
        "I6",
        "nothing unpriced",
        "A call without a price has no dollars, and no sum passes over it.",
        nothing_unpriced,
    ),
    Invariant(
        "I7",
        "completeness",
        "Steps are calls, as many as the manifest says, and a conductor's own calls are counted.",
        complete,
    ),
    Invariant(
        "I8",
        "cache",
        "A reply from the local cache is paid 0 and keeps its would-be price.",
        cache_reads,
    ),
    Invariant(
        "I9",
        "failed attempts",
        "A refused attempt costs 0; one without an answer is a range, never a point.",
        failed_attempts,
    ),
    Invariant(
        "I10",
        "invoice",
        "What providers bill is what the ledger says, within the tolerance.",
        _elsewhere,
    ),
    Invariant(
        "I11",
        "plausibility",
        "Counts differ as prompts do, replies have tokens as their texts have, time runs forward.",
        plausible,
    ),
    Invariant(
        "I12",
        "scopes apart",
        "What grading, training and serving cost is in no figure of inference.",
        scopes_apart,
    ),
    Invariant(
        "I13",
        "replay",
        "The files alone give every figure, and the same bytes each time.",
        self_contained,
    ),
    Invariant(
        "I14",
        "integrity",
        "Journals are unbroken chains with all their lines, logs are as Inspect writes them, and "
        "the files are those of the run's experiment and manifest.",
        integrity,
    ),
    Invariant(
        "I15",
        "texts",
        "Requests, replies and answers in a log are those whose digests the journal holds.",
        texts_agree,
    ),
    Invariant(
        "I16",
        "grades",
        "A log's verdicts are those that were written down, or (--regrade) those given anew.",
        grades_agree,
    ),
)
