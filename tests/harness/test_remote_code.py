"""No file that people share makes podium run code: pools, training configs, models, data sets."""

from pathlib import Path

import pytest

from podium.cli import main
from podium.conductor.training.ablations import read_ablations
from podium.conductor.training.config import read_config
from podium.harness.errors import UserError
from podium.harness.pool_config import code_settings, read_pool

OWN = """
from pathlib import Path
Path(__file__).with_name("it-ran").touch()
"""


def written(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("grpo", "said"),
    [
        ("[grpo.model_init_kwargs]\ntrust_remote_code = true", "trust_remote_code would run code"),
        ("[grpo.model_init_kwargs]\ntrust-remote-code = true", "trust-remote-code would run code"),
        ("[grpo.model_init_kwargs]\nTrust_Remote_Code = 1", "would run code"),
        ("[grpo]\ntrust_remote_code = true", r"\[grpo\] trust_remote_code would run code"),
        ("[grpo]\nmodel_init_kwargs = '{\"trust_remote_code\": true}'", "would run code"),
        ("[grpo]\nmodel_init_kwargs = '{}'", r"write \[grpo.model_init_kwargs\]"),
        ("[grpo]\nmodel_init_kwargs = ['dtype']", r"write \[grpo.model_init_kwargs\]"),
        ("[grpo.generation_kwargs]\ncustom_generate = 'a/b'", "would run code"),
        ("[grpo.chat_template_kwargs.deep]\nauto_map = {}", "would run code"),
        ("[grpo]\nlists = [{ code_revision = 'x' }]", r"lists\.0\.code_revision would run code"),
        ("[grpo.model_init_kwargs]\nattn_implementation = 'them/kernel'", "would run code"),
        ("[grpo.model_init_kwargs]\nallow_all_kernels = true", "would run code"),
        ("[grpo.model_init_kwargs]\nkernel_config = {}", "would run code"),
        ("[grpo.model_init_kwargs]\nweights_only = false", "would run code"),
        (
            "[grpo.model_init_kwargs]\nuse_safetensors = false",
            "supports attn_implementation.*not",
        ),
        ("[model]\npath = 'x/y'\ntrust_remote_code = true", "has no key 'trust_remote_code'"),
        ("[lora]\ntrust_remote_code = true", "has no key 'trust_remote_code'"),
    ],
)
def test_a_training_config_that_would_run_code_is_refused(
    tmp_path: Path, grpo: str, said: str
) -> None:
    with pytest.raises(UserError, match=said):
        read_config(written(tmp_path / "x.toml", f'base = "small-gpu"\n{grpo}\n'))


def test_what_loads_no_code_is_passed_on() -> None:
    loading = ("dtype=bfloat16", "attn_implementation=flash_attention_2", "revision=main")
    settings = [f"grpo.model_init_kwargs.{one}" for one in loading]
    config = read_config("small-gpu", [*settings, "grpo.use_liger_kernel=true"])
    assert len(config.grpo["model_init_kwargs"]) == 3


def test_an_estimate_of_a_config_that_names_code_says_so_and_runs_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    written(model / "config.json", '{"auto_map": {"AutoConfig": "own.Config"}}')
    written(model / "own.py", OWN)
    text = f"base = 'small-gpu'\n[model]\npath = '{model}'\n[grpo.model_init_kwargs]\n"
    config = written(tmp_path / "x.toml", f"{text}trust_remote_code = true\n")
    assert main(["train", config, "--dry-run"]) == 2
    said = capsys.readouterr().err
    assert said == (
        "podium: [grpo] model_init_kwargs.trust_remote_code would run code that comes with a "
        "model: leave it out.\n"
    )
    assert not (model / "it-ran").exists()


def test_a_suite_in_python_is_named_by_a_command_and_not_by_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = f"{Path(written(tmp_path / 'own.py', OWN)).name}@suite"
    monkeypatch.chdir(tmp_path)  # a name of up to 80 characters is shown whole
    config = written(tmp_path / "x.toml", f'base = "practice-cpu"\n[suites]\nnames = ["{own}"]\n')
    with pytest.raises(UserError, match=r"names Python code, .*own.py@suite"):
        read_config(config)
    assert main(["train", config, "--dry-run"]) == 2
    assert not (tmp_path / "it-ran").exists()
    settings = [f'suites.names=["{own}"]', "suites.weights={}"]
    assert read_config("practice-cpu", settings).suites.names == (own,)


def test_a_file_of_ablations_names_no_suite_in_python(tmp_path: Path) -> None:
    rows = '[ablations.a]\nsays = "a"\nset = { suites = { names = ["own.py@suite"] } }\n'
    path = tmp_path / "rows.toml"
    written(path, f'config = "practice-cpu"\nreference = "a"\n{rows}')
    with pytest.raises(UserError, match="names Python code"):
        read_ablations(path)


@pytest.mark.parametrize(
    ("model", "args", "said"),
    [
        ("hf/them/model", "trust_remote_code = true", r"line 7, .*args\.trust_remote_code would"),
        ("vllm/them/model", '"trust-remote-code" = true', "would run code"),
        ("vllm/them/model", "tool_parser_plugin = 'x.py'", "would run code"),
        ("vllm/them/model", "worker_extension_cls = 'x.Y'", "would run code"),
        ("vllm/them/model", "kv_transfer_config = {kv_connector_module_path = 'x'}", "would run"),
        ("vllm/them/model", "extra = '--trust-remote-code'", "would run code"),
        ("sglang/them/model", "trust_remote_code = false", "would run code"),
        ("hf/them/model", "attn_implementation = 'them/kernel'", "would run code"),
        ("hf/them/model", "weights_only = false", "would run code"),
    ],
)
def test_a_pool_that_would_run_code_is_refused_with_its_line(
    tmp_path: Path, model: str, args: str, said: str
) -> None:
    head = f'label = "live"\nprices = "none"\n\n[[workers]]\nname = "a"\nmodel = "{model}"\n'
    with pytest.raises(UserError, match=said):
        read_pool(written(tmp_path / "pool.toml", f"{head}args = {{ {args} }}\n"))


@pytest.mark.parametrize("args", ["base_url", "default_headers", "gpu_memory_utilization", "model"])
def test_an_argument_without_code_is_an_argument(args: str) -> None:
    assert [*code_settings({args: {"inner": [1, "x/y"]}})] == []
