"""Qwen2 (arXiv 2407.10671) in NumPy float32: weights, the forward pass, and the next token.

One sequence, no batches; equal to transformers on greedy outputs (test_embedded_parity.py). What
cannot be decoded here is refused.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError
from safetensors import SafetensorError
from safetensors import deserialize as _deserialize  # pyright: ignore[reportUnknownVariableType]
from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]

from conductor.checkpoint import WEIGHTS
from conductor.guided_decoding import NEVER, Guide, Needs
from harness.errors import UserError, first_fault
from harness.files import read_json

Array = NDArray[np.float32]
CONFIG, GENERATION = "config.json", "generation_config.json"
ADAPTERS = "adapter_config.json"
ELSEWHERE = "serve it with vLLM or transformers instead"
_DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
Stop = Literal["stop", "max_tokens", "model_length"]
"""As Inspect calls it: the model ended it, the caller's limit did, or its context is full."""


class Qwen2Shape(BaseModel):
    """What config.json says: the sizes of a model, and where it ends."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    vocabulary: PositiveInt = Field(alias="vocab_size")
    hidden: PositiveInt = Field(alias="hidden_size")
    inner: PositiveInt = Field(alias="intermediate_size")
    layers: PositiveInt = Field(alias="num_hidden_layers")
    heads: PositiveInt = Field(alias="num_attention_heads")
    num_key_value_heads: PositiveInt | None = None
    head_dim: PositiveInt | None = None
    context: PositiveInt = Field(32768, alias="max_position_embeddings")  # prompt and reply
    eps: PositiveFloat = Field(1e-6, alias="rms_norm_eps")
    hidden_act: str = "silu"
    tied: bool = Field(False, alias="tie_word_embeddings")
    use_sliding_window: bool = False
    rope_theta: PositiveFloat | None = None  # of transformers 4; version 5 writes `rope_parameters`
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    eos_token_id: int | list[int | None] | None = None

    @property
    def kv_heads(self) -> int:
        """How many heads have keys and values."""
        return self.num_key_value_heads or self.heads

    @property
    def head(self) -> int:
        """Numbers per head."""
        return self.head_dim or self.hidden // self.heads

    @property
    def theta(self) -> float:
        """Base of the rotary angles."""
        said = (self.rope_parameters or {}).get("rope_theta")
        return float(said or self.rope_theta or 10_000.0)

    @property
    def ends(self) -> tuple[int, ...]:
        """Tokens that end a reply."""
        said = self.eos_token_id if isinstance(self.eos_token_id, list) else [self.eos_token_id]
        return tuple(one for one in said if one is not None)


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of one layer, transposed so that a row of states stands on the left."""

    before: Array  # (hidden,): the norm before attention
    qkv: Array  # (hidden, (heads + 2 * kv_heads) * head)
    qkv_bias: Array
    out: Array  # (heads * head, hidden)
    between: Array  # (hidden,): the norm before the two gates
    gates: Array  # (hidden, 2 * inner): gate, then up
    down: Array  # (inner, hidden)


def read_shape(folder: Path) -> Qwen2Shape:
    """Return what config.json says; UserError for what this decoder does not do."""
    if (folder / ADAPTERS).is_file():
        raise UserError(
            f"{folder} holds adapters and not whole weights: its training merges them when it "
            "ends (`podium train --resume`)."
        )
    raw = _json(folder / CONFIG)
    if raw.get("model_type") != "qwen2":
        said = raw.get("model_type", "unnamed")
        raise UserError(
            f"{folder} is of architecture {said}, and only qwen2 is embedded: {ELSEWHERE}."
        )
    if (path := folder / GENERATION).is_file():  # it goes first, as everywhere
        end = _json(path).get("eos_token_id")
        raw |= {} if end is None else {"eos_token_id": end}
    try:
        shape = Qwen2Shape.model_validate(raw)
    except ValidationError as error:
        where, said = first_fault(error)
        raise UserError(f"{folder / CONFIG}, field {where}: {said}.") from None
    scaling = {**(shape.rope_scaling or {}), **(shape.rope_parameters or {})}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    unknown = {
        "a sliding window": shape.use_sliding_window,
        f"activation {shape.hidden_act}": shape.hidden_act != "silu",
        f"rotary embeddings of type {kind}": kind != "default",
        "heads that do not share keys evenly": shape.heads % shape.kv_heads != 0,
    }
    if what := next((what for what, there in unknown.items() if there), None):
        raise UserError(f"{folder} has {what}, which is not embedded: {ELSEWHERE}.")
    return shape


def _json(path: Path) -> dict[str, Any]:
    try:
        found = read_json(path)
    except FileNotFoundError:
        raise UserError(f"{path.parent} is no checkpoint: it has no {path.name}.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}.") from None
    if not isinstance(found, dict):
        raise UserError(f"{path} holds no JSON object.")
    return cast("dict[str, Any]", found)


def _tensors(path: Path) -> dict[str, Array]:
    if not path.is_file():
        sharded = path.with_name(f"{path.name}.index.json").is_file()
        many = "; weights in several files are not embedded" if sharded else ""
        raise UserError(f"{path.parent} has no {path.name}{many}: {ELSEWHERE}.")
    try:
        found = cast("list[tuple[str, dict[str, Any]]]", _deserialize(path.read_bytes()))
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged, copy it again: {error}.") from None
    return {name: _array(name, held, path) for name, held in found}


def _array(name: str, held: Mapping[str, Any], path: Path) -> Array:
    dtype = _DTYPES.get(held["dtype"])
    if dtype is None:
        raise UserError(f"{path} holds {name} as {held['dtype']}, and only floats are embedded.")
    raw = np.frombuffer(held["data"], dtype).reshape(held["shape"])
    if held["dtype"] == "BF16":  # the upper half of a float32
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.astype(np.float32)


def _tensor(tensors: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    found = tensors.get(name)
    if found is None:
        raise UserError(f"The weights lack {name}, which config.json asks for.")
    if found.shape != shape:
        raise UserError(f"{name} is of shape {found.shape}, and config.json says {shape}.")
    return found


def _layer(tensors: Mapping[str, Array], shape: Qwen2Shape, number: int) -> LayerWeights:
    wide, narrow = shape.heads * shape.head, shape.kv_heads * shape.head

    def taken(name: str, *sizes: int) -> Array:
        return _tensor(tensors, f"model.layers.{number}.{name}", sizes)

    parts = {"q": wide, "k": narrow, "v": narrow}
    into = [taken(f"self_attn.{one}_proj.weight", n, shape.hidden) for one, n in parts.items()]
    bias = [taken(f"self_attn.{one}_proj.bias", n) for one, n in parts.items()]
    both = [taken(f"mlp.{one}_proj.weight", shape.inner, shape.hidden) for one in ("gate", "up")]
    return LayerWeights(
        before=taken("input_layernorm.weight", shape.hidden),
        qkv=np.ascontiguousarray(np.concatenate(into).T),
        qkv_bias=np.concatenate(bias),
        out=np.ascontiguousarray(taken("self_attn.o_proj.weight", shape.hidden, wide).T),
        between=taken("post_attention_layernorm.weight", shape.hidden),
        gates=np.ascontiguousarray(np.concatenate(both).T),
        down=np.ascontiguousarray(taken("mlp.down_proj.weight", shape.hidden, shape.inner).T),
    )


@dataclass(slots=True)
class KeyValueCache:
    """What has been read of one sequence: keys and values of every layer."""

    keys: Array  # (layers, kv_heads, room, head)
    values: Array
    length: int = 0  # tokens read so far


@dataclass(frozen=True, slots=True)
class Qwen2:
    """A model that can be run; `cos` and `sin` hold the rotations of all positions."""

    shape: Qwen2Shape
    embedding: Array  # (vocabulary, hidden)
    layers: tuple[LayerWeights, ...]
    after: Array  # (hidden,): the last norm
    out: Array  # (hidden, vocabulary): the embedding itself where they are tied
    cos: Array  # (context, head)
    sin: Array

    @property
    def parameters(self) -> int:
        """How many numbers were trained."""
        names = LayerWeights.__slots__
        each = sum(getattr(layer, name).size for layer in self.layers for name in names)
        out = 0 if self.shape.tied else self.out.size
        return each + self.embedding.size + self.after.size + out

    def begun(self, room: int) -> KeyValueCache:
        """Return the empty state of a sequence of at most `room` tokens."""
        shape = self.shape
        size = (shape.layers, shape.kv_heads, room, shape.head)
        return KeyValueCache(np.empty(size, np.float32), np.empty(size, np.float32))

    def read(self, tokens: NDArray[np.int64], state: KeyValueCache) -> Array:
        """Read tokens and return the logits, (vocabulary,), of what follows the last one."""
        states = self.embedding[tokens]
        for number in range(len(self.layers)):
            self._pass_layer(number, states, state)
        state.length += len(tokens)
        return _norm(states[-1], self.after, self.shape.eps) @ self.out

    def _pass_layer(self, number: int, states: Array, state: KeyValueCache) -> None:
        layer, shape = self.layers[number], self.shape
        mixed = _norm(states, layer.before, shape.eps) @ layer.qkv + layer.qkv_bias
        split = mixed.reshape(len(mixed), shape.heads + 2 * shape.kv_heads, shape.head)
        states += self._attended(split.swapaxes(0, 1), number, state) @ layer.out
        gates = _norm(states, layer.between, shape.eps) @ layer.gates
        gate, up = gates[:, : shape.inner], gates[:, shape.inner :]
        states += (gate * _sigmoid(gate) * up) @ layer.down

    def _attended(self, heads: Array, number: int, state: KeyValueCache) -> Array:
        """Return (tokens, heads * head) from (all heads, tokens, head): queries, keys, values."""
        shape, count, start = self.shape, heads.shape[1], state.length
        many, end = shape.heads, start + count
        turned = _rotated(heads[: many + shape.kv_heads], self.cos[start:end], self.sin[start:end])
        keys, values = state.keys[number], state.values[number]
        keys[:, start:end] = turned[many:]
        values[:, start:end] = heads[many + shape.kv_heads :]
        asked = turned[:many].reshape(shape.kv_heads, -1, shape.head)  # a group's queries in a row
        scores = asked @ keys[:, :end].swapaxes(1, 2) / np.float32(np.sqrt(shape.head))
        if count > 1:  # a token sees none of those after it
            hidden = np.triu(np.full((count, count), -np.inf, np.float32), 1)
            scores.reshape(many, count, end)[:, :, start:] += hidden
        found = _softmax(scores) @ values[:, :end]
        return found.reshape(many, count, shape.head).swapaxes(0, 1).reshape(count, -1)


def read_qwen2(folder: Path) -> Qwen2:
    """Return the model of a folder; UserError names what this decoder cannot use."""
    shape = read_shape(folder)
    tensors = _tensors(folder / WEIGHTS)
    wide = (shape.vocabulary, shape.hidden)
    embedding = _tensor(tensors, "model.embed_tokens.weight", wide)
    out = embedding if shape.tied else _tensor(tensors, "lm_head.weight", wide)
    steps = np.arange(0, shape.head, 2, dtype=np.float32) / np.float32(shape.head)
    slow = (1 / np.power(np.float32(shape.theta), steps)).astype(np.float32)
    angles = np.outer(np.arange(shape.context, dtype=np.float32), slow)
    both = np.concatenate([angles, angles], axis=1)
    return Qwen2(
        shape,
        embedding,
        layers=tuple(_layer(tensors, shape, number) for number in range(shape.layers)),
        after=_tensor(tensors, "model.norm.weight", (shape.hidden,)),
        out=np.ascontiguousarray(out.T),
        cos=np.cos(both).astype(np.float32),
        sin=np.sin(both).astype(np.float32),
    )


def _sigmoid(values: Array) -> Array:
    """Return 1 / (1 + exp(-x)), which neither overflows nor warns where x is far below 0."""
    found: Array = np.tanh(values * np.float32(0.5))
    found *= np.float32(0.5)
    found += np.float32(0.5)
    return found


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


def decode(model: Qwen2, prompt: list[int], how: DecodeOptions = DecodeOptions()) -> Completion:
    """Return what the model writes after a prompt.

    A prompt without room for a token stops for `model_length`; after an empty one nothing follows.
    """
    shape = model.shape
    left = shape.context - len(prompt)
    if not prompt or left < 1:
        return Completion([], 0, "model_length" if prompt else "stop")
    most = left if how.max_tokens is None else min(left, how.max_tokens)
    state = model.begun(len(prompt) + most)
    draws = np.random.Generator(np.random.PCG64(how.seed))
    logits = model.read(np.asarray(prompt, np.int64), state)
    tokens: list[int] = []
    guide, at = how.guide, how.guide.automaton.start if how.guide else frozenset[int]()
    while True:
        if guide:
            logits = _masked(logits, guide.needs(at), most - len(tokens) - 1)
        token = _next_token(logits, how.temperature, draws)
        if token in shape.ends:
            return Completion(tokens, len(tokens) + 1, "stop")
        tokens.append(token)
        at = guide.after(at, token) if guide else at
        if len(tokens) == most:
            full = most == left and how.max_tokens != most
            return Completion(tokens, most, "model_length" if full else "max_tokens")
        logits = model.read(np.asarray([token], np.int64), state)


def _masked(logits: Array, needs: Needs, room: int) -> Array:
    """Return logits with no chance for tokens that lead out of the language, or leave no room."""
    least = int(needs.min())
    if least == NEVER:
        raise UserError("This model has no token that its regular expression can go on with.")
    return np.where(needs <= max(room, least), logits, np.float32(-np.inf))


def _next_token(logits: Array, temperature: float, draws: np.random.Generator) -> int:
    if temperature <= 0:
        return int(np.argmax(logits))
    scaled = logits.astype(np.float64) / temperature
    reached: NDArray[np.float64] = np.cumsum(np.exp(scaled - scaled.max()))
    drawn = draws.random() * float(reached[-1])
    return int(np.searchsorted(reached, drawn, side="right"))


@cache
def _blas() -> Any:
    """Return the BLAS libraries that NumPy has loaded; looking for them takes a millisecond."""
    found: Any = ThreadpoolController()
    return found.select(user_api="blas")


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which NumPy multiplies in one thread."""
    return _blas().limit(limits=1)
