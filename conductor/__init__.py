"""Plans written by a model: the conductor (arXiv 2512.04388), prompted now and trained later.

Belongs here: what a conductor is shown, how its text becomes a workflow, and the systems that run
it. Does not: running a workflow (harness/execute.py), exams (suites/), hand-written plans
(baselines/). Nothing here imports torch but the training files.

Reading order: `parse.py` (what a conductor may say), `prompt.py` (what it is told), `policy.py`
(asking, one retry, running), `plan_reward.py` (what a plan is worth to a trainer).
"""

from collections.abc import Mapping

from conductor import policy
from harness.system import Manifest

SYSTEMS: Mapping[str, Manifest] = {
    manifest.name: manifest
    for manifest in (policy.CONDUCTOR_PROMPTED, policy.CONDUCTOR_BEST_SINGLE)
}
"""By name as in tables; `conductor` is kept for the trained one."""
