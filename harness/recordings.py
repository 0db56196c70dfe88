"""What a recorded pool can answer, looked up before a run: a miss is an error, never a guess."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from inspect_ai.model import ChatMessageUser

from harness.cassette import Cassette, open_cassette
from harness.errors import UserError
from harness.pool_file import PoolSpec, WorkerSpec
from harness.records import Question
from harness.replicate import request_digest
from harness.suite import Suite, Varied


def recordings(spec: PoolSpec) -> dict[str, str]:
    """Return the sha256 of each cassette that a pool replays, by its name or file name.

    Not by its path: a folder that was moved holds the same recordings.
    """
    return {Path(_name(worker)).name: _tape(worker).sha256 for worker in _replayed(spec)}


def prompts_recorded(spec: PoolSpec) -> bool:
    """Return whether every reply came with its request, so that any system may ask."""
    return all(_tape(worker).prompts_recorded for worker in _replayed(spec))


def refuse_unrecorded(
    spec: PoolSpec, questions: Sequence[Question], epochs: int, suite: Suite[Any] | None = None
) -> None:
    """Raise UserError when replies without prompts lack a question or an epoch of an exam.

    A suite that puts a question differently in each epoch has one form of it for each.
    """
    for worker in _replayed(spec):
        tape = _tape(worker)
        if tape.prompts_recorded:
            continue
        if epochs > tape.epochs:
            raise UserError(
                f"--epochs {epochs} is more than was recorded: {worker.name} has replies for "
                f"{tape.epochs} epoch{'s' if tape.epochs > 1 else ''}: name --epochs {tape.epochs}."
            )
        known = {(row.worker, row.digest) for row in tape.rows.values()}
        who = _answers(worker)
        lost = [
            one.id
            for one in questions
            if any((who, _canonical(form)) not in known for form in _forms(one, epochs, suite))
        ]
        if lost:
            raise UserError(
                f"{worker.name} has no recorded reply to {len(lost)} of {len(questions)} questions "
                f"({lost[0]} is the first): name the suite that was recorded, in "
                "the prompt that it was asked in."
            )


def _forms(question: Question, epochs: int, suite: Suite[Any] | None) -> list[Question]:
    """Return the question as every epoch asks it; one form where all epochs ask alike."""
    if not isinstance(suite, Varied):
        return [question]
    return [suite.at_epoch(question, epoch) for epoch in range(1, epochs + 1)]


def _replayed(spec: PoolSpec) -> list[WorkerSpec]:
    return [worker for worker in spec.slots if worker.provider == "recorded"]


def _name(worker: WorkerSpec) -> str:
    return str(worker.args.get("cassette", ""))


def _tape(worker: WorkerSpec) -> Cassette:
    return open_cassette(_name(worker))


def _answers(worker: WorkerSpec) -> str:
    """Return the worker's name inside the cassette."""
    return worker.model.partition("/")[2]


def _canonical(question: Question) -> str:
    return request_digest([ChatMessageUser(content=question.text)])
