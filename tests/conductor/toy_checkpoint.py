"""Checkpoints for tests, written by hand without torch: a decoder and a byte-level tokenizer.

`write_model` writes random weights. `write_checkpoint` adds a tokenizer, a chat template and
podium.json. `parrot` writes a model that says one text whatever it is asked.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from podium.conductor.checkpoint import CheckpointInfo, write_info
from podium.conductor.embedded import CHAT_TEMPLATE
from podium.conductor.parse import PlanFormat

PAD, END = 0, 1
SPECIAL = ("<pad>", "<end>")
BYTES = 256

Tensors = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a model, as config.json has them."""

    vocabulary: int = BYTES + len(SPECIAL)
    hidden: int = 32
    inner: int = 48
    layers: int = 2
    heads: int = 2
    kv_heads: int = 1
    context: int = 4096
    tied: bool = True
    theta: float = 10_000.0
    family: str = "qwen2"

    def as_json(self, ends: Sequence[int]) -> dict[str, object]:
        return {
            "architectures": [f"{self.family.title()}ForCausalLM"],
            "model_type": self.family,
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "intermediate_size": self.inner,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "max_position_embeddings": self.context,
            "rms_norm_eps": 1e-6,
            "hidden_act": "silu",
            "tie_word_embeddings": self.tied,
            "rope_parameters": {"rope_theta": self.theta, "rope_type": "default"},
            "use_sliding_window": False,
            "eos_token_id": list(ends),
            "dtype": "float32",
        }


@dataclass(frozen=True, slots=True)
class Toy:
    """What a toy checkpoint says about itself."""

    form: PlanFormat = field(default_factory=lambda: PlanFormat(layout="compact"))
    about: CheckpointInfo | None = None

    def described(self) -> CheckpointInfo:
        return self.about or CheckpointInfo(
            form=self.form,
            pool="rehearsal",
            workers=(),
            cards_sha256="",
            suites=("practice-integer",),
            summary="a toy",
        )


def write_model(
    folder: Path, sizes: Sizes = Sizes(), ends: Sequence[int] = (END,), seed: int = 0
) -> Tensors:
    """Write config.json and model.safetensors with random weights; return the weights."""
    tensors = random_tensors(sizes, seed)
    save(folder, sizes, tensors, ends)
    return tensors


def save(folder: Path, sizes: Sizes, tensors: Tensors, ends: Sequence[int] = (END,)) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(sizes.as_json(ends)))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def random_tensors(sizes: Sizes, seed: int = 0) -> Tensors:
    draws = np.random.default_rng(seed)

    def some(*shape: int) -> NDArray[np.float32]:
        return draws.normal(0, 0.3, shape).astype(np.float32)

    head = sizes.hidden // sizes.heads
    narrow = head * sizes.kv_heads
    found = {
        "model.embed_tokens.weight": some(sizes.vocabulary, sizes.hidden),
        "model.norm.weight": 1 + some(sizes.hidden),
    }
    if not sizes.tied:
        found["lm_head.weight"] = some(sizes.vocabulary, sizes.hidden)
    for number in range(sizes.layers):
        layer = {
            "input_layernorm.weight": 1 + some(sizes.hidden),
            "post_attention_layernorm.weight": 1 + some(sizes.hidden),
            "self_attn.q_proj.weight": some(sizes.hidden, sizes.hidden),
            "self_attn.q_proj.bias": some(sizes.hidden),
            "self_attn.k_proj.weight": some(narrow, sizes.hidden),
            "self_attn.k_proj.bias": some(narrow),
            "self_attn.v_proj.weight": some(narrow, sizes.hidden),
            "self_attn.v_proj.bias": some(narrow),
            "self_attn.o_proj.weight": some(sizes.hidden, sizes.hidden),
            "mlp.gate_proj.weight": some(sizes.inner, sizes.hidden),
            "mlp.up_proj.weight": some(sizes.inner, sizes.hidden),
            "mlp.down_proj.weight": some(sizes.hidden, sizes.inner),
        }
        biased = sizes.family == "qwen2"
        layer = {name: held for name, held in layer.items() if biased or "bias" not in name}
        found |= {f"model.layers.{number}.{name}": values for name, values in layer.items()}
    return found


def write_tokenizer(folder: Path, words: Sequence[str] = ()) -> Tokenizer:
    """Write a tokenizer with a token per byte, and one for each of some words."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: at for at, token in enumerate((*SPECIAL, *alphabet))}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(SPECIAL))
    if words:
        tokenizer.add_tokens(list(words))
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": CHAT_TEMPLATE,
        "eos_token": SPECIAL[END],
        "pad_token": SPECIAL[PAD],
        "model_max_length": 4096,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return tokenizer


def write_checkpoint(folder: Path, toy: Toy = Toy(), sizes: Sizes = Sizes()) -> Path:
    """Write a whole checkpoint of random weights, and return its folder."""
    write_model(folder, sizes)
    write_tokenizer(folder)
    write_info(toy.described(), folder)
    return folder


def speaker(folder: Path, toy: Toy = Toy(), sizes: Sizes = Sizes(), seed: int = 0) -> Path:
    """Write a checkpoint of random weights that says printable ASCII only, and ends sometimes.

    Whoever turns tokens into text, whole or one by one, then gets the same text.
    """
    sizes = replace(sizes, tied=False)
    tensors = random_tensors(sizes, seed)
    signs = sorted(pre_tokenizers.ByteLevel.alphabet())
    spoken = [at for at, sign in enumerate(signs, len(SPECIAL)) if sign.isascii()]
    head = tensors["lm_head.weight"]
    silent = np.setdiff1d(np.arange(len(head)), [*spoken, END])
    head[silent] = 0
    save(folder, sizes, tensors)
    write_tokenizer(folder)
    write_info(toy.described(), folder)
    return folder


def parrot(folder: Path, said: str, toy: Toy = Toy()) -> Path:
    """Write a checkpoint that says `said` whatever it is asked.

    The text is a chain of tokens that occur nowhere else: each has an embedding of its own, which
    nothing disturbs, as all layers are zero; the head maps it to its successor. Any other token is
    followed by the first of the chain.
    """
    pieces = _pieces(said)
    links = len(pieces)
    vocabulary = BYTES + len(SPECIAL) + links
    sizes = Sizes(
        vocabulary=vocabulary, hidden=2 * (links + 2), heads=1, kv_heads=1, layers=1, tied=False
    )
    tensors = {name: np.zeros_like(held) for name, held in random_tensors(sizes).items()}
    tensors["model.norm.weight"] += 1
    first = BYTES + len(SPECIAL)
    embedding, head = tensors["model.embed_tokens.weight"], tensors["lm_head.weight"]
    embedding[:first, 0] = 1  # whatever is asked
    for at in range(links):
        embedding[first + at, at + 1] = 1
        head[first + at, at] = 1
    head[END, links] = 1
    save(folder, sizes, tensors)
    _write_pieces(folder, pieces)
    write_info(toy.described(), folder)
    return folder


def _pieces(said: str) -> list[str]:
    """Return a text in pieces of which no two are equal."""
    pieces, start = list[str](), 0
    for end in range(1, len(said) + 1):
        piece = said[start:end]
        if len(piece) >= 4 and piece not in pieces and said[end:].strip():
            pieces.append(piece)
            start = end
    return [*pieces, said[start:]]


def _write_pieces(folder: Path, pieces: Sequence[str]) -> None:
    """Write a tokenizer whose last tokens are the pieces, which no prompt is cut into."""
    write_tokenizer(folder)
    path = folder / "tokenizer.json"
    held = json.loads(path.read_text())
    letters = {ord_: sign for sign, ord_ in _byte_signs().items()}
    for at, piece in enumerate(pieces):  # in the model's vocabulary and in no merge: never encoded
        token = "".join(letters[byte] for byte in piece.encode())
        held["model"]["vocab"][token] = BYTES + len(SPECIAL) + at
    path.write_text(json.dumps(held))


def _byte_signs() -> dict[str, int]:
    """Return the sign of each byte in a byte-level vocabulary (the table of GPT-2)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [byte for byte in range(BYTES) if byte not in plain]
    signs = {chr(byte): byte for byte in plain}
    return signs | {chr(BYTES + at): byte for at, byte in enumerate(other)}
