"""What a training would take, before it begins: memory, worker calls, dollars, hours."""

from conductor.training.job import Training


def estimate_text(training: Training) -> str:
    """Return the estimate as lines."""
    return "not estimated yet"
