"""How a model writes: in one arithmetic, from merged adapters, from a static cache, told of ends.

No model is trained; its weights are random, so it ends where chance has it.
"""

from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.conductor.training.tiny_training import tiny_config

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
torch: Any = pytest.importorskip("torch", reason=WHY)
pytest.importorskip("trl", reason=WHY)

from transformers import (  # noqa: E402  # pyright: ignore[reportMissingImports]
    CompileConfig,
    GenerationConfig,
)

from podium.cli.list_commands import controls, whole_catalogue  # noqa: E402
from podium.conductor.training.config import TrainingConfig, read_config  # noqa: E402
from podium.conductor.training.generation import (  # noqa: E402
    MergedAdapters,
    greedy_texts,
    record_graphs,
    sampled_ids,
)
from podium.conductor.training.job import TrainingJob, find_job  # noqa: E402
from podium.conductor.training.model import build_model, warm_start  # noqa: E402
from podium.conductor.training.trainer import Validator  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs

HALF = ("grpo.bf16=true", "warm_start.steps=1", "warm_start.batch=2")


def job(folder: Path, *settings: str) -> TrainingJob:
    config = read_config(str(tiny_config(folder)), settings)
    return find_job(config, folder, whole_catalogue(), controls().bare)


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> TrainingJob:
    """A training that computes in bf16, on a CPU."""
    return job(tmp_path_factory.mktemp("half"), *HALF)


Start = tuple[Any, Any, list[str]]


@pytest.fixture(scope="module")
def start(half: TrainingJob) -> Start:
    """A model that nobody has trained, its tokenizer, and eight prompts."""
    torch.manual_seed(1)
    shown = [half.prompts.shown(row) for row in half.rows(8)]
    return *build_model(half.config, shown), [one.prompt for one in shown]


def copied(start: Start) -> tuple[Any, Any]:
    return deepcopy(start[0]), start[1]


def computed(model: Any) -> set[Any]:
    """Return a set that fills with the types in which the model computes from now on."""
    seen: set[Any] = set()
    last: Any = model.model.layers[-1].mlp.down_proj
    last.register_forward_hook(lambda module, given, out: seen.add(out.dtype))
    return seen


def test_a_warm_start_computes_in_bf16_and_its_weights_stay_float32(
    half: TrainingJob, start: Start, tmp_path: Path
) -> None:
    model, tokenizer = copied(start)
    seen = computed(model)
    shown = [half.prompts.shown(row) for row in half.rows(4)]
    warm_start(half.config, model, tokenizer, shown, tmp_path)
    assert seen == {torch.bfloat16}
    assert {one.dtype for one in model.parameters()} == {torch.float32}


def test_what_training_begins_with_is_validated_in_the_arithmetic_of_an_update(
    half: TrainingJob, start: Start
) -> None:
    model, tokenizer = copied(start)
    seen, nobody = computed(model), None
    watching: Any = nobody
    validator = Validator(half, watching, (), most_tokens=3)
    validator.texts(model, tokenizer, half.validation_rows()[:2])
    assert seen == {torch.bfloat16}


def with_adapters(model: Any, dtype: Any) -> Any:
    peft = pytest.importorskip("peft", reason=WHY)
    found: Any = peft.get_peft_model(
        model.to(dtype), peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM")
    )
    torch.manual_seed(2)
    for name, values in found.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(values, std=0.2)
    return found


def test_merged_adapters_write_what_adapters_write_and_leave_every_weight_as_it_was(
    start: Start,
) -> None:
    bare, tokenizer = copied(start)
    plain = greedy_texts(bare, tokenizer, start[2], 24, 8)
    model = with_adapters(bare, torch.float32)
    before = {name: values.clone() for name, values in model.state_dict().items()}
    merged = MergedAdapters(model)
    apart = greedy_texts(model, tokenizer, start[2], 24, 8)
    for _ in range(2):  # the second time into the copies of the first
        with merged():
            assert all(layer.merged for layer in merged.layers)
            assert greedy_texts(model, tokenizer, start[2], 24, 8) == apart != plain
    assert not any(layer.merged for layer in merged.layers)
    after = model.state_dict()
    assert all(torch.equal(values, after[name]) for name, values in before.items())


def test_weights_of_bf16_do_not_drift_however_often_adapters_are_merged(start: Start) -> None:
    model = with_adapters(copied(start)[0], torch.bfloat16)
    before = {name: values.clone() for name, values in model.state_dict().items()}
    merged, places = MergedAdapters(model), set[int]()
    for _ in range(5):
        with merged():
            places.add(merged.layers[0].get_base_layer().weight.data_ptr())
    assert len(places) == 1  # where a CUDA graph would read
    after = model.state_dict()
    assert all(torch.equal(values, after[name]) for name, values in before.items())


def test_a_model_that_breaks_off_while_it_writes_is_unmerged_all_the_same(
    start: Start,
) -> None:
    model = with_adapters(copied(start)[0], torch.float32)
    merged = MergedAdapters(model)
    with pytest.raises(KeyboardInterrupt), merged():
        raise KeyboardInterrupt
    assert not any(layer.merged for layer in merged.layers)


def sampling(tokenizer: Any, **given: Any) -> Any:
    return GenerationConfig(
        max_new_tokens=24,
        do_sample=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=[tokenizer.eos_token_id, *range(40, 60)],  # some ends come early
        disable_compile=True,
        **given,
    )


def sampled(
    start: Start, config: Any = None, **given: Any
) -> tuple[list[list[int]], list[tuple[int, str]], list[str]]:
    """Return completions, what was told as they ended, and their texts."""
    model, tokenizer = copied(start)
    ids = [tokenizer.encode(prompt) for prompt in start[2]]
    told: list[tuple[int, str]] = []

    def tell(rows: Sequence[int], texts: Sequence[str]) -> None:
        told.extend(zip(rows, texts, strict=True))

    torch.manual_seed(3)
    config = config or sampling(tokenizer, **given)
    written = sampled_ids(model, tokenizer, ids, config, tell)
    return written, told, tokenizer.batch_decode(written, skip_special_tokens=True)


def test_every_plan_that_ends_is_told_once_with_the_text_that_is_scored(start: Start) -> None:
    written, told, texts = sampled(start)
    ends = [at for at, ids in enumerate(written) if len(ids) < 24]
    assert len(ends) > 2
    assert len({len(ids) for ids in written}) > 2
    assert sorted(told) == [(at, texts[at]) for at in ends]
    assert [len(written[at]) for at, _ in told] == sorted(len(written[at]) for at in ends)


@pytest.mark.slow
def test_a_static_cache_and_a_compiled_step_write_the_same_tokens(start: Start) -> None:
    plain, *_ = sampled(start)
    assert sampled(start, cache_implementation="static")[0] == plain
    assert sampled(start, cache_implementation="static", max_cache_len=256)[0] == plain
    compiled = sampling(copied(start)[1], cache_implementation="static")
    record_graphs(compiled)
    assert not compiled.disable_compile
    compiled.compile_config = CompileConfig(backend="eager", mode=None)
    compiled.compile_config._compile_all_devices = True  # a GPU's path, taken by a CPU
    assert sampled(start, compiled)[0] == plain


def test_a_cache_that_grows_is_not_compiled(start: Start) -> None:
    config = sampling(copied(start)[1])
    record_graphs(config)
    assert config.disable_compile


@pytest.mark.parametrize("name", ["small-gpu", "paper-7b"])
def test_what_is_trained_on_a_gpu_with_transformers_writes_from_a_static_cache(name: str) -> None:
    config: TrainingConfig = read_config(name)
    vllm = bool(config.grpo.get("use_vllm"))
    assert (config.grpo.get("cache_implementation") == "static") != vllm
