"""Entry points for Inspect: all conductor systems' solvers, and the model provider `embedded`."""

from inspect_ai.model import ModelAPI, modelapi

from podium.conductor.policy import conductor_best_single, conductor_prompted, conductor_recursive
from podium.conductor.profiled import (
    conductor_profiled,
    conductor_profiled_shuffled,
    conductor_profiled_untrained,
)
from podium.conductor.trained import conductor, conductor_served

__all__ = [
    "conductor",
    "conductor_best_single",
    "conductor_profiled",
    "conductor_profiled_shuffled",
    "conductor_profiled_untrained",
    "conductor_prompted",
    "conductor_recursive",
    "conductor_served",
    "embedded",
]


@modelapi(name="embedded")
def embedded() -> type[ModelAPI]:
    """Return the model provider that runs conductors' checkpoints in this process (embedded.py)."""
    from podium.conductor.embedded import EmbeddedAPI

    return EmbeddedAPI
