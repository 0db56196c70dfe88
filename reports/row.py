"""One line of the comparison, with columns that only ever grow.

The order of the fields is that of the CSV columns: new ones are appended, never inserted.
An unknown figure is None (an empty cell), never 0.
"""

from dataclasses import dataclass, fields
from decimal import Decimal

from podium.harness.ledger.runs import RunLabel
from podium.harness.suite import OFFICIAL, Prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One line of a table. Figures per query are means over graded (question, epoch) pairs.

    What the statistics mean is said for readers of table.md: reports/terms.md.
    """

    suite: str
    suite_version: str
    label: RunLabel
    system: str
    n_asked: int
    n_graded: int
    epochs: int
    accuracy: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    usd_per_query: Decimal | None = None
    """Would-be: at the price book in the log, as if nothing had been cached."""
    usd_paid_per_query: Decimal | None = None
    """Live only, failed attempts included; per pair begun. None when it is a range."""
    tokens_in: float | None = None
    tokens_out: float | None = None
    worker_tokens_out: float | None = None
    conductor_tokens: float | None = None
    calls: float | None = None
    steps: float | None = None
    depth: float | None = None
    latency_s: float | None = None
    pool: str
    data_revision: str
    price_book: str
    box: str | None
    tokens_reasoning: float | None = None
    n_unparsed: int
    """Graded wrong, no answer was found in the reply; invalid plans and `n_too_long` apart."""
    paired_diff: float | None = None
    paired_low: float | None = None
    paired_high: float | None = None
    verdict: str = ""
    """`better`, `worse`, `equivalent`, `inconclusive`, `reference`, or empty: none is compared."""
    reference: str = ""
    min_detectable: float | None = None
    split: str
    dates: str
    knowledge_cutoff: str
    config: str
    """JSON: model and generation config of every worker that was called, a grader included."""
    args: str
    seed: int
    time_scale: float
    uses_targets: bool
    notes: str
    reference_allowed: bool  # False for a choice in hindsight
    pool_sha256: str
    price_book_sha256: str
    box_python: str | None = None
    box_image: str | None = None
    box_image_id: str | None = None
    box_packages: str | None = None
    """Third-party packages that a program could import; empty when there were none."""
    official_accuracy: float | None = None
    n_official_differ: int | None = None
    """Graded pairs on which the two verdicts differ; errata are among them."""
    n_official_errata: int | None = None
    n_fragile: int = 0
    pass_at_5: float | None = None
    pass_at_10: float | None = None
    prompt: Prompt = OFFICIAL
    order: int | None = None
    """Place in which the run began its systems: later ones find earlier ones' cached prefixes."""
    usd_paid_low: Decimal | None = None
    """What is known of what was paid, and the most: calls that never ended may be billed."""
    usd_paid_high: Decimal | None = None
    n_unknown_billed: int = 0
    n_unpriced: int = 0  # calls that had a reply and have no price
    usd_gpu_per_query: Decimal | None = None
    """The same work on own hardware, of workers whose price says so; beside, never added."""
    usd_scoring_per_query: Decimal | None = None
    """List price of graders that are models; in no other column."""
    price_book_date: str = ""
    price_evidence: str = ""  # for each worker that was called: `dated` or `carried-back`
    deviations: str = ""
    """Where the system is not what its authors ran; older logs say it in `notes`."""
    source: str = ""
    calls_min: int | None = None
    """Worker calls with a reply, of graded pairs: the fewest and the most of one pair."""
    calls_max: int | None = None
    calls_expected: str = ""
    """The same by the manifest: `8`, or `1-5`; empty where nothing was promised."""
    prompt_sha256: str = ""
    se: float | None = None
    se_clustered: float | None = None
    paired_bca_low: float | None = None
    paired_bca_high: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    """Adjusted for all comparisons with the same reference; what the verdict goes by."""
    test: str = ""
    """`mcnemar` (exact, single binary draws) or `sign-flip` (averages of several epochs)."""
    n_paired: int | None = None
    """Questions that both were graded on; on how many of them it is better, and worse."""
    n_better: int | None = None
    n_worse: int | None = None
    correlation: float | None = None
    usd_low: float | None = None
    usd_high: float | None = None
    usd_median: float | None = None
    usd_p95: float | None = None
    usd_ratio: float | None = None  # dollars over the reference's, with its paired BCa interval
    usd_ratio_low: float | None = None
    usd_ratio_high: float | None = None
    usd_per_correct: float | None = None
    tokens_per_correct: float | None = None
    cost_of_pass: float | None = None
    share_infinite: float | None = None
    """Share of questions never answered right: there the cost of a pass is infinite."""
    pareto_probability: float | None = None
    maj_k: int | None = None  # tries in `maj_accuracy`: all epochs, or as `--maj` says
    maj_accuracy: float | None = None
    """Accuracy of the answer that most of `maj_k` tries give, drawn without replacement."""
    reference_rule: str = ""
    derived: str = ""
    """How the row was made from the logs of others; empty for a system that sat the suite."""
    auditable: bool = True
    """False where a worker was called of whose dollars its provider's reports tell nothing."""
    n_invalid_plans: int | None = None
    """Graded pairs whose plan could not be carried out; None where no model wrote plans."""
    invalid_plan_pct: float | None = None
    invalid_plan_reason: str = ""
    conductor_s: float | None = None
    regret_accuracy: float | None = None
    """What the best plain system of each question gets more, on the questions all were graded on;
    only for plain systems, of which there are two or more (`reports.costs.regrets`)."""
    regret_usd: float | None = None
    """Dollars a query above the cheapest that is as good, over the questions that it got right."""
    equivalence_margin: float | None = None
    """A share, as asked for (`--equivalence`); the next four are empty where nobody asked."""
    equivalence_low: float | None = None
    """The 90 % interval of the paired difference; None without spread."""
    equivalence_high: float | None = None
    p_equivalence: float | None = None
    """That the difference is as large as the margin: the larger p of two one-sided tests."""
    p_equivalence_holm: float | None = None
    """Adjusted for all comparisons with the same reference; what `equivalent` goes by."""
    overhead_s: float | None = None
    """Beside `latency_s`: waiting for connections, failed tries and the machine's own work."""
    n_too_long: int = 0  # graded wrong because the last request was refused for its length


IMPOSSIBLE = "impossible "
"""Begins a row's note on counts of tokens that contradict each other."""
COLUMNS = tuple(field.name for field in fields(TableRow))  # the CSV header. Stable: append only.


def block_of(row: TableRow) -> tuple[str, str, RunLabel, Prompt, str, str, int, str, str]:
    """Return what the rows of one block share; tables and plots show a block at a time."""
    asked = (row.suite, row.split, row.label, row.prompt)
    return (*asked, row.pool, row.pool_sha256, row.seed, row.price_book, row.price_book_sha256)
