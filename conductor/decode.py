"""Which tokens a decoder writes: drawn or likeliest, held to a guide, of one request or of many.

Tokens that followed the same three before are guessed, and one pass of the model over all guesses
says which it would have written itself. So what is written is what one token at a time gives, but
for float32 rounding: the sums of a pass depend on how many rows it has.
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
"""As Inspect calls it: the model ended it, the caller's limit did, or its context is full."""
CONTEXT = 3  # tokens that a guess goes by
MOST_GUESSES = 1 << 18  # contexts that are remembered
ROWS = 16  # tokens in one pass, guesses included: the weights are read once for all of them
TOGETHER = 16  # requests in one pass; each keeps some 20 MB of keys and values
GUESSES = range(3, 8)  # of one request: a pass over two rows costs as much as two over one
REMEMBERED = 1024  # replies that are given again to the same prompt
LIKELIEST = 64  # tokens that a guide is asked about one by one, before all are weighed


@dataclass(frozen=True, slots=True)
class DecodeOptions:
    """How tokens are taken."""

    temperature: float = 0.0  # 0: the likeliest token, the first of equals, as elsewhere
    seed: int = 0  # of draws at a temperature above 0
    max_tokens: int | None = None  # None: until the context is full
    guide: Guide | None = None  # what may be written; None: anything


@dataclass(frozen=True, slots=True)
class Completion:
    """Tokens that a model wrote."""

    tokens: list[int]  # without the one that ended it
    written: int  # how many it wrote, the ending one included: what is billed
    stop: Stop


@dataclass(slots=True)
class GuessTable:
    """What followed the same few tokens in earlier replies."""

    follows: dict[tuple[int, ...], int] = field(default_factory=dict[tuple[int, ...], int])

    def learn(self, tokens: Sequence[int]) -> None:
        """Remember what a text has at each place."""
        if len(self.follows) > MOST_GUESSES:
            self.follows.clear()
        for at in range(CONTEXT, len(tokens)):
            self.follows[tuple(tokens[at - CONTEXT : at])] = tokens[at]

    def guesses(self, tokens: Sequence[int], most: int) -> list[int]:
        """Return at most so many tokens that may follow; none where they would not pay."""
        found = list(tokens[-CONTEXT:])
        while len(found) < CONTEXT + most and (key := tuple(found[-CONTEXT:])) in self.follows:
            found.append(self.follows[key])
        return found[CONTEXT:] if len(found) >= CONTEXT + GUESSES[0] else []


class TokenStream:
    """One request on its way: what was read, what was written, and how it ended."""

    def __init__(self, model: Decoder, prompt: Sequence[int], how: DecodeOptions) -> None:
        """Begin after a prompt; one without room for a token has ended."""
        left = model.shape.context - len(prompt)
        self.prompt, self.how, self.ends = prompt, how, model.shape.ends
        self.room = left if how.max_tokens is None else min(left, how.max_tokens)
        self.full: Stop = "max_tokens" if self.room == how.max_tokens else "model_length"
        self.completion: Completion | None = None
        self.fault = ""  # why it cannot go on
        if not prompt or left < 1:
            self.completion = Completion([], 0, "model_length" if prompt else "stop")
            return
        self.tokens: list[int] = []
        self._state: KeyValueCache = model.begun(len(prompt) + self.room + ROWS)
        self._draws = np.random.Generator(np.random.PCG64(how.seed))
        self._at = how.guide.automaton.start if how.guide else frozenset[int]()
        self._guesses: list[int] = []

    @property
    def ended(self) -> bool:
        """Whether nothing more is read."""
        return self.completion is not None or bool(self.fault)

    def run(self, table: GuessTable, most: int = 0) -> TokenRun:
        """Return what is read next: the prompt, or the last token and guesses at what follows."""
        if not self.tokens:
            return TokenRun(self.prompt, self._state)
        before = [*self.prompt[-CONTEXT:], *self.tokens[-CONTEXT:]]
        room = self.room - len(self.tokens) - 1
        self._guesses = table.guesses(before, min(most, room, GUESSES[-1]))
        return TokenRun([self.tokens[-1], *self._guesses], self._state, 1 + len(self._guesses))

    def take(self, logits: Array) -> None:
        """Take a token from each row, up to the first one that was guessed wrongly."""
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
        self._state.length -= len(self._guesses) - right  # what follows is read over the others
        self._guesses = []

    def _next_token(self, logits: Array) -> int:
        guide, room = self.how.guide, self.room - len(self.tokens) - 1
        if self.how.temperature > 0:
            if guide:
                logits = _masked(logits, guide.needs(self._at), room)
            return _drawn(logits, self.how.temperature, self._draws)
        if not guide:
            return int(np.argmax(logits))
        left = logits.copy()
        for _ in range(LIKELIEST):
            token = int(np.argmax(left))
            need = guide.need(self._at, token)
            if need <= room:
                return token
            if need < NEVER:
                break
            left[token] = -np.inf
        return int(np.argmax(_masked(logits, guide.needs(self._at), room)))


def decode(
    model: Decoder, prompt: Sequence[int], how: DecodeOptions = DecodeOptions()
) -> Completion:
    """Return what the model writes after a prompt, a token at a time."""
    one, table = TokenStream(model, prompt, how), GuessTable()
    while one.completion is None:
        one.take(model.read([one.run(table)])[0])
    return one.completion


class DecodeQueue:
    """Decodes what several threads ask of one model, together; greedy replies are remembered."""

    def __init__(self, model: Decoder) -> None:
        """Begin with nothing to do."""
        self.passes = 0  # of the model, prompts not counted
        self._model, self._table = model, GuessTable()
        self._known: OrderedDict[object, Completion] = OrderedDict()
        self._joined: list[TokenStream] = []
        self._prompts, self._turn = BoundedSemaphore(len(os.sched_getaffinity(0))), Lock()

    def decode(self, prompt: Sequence[int], how: DecodeOptions) -> Completion:
        """Return what the model writes after a prompt."""
        key = (tuple(prompt), how.max_tokens, how.guide) if how.temperature <= 0 else None
        if key and (known := self._known.get(key)):
            return known
        one = TokenStream(self._model, prompt, how)
        with one_thread():
            found = one.completion or self._joined_to_others(one)
        if key:
            self._known[key] = found
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return found

    def _joined_to_others(self, one: TokenStream) -> Completion:
        with self._prompts:
            one.take(self._model.read([one.run(self._table)])[0])
        self._joined.append(one)
        try:
            while not one.ended:
                with self._turn:
                    while not one.ended:
                        self._pass([other for other in [*self._joined] if not other.ended])
        finally:
            self._joined.remove(one)
        if one.completion is None:
            raise UserError(one.fault)
        return one.completion

    def _pass(self, streams: Sequence[TokenStream]) -> None:
        each = ROWS // len(streams) - 1
        logits = self._model.read([one.run(self._table, each) for one in streams])
        self.passes += 1
        for one, rows in zip(streams, logits, strict=True):
            try:
                one.take(rows)
            except UserError as error:  # it is told to who asked, not to whose turn this is
                one.fault = str(error)
            if one.completion:
                self._table.learn([*one.prompt[-CONTEXT:], *one.completion.tokens])


def _masked(logits: Array, needs: Needs, room: int) -> Array:
    """Return logits with no chance for tokens that lead out of the language, or leave no room."""
    least = int(needs.min())
    if least == NEVER:
        raise UserError("This model has no token that its regular expression can go on with.")
    return np.where(needs <= max(room, least), logits, np.float32(-np.inf))


def _drawn(logits: Array, temperature: float, draws: np.random.Generator) -> int:
    scaled = logits.astype(np.float64) / temperature
    reached: NDArray[np.float64] = np.cumsum(np.exp(scaled - scaled.max()))
    drawn = draws.random() * float(reached[-1])
    return int(np.searchsorted(reached, drawn, side="right"))


@cache
def _blas() -> Any:
    """Return the BLAS libraries that NumPy has loaded; looking for them takes a millisecond."""
    found: Any = ThreadpoolController()
    return found.select(user_api="blas")


_limits: list[Any] = []  # of those who multiply in one thread now; the first has what was before
_limited = Lock()


@contextmanager
def one_thread() -> Generator[None]:
    """Let NumPy multiply in one thread; several may ask at once.

    Two of OpenBLAS's wait for each other in a loop: beside other work they took 10 times as long.
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
