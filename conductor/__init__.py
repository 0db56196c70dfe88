"""Plans written by a model: the conductor (arXiv 2512.04388), prompted or trained.

Begin with `plan_format.py` and `prompt.py`, then `policy.py`; `reward.py` says what a plan is
worth, and `training/train.py` is a training from its first line to its last.
"""

from collections.abc import Mapping

from conductor import policy, trained
from harness.system import SystemCard

# § Plans written by a model: the conductor (arXiv 2512.04388), prompted now and trained
# § later.
# §
# § Belongs here: what a conductor is shown, how its text becomes a workflow, and the systems
# § that run
# § it. Does not: running a workflow (harness/execute.py), exams (suites/), hand-written plans
# § (baselines/). Nothing here imports torch but the training files.
# §
# § Reading order: `form.py` (how a conductor is asked and read), `prompt.py` (what it is
# § told),
# § `reading.py` (what it may say), `policy.py` (asking and running), `recursion.py` (later
# § rounds),
# § `plan_reward.py` (what a plan is worth to a trainer).


SYSTEMS: Mapping[str, SystemCard] = {
    manifest.name: manifest
    for manifest in (
        *trained.manifests(),
        policy.CONDUCTOR_PROMPTED,
        policy.CONDUCTOR_RECURSIVE,
        policy.CONDUCTOR_BEST_SINGLE,
    )
}
"""By name as in tables: `conductor` is the trained one, then every further released checkpoint."""
