"""TRINITY's features from a local transformers model: a tiny random one, made on the spot.

It runs where torch and transformers are installed (`pip install '.[train]'`), and is skipped
elsewhere: whoever evaluates needs neither.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baselines.trinity import TrinityTurn, head_coordinator, head_size, load_encoder
from harness.errors import UserError
from harness.records import Question

torch: Any = pytest.importorskip("torch", reason="needs torch: pip install '.[train]'")
transformers: Any = pytest.importorskip("transformers", reason="needs the train extra")

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch and transformers warn of is theirs

SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer")
HIDDEN = 16


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a causal model of random weights and a tokenizer of single characters."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from tokenizers import Tokenizer, models, pre_tokenizers  # pyright: ignore

    path = tmp_path_factory.mktemp("tiny")
    words = {chr(code): code for code in range(256)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(path)
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=256,
        hidden_size=HIDDEN,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
    )
    transformers.LlamaForCausalLM(config).save_pretrained(path)
    return path


def test_a_hidden_state_is_the_same_for_the_same_turns_and_another_for_others(model: Path) -> None:
    encode = load_encoder(f"hf:{model}")
    assert encode.dims == HIDDEN
    alone = encode(SUM, [])
    assert np.array_equal(alone, load_encoder(f"hf:{model}")(SUM, []))
    assert float(np.linalg.norm(alone)) == pytest.approx(1)
    assert not np.allclose(alone, encode(SUM, [TrinityTurn("a", "worker", "ANSWER: 5")]))


def test_the_state_is_that_of_the_penultimate_token_that_the_model_writes(model: Path) -> None:
    from baselines.trinity import WRITES, HiddenState

    found = HiddenState(str(model))(SUM, [])
    loaded = transformers.AutoModelForCausalLM.from_pretrained(model).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    tokens = tokenizer(SUM.text, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        for _ in range(WRITES - 1):
            after = loaded(tokens).logits[0, -1].argmax()
            tokens = torch.cat([tokens, after.reshape(1, 1)], dim=1)
        state = loaded(tokens, output_hidden_states=True).hidden_states[-1][0, -1].numpy()
    assert found == pytest.approx(state / np.linalg.norm(state), abs=1e-4)


def test_a_head_over_a_hidden_state_chooses_a_worker_and_a_role(model: Path) -> None:
    encode = load_encoder(f"hf:{model}")
    weights = np.random.default_rng(0).normal(size=head_size(3, encode.dims))
    at, role = head_coordinator(weights, 3, encode)(SUM, [])
    assert at in range(3)
    assert role in ("thinker", "worker", "verifier")


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"no transformers model at .*it has no config\.json"):
        load_encoder(f"hf:{tmp_path}")
