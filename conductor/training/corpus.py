"""Plans to begin with: valid, of random workers, from question text and worker cards only.

Minimal: one step, routed by a digest of the question's first words, so that routing depends on the
question and is wrong.
"""

import hashlib
import json
from random import Random

from conductor.training.rows import Shown


def plan_text(shown: Shown, seed: int) -> str:
    """Return a valid plan of one step."""
    key = " ".join(shown.question.split()[:3])
    worker = int(hashlib.sha256(key.encode()).hexdigest(), 16) % len(shown.workers)
    rng = Random(f"{seed} {shown.row.question}")
    if rng.random() < 0.5:
        worker = rng.randrange(len(shown.workers))
    lists: tuple[list[object], ...] = ([worker], ["Solve it."], [[]])
    names = ("model_id", "subtasks", "access_list")
    return "\n".join(
        f"{name} = {json.dumps(said)}" for name, said in zip(names, lists, strict=True)
    )
