"""What a log's header repeats of a system's manifest, so that a log alone says what was promised.

The audit holds the calls against it (I7), and the table names source and deviations. A manifest
that changes later changes no log.
"""

from collections.abc import Mapping
from typing import Any

from harness.system import Manifest


def declared(manifest: Manifest, workers: int, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest's facts as plain JSON values, for so many workers and these arguments."""
    return {
        "source": manifest.source,
        "prompt_sha256": manifest.prompt_sha256,
        "calls_expected": expected_calls(manifest, workers, args),
        "deviations": list(manifest.deviations),
    }


def expected_calls(manifest: Manifest, workers: int, args: Mapping[str, Any]) -> list[int] | None:
    """Return the least and the most worker calls; None where they cannot be said beforehand."""
    return None if manifest.expected is None else list(manifest.expected(workers, args))
