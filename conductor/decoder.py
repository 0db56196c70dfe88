"""Qwen2 (arXiv 2407.10671) and Llama (arXiv 2302.13971) in NumPy float32: weights, forward pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError
from safetensors import SafetensorError
from safetensors import deserialize as _deserialize  # pyright: ignore[reportUnknownVariableType]

from podium.conductor.base_model import model_folder
from podium.conductor.checkpoint import ADAPTED, ADAPTERS, WEIGHTS
from podium.harness.errors import UserError, first_fault
from podium.harness.files import read_json

Array = NDArray[np.float32]
CONFIG, GENERATION = "config.json", "generation_config.json"
FAMILIES = ("qwen2", "llama")  # they differ in biases alone: Llama has none
ELSEWHERE = "serve it with vLLM or transformers instead"
_DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
_PEFT = "base_model.model."  # begins the names of adapters


class DecoderShape(BaseModel):
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
    attention_bias: bool = False
    mlp_bias: bool = False
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
    """The weights of one layer, views whose rows are what comes in: memory is read in its order."""

    before: Array  # (hidden,): the norm before attention
    qkv: Array  # (hidden, (heads + 2 * kv_heads) * head)
    qkv_bias: Array  # empty in Llama
    out: Array  # (heads * head, hidden)
    between: Array  # (hidden,): the norm before the two gates
    gates: Array  # (hidden, 2 * inner): gate, then up
    down: Array  # (inner, hidden)


def read_shape(folder: Path) -> DecoderShape:
    """Return what config.json says; UserError for what this decoder does not do."""
    folder = model_folder(folder)
    raw = _json(folder / CONFIG)
    if (said := raw.get("model_type", "unnamed")) not in FAMILIES:
        known = " and ".join(FAMILIES)
        raise UserError(
            f"{folder} is of architecture {said}, and only {known} are embedded: {ELSEWHERE}."
        )
    if (path := folder / GENERATION).is_file():  # it goes first, as everywhere
        end = _json(path).get("eos_token_id")
        raw |= {} if end is None else {"eos_token_id": end}
    try:
        shape = DecoderShape.model_validate(raw)
    except ValidationError as error:
        where, said = first_fault(error)
        raise UserError(f"{folder / CONFIG}, field {where}: {said}.") from None
    scaling = {**(shape.rope_scaling or {}), **(shape.rope_parameters or {})}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    unknown = {
        "a sliding window": shape.use_sliding_window,
        "biases of its own": shape.attention_bias or shape.mlp_bias,
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


def _weights(folder: Path) -> dict[str, Array]:
    """Return whole weights; those of a base with adapters added, as peft merges them."""
    tensors = _tensors(model_folder(folder) / WEIGHTS)
    if not (folder / ADAPTERS).is_file():
        return tensors
    said, adapters = _json(folder / ADAPTERS), _tensors(folder / ADAPTED)
    if said.get("use_dora") or said.get("use_rslora") or said.get("bias", "none") != "none":
        raise UserError(f"{folder} holds adapters other than plain LoRA: merge them first.")
    scale = np.float32(said["lora_alpha"] / said["r"])
    for name, narrow in adapters.items():
        if name.endswith(".lora_A.weight"):
            into = name.removeprefix(_PEFT).replace(".lora_A", "")
            wide = adapters[name.replace("lora_A", "lora_B")]
            merged = tensors[into] + (wide @ narrow) * scale
            tensors[into] = merged.astype(np.float32, copy=False)
    return tensors


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
    return raw.astype(np.float32, copy=False)


def _tensor(tensors: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    found = tensors.get(name)
    if found is None:
        raise UserError(f"The weights lack {name}, which config.json asks for.")
    if found.shape != shape:
        raise UserError(f"{name} is of shape {found.shape}, and config.json says {shape}.")
    return found


def _layer(tensors: Mapping[str, Array], shape: DecoderShape, number: int) -> LayerWeights:
    wide, narrow = shape.heads * shape.head, shape.kv_heads * shape.head

    def taken(name: str, *sizes: int) -> Array:
        return _tensor(tensors, f"model.layers.{number}.{name}", sizes)

    parts = {"q": wide, "k": narrow, "v": narrow}
    into = [taken(f"self_attn.{one}_proj.weight", n, shape.hidden) for one, n in parts.items()]
    biased = "model.layers.0.self_attn.q_proj.bias" in tensors
    bias = [taken(f"self_attn.{one}_proj.bias", n) for one, n in parts.items() if biased]
    both = [taken(f"mlp.{one}_proj.weight", shape.inner, shape.hidden) for one in ("gate", "up")]
    return LayerWeights(
        before=taken("input_layernorm.weight", shape.hidden),
        qkv=np.concatenate(into).T,
        qkv_bias=np.concatenate(bias) if biased else np.zeros(0, np.float32),
        out=taken("self_attn.o_proj.weight", shape.hidden, wide).T,
        between=taken("post_attention_layernorm.weight", shape.hidden),
        gates=np.concatenate(both).T,
        down=taken("mlp.down_proj.weight", shape.hidden, shape.inner).T,
    )


@dataclass(slots=True)
class KeyValueCache:
    """What has been read of one sequence: keys and values of every layer."""

    keys: Array  # (layers, kv_heads, room, head)
    values: Array
    length: int = 0  # tokens read so far


@dataclass(frozen=True, slots=True)
class TokenRun:
    """What one sequence reads next, and after how many of its last tokens logits are wanted."""

    tokens: Sequence[int]
    state: KeyValueCache
    told: int = 1


@dataclass(frozen=True, slots=True)
class Decoder:
    """A model that can be run; `cos` and `sin` hold the rotations of all positions."""

    shape: DecoderShape
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

    def read(self, runs: Sequence[TokenRun]) -> list[Array]:
        """Read on in some sequences at once; return (told, vocabulary) logits for each."""
        ends = np.cumsum([len(one.tokens) for one in runs])
        states = self.embedding[np.concatenate([np.asarray(one.tokens) for one in runs])]
        for number in range(len(self.layers)):
            self._pass_layer(number, states, list(zip(runs, ends, strict=True)))
        for one in runs:
            one.state.length += len(one.tokens)
        told = [states[end - one.told : end] for one, end in zip(runs, ends, strict=True)]
        logits = _norm(np.concatenate(told), self.after, self.shape.eps) @ self.out
        return np.split(logits, np.cumsum([one.told for one in runs])[:-1])

    def _pass_layer(self, number: int, states: Array, runs: list[tuple[TokenRun, int]]) -> None:
        layer, shape = self.layers[number], self.shape
        mixed = _norm(states, layer.before, shape.eps) @ layer.qkv
        if layer.qkv_bias.size:
            mixed += layer.qkv_bias
        split = mixed.reshape(len(mixed), shape.heads + 2 * shape.kv_heads, shape.head)
        each = [split[end - len(one.tokens) : end].swapaxes(0, 1) for one, end in runs]
        found = [
            self._attended(part, number, one.state)
            for part, (one, _) in zip(each, runs, strict=True)
        ]
        states += (found[0] if len(found) == 1 else np.concatenate(found)) @ layer.out
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


def read_decoder(folder: Path) -> Decoder:
    """Return the model of a folder; UserError names what this decoder cannot use."""
    shape = read_shape(folder)
    tensors = _weights(folder)
    wide = (shape.vocabulary, shape.hidden)
    embedding = _tensor(tensors, "model.embed_tokens.weight", wide)
    out = embedding if shape.tied else _tensor(tensors, "lm_head.weight", wide)
    steps = np.arange(0, shape.head, 2, dtype=np.float32) / np.float32(shape.head)
    slow = (1 / np.power(np.float32(shape.theta), steps)).astype(np.float32)
    angles = np.outer(np.arange(shape.context, dtype=np.float32), slow)
    both = np.concatenate([angles, angles], axis=1)
    return Decoder(
        shape,
        embedding,
        layers=tuple(_layer(tensors, shape, number) for number in range(shape.layers)),
        after=_tensor(tensors, "model.norm.weight", (shape.hidden,)),
        out=out.T,
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
