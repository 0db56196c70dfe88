"""The solvers Inspect finds: `inspect eval suites/aime25 --solver conductor/conductor_prompted`."""

from conductor.policy import conductor_best_single, conductor_prompted

__all__ = ["conductor_best_single", "conductor_prompted"]
