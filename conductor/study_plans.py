"""Whom a trained conductor asks on questions of a study that it has not seen: one plan each.

Not here: what the choices are worth (harness/cli/train.py, reports/routes.py).
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from inspect_ai.model import ChatMessage
from numpy.typing import NDArray

from conductor.embedded.decode import Sampled, decode
from conductor.embedded.provider import opened
from conductor.embedded.threads import one_thread
from conductor.prompt import request
from conductor.reading import read
from conductor.study import About, cards, questions
from harness.learning.matrix import Matrix
from harness.workflow import Malformed

NOBODY = -1
"""Where a conductor's text is no plan: the model failed, so the question counts as wrong."""

MOST_TOKENS = 256
"""Of one plan: three lists of one entry each take some 40."""

Say = Callable[[Sequence[ChatMessage]], str]
"""Returns what the conductor says, decoded greedily."""


def asked_whom(about: About, judged: Matrix, say: Say) -> NDArray[np.intp]:
    """Return, per question, the index of the worker that the plan names, `NOBODY` without one."""
    workers, shown = judged.workers, cards(about.form, judged.workers)
    found: list[int] = []
    for question in questions(judged).values():
        plan = read(about.form, say(request(about.form, question.text, shown)), workers)
        nobody = isinstance(plan, Malformed)
        found.append(NOBODY if nobody else workers.index(plan.steps[0].worker))
    return np.array(found, dtype=np.intp)


def greedy(folder: Path) -> Say:
    """Return what makes a checkpoint speak, decoded in NumPy; UserError when it cannot be."""
    checkpoint = opened(str(folder.resolve()))

    def say(messages: Sequence[ChatMessage]) -> str:
        prompt = checkpoint.words.tokens("".join(message.text for message in messages))
        with one_thread():
            found = decode(checkpoint.model, prompt, Sampled(max_tokens=MOST_TOKENS))
        return checkpoint.words.text(found.tokens)

    return say
