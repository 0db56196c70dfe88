"""Plans to begin with: valid, of random workers, from question text and worker cards only.

One step. Half of the plans name the worker that the question's words point to: four bits of them
(SimHash, Charikar 2002) pick one of sixteen groups, and every group has a worker drawn at random.
So routing depends on the question and is wrong; the other half names any worker.
"""

import hashlib
import json
import re
from random import Random

from conductor.training.rows import Shown

BITS = 4
_WORD = re.compile(r"[a-z]{3,}")


def plan_text(shown: Shown, seed: int) -> str:
    """Return a valid plan of one step."""
    workers = len(shown.workers)
    worker = Random(f"group {group_of(shown.question)}").randrange(workers)
    rng = Random(f"{seed} {shown.row.question}")
    if rng.random() < 0.5:
        worker = rng.randrange(workers)
    lists: tuple[list[int], list[str], list[list[int]]] = ([worker], ["Solve it."], [[]])
    names = ("model_id", "subtasks", "access_list")
    return "\n".join(
        f"{name} = {json.dumps(said)}" for name, said in zip(names, lists, strict=True)
    )


def group_of(text: str) -> int:
    """Return which of 2 ** BITS groups a text is in: texts of similar words are in one more often.

    >>> group_of("You are given a string.") == group_of("you are given a STRING")
    True
    """
    sums = [0] * BITS
    for word in sorted({found.group() for found in _WORD.finditer(text.lower())}):
        digest = int(hashlib.sha256(word.encode()).hexdigest(), 16)
        sums = [held + (1 if digest >> at & 1 else -1) for at, held in enumerate(sums)]
    return sum(1 << at for at, held in enumerate(sums) if held > 0)
