"""`conductor-profiled`: a trained network (policy) that plans from workers' results in this run.

The policy's input is a profile (harness/profiles.py): the workers' results on the run's train
questions of all suites. Its weights (profile_policy.py) were trained on other pools.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from inspect_ai.solver import Solver, solver

from podium.conductor import profile_policy as policy
from podium.conductor.checkpoint import POLICY, RELEASED, checkpoint_digest, short_digest
from podium.harness.errors import UserError, no_such
from podium.harness.inspect_adapters import as_solver
from podium.harness.learning import (
    Artifact,
    ArtifactSource,
    Matrix,
    read_artifact,
    rows_sha256,
)
from podium.harness.pool import Pool
from podium.harness.pool_config import PoolSpec
from podium.harness.profiles import measure_table, table_of_arrays
from podium.harness.question_kinds import form_of
from podium.harness.records import Question
from podium.harness.rewards.splits import question_digest, refuse_unfit
from podium.harness.system import Calls, System, SystemCard, SystemMethods, planned
from podium.harness.workflow import MAX_STEPS, Workflow

NAME, UNTRAINED, SHUFFLED = (
    "conductor-profiled",
    "conductor-profiled-untrained",
    "conductor-profiled-shuffled",
)
TRAINED = "profiled"  # name of the released policy
TRAINING = "policy of conductor-profiled"  # value of the field `system` in a policy's file


def policy_path(name: str) -> Path:
    """Return the file of a policy (network) by released name or folder; UserError if missing."""
    shipped = RELEASED / name / POLICY
    if "/" not in name and shipped.is_file():
        return shipped
    path = Path(name)
    if (path / POLICY).is_file():
        return (path / POLICY).resolve()
    raise no_such("policy", name, [TRAINED], "released: ", " (or give a folder with policy.npz)")


@lru_cache(maxsize=8)
def _read(path: Path, sha256: str) -> Artifact:
    return read_artifact(str(path), TRAINING, sha256)


def _digest(name: str) -> str:
    return checkpoint_digest(policy_path(name).parent)


def read_policy(name: str) -> Artifact:
    """Read the weights of a policy by released name or folder; UserError if missing or outdated."""
    path = policy_path(name)
    artifact = _read(path, hashlib.sha256(path.read_bytes()).hexdigest())
    shapes = {key: tuple(values.shape) for key, values in artifact.arrays.items()}
    if shapes != dict(policy.SHAPES):
        raise UserError(f"{path} has weights of another version. Train it again.")
    return artifact


def profiled_system(
    learned: Artifact, weights: policy.Weights, *, shuffled: bool = False
) -> System:
    """Return a system that plans by profiles; `shuffled` (a control) swaps them between workers."""
    about = learned.about
    try:
        table = table_of_arrays(learned.arrays)
    except KeyError as error:
        raise UserError(
            f"This profile of {about.system} lacks {error}. Measure it again in another --log-dir."
        ) from None
    seed = int((about.settings or {}).get("seed", 0))
    profile = table.shuffled(seed) if shuffled else table

    def plan(question: Question, pool: Pool) -> Workflow:
        refuse_unfit(learned, pool.workers, question)
        kind = int(profile.kinds.of([question])[0])
        numbers = policy.question_numbers(form_of(question.kind), len(question.text))
        read = policy.read(weights, policy.show([(profile, kind, numbers)]), np)
        return policy.as_workflow(policy.write(weights, read).steps(0), about.workers)

    return planned(plan)


@solver
def conductor_profiled(
    learned: str | None = None,
    sha256: str | None = None,
    checkpoint: str = TRAINED,
    checkpoint_sha256: str = "",
    pool: str | None = None,
) -> Solver:
    """Plan by workers' profiles, read from a file; UserError if the file's digest is not `sha256`.

    `learned`: that file's path. `checkpoint`: the name of a released policy (planning network), or
    a training's folder; `checkpoint_sha256`: the policy's digest.
    """
    weights = _weights(checkpoint, checkpoint_sha256)
    return as_solver(profiled_system(read_artifact(learned, NAME, sha256), weights), pool)


@solver
def conductor_profiled_untrained(
    learned: str | None = None, sha256: str | None = None, pool: str | None = None
) -> Solver:
    """Plan by workers' profiles with the random initial weights of a training with seed 0."""
    weights = policy.first_weights(0)
    return as_solver(profiled_system(read_artifact(learned, UNTRAINED, sha256), weights), pool)


@solver
def conductor_profiled_shuffled(
    learned: str | None = None,
    sha256: str | None = None,
    checkpoint: str = TRAINED,
    checkpoint_sha256: str = "",
    pool: str | None = None,
) -> Solver:
    """Plan as `conductor_profiled` does, with each worker's profile given to another worker."""
    artifact = read_artifact(learned, SHUFFLED, sha256)
    weights = _weights(checkpoint, checkpoint_sha256)
    return as_solver(profiled_system(artifact, weights, shuffled=True), pool)


def _weights(checkpoint: str, sha256: str) -> policy.Weights:
    artifact = read_policy(checkpoint)
    if sha256 and _digest(checkpoint) != sha256:
        raise UserError(
            f"Policy {checkpoint} is not the one with which this run began. Restore it, or name "
            "another --log-dir."
        )
    return artifact.arrays


class ProfileLearning(SystemMethods):
    """Methods of systems that plan by workers' profiles: check the pool, measure the profiles."""

    def __init__(self, system: str) -> None:
        """Store the system's name, which will be written into the file of the profiles."""
        super().__init__()
        self._system = system

    def pool_refusal(self, x: str, spec: PoolSpec) -> str | None:
        """Return why a pool is refused: fewer than 2 or more than 12 workers; None if it is not."""
        if 2 <= len(spec.names) <= policy.MOST_WORKERS:
            return None
        return (
            f"plans for 2 to {policy.MOST_WORKERS} workers, and pool {spec.name!r} has "
            f"{len(spec.names)}: name another pool."
        )

    def learn(self, matrix: Matrix, seed: int) -> Artifact:
        """Return the workers' profiles as a file's content, from a matrix of their grades."""
        return learn_profile(self._system, matrix, seed)


class ProfiledMethods(ProfileLearning):
    """Methods of systems that plan by workers' profiles with a trained policy (network)."""

    def arguments(self, x: str) -> Mapping[str, Any]:
        """Return the solver's arguments for `SYSTEM@x`: the policy (network) `x` and its digest."""
        name = x or TRAINED
        read_policy(name)
        return {"checkpoint": name, "checkpoint_sha256": _digest(name)}

    def suite_refusal(self, x: str, suite: str, digests: Sequence[str]) -> str | None:
        """Return why a suite is refused: the policy was trained on its questions; None if not."""
        taught = frozenset(read_policy(x or TRAINED).about.questions)
        if shared := sum(short_digest(digest) in taught for digest in digests):
            name = x or TRAINED
            return (
                f"Policy {name} was trained on {shared} questions of {suite}: name another suite."
            )
        return None

    def footnote(self, label: str) -> str:
        """Return a footnote for tables on how the policy was trained; empty for rehearsal pools."""
        return "" if label == "rehearsal" else "its policy was trained on rehearsal workers"


def learn_profile(system: str, matrix: Matrix, seed: int) -> Artifact:
    """Return workers' profiles, measured in a matrix of grades, without texts of questions."""
    table = measure_table(matrix, seed)
    about = ArtifactSource(
        system=system,
        rows_sha256=rows_sha256(matrix),
        suites=(matrix.name,),
        questions=tuple(question_digest(q.text) for q in matrix.questions if q.text),
        workers=matrix.workers,
        calls=int((~np.isnan(matrix.scores)).sum()) * matrix.draws,
        settings={"seed": seed, "kinds": len(table.kinds)},
    )
    return Artifact(about, table.arrays())


SOURCE = "Conductor, arXiv 2512.04388 (trained on drawn practice pools)"
DEVIATIONS = (
    "reads numbers and not the question's words: its kind by k-means, its length, its form",
    "its subtasks are six sentences (conductor/profile_policy.py), chosen and not written",
    "a network of 45,000 weights, not Qwen2.5-7B; it runs on the machine that asks, and nobody "
    "bills it",
)


def _card(name: str, summary: str, methods: SystemMethods, *deviations: str) -> SystemCard:
    return SystemCard(
        name=name,
        solver=f"podium/{name.replace('-', '_')}",
        summary=summary,
        source=SOURCE,
        calls=Calls(f"1-{MAX_STEPS}", lambda n, args: (1, MAX_STEPS)),
        group="controls" if deviations else "contestants",
        prompts=tuple(task.subtask for task in policy.TASKS if task.subtask),
        k="checkpoint" if methods.replaces("arguments") else "",
        needs=frozenset({"train"}),
        traits=frozenset({"whole run"}),
        methods=methods,
        deviations=(*DEVIATIONS, *deviations),
        acts="last step acts",
    )


PROFILED = _card(
    NAME,
    "A trained policy plans by each worker's results on train questions.",
    ProfiledMethods(NAME),
)
PROFILED_UNTRAINED = _card(
    UNTRAINED,
    "The same policy before its training.",
    ProfileLearning(UNTRAINED),
    "its weights are random",
)
PROFILED_SHUFFLED = _card(
    SHUFFLED,
    "The same policy, with each worker's profile replaced by another worker's.",
    ProfiledMethods(SHUFFLED),
    "what it has left is the shape of its plans",
)
