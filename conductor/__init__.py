"""Plans written by a model: the conductor (arXiv 2512.04388), prompted or trained.

Read `prompt.py` and `policy.py` first; `training/train.py` runs a whole training.
"""

from collections.abc import Mapping

from podium.conductor import policy, profiled, trained
from podium.harness.system import SystemCard

SYSTEMS: Mapping[str, SystemCard] = {
    manifest.name: manifest
    for manifest in (
        *trained.manifests(),
        policy.CONDUCTOR_PROMPTED,
        policy.CONDUCTOR_RECURSIVE,
        policy.CONDUCTOR_BEST_SINGLE,
        profiled.PROFILED,
        profiled.PROFILED_UNTRAINED,
        profiled.PROFILED_SHUFFLED,
    )
}
"""Cards by system name. `conductor` is the trained one; then other released checkpoints."""
