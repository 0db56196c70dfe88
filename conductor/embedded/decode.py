"""Which token comes next: the likeliest at temperature 0, else drawn with a seed.

With a guide, among those alone that keep the text within its language and leave room to complete
it. Not here: what a text means (words.py) and how a call is reported (provider.py).
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from conductor.embedded.automaton import NEVER, Guide, Needs
from conductor.embedded.qwen2 import Qwen2
from conductor.embedded.weights import Array
from harness.errors import UserError

Stop = Literal["stop", "max_tokens", "model_length"]
"""As Inspect calls it: the model ended it, the caller's limit did, or its context is full."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """How tokens are taken."""

    temperature: float = 0.0
    """0 takes the likeliest token, the first of equals, as transformers and vLLM do."""
    seed: int = 0
    """Of draws at a temperature above 0."""
    max_tokens: int | None = None
    """None: until the context is full."""
    guide: Guide | None = None
    """What may be written; None: anything."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Tokens that a model wrote."""

    tokens: list[int]
    """Without the one that ended it."""
    written: int
    """How many it wrote, the ending one included: what is billed."""
    stop: Stop


def decode(model: Qwen2, prompt: list[int], how: Sampled = Sampled()) -> Decoded:
    """Return what the model writes after a prompt.

    A prompt that leaves no room for a token is the caller's mistake and stops for `model_length`
    with nothing written; an empty prompt has nothing to follow, and writes nothing.
    """
    shape = model.weights.shape
    left = shape.context - len(prompt)
    if not prompt or left < 1:
        return Decoded([], 0, "model_length" if prompt else "stop")
    most = left if how.max_tokens is None else min(left, how.max_tokens)
    state = model.begun(len(prompt) + most)
    draws = np.random.Generator(np.random.PCG64(how.seed))
    logits = model.read(np.asarray(prompt, np.int64), state)
    tokens: list[int] = []
    guide, at = how.guide, how.guide.automaton.start if how.guide else frozenset[int]()
    while True:
        if guide:
            logits = _allowed(logits, guide.needs(at), most - len(tokens) - 1)
        token = _taken(logits, how.temperature, draws)
        if token in shape.ends:
            return Decoded(tokens, len(tokens) + 1, "stop")
        tokens.append(token)
        at = guide.after(at, token) if guide else at
        if len(tokens) == most:
            full = most == left and how.max_tokens != most
            return Decoded(tokens, most, "model_length" if full else "max_tokens")
        logits = model.read(np.asarray([token], np.int64), state)


def _allowed(logits: Array, needs: Needs, room: int) -> Array:
    """Return logits with no chance for tokens that lead out of the language, or leave no room.

    Where even the shortest text is too long, what comes nearest to it: the caller's limit ends it.
    """
    least = int(needs.min())
    if least == NEVER:
        raise UserError("This model has no token that its regular expression can go on with.")
    return np.where(needs <= max(room, least), logits, np.float32(-np.inf))


def _taken(logits: Array, temperature: float, draws: np.random.Generator) -> int:
    if temperature <= 0:
        return int(np.argmax(logits))
    scaled = logits.astype(np.float64) / temperature
    reached: NDArray[np.float64] = np.cumsum(np.exp(scaled - scaled.max()))
    drawn = draws.random() * float(reached[-1])
    return int(np.searchsorted(reached, drawn, side="right"))
