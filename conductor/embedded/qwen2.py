"""The forward pass of Qwen2 in NumPy float32: a prompt at once, then a token at a time.

Architecture: Qwen2 technical report (arXiv 2407.10671): RMSNorm before each part, rotary positions,
queries in groups that share keys and values, biases on these three, SwiGLU. One sequence, no
batches. Equal to transformers on greedy outputs (tests/training/test_embedded_parity.py). Not here:
which token is taken (decode.py), and texts (words.py).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from conductor.embedded.weights import Array, Layer, Shape, Weights


@dataclass(slots=True)
class State:
    """What has been read of one sequence: keys and values of every layer."""

    keys: Array
    """(layers, kv_heads, room, head)."""
    values: Array
    length: int = 0
    """Tokens read so far."""


@dataclass(frozen=True, slots=True)
class Qwen2:
    """A model that can be run; `cos` and `sin` hold the rotations of all positions."""

    weights: Weights
    cos: Array
    """(context, head)."""
    sin: Array

    def begun(self, room: int) -> State:
        """Return the empty state of a sequence of at most `room` tokens."""
        shape = self.weights.shape
        size = (shape.layers, shape.kv_heads, room, shape.head)
        return State(np.empty(size, np.float32), np.empty(size, np.float32))

    def read(self, tokens: NDArray[np.int64], state: State) -> Array:
        """Read tokens and return the logits, (vocabulary,), of what follows the last one."""
        states = self.weights.embedding[tokens]
        start = state.length
        turns = (self.cos[start : start + len(tokens)], self.sin[start : start + len(tokens)])
        for number, layer in enumerate(self.weights.layers):
            kept = (state.keys[number], state.values[number])
            states = _through(layer, states, self.weights.shape, turns, kept, start)
        state.length = start + len(tokens)
        return _norm(states[-1], self.weights.after, self.weights.shape.eps) @ self.weights.head


def loaded(weights: Weights, room: int | None = None) -> Qwen2:
    """Return a model with rotations for `room` positions, by default all of its context."""
    shape = weights.shape
    steps = np.arange(0, shape.head, 2, dtype=np.float32) / np.float32(shape.head)
    slow = (1 / np.power(np.float32(shape.theta), steps)).astype(np.float32)
    angles = np.outer(np.arange(room or shape.context, dtype=np.float32), slow)
    both = np.concatenate([angles, angles], axis=1)
    return Qwen2(weights, np.cos(both).astype(np.float32), np.sin(both).astype(np.float32))


def _through(
    layer: Layer,
    states: Array,
    shape: Shape,
    turns: tuple[Array, Array],
    kept: tuple[Array, Array],
    start: int,
) -> Array:
    """Return the states, changed in place, after one layer; `kept` has its keys and values."""
    mixed = _norm(states, layer.before, shape.eps) @ layer.qkv + layer.qkv_bias
    heads = _split(mixed, shape)
    states += _attended(heads, shape, turns, kept, start) @ layer.out
    gates = _norm(states, layer.between, shape.eps) @ layer.gates
    gate, up = gates[:, : shape.inner], gates[:, shape.inner :]
    states += (gate * _sigmoid(gate) * up) @ layer.down
    return states


def _sigmoid(values: Array) -> Array:
    """Return 1 / (1 + exp(-x)), which neither overflows nor warns where x is far below 0."""
    found: Array = np.tanh(values * np.float32(0.5))
    found *= np.float32(0.5)
    found += np.float32(0.5)
    return found


def _split(mixed: Array, shape: Shape) -> Array:
    """Return (all heads, tokens, head): queries, then keys, then values."""
    return mixed.reshape(len(mixed), shape.heads + 2 * shape.kv_heads, shape.head).swapaxes(0, 1)


def _attended(
    heads: Array, shape: Shape, turns: tuple[Array, Array], kept: tuple[Array, Array], start: int
) -> Array:
    """Return what each token has gathered, (tokens, heads * head)."""
    count, many = heads.shape[1], shape.heads
    turned = _rotated(heads[: many + shape.kv_heads], *turns)
    keys, values = kept
    end = start + count
    keys[:, start:end] = turned[many:]
    values[:, start:end] = heads[many + shape.kv_heads :]
    asked = turned[:many].reshape(shape.kv_heads, -1, shape.head)  # a group's queries in a row
    scores = asked @ keys[:, :end].swapaxes(1, 2) / np.float32(np.sqrt(shape.head))
    if count > 1:  # a token sees none of those after it
        hidden = np.triu(np.full((count, count), -np.inf, np.float32), 1)
        scores.reshape(many, count, end)[:, :, start:] += hidden
    found = _softmax(scores) @ values[:, :end]
    return found.reshape(many, count, shape.head).swapaxes(0, 1).reshape(count, -1)


def _rotated(heads: Array, cos: Array, sin: Array) -> Array:
    half = heads.shape[-1] // 2
    turned = np.empty_like(heads)
    np.negative(heads[..., half:], out=turned[..., :half])
    turned[..., half:] = heads[..., :half]
    turned *= sin
    turned += heads * cos
    return turned


def _norm(states: Array, weight: Array, eps: float) -> Array:
    mean: Array = np.mean(states * states, axis=-1, keepdims=True)
    root = np.sqrt(mean + np.float32(eps))
    return (states / root * weight).astype(np.float32, copy=False)


def _softmax(scores: Array) -> Array:
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores
