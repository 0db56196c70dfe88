"""What the routers of this folder share when they learn by trying: where an artefact is from."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import UserError
from harness.learning.fit import Artifact, ArtifactSource, TrainingBudget, TrialResult
from harness.records import Question
from harness.rewards.splits import question_digest, whole_text


def about(
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
