"""Conductors (arXiv 2512.04388): prompted or trained models that plan which workers to call.

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
"""System name -> its card, the facts about the system. The system `conductor` plans with `trained`,
a checkpoint that podium ships."""
