"""Checkpoints decoded in NumPy: the forward pass, sampling, the provider, and what is refused.

Equality with transformers is tests/conductor/training/test_embedded_parity.py, which needs torch.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

import anyio
import numpy as np
import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    get_model,
)

from podium.conductor.decode import DecodeOptions, decode
from podium.conductor.decoder import Decoder, TokenRun, read_decoder
from podium.conductor.embedded import fitting, read_template, read_tokenizer
from podium.harness.errors import UserError
from tests import ROOT
from tests.conductor.toy_checkpoint import (
    END,
    Sizes,
    parrot,
    save,
    speaker,
    write_checkpoint,
    write_model,
    write_tokenizer,
)

PROMPT = [7, 9, 200, 41, 41, 3]


@pytest.fixture
def model(tmp_path: Path) -> Decoder:
    write_model(tmp_path, Sizes(heads=4, kv_heads=2), ends=[])
    return read_decoder(tmp_path)


def ask(
    folder: Path, text: str, config: GenerateConfig | None = None, model: Model | None = None
) -> ModelOutput:
    used = model or get_model(f"embedded/{folder}", memoize=False)
    asked: list[ChatMessage] = [ChatMessageUser(content=text)]
    return anyio.run(lambda: used.generate(asked, config=config or GenerateConfig()))


# --- the forward pass and which token is taken ------------------------------------------------


def test_a_prompt_read_at_once_gives_what_reading_it_token_by_token_gives(model: Decoder) -> None:
    [at_once] = model.read([TokenRun(PROMPT, model.begun(len(PROMPT)))])
    state = model.begun(len(PROMPT))
    *_, [last] = [model.read([TokenRun([token], state)]) for token in PROMPT]
    assert np.abs(at_once - last).max() < 1e-4


def test_the_order_of_a_prompt_matters(model: Decoder) -> None:
    found = [
        model.read([TokenRun(tokens, model.begun(9))])[0]
        for tokens in (PROMPT, [*PROMPT[::-1][1:], 3])
    ]
    assert np.abs(found[0] - found[1]).max() > 1e-2


def test_greedy_tokens_are_the_same_each_time_and_draws_follow_their_seed(model: Decoder) -> None:
    def said(heat: float, seed: int) -> list[int]:
        return decode(model, PROMPT, DecodeOptions(heat, seed, max_tokens=20)).tokens

    assert said(0, 1) == said(0, 2)
    assert said(1, 1) == said(1, 1) != said(1, 2)


def test_low_heat_draws_the_likeliest_token(model: Decoder) -> None:
    greedy = decode(model, PROMPT, DecodeOptions(max_tokens=20)).tokens
    assert decode(model, PROMPT, DecodeOptions(1e-4, 5, max_tokens=20)).tokens == greedy


def test_a_reply_ends_at_the_end_token_which_is_written_but_not_said(tmp_path: Path) -> None:
    folder = parrot(tmp_path, "model_id = [0]")
    model = read_decoder(folder)
    found = decode(model, PROMPT)
    assert found.stop == "stop"
    assert found.written == len(found.tokens) + 1
    assert END not in found.tokens


def test_limits_end_a_reply_and_say_which_limit_it_was(tmp_path: Path) -> None:
    write_model(tmp_path, Sizes(context=10), ends=[])
    model = read_decoder(tmp_path)
    assert decode(model, PROMPT, DecodeOptions(max_tokens=3)).stop == "max_tokens"
    full = decode(model, PROMPT)
    assert (full.stop, full.written) == ("model_length", 4)
    none = decode(model, PROMPT * 2)
    assert (none.stop, none.written, none.tokens) == ("model_length", 0, [])


# --- the provider -----------------------------------------------------------------------------


def test_the_provider_says_what_the_model_writes_and_counts_every_token(tmp_path: Path) -> None:
    folder = parrot(tmp_path, 'model_id = [0]\nsubtasks = ["Ümlaut, \\"quoted\\"."]')
    output = ask(folder, "Größe?")
    assert output.completion == 'model_id = [0]\nsubtasks = ["Ümlaut, \\"quoted\\"."]'
    assert output.stop_reason == "stop"
    assert output.usage is not None
    assert output.usage.input_tokens == len("Größe?".encode())
    assert 1 < output.usage.output_tokens < 40
    assert output.usage.total_tokens == output.usage.input_tokens + output.usage.output_tokens


def test_turns_are_put_one_behind_the_other(tmp_path: Path) -> None:
    model = get_model(f"embedded/{speaker(tmp_path)}", memoize=False)
    config = GenerateConfig(max_tokens=20)
    turns: list[ChatMessage] = [ChatMessageUser(content=text) for text in ("What is ", "1 + 1?")]
    whole = anyio.run(lambda: model.generate(turns, config=config))
    assert whole.completion == ask(tmp_path, "What is 1 + 1?", config, model).completion
    assert len(whole.completion) > 3


def test_draws_of_one_request_differ_and_a_run_repeats_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(speaker(tmp_path / "speaker").name)
    monkeypatch.chdir(tmp_path)  # the model's name, a folder's, is drawn with: the same each time
    hot = GenerateConfig(temperature=1, max_tokens=30)

    def eight() -> list[str]:
        model = get_model(f"embedded/{folder}", memoize=False)
        return [ask(folder, "Why?", hot, model).completion for _ in range(8)]

    first = eight()
    assert len(set(first)) > 4
    assert eight() == first


def test_a_prompt_that_does_not_fit_is_a_reply_that_says_so_in_one_sentence(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, sizes=Sizes(context=16))
    output = ask(folder, "x" * 40)
    assert output.stop_reason == "model_length"
    assert output.completion == "The prompt has 40 tokens, and this model reads fewer than 16."
    assert output.usage is not None
    assert output.usage.output_tokens == 0


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("top_p", 0.5),
        ("top_k", 3),
        ("stop_seqs", ["x"]),
        ("presence_penalty", 1.0),
        ("extra_body", {"top_k": 20}),
        ("extra_body", {"structured_outputs": {"json": {}}}),
    ],
)
def test_settings_that_would_be_ignored_are_refused(
    tmp_path: Path, setting: str, value: object
) -> None:
    folder = write_checkpoint(tmp_path)
    with pytest.raises(UserError, match=f"does not support {setting}"):
        ask(folder, "Why?", GenerateConfig.model_validate({setting: value}))


def test_a_reply_is_held_to_the_regular_expression_that_vllm_would_be_told(tmp_path: Path) -> None:
    folder = speaker(tmp_path)
    held = GenerateConfig(extra_body={"structured_outputs": {"regex": "(?:yes|no), [a-c]{4}\\."}})
    output = ask(folder, "Why?", held)
    assert re.fullmatch(r"(?:yes|no), [a-c]{4}\.", output.completion)
    assert output.stop_reason == "stop"


def test_arguments_that_nobody_knows_are_refused(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    with pytest.raises(UserError, match="argument 'device'"):
        get_model(f"embedded/{folder}", memoize=False, device="cuda")


# --- what is refused --------------------------------------------------------------------------


def changed(folder: Path, name: str, **values: object) -> Path:
    path = folder / name
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    return folder


def test_an_unknown_name_lists_the_released_checkpoints() -> None:
    with pytest.raises(UserError, match="There is no checkpoint 'nothing-of-this-name'; released:"):
        get_model("embedded/nothing-of-this-name", memoize=False)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"model_type": "gemma"},
            "architecture gemma, but the embedded decoder supports only qwen2 and llama",
        ),
        ({"attention_bias": True}, "biases in attention or MLP layers"),
        ({"hidden_act": "gelu"}, "activation gelu"),
        ({"use_sliding_window": True}, "a sliding window"),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 4}}, "rotary embeddings of type yarn"),
        ({"num_attention_heads": 3}, "but config.json requires"),
        ({"num_key_value_heads": 3}, "num_attention_heads not divisible by num_key_value_heads"),
        ({"num_hidden_layers": 9}, "lack model.layers.2"),
        ({"hidden_size": "many"}, "field hidden_size"),
    ],
)
def test_another_architecture_is_refused_in_one_sentence(
    tmp_path: Path, values: dict[str, object], said: str
) -> None:
    folder = changed(write_checkpoint(tmp_path), "config.json", **values)
    with pytest.raises(UserError, match=said):
        get_model(f"embedded/{folder}", memoize=False)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / name).unlink()
    with pytest.raises(UserError, match=name):
        get_model(f"embedded/{folder}", memoize=False)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_file_cut_in_half_is_refused(tmp_path: Path, name: str) -> None:
    path = write_checkpoint(tmp_path) / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UserError, match=name):
        get_model(f"embedded/{tmp_path}", memoize=False)


def test_weights_in_several_files_are_refused_with_another_way(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    (folder / "model.safetensors.index.json").write_text("{}")
    with pytest.raises(
        UserError, match=r"does not read weights in several files: serve it with vLLM"
    ):
        get_model(f"embedded/{folder}", memoize=False)


def test_a_tokenizer_of_another_model_is_refused(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    with pytest.raises(UserError, match="has 258 tokens, but the model has 100"):
        read_tokenizer(tmp_path, 100)


TURNS = """\
{% for message in messages %}
    {% if loop.first %}{{ bos_token }}{% endif %}
{{ "<|" + message.role + "|>" + message["content"] }}
{% endfor %}
{% if add_generation_prompt %}{{ "<|assistant|>" }}{% endif %}"""


def test_a_request_is_put_into_the_checkpoints_own_chat_template(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path)
    changed(folder, "tokenizer_config.json", bos_token="<s>")
    (folder / "chat_template.jinja").write_text(TURNS)
    turns: list[ChatMessage] = [ChatMessageSystem(content="Plan."), ChatMessageUser(content="Go.")]
    assert read_template(folder)(turns) == "<s><|system|>Plan.\n<|user|>Go.\n<|assistant|>"


def test_the_room_for_a_plan_is_what_the_template_leaves(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, sizes=Sizes(context=100))
    assert fitting(folder, 40)("x" * 60)
    changed(folder, "tokenizer_config.json", chat_template="<|user|>{{ messages[0].content }}")
    assert not fitting(folder, 40)("x" * 60)


@pytest.mark.parametrize(
    "template",
    [
        "{% for %}",
        "{{ raise_exception('no') }}",
        "{{ messages.append(1) }}",
        "{{ ''.__class__.mro() }}",
    ],
)
def test_a_template_that_cannot_be_rendered_is_refused(tmp_path: Path, template: str) -> None:
    folder = write_checkpoint(tmp_path)
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(UserError, match="is not supported by the embedded decoder"):
        ask(folder, "Why?")


def test_integers_for_weights_are_refused(tmp_path: Path) -> None:
    sizes = Sizes()
    tensors = write_model(tmp_path, sizes)
    tensors["model.norm.weight"] = np.ones(sizes.hidden, np.int32)  # pyright: ignore
    save(tmp_path, sizes, tensors)
    with pytest.raises(UserError, match="the embedded decoder reads floats only"):
        read_decoder(tmp_path)


# --- no torch ---------------------------------------------------------------------------------

WITHOUT = """\
import sys, anyio
sys.path.append(sys.argv[2])
from inspect_ai.model import get_model
model = get_model(f"embedded/{sys.argv[1]}", memoize=False)
said = anyio.run(lambda: model.generate("Why?")).completion
heavy = [name for name in ("torch", "transformers", "trl") if name in sys.modules]
print(said, heavy)
"""


@pytest.mark.slow
def test_decoding_loads_no_torch(tmp_path: Path) -> None:
    folder = parrot(tmp_path, "model_id = [0]")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, str(folder), str(ROOT)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "model_id = [0] []\n"
