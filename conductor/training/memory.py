"""How much memory a training needs on each device: arithmetic on a model's shape, nothing measured.

Bytes per weight that is trained, with Adam: on a CPU 16 (float32 weights, gradients, two moments).
Whole on a GPU 18, for bf16 computes with copies of float32 weights (settings.py), and 22 on
several, where torch's DDP holds gradients a second time, in its buckets. Divided by DeepSpeed
ZeRO-3, 2 (bf16 weights) + 2 (gradients) + 12 (float32 weights and two moments), all over the number
of devices (ZeRO, arXiv 1910.02054, section 3.1). Activations: 34 bytes per token, layer and hidden
unit in 16 bits, 2 where layers are computed again (arXiv 2205.05198, section 4, without its
attention term, for attention is fused). Shapes of hub models are those of their published
config.json.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from conductor.checkpoint import RELEASED
from conductor.training.config import FromScratch, TrainingConfig

GB = 1e9


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder's sizes."""

    hidden: int
    intermediate: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    tied: bool = True

    @property
    def kv(self) -> int:
        """Width of keys, and of values."""
        return self.hidden // self.heads * self.kv_heads

    @property
    def parameters(self) -> int:
        """All weights of a Qwen2 model: biases on queries, keys and values, two norms a layer."""
        h, kv = self.hidden, self.kv
        layer = 2 * h * h + 2 * h * kv + h + 2 * kv + 3 * h * self.intermediate + 2 * h
        return self.vocab * h * (1 if self.tied else 2) + self.layers * layer + h

    def lora(self, rank: int) -> int:
        """Weights of adapters on every linear layer."""
        h, kv, i = self.hidden, self.kv, self.intermediate
        ends = 2 * (h + h) + 2 * (h + kv) + 3 * (h + i)
        return self.layers * rank * ends


PUBLISHED = {
    "Qwen2.5-0.5B": Shape(896, 4864, 24, 14, 2, 151936),
    "Qwen2.5-1.5B": Shape(1536, 8960, 28, 12, 2, 151936),
    "Qwen2.5-3B": Shape(2048, 11008, 36, 16, 2, 151936),
    "Qwen2.5-7B": Shape(3584, 18944, 28, 28, 4, 152064, tied=False),
}


def shape_of(config: TrainingConfig) -> Shape | None:
    """Return the model's sizes, None where they are not known here."""
    if config.model.from_scratch:
        return _scratch(config.model.from_scratch)
    for folder in (RELEASED / config.model.path, Path(config.model.path)):
        if (folder / "config.json").is_file():
            return _read(json.loads((folder / "config.json").read_text()))
    name = config.model.path.rpartition("/")[2].removesuffix("-Instruct")
    return PUBLISHED.get(name)


def _scratch(size: FromScratch) -> Shape:
    rows = max(size.vocab, size.embeddings or 0)
    sizes = (size.hidden, size.intermediate, size.layers, size.heads, size.kv_heads)
    return Shape(*sizes, rows, size.tied)


def _read(said: dict[str, Any]) -> Shape | None:
    try:
        return Shape(
            said["hidden_size"],
            said["intermediate_size"],
            said["num_hidden_layers"],
            said["num_attention_heads"],
            said.get("num_key_value_heads") or said["num_attention_heads"],
            said["vocab_size"],
            bool(said.get("tie_word_embeddings")),
        )
    except KeyError:
        return None


@dataclass(frozen=True, slots=True)
class Batch:
    """What is on one device at once."""

    plans: int
    """In an update."""
    written: int
    """In generation."""
    prompt: int
    """Tokens, an estimate."""
    completion: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Gigabytes (1e9 bytes) on each device; `host` on the machine where states are offloaded."""

    weights: float
    gradients: float
    optimiser: float
    activations: float
    kv_cache: float
    host: float = 0.0

    @property
    def update(self) -> float:
        """The most while weights are updated."""
        return self.weights + self.gradients + self.optimiser + self.activations

    @property
    def generation(self) -> float:
        """The most while plans are written by transformers in the same process."""
        return self.weights + self.gradients + self.optimiser + self.kv_cache


@dataclass(frozen=True, slots=True)
class Spread:
    """How a training lies on devices."""

    devices: int = 1
    way: Literal["whole", "zero3", "offload"] = "whole"
    """All of it on each; divided by ZeRO-3; or divided, with the optimiser's states on the host."""


def memory_of(
    shape: Shape, batch: Batch, config: TrainingConfig, spread: Spread = Spread()
) -> Memory:
    """Return the memory of a training of all weights, or of adapters where it has some."""
    wide = 4 if config.run.device == "cpu" else 2
    parts = 1 if spread.way == "whole" else spread.devices
    weights, gradients, optimiser = _kept(shape, config, spread)
    host = optimiser if spread.way == "offload" else 0
    return Memory(
        weights=weights / parts / GB,
        gradients=gradients / parts / GB,
        optimiser=(optimiser - host) / parts / GB,
        activations=_activations(shape, batch, config, wide) / GB,
        kv_cache=2 * wide * shape.kv * shape.layers * _written(batch) / GB,
        host=host / GB,
    )


def _kept(shape: Shape, config: TrainingConfig, spread: Spread) -> tuple[int, int, int]:
    """Return bytes of weights, gradients and optimiser states, of all parts together."""
    size, gpu = shape.parameters, config.run.device == "gpu"
    buckets = 2 if gpu and spread.way == "whole" and spread.devices > 1 else 1
    if config.lora:
        few = shape.lora(config.lora.r)
        return (2 if gpu else 4) * size + 4 * few, 4 * buckets * few, 8 * few
    if spread.way == "whole":
        return (6 if gpu else 4) * size, 4 * buckets * size, 8 * size
    return 2 * size, 2 * size, 12 * size


def _written(batch: Batch) -> int:
    return batch.written * (batch.prompt + batch.completion)


def _activations(shape: Shape, batch: Batch, config: TrainingConfig, wide: int) -> float:
    """Return bytes of activations and of logits, which are float32 and kept about three times."""
    tokens = batch.plans * (batch.prompt + batch.completion)
    full = 34 * wide / 2 * tokens * shape.hidden
    again = config.run.device != "cpu" and config.grpo.get("gradient_checkpointing", True)
    kept = shape.layers * wide * tokens * shape.hidden + full if again else shape.layers * full
    return kept + 3 * 4 * batch.plans * batch.completion * shape.vocab
