"""Plans written by a model: the conductor (arXiv 2512.04388), prompted or trained.

Begin with `prompt.py` and `policy.py`; `training/train.py` is a training from top to bottom.
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
"""By name as in tables: `conductor` is the trained one, then every further released checkpoint."""
