"""A row of the comparison table; columns.toml explains the columns. New columns come last."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal

from podium.harness.ledger.runs import RunLabel
from podium.harness.suite import OFFICIAL, Prompt

LABELS: Mapping[RunLabel, str] = {
    "live": "models were asked, at a provider that was paid or on an own server",
    "recorded": "replies of real models, replayed",
    "rehearsal": "podium's practice programs answered; says nothing about real models",
    "inspect": "a model under plain `inspect eval`, without podium's records",
}
"""What a table's label says about its replies, for pages and papers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """A system on a suite, as a table row. Per query: mean over graded (question, epoch) pairs."""

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
    usd_paid_per_query: Decimal | None = None
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
    paired_diff: float | None = None
    paired_low: float | None = None
    paired_high: float | None = None
    verdict: str = ""
    reference: str = ""
    min_detectable: float | None = None
    split: str
    dates: str
    knowledge_cutoff: str
    config: str
    args: str
    seed: int
    time_scale: float
    uses_targets: bool
    notes: str
    reference_allowed: bool
    pool_sha256: str
    price_book_sha256: str
    box_python: str | None = None
    box_image: str | None = None
    box_image_id: str | None = None
    box_packages: str | None = None
    official_accuracy: float | None = None
    n_official_differ: int | None = None
    n_official_errata: int | None = None
    n_fragile: int = 0
    pass_at_5: float | None = None
    pass_at_10: float | None = None
    prompt: Prompt = OFFICIAL
    order: int | None = None
    usd_paid_low: Decimal | None = None
    usd_paid_high: Decimal | None = None
    n_unknown_billed: int = 0
    n_unpriced: int = 0
    usd_gpu_per_query: Decimal | None = None
    usd_scoring_per_query: Decimal | None = None
    price_book_date: str = ""
    price_evidence: str = ""
    deviations: str = ""
    source: str = ""
    calls_min: int | None = None
    calls_max: int | None = None
    calls_expected: str = ""
    prompt_sha256: str = ""
    se: float | None = None
    se_clustered: float | None = None
    paired_bca_low: float | None = None
    paired_bca_high: float | None = None
    p_value: float | None = None
    p_holm: float | None = None
    test: str = ""
    n_paired: int | None = None
    n_better: int | None = None
    n_worse: int | None = None
    correlation: float | None = None
    usd_low: float | None = None
    usd_high: float | None = None
    usd_median: float | None = None
    usd_p95: float | None = None
    usd_ratio: float | None = None
    usd_ratio_low: float | None = None
    usd_ratio_high: float | None = None
    usd_per_correct: float | None = None
    tokens_per_correct: float | None = None
    cost_of_pass: float | None = None
    share_infinite: float | None = None
    pareto_probability: float | None = None
    maj_k: int | None = None
    maj_accuracy: float | None = None
    reference_rule: str = ""
    derived: str = ""
    auditable: bool = True
    n_invalid_plans: int | None = None
    invalid_plan_pct: float | None = None
    invalid_plan_reason: str = ""
    conductor_s: float | None = None
    regret_accuracy: float | None = None
    regret_usd: float | None = None
    equivalence_margin: float | None = None
    equivalence_low: float | None = None
    equivalence_high: float | None = None
    p_equivalence: float | None = None
    p_equivalence_holm: float | None = None
    overhead_s: float | None = None
    n_too_long: int = 0
    critical_path_s: float | None = None
    turns: float | None = None
    tool_calls: float | None = None
    n_limited: int | None = None
    usd_environment_per_query: Decimal | None = None
    equal: str = ""
    unused: float | None = None
    tries_k: int | None = None
    avg_at_k: float | None = None
    avg_at_k_low: float | None = None
    avg_at_k_high: float | None = None
    pass_at_k: float | None = None
    pass_at_k_low: float | None = None
    pass_at_k_high: float | None = None
    pass_all_k: float | None = None
    pass_all_k_low: float | None = None
    pass_all_k_high: float | None = None
    valid_plan_accuracy: float | None = None
    one_step_pct: float | None = None
    distinct_plans: int | None = None
    commonest_plan_pct: float | None = None
    worker_entropy: float | None = None


IMPOSSIBLE = "impossible "
"""Prefix of a row's note on token counts that contradict each other."""
COLUMNS = tuple(field.name for field in fields(TableRow))  # the CSV header: new columns come last


def block_of(row: TableRow) -> tuple[str, str, RunLabel, Prompt, str, str, int, str, str, str]:
    """Return the key of a row's block (comparable rows); each table or plot shows one block."""
    task = (row.suite, row.split, row.label, row.prompt)
    book = (row.price_book, row.price_book_sha256)
    return (*task, row.pool, row.pool_sha256, row.seed, *book, row.equal)
