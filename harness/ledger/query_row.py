"""One row of the reviewers' view: what one question put to one system came to, flat.

How it is added up is harness/ledger/queries.py.
"""

from dataclasses import dataclass
from decimal import Decimal

from harness.ledger.answered import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRow:
    """One question put to one system. Tokens are counts, `usd_*` US dollars, `*_s` seconds."""

    task: str
    """Inspect's task, e.g. `aime25 moa-lite`."""
    suite: str
    system: str
    purpose: str
    """`eval`; or `selection` for questions by which a system was chosen: no part of a result."""
    label: str
    """`live`, `recorded` or `rehearsal`: whether anything left a purse."""
    question: str
    """Id of the question in its suite."""
    epoch: int
    """1 for the first time that the question was asked."""
    sample: str | None
    """uuid of the newest sample; None when no log has one."""
    verdict: Verdict
    """`right`, `wrong`, `partly` (by the suite's card) or `unscored`."""
    score: float | None
    """From 0 to 1; NULL when unscored."""
    reason: str
    """What the grade says of itself, or why there is none; a kind only for withheld exams."""
    parsed: bool
    """False when no answer could be found in the reply (wrong, and counted apart)."""
    answer: str | None
    """The answer found in the reply; `withheld` where the exam may not be published."""
    target: str | None
    """The gold answer; `withheld` where the exam may not be published."""
    calls: int
    """Calls of the graded attempt; graders' are apart."""
    attempts: int
    """Attempts of these calls: a call that HTTP tried three times is three."""
    retries: int
    """`attempts` less `calls`."""
    failed: int
    """Attempts that ended in an error."""
    cached_calls: int
    """Calls answered by the local cache: priced in `usd_list`, paid 0."""
    discarded_calls: int
    """Calls of attempts at the question that were not graded; only `usd_discarded` has them."""
    steps: int | None
    """Steps of the workflow that were run."""
    depth: int | None
    """Steps on the longest chain of reads."""
    stopped: str | None
    """The budget that ended the work early."""
    conductor_in: int | None
    """Prompt tokens of the model that plans, cached ones included."""
    conductor_out: int | None
    worker_in: int | None
    """Prompt tokens of workers, cached ones included."""
    worker_out: int | None
    """Output tokens of workers, reasoning included: the token count of the Conductor paper."""
    reasoning: int | None
    """Part of the output; NULL when a provider does not say."""
    cache_read: int | None
    """Part of the prompt that a provider had cached."""
    cache_write: int | None
    """Part of the prompt that a provider cached."""
    orchestration: int | None
    """Tokens that products spent on models of their own, in and out; in no other count."""
    grader_calls: int
    grader_in: int | None
    """Prompt tokens of graders, cached ones included."""
    grader_out: int | None
    usd: Decimal | None
    """Inference as providers bill it at the book: caches used, local reads 0."""
    usd_list: Decimal | None
    """The headline: inference at list price, each call once, as if nothing had been cached."""
    usd_low: Decimal | None
    """Bounds of `usd`: calls of which nobody knows whether they were billed count 0 here."""
    usd_high: Decimal | None
    """The same, at the most they can have cost; NULL when nothing bounds it."""
    usd_scoring: Decimal | None
    """What graders that are models cost; in no other figure."""
    usd_discarded: Decimal | None
    """What attempts at the question that were not graded cost; in no other figure."""
    n_unpriced: int
    """Calls without a price: when it is not 0, `usd_list` is NULL and no sum may skip it."""
    n_unknown: int
    """Attempts of which nobody knows whether they were billed."""
    gpu_s: Decimal | None
    """GPU seconds of calls to own hardware; NULL when no call has any."""
    usd_gpu: Decimal | None
    """The same in dollars; beside `usd`, never added to it."""
    latency_s: float | None
    """Wall time of the solver; NULL for replayed replies, which come at once."""
    critical_path_s: float | None
    """Time of the longest chain of calls that waited for each other."""
    started: str | None
    """When the first call of the graded attempt went out (ISO 8601)."""
    plan: str | None
    """The workflow as JSON, or why it was malformed; without texts where they are withheld."""
    plan_sha256: str | None
    """Of the plan's text, also where that is withheld."""
    logs: str
    """File names of the logs that have the calls, as a JSON list."""
    journals: str
    """The same of journals."""
