"""What several baselines share: draws, optional packages, hashed words, provenance."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from itertools import pairwise
from random import Random
from typing import Any
from zlib import crc32

import numpy as np

from harness.errors import UserError
from harness.learning.fit import Artifact, ArtifactSource, TrainingBudget, TrialResult
from harness.learning.matrix import Floats
from harness.records import Question
from harness.rewards.splits import question_digest, whole_text

# § Random numbers of one sample: from the system, the seed, the question and the epoch alone.
# §
# § A resumed run repeats them. The system is part of it, so that two controls of one run do
# § not draw
# § alike: a mixture's aggregator is not the worker that `random-worker` happened to ask.


def seeded_random(system: str, seed: int, question: str, epoch: int) -> Random:
    """Return the random numbers of one system on one sample.

    >>> seeded_random("a", 0, "q", 1).random() == seeded_random("a", 0, "q", 1).random()
    True
    >>> seeded_random("a", 0, "q", 1).random() == seeded_random("b", 0, "q", 1).random()
    False
    """
    return Random(f"{system}/{seed}/{question}/{epoch}")


# § Packages that an extra brings: imported where they are used, and named where they are
# § absent.


def import_extra(module: str, extra: str) -> Any:
    """Return an optional module; UserError names the extra that brings it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UserError(
            f"{module.partition('.')[0]} is not installed ({error}): pip install '.[{extra}]'."
        ) from None


# § One thread for arithmetic: sums over several threads differ in their last bits.
# §
# § threadpoolctl comes with scikit-learn; without it nothing is limited, and nothing else
# § changes.


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which linear algebra runs on one thread."""
    try:
        control: Any = import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    return control.threadpool_limits(limits=1)


# § Embed a text without a model and without a fit: words and word pairs hashed into few
# § numbers.
# §
# § It is crude (no meaning, only shared words), and it is the same on every machine, so that
# § a system
# § runs offline and its training can be repeated. Not here: embedders that learn
# § (baselines/routing/).


_WORD = re.compile(r"\w+|[^\w\s]")
_SIGN = 1 << 31
"""The bit of a word's hash that decides its sign; the others decide where it counts."""


def hash_words(text: str, dims: int) -> Floats:
    """Return `dims` numbers of length 1 for a text: signed, log-scaled counts of words and pairs.

    A text without words is all zeros.

    >>> hash_words("2 + 2", 4).shape, round(float(hash_words("a b", 8) @ hash_words("A  b", 8)), 6)
    ((4,), 1.0)
    """
    words = _WORD.findall(text.lower())
    counts = Counter([*words, *(f"{one} {two}" for one, two in pairwise(words))])
    found = np.zeros(dims)
    for word, count in counts.items():
        code = crc32(word.encode("utf-8", "surrogatepass"))
        found[(code & ~_SIGN) % dims] += (1 if code & _SIGN else -1) * (1 + np.log(count))
    length = float(np.linalg.norm(found))
    return found / length if length else found


# § What the routers of this folder share when they learn by trying: where an artefact is
# § from.


def learnt_from(
    system: str,
    given: TrainingBudget,
    done: Sequence[Sequence[TrialResult]],
    settings: Mapping[str, Any],
) -> ArtifactSource:
    """Return what an artefact says of the tries that taught it."""
    tries = [one for tried in done for one in tried]
    asked = {one.question for one in tries}
    rows = [[one.question, one.epoch, one.value, one.usd, dict(one.noted)] for one in tries]
    return ArtifactSource(
        system=system,
        rows_sha256=hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest(),
        suites=given.suites,
        questions=tuple(
            question_digest(whole_text(question))
            for question in given.questions
            if question.id in asked
        ),
        workers=given.workers,
        embedder=str(settings.get("embedder", "")),
        calls=sum(one.calls for one in tries),
        settings={"seed": given.seed, **settings},
    )


def refuse_taught(learned: Artifact, question: Question) -> None:
    """Raise UserError for a question that taught an artefact: it cannot be examined by it."""
    if question_digest(whole_text(question)) in learned.about.questions:
        raise UserError(
            f"{learned.about.system} was taught by {question.id}, so it cannot be examined by it: "
            f"train it on other questions."
        )


def refuse_too_few(system: str, given: TrainingBudget, least: int) -> None:
    """Raise UserError, before a call, when a budget does not pay for the least that is needed."""
    if given.calls < least or not given.questions:
        raise UserError(
            f"{system} needs at least {least} worker calls and one train question to learn from, "
            f"and has {given.calls} and {len(given.questions)}: give it more with --train-calls."
        )
