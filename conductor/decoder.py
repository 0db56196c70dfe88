"""Qwen2 (arXiv 2407.10671) and Llama (arXiv 2302.13971) in NumPy float32: load and forward pass."""

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
FAMILIES = ("qwen2", "llama")  # the only difference here: Llama has no biases
ELSEWHERE = "serve it with vLLM or transformers instead"
_DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}
_PEFT = "base_model.model."  # prefix of tensor names in adapters


class DecoderShape(BaseModel):
    """The fields of a checkpoint's config.json that are used: the model's sizes, its end tokens."""

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
    rope_theta: PositiveFloat | None = None  # written by transformers 4; 5 writes `rope_parameters`
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    eos_token_id: int | list[int | None] | None = None

    @property
    def kv_heads(self) -> int:
        """Number of key/value heads in each layer."""
        return self.num_key_value_heads or self.heads

    @property
    def head(self) -> int:
        """Number of dimensions of each attention head."""
        return self.head_dim or self.hidden // self.heads

    @property
    def theta(self) -> float:
        """Base of the angles in the rotary position embeddings."""
        base = (self.rope_parameters or {}).get("rope_theta")
        return float(base or self.rope_theta or 10_000.0)

    @property
    def ends(self) -> tuple[int, ...]:
        """Ids of the tokens that end a reply."""
        tokens = self.eos_token_id if isinstance(self.eos_token_id, list) else [self.eos_token_id]
        return tuple(token for token in tokens if token is not None)


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The weights of one layer; matrices are (inputs, outputs), transposed from the file's."""

    before: Array  # (hidden,): the norm before attention
    qkv: Array  # (hidden, (heads + 2 * kv_heads) * head)
    qkv_bias: Array  # empty in Llama
    out: Array  # (heads * head, hidden)
    between: Array  # (hidden,): the norm before the MLP
    gates: Array  # (hidden, 2 * inner): gate, then up
    down: Array  # (inner, hidden)


def read_shape(folder: Path) -> DecoderShape:
    """Return a model's sizes from config.json; UserError if the decoder does not support them."""
    folder = model_folder(folder)
    raw = _json(folder / CONFIG)
    if (family := raw.get("model_type", "unnamed")) not in FAMILIES:
        supported = " and ".join(FAMILIES)
        raise UserError(
            f"{folder} has architecture {family}, but the embedded decoder supports only "
            f"{supported}: {ELSEWHERE}."
        )
    if (path := folder / GENERATION).is_file():  # it overrides config.json, as in transformers
        end = _json(path).get("eos_token_id")
        raw |= {} if end is None else {"eos_token_id": end}
    try:
        shape = DecoderShape.model_validate(raw)
    except ValidationError as error:
        place, reason = first_fault(error)
        raise UserError(f"{folder / CONFIG}, field {place}: {reason}. Copy it again.") from None
    scaling = {**(shape.rope_scaling or {}), **(shape.rope_parameters or {})}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    unknown = {
        "a sliding window": shape.use_sliding_window,
        "biases in attention or MLP layers": shape.attention_bias or shape.mlp_bias,
        f"activation {shape.hidden_act}": shape.hidden_act != "silu",
        f"rotary embeddings of type {kind}": kind != "default",
        "num_attention_heads not divisible by num_key_value_heads": shape.heads % shape.kv_heads
        != 0,
    }
    if feature := next((feature for feature, there in unknown.items() if there), None):
        raise UserError(
            f"{folder} has {feature}, which the embedded decoder does not support: {ELSEWHERE}."
        )
    return shape


def _json(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except FileNotFoundError:
        raise UserError(
            f"{path.parent} is not a checkpoint: it has no {path.name}. Name another folder."
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read: {error}. Copy it again.") from None
    if not isinstance(content, dict):
        raise UserError(f"{path} does not contain a JSON object. Copy it again.")
    return cast("dict[str, Any]", content)


def _weights(folder: Path) -> dict[str, Array]:
    """Return a checkpoint's weights; LoRA adapters are merged into the base model, as peft does."""
    tensors = _tensors(model_folder(folder) / WEIGHTS)
    if not (folder / ADAPTERS).is_file():
        return tensors
    config, adapters = _json(folder / ADAPTERS), _tensors(folder / ADAPTED)
    if config.get("use_dora") or config.get("use_rslora") or config.get("bias", "none") != "none":
        raise UserError(f"{folder} has adapters other than plain LoRA. Merge them with peft first.")
    try:
        scale = np.float32(config["lora_alpha"] / config["r"])
        for name, narrow in adapters.items():
            if name.endswith(".lora_A.weight"):
                into = name.removeprefix(_PEFT).replace(".lora_A", "")
                wide = adapters[name.replace("lora_A", "lora_B")]
                merged = tensors[into] + (wide @ narrow) * scale
                tensors[into] = merged.astype(np.float32, copy=False)
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(
            f"The adapters in {folder} are incomplete ({reason}). Copy it again."
        ) from None
    return tensors


def _tensors(path: Path) -> dict[str, Array]:
    if not path.is_file():
        sharded = path.with_name(f"{path.name}.index.json").is_file()
        many = f"; the embedded decoder does not read weights in several files: {ELSEWHERE}"
        reason = many if sharded else f". Copy that file there, or {ELSEWHERE}"
        raise UserError(f"{path.parent} has no {path.name}{reason}.")
    try:
        tensors = cast("list[tuple[str, dict[str, Any]]]", _deserialize(path.read_bytes()))
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged ({error}). Copy it again.") from None
    return {name: _array(name, tensor, path) for name, tensor in tensors}


def _array(name: str, tensor: Mapping[str, Any], path: Path) -> Array:
    dtype = _DTYPES.get(tensor["dtype"])
    if dtype is None:
        raise UserError(
            f"{path} has {name} as {tensor['dtype']}, but the embedded decoder reads floats only: "
            f"{ELSEWHERE}."
        )
    raw = np.frombuffer(tensor["data"], dtype).reshape(tensor["shape"])
    if tensor["dtype"] == "BF16":  # the upper half of a float32
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.astype(np.float32, copy=False)


def _tensor(tensors: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    tensor = tensors.get(name)
    if tensor is None:
        raise UserError(
            f"The weights lack {name}, which config.json requires. Copy the checkpoint again."
        )
    if tensor.shape != shape:
        raise UserError(
            f"{name} has shape {tensor.shape}, but config.json requires {shape}. Copy the "
            "checkpoint again."
        )
    return tensor


def _layer(tensors: Mapping[str, Array], shape: DecoderShape, number: int) -> LayerWeights:
    wide, narrow = shape.heads * shape.head, shape.kv_heads * shape.head

    def taken(name: str, *sizes: int) -> Array:
        return _tensor(tensors, f"model.layers.{number}.{name}", sizes)

    widths = {"q": wide, "k": narrow, "v": narrow}
    into = [taken(f"self_attn.{name}_proj.weight", n, shape.hidden) for name, n in widths.items()]
    biased = "model.layers.0.self_attn.q_proj.bias" in tensors
    bias = [taken(f"self_attn.{name}_proj.bias", n) for name, n in widths.items() if biased]
    both = [taken(f"mlp.{name}_proj.weight", shape.inner, shape.hidden) for name in ("gate", "up")]
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
    """The attention keys and values of one sequence of tokens, in every layer."""

    keys: Array  # (layers, kv_heads, room, head)
    values: Array
    length: int = 0  # tokens read so far


@dataclass(frozen=True, slots=True)
class TokenRun:
    """A sequence's next input tokens; a forward pass returns logits of the last `told` of them."""

    tokens: Sequence[int]
    state: KeyValueCache
    told: int = 1


@dataclass(frozen=True, slots=True)
class Decoder:
    """A loaded language model; `cos` and `sin` are the rotary embeddings of all positions."""

    shape: DecoderShape
    embedding: Array  # (vocabulary, hidden)
    layers: tuple[LayerWeights, ...]
    after: Array  # (hidden,): the final norm
    out: Array  # (hidden, vocabulary): the transposed embedding if they are tied
    cos: Array  # (context, head)
    sin: Array

    @property
    def parameters(self) -> int:
        """The number of the model's weights; a shared (tied) embedding counts once."""
        names = LayerWeights.__slots__
        each = sum(getattr(layer, name).size for layer in self.layers for name in names)
        out = 0 if self.shape.tied else self.out.size
        return each + self.embedding.size + self.after.size + out

    def begun(self, room: int) -> KeyValueCache:
        """Return an empty key/value cache for a sequence of at most `room` tokens."""
        shape = self.shape
        size = (shape.layers, shape.kv_heads, room, shape.head)
        return KeyValueCache(np.empty(size, np.float32), np.empty(size, np.float32))

    def read(self, runs: Sequence[TokenRun]) -> list[Array]:
        """Run a forward pass over several sequences; return logits (told, vocabulary) of each."""
        ends = np.cumsum([len(run.tokens) for run in runs])
        states = self.embedding[np.concatenate([np.asarray(run.tokens) for run in runs])]
        for number in range(len(self.layers)):
            self._pass_layer(number, states, list(zip(runs, ends, strict=True)))
        for run in runs:
            run.state.length += len(run.tokens)
        tails = [states[end - run.told : end] for run, end in zip(runs, ends, strict=True)]
        logits = _norm(np.concatenate(tails), self.after, self.shape.eps) @ self.out
        return np.split(logits, np.cumsum([run.told for run in runs])[:-1])

    def _pass_layer(self, number: int, states: Array, runs: list[tuple[TokenRun, int]]) -> None:
        layer, shape = self.layers[number], self.shape
        mixed = _norm(states, layer.before, shape.eps) @ layer.qkv
        if layer.qkv_bias.size:
            mixed += layer.qkv_bias
        split = mixed.reshape(len(mixed), shape.heads + 2 * shape.kv_heads, shape.head)
        each = [split[end - len(run.tokens) : end].swapaxes(0, 1) for run, end in runs]
        attended = [
            self._attended(heads, number, run.state)
            for heads, (run, _) in zip(each, runs, strict=True)
        ]
        states += (attended[0] if len(attended) == 1 else np.concatenate(attended)) @ layer.out
        gates = _norm(states, layer.between, shape.eps) @ layer.gates
        gate, up = gates[:, : shape.inner], gates[:, shape.inner :]
        states += (gate * _sigmoid(gate) * up) @ layer.down

    def _attended(self, heads: Array, number: int, state: KeyValueCache) -> Array:
        """Return attention (tokens, heads * head); `heads` stacks queries, keys and values."""
        shape, count, start = self.shape, heads.shape[1], state.length
        many, end = shape.heads, start + count
        turned = _rotated(heads[: many + shape.kv_heads], self.cos[start:end], self.sin[start:end])
        keys, values = state.keys[number], state.values[number]
        keys[:, start:end] = turned[many:]
        values[:, start:end] = heads[many + shape.kv_heads :]
        queries = turned[:many].reshape(shape.kv_heads, -1, shape.head)  # grouped by key/value head
        scores = queries @ keys[:, :end].swapaxes(1, 2) / np.float32(np.sqrt(shape.head))
        if count > 1:  # causal mask
            hidden = np.triu(np.full((count, count), -np.inf, np.float32), 1)
            scores.reshape(many, count, end)[:, :, start:] += hidden
        mixed = _softmax(scores) @ values[:, :end]
        return mixed.reshape(many, count, shape.head).swapaxes(0, 1).reshape(count, -1)


def read_decoder(folder: Path) -> Decoder:
    """Load the model in a checkpoint's folder; UserError if the decoder does not support it."""
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
    """Return 1 / (1 + exp(-x)), without an overflow warning for very negative x."""
    out: Array = np.tanh(values * np.float32(0.5))
    out *= np.float32(0.5)
    out += np.float32(0.5)
    return out


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
