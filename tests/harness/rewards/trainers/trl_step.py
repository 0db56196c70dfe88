"""Run by a Python that has trl: rewards of a real GRPOTrainer, and one step of training.

`python trl_step.py URL FOLDER`, where URL is a reward service for the exam of small_suites.py.
Prints one JSON object; test_trainers.py says what must be in it.
"""

import json
import math
import pickle
import sys
from pathlib import Path
from typing import Any

from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

from podium.harness.rewards.outcome import RewardClient
from podium.harness.rewards.trainers import TrlReward

ROWS = [{"prompt": f"Say {n}.", "suite": "graded", "question": f"q{n}"} for n in range(4)]


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of single characters, for no hub can be asked."""
    words = ["<pad>", "<eos>", *"0123456789.? Saybrokenfail"]
    vocabulary = {word: n for n, word in enumerate(dict.fromkeys(words))}
    plain = Tokenizer(models.WordLevel(vocabulary, unk_token="?"))
    plain.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    return PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>")


def trainer(reward: TrlReward, folder: Path) -> GRPOTrainer:
    """Return a trainer of a tiny random model on the rows of the exam."""
    made = tokenizer()
    config = Qwen2Config(
        vocab_size=len(made),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    arguments = GRPOConfig(
        output_dir=str(folder),
        max_steps=1,
        per_device_train_batch_size=4,
        num_generations=4,
        max_completion_length=2,
        logging_steps=1,
        report_to="none",
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
    )
    return GRPOTrainer(
        Qwen2ForCausalLM(config),
        reward_funcs=reward,
        args=arguments,
        train_dataset=Dataset.from_list(ROWS),
        processing_class=made,
    )


def rewards(made: GRPOTrainer, completions: list[Any]) -> list[float | None]:
    """Return what the trainer itself makes of four completions; None for NaN."""
    prompts = [row["prompt"] for row in ROWS]
    if not isinstance(completions[0], str):
        prompts = [[{"role": "user", "content": prompt}] for prompt in prompts]
    ids = [[1]] * len(prompts)
    column = made._calculate_rewards(ROWS, prompts, completions, ids)[:, 0].tolist()
    return [None if math.isnan(value) else value for value in column]


def main() -> None:
    """Reward replies in both forms, then train for a step."""
    url, folder = sys.argv[1:]
    reward = pickle.loads(pickle.dumps(TrlReward(RewardClient(url))))
    made = trainer(reward, Path(folder))
    said = ["0", "7", "broken", "?"]
    chats = [[{"role": "assistant", "content": text}] for text in said]
    plain, chat = rewards(made, said), rewards(made, chats)
    made.train()
    logged = {key: value for entry in made.state.log_history for key, value in entry.items()}
    print(json.dumps({"plain": plain, "chat": chat, "logged": logged}))


if __name__ == "__main__":
    main()
