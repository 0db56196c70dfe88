"""Plans written by a model: the conductor (arXiv 2512.04388), prompted now and trained later.

Belongs here: what a conductor is shown, how its text becomes a workflow, and the systems that run
it. Does not: running a workflow (harness/execute.py), exams (suites/), hand-written plans
(baselines/). Nothing here imports torch but the training files.

Reading order: `form.py` (how a conductor is asked and read), `prompt.py` (what it is told),
`reading.py` (what it may say), `policy.py` (asking and running), `recursion.py` (later rounds),
`plan_reward.py` (what a plan is worth to a trainer).
"""

from collections.abc import Mapping

from conductor import prompted, seated
from harness.system import SystemCard

SYSTEMS: Mapping[str, SystemCard] = {
    manifest.name: manifest
    for manifest in (
        *seated.manifests(),
        prompted.CONDUCTOR_PROMPTED,
        prompted.CONDUCTOR_RECURSIVE,
        prompted.CONDUCTOR_BEST_SINGLE,
    )
}
"""By name as in tables: `conductor` is the trained one, then every further released checkpoint."""
