"""What TRL makes of the shipped configurations, read back; and launch files that accelerate reads.

No model is made: a GRPOConfig is built on the CPU.
"""

from pathlib import Path
from typing import Any

import pytest

from podium.conductor.training.config import CONFIGS, read_config
from podium.conductor.training.grpo_options import grpo_config, lora_config
from podium.harness.errors import UserError

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
pytest.importorskip("trl", reason=WHY)

pytestmark = pytest.mark.filterwarnings("ignore")  # what torch's libraries warn of is theirs

ON_CPU = ("run.device=cpu", "grpo.use_vllm=false", "grpo.vllm_enable_sleep_mode=false")


def built(name: str, *settings: str, processes: int = 1) -> Any:
    return grpo_config(read_config(name, (*ON_CPU, *settings)), Path("nowhere"), processes)


def test_the_paper_s_configuration_is_what_trl_trains_with() -> None:
    found = built("paper-7b")
    assert found.max_steps == 200
    assert found.num_generations == 64
    assert found.generation_batch_size == 256
    assert found.gradient_accumulation_steps * found.per_device_train_batch_size == 256
    assert found.steps_per_generation == found.gradient_accumulation_steps
    assert found.temperature == 1.0
    assert found.max_completion_length == 1024
    assert found.beta == 0.0
    assert found.epsilon == 0.2
    assert (found.epsilon_high, found.num_iterations) == (None, 1)
    assert (found.adam_beta1, found.adam_beta2) == (0.9, 0.999)
    assert found.learning_rate == 1e-6
    assert found.lr_scheduler_type.value == "cosine"
    assert found.get_warmup_steps(200) == 6
    assert found.loss_type == "grpo"
    assert found.scale_rewards == "group"
    assert (found.top_p, found.top_k) == (1.0, 0)


@pytest.mark.parametrize("processes", [1, 2, 4, 16])
def test_the_whole_batch_is_one_step_on_any_number_of_processes(processes: int) -> None:
    config = read_config("paper-7b", ON_CPU)
    from podium.conductor.training.grpo_options import batch_sizes

    found = batch_sizes(config, processes)
    assert found["whole"] == 256
    assert found["accumulate"] * processes * 4 == 256
    assert found["rows"] == 200 * 4


@pytest.mark.parametrize("name", ["practice-cpu", "small-gpu", "paper-7b"])
def test_every_shipped_configuration_is_taken_by_trl(name: str) -> None:
    assert built(name).output_dir == "nowhere/checkpoints"
    assert built(name).log_completions is False
    assert built(name).shuffle_dataset is False


def test_a_misspelt_field_of_trl_is_refused_with_the_nearest() -> None:
    with pytest.raises(UserError, match="no key 'lerning_rate'; the nearest is 'learning_rate'"):
        built("practice-cpu", "grpo.lerning_rate=1")


def test_what_other_sections_decide_is_refused_in_grpo() -> None:
    with pytest.raises(UserError, match="seed cannot be set here"):
        built("practice-cpu", "grpo.seed=1")


def test_what_trl_refuses_is_one_sentence() -> None:
    with pytest.raises(UserError, match="TRL refuses"):
        built("practice-cpu", "grpo.lr_scheduler_type=nothing")


def test_adapters_are_asked_for_as_peft_has_them() -> None:
    pytest.importorskip("peft", reason=WHY)
    found: Any = lora_config(read_config("small-gpu"))
    assert (found.r, found.lora_alpha, found.target_modules) == (32, 64, "all-linear")
    assert lora_config(read_config("practice-cpu")) is None


@pytest.mark.parametrize("name", ["zero3", "zero3-offload", "fsdp2", "ddp"])
def test_accelerate_reads_every_launch_file(name: str) -> None:
    from accelerate.commands.config.config_args import (  # pyright: ignore
        load_config_from_file,
    )

    path = CONFIGS / "launch" / f"{name}.yaml"
    found: Any = load_config_from_file(str(path))
    assert found.num_machines == 1
    assert found.mixed_precision == "bf16"
    assert "-m podium train" in path.read_text()


def test_a_configuration_for_a_gpu_is_refused_where_there_is_none() -> None:
    torch: Any = pytest.importorskip("torch", reason=WHY)
    from podium.conductor.training.grpo_options import refuse_unready_machine

    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(
        UserError, match=r"trains on a GPU, but torch finds none\. Use practice-cpu"
    ):
        refuse_unready_machine(read_config("small-gpu"))
