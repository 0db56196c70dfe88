"""Decoding of replies, sampled or greedy, for one request or a batch; a guide may restrict tokens.

A guide allows only tokens that continue a match of a regular expression. Decoding is speculative:
guesses are the tokens that followed the same three tokens in earlier replies, and one forward pass
verifies all guesses. The result equals decoding token by token, up to float32 rounding.
"""

import os
from collections import OrderedDict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from threading import BoundedSemaphore, Lock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]

from podium.conductor.decoder import Array, Decoder, KeyValueCache, TokenRun
from podium.conductor.guided_decoding import NEVER, Guide, Needs
from podium.harness.errors import UserError

Stop = Literal["stop", "max_tokens", "model_length"]
"""Why a reply ended, in Inspect's words: an end token, the caller's `max_tokens`, a full
context."""
CONTEXT = 3  # number of preceding tokens that a guess depends on
MOST_GUESSES = 1 << 18  # maximum number of stored contexts
ROWS = 16  # maximum tokens in one forward pass, guesses included: weights are read once for all
TOGETHER = 16  # maximum requests in one forward pass; each needs some 20 MB for keys and values
GUESSES = range(3, 8)  # guesses per request that save time; fewer cost as much as they save
REMEMBERED = 1024  # maximum number of cached replies
LIKELIEST = 64  # most likely tokens checked with a guide one by one; then all are masked


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """Options for decoding a reply: temperature, seed, token limit, guide (allowed tokens)."""

    temperature: float = 0.0  # 0: greedy decoding; if logits are equal, the first token
    seed: int = 0  # of sampling, if the temperature is above 0
    max_tokens: int | None = None  # None: until the context is full
    guide: Guide | None = None  # restricts the tokens; None: any token


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply as tokens, and why the reply ended."""

    tokens: list[int]  # without the end token
    written: int  # output tokens to bill, the end token included
    stop: Stop


@dataclass(slots=True)
class GuessTable:
    """Guesses for speculative decoding: which token last followed which three tokens."""

    follows: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])

    def learn(self, tokens: Sequence[int]) -> None:
        """Store which token follows each run of `CONTEXT` (3) tokens in a text."""
        if len(self.follows) > MOST_GUESSES:
            self.follows.clear()
        for index in range(CONTEXT, len(tokens)):
            self.follows[tuple(tokens[index - CONTEXT : index])] = tokens[index]

    def guesses(self, tokens: Sequence[int], limit: int) -> list[int]:
        """Return at most `limit` guessed next tokens; none if they are too few to save time."""
        guessed = list(tokens[-CONTEXT:])
        while len(guessed) < CONTEXT + limit and (key := tuple(guessed[-CONTEXT:])) in self.follows:
            guessed.append(self.follows[key])
        return guessed[CONTEXT:] if len(guessed) >= CONTEXT + GUESSES[0] else []


class TokenStream:
    """One decoding request: its prompt, its tokens so far, and its completion once it ended."""

    def __init__(self, model: Decoder, prompt: Sequence[int], options: DecodeOptions) -> None:
        """Start a request; it ends at once if the prompt is empty or leaves no room for a token."""
        available = model.shape.context - len(prompt)
        self.prompt, self.how, self.ends = prompt, options, model.shape.ends
        self.room = available if options.max_tokens is None else min(available, options.max_tokens)
        self.full: Stop = "max_tokens" if self.room == options.max_tokens else "model_length"
        self.completion: Completion | None = None
        self.fault = ""  # error message that ended the request
        if not prompt or available < 1:
            self.completion = Completion([], 0, "model_length" if prompt else "stop")
            return
        self.tokens: list[int] = []
        self._state: KeyValueCache = model.begun(len(prompt) + self.room + ROWS)
        self._draws = np.random.Generator(np.random.PCG64(options.seed))
        self._at = options.guide.automaton.start if options.guide else frozenset[int]()
        self._guesses: list[int] = []

    @property
    def ended(self) -> bool:
        """Whether the request is complete or failed."""
        return self.completion is not None or bool(self.fault)

    def run(self, table: GuessTable, limit: int = 0) -> TokenRun:
        """Return the next model input: the prompt, or the last token and up to `limit` guesses."""
        if not self.tokens:
            return TokenRun(self.prompt, self._state)
        context = [*self.prompt[-CONTEXT:], *self.tokens[-CONTEXT:]]
        room = self.room - len(self.tokens) - 1
        self._guesses = table.guesses(context, min(limit, room, GUESSES[-1]))
        return TokenRun([self.tokens[-1], *self._guesses], self._state, 1 + len(self._guesses))

    def take(self, logits: Array) -> None:
        """Append a token for each row of logits, up to the first that differs from its guess."""
        right = 0
        for row, guess in zip(logits, [*self._guesses, None], strict=True):
            token = self._next_token(row)
            if token in self.ends:
                self.completion = Completion(self.tokens, len(self.tokens) + 1, "stop")
                return
            self.tokens.append(token)
            if self.how.guide:
                self._at = self.how.guide.after(self._at, token)
            if len(self.tokens) == self.room:
                self.completion = Completion(self.tokens, self.room, self.full)
                return
            if token != guess:
                break
            right += 1
        self._state.length -= len(self._guesses) - right  # drops wrong guesses from the cache
        self._guesses = []

    def _next_token(self, logits: Array) -> int:
        guide, room = self.how.guide, self.room - len(self.tokens) - 1
        if self.how.temperature > 0:
            if guide:
                logits = _masked(logits, guide.needs(self._at), room)
            return _drawn(logits, self.how.temperature, self._draws)
        if not guide:
            return int(np.argmax(logits))
        remaining = logits.copy()
        for _ in range(LIKELIEST):
            token = int(np.argmax(remaining))
            need = guide.need(self._at, token)
            if need <= room:
                return token
            if need < NEVER:
                break
            remaining[token] = -np.inf
        return int(np.argmax(_masked(logits, guide.needs(self._at), room)))


def decode(
    model: Decoder, prompt: Sequence[int], options: DecodeOptions = DecodeOptions()
) -> Completion:
    """Return a model's completion of a prompt, without batching and without guessed tokens."""
    stream, table = TokenStream(model, prompt, options), GuessTable()
    while stream.completion is None:
        stream.take(model.read([stream.run(table)])[0])
    return stream.completion


class DecodeQueue:
    """A queue that batches several threads' requests to one model, and caches greedy replies."""

    def __init__(self, model: Decoder) -> None:
        """Create a queue without requests for the model `model`."""
        self.passes = 0  # forward passes, without those over prompts
        self._model, self._table = model, GuessTable()
        self._known: OrderedDict[object, Completion] = OrderedDict()
        self._joined: list[TokenStream] = []
        self._prompts, self._turn = BoundedSemaphore(len(os.sched_getaffinity(0))), Lock()

    def decode(self, prompt: Sequence[int], options: DecodeOptions) -> Completion:
        """Return the model's completion of a prompt, batched with requests of other threads."""
        greedy = options.temperature <= 0
        key = (tuple(prompt), options.max_tokens, options.guide) if greedy else None
        if key and (cached := self._known.get(key)):
            return cached
        stream = TokenStream(self._model, prompt, options)
        with one_thread():
            completion = stream.completion or self._joined_to_others(stream)
        if key:
            self._known[key] = completion
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return completion

    def _joined_to_others(self, stream: TokenStream) -> Completion:
        with self._prompts:
            stream.take(self._model.read([stream.run(self._table)])[0])
        self._joined.append(stream)
        try:
            while not stream.ended:
                with self._turn:
                    while not stream.ended:
                        self._pass([peer for peer in [*self._joined] if not peer.ended])
        finally:
            self._joined.remove(stream)
        if stream.completion is None:
            raise UserError(stream.fault)
        return stream.completion

    def _pass(self, streams: Sequence[TokenStream]) -> None:
        each = ROWS // len(streams) - 1
        logits = self._model.read([stream.run(self._table, each) for stream in streams])
        self.passes += 1
        for stream, rows in zip(streams, logits, strict=True):
            try:
                stream.take(rows)
            except UserError as error:  # raised later, in the request's own thread
                stream.fault = str(error)
            if stream.completion:
                self._table.learn([*stream.prompt[-CONTEXT:], *stream.completion.tokens])


def _masked(logits: Array, needs: Needs, room: int) -> Array:
    """Return logits, -inf for tokens that are forbidden or that need too many further tokens.

    `room`: how many further tokens are allowed. If no token fits, those that need fewest remain.
    """
    least = int(needs.min())
    if least == NEVER:
        raise UserError(
            "This model has no token that can continue the request's regular expression. Use "
            "another model."
        )
    return np.where(needs <= max(room, least), logits, np.float32(-np.inf))


def _drawn(logits: Array, temperature: float, draws: np.random.Generator) -> int:
    scaled = logits.astype(np.float64) / temperature
    reached: NDArray[np.float64] = np.cumsum(np.exp(scaled - scaled.max()))
    drawn = draws.random() * float(reached[-1])
    return int(np.searchsorted(reached, drawn, side="right"))


@cache
def _blas() -> Any:
    """Return NumPy's loaded BLAS libraries; cached, as finding them takes a millisecond."""
    libraries: Any = ThreadpoolController()
    return libraries.select(user_api="blas")


_limits: list[Any] = []  # one entry per thread inside `one_thread`; the first can undo the limit
_limited = Lock()


@contextmanager
def one_thread() -> Generator[None]:
    """Limit NumPy's BLAS to one thread in this context, which several threads may enter at once.

    OpenBLAS's threads busy-wait for each other: two took 10 times as long as one on a busy machine.
    """
    with _limited:
        _limits.append(_blas().limit(limits=1) if not _limits else _limits[0])
    try:
        yield
    finally:
        with _limited:
            if len(_limits) == 1:
                _limits[0].restore_original_limits()
            _limits.pop()
