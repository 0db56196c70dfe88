"""TRINITY's coordinator: features of a question and its turns, and a linear head over them.

The head has no bias: one row of weights per worker and per role, one column per feature. The paper
feeds it a hidden state of a 0.6B model (`hf:PATH`, hidden_state.py); `hash` needs no model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

import numpy as np

from baselines.calling.hashing import hashed
from baselines.calling.turns import ROLES, TURNS, Policy, Role, Turn
from harness.errors import UserError
from harness.learning.matrix import Floats
from harness.records import Question

HASH = "hash"
HF = "hf:"
WORDS = 8
"""Hashed features of the question, and again of the latest turn: few, because calls are few."""


class Encoder(Protocol):
    """What turns a question and its turns into features."""

    @property
    def dims(self) -> int:
        """How many features."""
        ...

    def __call__(self, question: Question, turns: Sequence[Turn]) -> Floats:
        """Return the features of the turn to be taken next."""
        ...


@dataclass(frozen=True, slots=True)
class HashEncoder:
    """Hashed words of the question, the role of the last turn, and how far the loop is."""

    @property
    def dims(self) -> int:
        """Words, one per role that may have come last and one for none, and the progress."""
        return WORDS + len(ROLES) + 2

    def __call__(self, question: Question, turns: Sequence[Turn]) -> Floats:
        """Return the features; the state of the loop has the same weight as the question."""
        last = [float(bool(turns) and turns[-1].role == role) for role in ROLES]
        state = [float(not turns), *last, len(turns) / TURNS]
        return np.array([*hashed(question.text, WORDS), *state])


@cache
def encoder(name: str) -> Encoder:
    """Return the encoder of a name: `hash`, or `hf:PATH` for a local transformers model.

    A model is loaded once in a process. UserError for any other name.
    """
    if name == HASH:
        return HashEncoder()
    if name.startswith(HF) and name != HF:
        from baselines.calling.hidden_state import HiddenState

        return HiddenState(name.removeprefix(HF))
    raise UserError(f"Features are {HASH!r} or 'hf:PATH' of a local model, not {name!r}.")


def transcript(question: Question, turns: Sequence[Turn]) -> str:
    """Return what a coordinator's model reads: the question and all turns."""
    said = [f"[{turn.role}, {turn.worker}]\n{turn.text}" for turn in turns]
    return "\n\n".join([question.text, *said])


def size(workers: int, features: int) -> int:
    """Return how many weights a head has."""
    return (workers + len(ROLES)) * features


def head_policy(weights: Floats, workers: int, encode: Encoder) -> Policy:
    """Return the coordinator that takes the worker and the role of the highest logits."""
    head = weights.reshape(workers + len(ROLES), encode.dims)

    def choose(question: Question, turns: Sequence[Turn]) -> tuple[int, Role]:
        logits = head @ encode(question, turns)
        return int(np.argmax(logits[:workers])), ROLES[int(np.argmax(logits[workers:]))]

    return choose
