"""Read a Hugging Face folder of the Qwen2 architecture: its shape, and its weights as float32.

Everything that cannot be decoded here is refused in one sentence: another architecture, a missing
or truncated file, weights of another shape than config.json says. Nothing in it is executed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt, ValidationError
from safetensors import SafetensorError
from safetensors import deserialize as _deserialize  # pyright: ignore[reportUnknownVariableType]

from harness.errors import UserError
from harness.files import read_json

Array = NDArray[np.float32]

CONFIG, WEIGHTS, GENERATION = "config.json", "model.safetensors", "generation_config.json"
ADAPTERS = "adapter_config.json"
ELSEWHERE = "serve it with vLLM or transformers instead"
_DTYPES = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype("<u2")}


class _Config(BaseModel):
    """The part of config.json that says how the weights are used."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model_type: str
    vocab_size: PositiveInt
    hidden_size: PositiveInt
    intermediate_size: PositiveInt
    num_hidden_layers: PositiveInt
    num_attention_heads: PositiveInt
    num_key_value_heads: PositiveInt | None = None
    head_dim: PositiveInt | None = None
    max_position_embeddings: PositiveInt = 32768
    rms_norm_eps: PositiveFloat = 1e-6
    hidden_act: str = "silu"
    tie_word_embeddings: bool = False
    use_sliding_window: bool = False
    rope_theta: PositiveFloat | None = None
    """Of transformers 4; version 5 writes `rope_parameters`."""
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None
    eos_token_id: int | list[int] | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model, and where it ends."""

    vocabulary: int
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    """Numbers per head."""
    context: int
    """Tokens of prompt and reply together."""
    eps: float
    theta: float
    tied: bool
    ends: tuple[int, ...]
    """Tokens that end a reply."""


@dataclass(frozen=True, slots=True)
class Layer:
    """The weights of one layer, transposed so that a row of states stands on the left."""

    before: Array
    """(hidden,): the norm before attention."""
    qkv: Array
    """(hidden, (heads + 2 * kv_heads) * head)."""
    qkv_bias: Array
    out: Array
    """(heads * head, hidden)."""
    between: Array
    """(hidden,): the norm before the two gates."""
    gates: Array
    """(hidden, 2 * inner): gate, then up."""
    down: Array
    """(inner, hidden)."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A whole model."""

    shape: Shape
    embedding: Array
    """(vocabulary, hidden)."""
    layers: tuple[Layer, ...]
    after: Array
    """(hidden,): the last norm."""
    head: Array
    """(hidden, vocabulary): the embedding itself where they are tied."""

    @property
    def parameters(self) -> int:
        """How many numbers were trained."""
        each = sum(getattr(layer, name).size for layer in self.layers for name in Layer.__slots__)
        head = 0 if self.shape.tied else self.head.size
        return each + self.embedding.size + self.after.size + head


def read_weights(folder: Path) -> Weights:
    """Return the model of a folder; UserError names what this decoder cannot use."""
    shape = read_shape(folder)
    tensors = _tensors(folder / WEIGHTS)
    embedding = _taken(tensors, "model.embed_tokens.weight", (shape.vocabulary, shape.hidden))
    layers = tuple(_layer(tensors, shape, number) for number in range(shape.layers))
    after = _taken(tensors, "model.norm.weight", (shape.hidden,))
    head = (
        embedding
        if shape.tied
        else _taken(tensors, "lm_head.weight", (shape.vocabulary, shape.hidden))
    )
    return Weights(shape, embedding, layers, after, np.ascontiguousarray(head.T))


def read_shape(folder: Path) -> Shape:
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
    try:
        config = _Config.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{folder / CONFIG}, field {where}: {first['msg']}.") from None
    _refuse_variants(config, folder)
    rope = config.rope_parameters or {}
    return Shape(
        vocabulary=config.vocab_size,
        hidden=config.hidden_size,
        inner=config.intermediate_size,
        layers=config.num_hidden_layers,
        heads=config.num_attention_heads,
        kv_heads=config.num_key_value_heads or config.num_attention_heads,
        head=config.head_dim or config.hidden_size // config.num_attention_heads,
        context=config.max_position_embeddings,
        eps=config.rms_norm_eps,
        theta=float(rope.get("rope_theta") or config.rope_theta or 10_000.0),
        tied=config.tie_word_embeddings,
        ends=_ends(folder, config),
    )


def _refuse_variants(config: _Config, folder: Path) -> None:
    scaling = {**(config.rope_scaling or {}), **(config.rope_parameters or {})}
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    unknown = {
        "a sliding window": config.use_sliding_window,
        f"activation {config.hidden_act}": config.hidden_act != "silu",
        f"rotary embeddings of type {kind}": kind != "default",
        "heads that do not share keys evenly": config.num_attention_heads
        % (config.num_key_value_heads or config.num_attention_heads)
        != 0,
    }
    for what, there in unknown.items():
        if there:
            raise UserError(f"{folder} has {what}, which is not embedded: {ELSEWHERE}.")


def _ends(folder: Path, config: _Config) -> tuple[int, ...]:
    """Return the tokens that end a reply: generation_config.json goes first, as everywhere."""
    path = folder / GENERATION
    said = _json(path).get("eos_token_id") if path.is_file() else None
    found: Any = config.eos_token_id if said is None else said
    several = cast("list[Any]", found if isinstance(found, list) else [found])
    return tuple(int(one) for one in several if one is not None)


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
    """Return all tensors as float32; UserError for a file that is missing or damaged."""
    if not path.is_file():
        many = "; weights in several files are not embedded" if _sharded(path) else ""
        raise UserError(f"{path.parent} has no {path.name}{many}: {ELSEWHERE}.")
    try:
        found = cast("list[tuple[str, dict[str, Any]]]", _deserialize(path.read_bytes()))
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged, copy it again: {error}.") from None
    return {name: _array(name, held, path) for name, held in found}


def _sharded(path: Path) -> bool:
    return path.with_name(f"{path.name}.index.json").is_file()


def _array(name: str, held: Mapping[str, Any], path: Path) -> Array:
    dtype = _DTYPES.get(held["dtype"])
    if dtype is None:
        raise UserError(f"{path} holds {name} as {held['dtype']}, and only floats are embedded.")
    raw = np.frombuffer(held["data"], dtype).reshape(held["shape"])
    if held["dtype"] == "BF16":  # the upper half of a float32
        raw = (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.astype(np.float32)


def _taken(tensors: Mapping[str, Array], name: str, shape: tuple[int, ...]) -> Array:
    found = tensors.get(name)
    if found is None:
        raise UserError(f"The weights lack {name}, which config.json asks for.")
    if found.shape != shape:
        raise UserError(f"{name} is of shape {found.shape}, and config.json says {shape}.")
    return found


def _layer(tensors: Mapping[str, Array], shape: Shape, number: int) -> Layer:
    wide, narrow = shape.heads * shape.head, shape.kv_heads * shape.head

    def taken(name: str, *sizes: int) -> Array:
        return _taken(tensors, f"model.layers.{number}.{name}", sizes)

    parts = {"q": wide, "k": narrow, "v": narrow}
    into = [taken(f"self_attn.{one}_proj.weight", n, shape.hidden) for one, n in parts.items()]
    bias = [taken(f"self_attn.{one}_proj.bias", n) for one, n in parts.items()]
    both = [taken(f"mlp.{one}_proj.weight", shape.inner, shape.hidden) for one in ("gate", "up")]
    return Layer(
        before=taken("input_layernorm.weight", shape.hidden),
        qkv=np.ascontiguousarray(np.concatenate(into).T),
        qkv_bias=np.concatenate(bias),
        out=np.ascontiguousarray(taken("self_attn.o_proj.weight", shape.hidden, wide).T),
        between=taken("post_attention_layernorm.weight", shape.hidden),
        gates=np.ascontiguousarray(np.concatenate(both).T),
        down=np.ascontiguousarray(taken("mlp.down_proj.weight", shape.hidden, shape.inner).T),
    )
