"""What the statistics of table.md are called and mean: each term once, with its source."""

TERMS = (
    (
        "95 % interval",
        "Wilson's, of the accuracy; with several epochs on the sample size that the spread of "
        "questions' means amounts to (Franco et al. 2019)",
    ),
    ("SE", "standard error of the accuracy: sd of the questions' means over the root of questions"),
    ("SE by topic", "the same with a topic's questions together (CR1); of few topics too small"),
    ("vs reference", "mean paired difference, with Student's t interval over questions"),
    ("BCa", "bias-corrected and accelerated bootstrap over questions, 10,000 resamples"),
    ("p", "two-sided, that a difference is chance; `mcnemar` (exact) for one right/wrong draw of "
     "each question, `sign-flip` (random signs of questions' differences) for means over epochs"),
    ("p (Holm)", "p adjusted for all comparisons with one reference (Holm 1979)"),
    ("detectable", "the smallest true difference that so many questions show with 80 % power at "
     "5 % (Miller 2024, arXiv 2411.00640)"),
    ("better, worse", "all of these say so: at least what is detectable, an interval without 0, an "
     "exact sign test and Holm's p below 5 %"),
    ("inconclusive", "everything else; it does not say that two systems are equal"),
    ("Cochran's Q", "do any of the systems differ, on single draws; without those that look at "
     "targets or were chosen in hindsight"),
    ("avg@k, pass@k, maj@k", "over k tries of a question: their mean grade, that one is right "
     "(Chen et al. 2021), the grade of the most frequent answer"),
    ("cost of pass", "E[cost] / P(right) of a question (Erol et al. 2025, arXiv 2504.13359)"),
    ("on the frontier", "share of resamples in which no system is as good and as cheap, and better "
     "in one of the two"),
    ("AIQ", "mean accuracy that a budget between two costs buys, below the hull of accuracy and "
     "cost (RouterBench, arXiv 2403.12031)"),
    ("random mixing", "a coin that sends each question to one of two systems: the hull's edges"),
)  # fmt: skip


def terms_text() -> str:
    """Return the terms as a list in Markdown."""
    return "\n".join(f"- *{name}*: {meaning}." for name, meaning in TERMS)
