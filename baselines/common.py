"""Helpers of several baselines: random numbers, optional packages, hashed words, provenance."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from inspect import Parameter, Signature, signature
from itertools import pairwise
from random import Random
from typing import Any, TypeVar, cast
from zlib import crc32

import numpy as np
from inspect_ai.solver import Solver, solver

from podium.harness.errors import UserError
from podium.harness.inspect_adapters import as_solver
from podium.harness.learning import (
    Arrays,
    ArtifactSource,
    Floats,
    TrainingBudget,
    TrialResult,
    read_artifact,
)
from podium.harness.rewards.splits import question_digest
from podium.harness.system import System

MakeT = TypeVar("MakeT", bound=Callable[..., System])
Rounds = Sequence[Sequence[TrialResult]]  # training results, a list per round of training


def seeded_random(system: str, seed: int, question: str, epoch: int) -> Random:
    """Return the random generator of one system, question and epoch; a resumed run draws the same.

    The system's name is part of the seed, so that two controls of one run draw differently.

    >>> seeded_random("a", 0, "q", 1).random() == seeded_random("a", 0, "q", 1).random()
    True
    >>> seeded_random("a", 0, "q", 1).random() == seeded_random("b", 0, "q", 1).random()
    False
    """
    return Random(f"{system}/{seed}/{question}/{epoch}")


def registered(make: Callable[..., System], name: str = "") -> Callable[..., Solver]:
    """Return a function that makes Inspect solvers of a system, with an added argument `pool`."""

    @wraps(make)
    def made(*args: Any, pool: str | None = None, **kwargs: Any) -> Solver:
        return as_solver(make(*args, **kwargs), pool)

    original, marked = signature(make), cast(Any, made)
    added = Parameter("pool", Parameter.KEYWORD_ONLY, default=None, annotation=str | None)
    marked.__signature__ = original.replace(parameters=[*original.parameters.values(), added])
    return solver(name or make.__name__.removesuffix("_system"))(made)


SOLVERS: dict[str, Callable[..., Solver]] = {}  # Inspect solvers of podium's systems, by name


def register(make: MakeT, name: str = "") -> MakeT:
    """Register the Inspect solver of the system that `make` returns; return `make` (decorator)."""
    name = name or make.__name__.removesuffix("_system")
    SOLVERS[name] = registered(make, name)
    return make


def register_learner(name: str, make: Callable[..., System]) -> None:
    """Register system `name`, which `make` builds from the trained artefact in file `learned`."""

    def learner(learned: str | None = None, sha256: str | None = None, **options: Any) -> System:
        return make(read_artifact(learned, name, sha256), **options)

    (_, *options), marked = signature(make).parameters.values(), cast(Any, learner)
    base = [*signature(learner).parameters.values()][:2]
    marked.__signature__ = Signature([*base, *options])
    register(learner, name.replace("-", "_"))


def import_extra(module: str, extra: str) -> Any:
    """Import an optional module; if it is missing, UserError names the pip extra to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UserError(
            f"{module.partition('.')[0]} is not installed ({error}). Run pip install '.[{extra}]'."
        ) from None


_WORD = re.compile(r"\w+|[^\w\s]")
_SIGN = 1 << 31  # the bit of a word's hash that sets its sign; the others set its index


def hash_words(text: str, dims: int) -> Floats:
    """Return a text as a unit vector (dims,): signed hashed log counts of words and word pairs.

    Vectors of texts that share words are similar, whatever the meaning. No model and no fit is
    needed, and the result is the same on every machine. A text without words gives zeros.

    >>> hash_words("2 + 2", 4).shape, round(float(hash_words("a b", 8) @ hash_words("A  b", 8)), 6)
    ((4,), 1.0)
    """
    words = _WORD.findall(text.lower())
    counts = Counter([*words, *(f"{a} {b}" for a, b in pairwise(words))])
    vector = np.zeros(dims)
    for word, count in counts.items():
        code = crc32(word.encode("utf-8", "surrogatepass"))
        vector[(code & ~_SIGN) % dims] += (1 if code & _SIGN else -1) * (1 + np.log(count))
    length = float(np.linalg.norm(vector))
    return vector / length if length else vector


def learnt_from(
    system: str, budget: TrainingBudget, rounds: Rounds, settings: Mapping[str, Any]
) -> ArtifactSource:
    """Return a trained artefact's provenance: questions, workers, settings, digest of results."""
    tries = [trial for tried in rounds for trial in tried]
    question_ids = {trial.question for trial in tries}
    rows = [[t.question, t.epoch, t.value, t.usd, dict(t.noted)] for t in tries]
    return ArtifactSource(
        system=system,
        rows_sha256=hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest(),
        suites=budget.suites,
        questions=tuple(question_digest(q.text) for q in budget.questions if q.id in question_ids),
        workers=budget.workers,
        embedder=str(settings.get("embedder", "")),
        calls=sum(trial.calls for trial in tries),
        settings={"seed": budget.seed, **settings},
    )


def add_prefix(prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Return arrays with a prefix before their names, so that several sets fit into an artefact."""
    return {f"{prefix}{name}": values for name, values in arrays.items()}


def strip_prefix(prefix: str, arrays: Arrays) -> dict[str, Any]:
    """Return the arrays whose names have the prefix, under their names without the prefix."""
    matches = {name: values for name, values in arrays.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): values for name, values in matches.items()}


def refuse_too_few(system: str, budget: TrainingBudget, least: int) -> None:
    """Raise UserError if a training budget has under `least` worker calls, or no train question."""
    if budget.calls < least or not budget.questions:
        raise UserError(
            f"{system} needs at least {least} worker calls and one train question, but has "
            f"{budget.calls} and {len(budget.questions)}. "
            + ("Raise --train-calls." if budget.questions else "Add suites with --train-on.")
        )
