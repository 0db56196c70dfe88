"""Run by a Python that has verl: its own loader and its own reward manager ask our file.

`python verl_manager.py URL raise|zero`, where URL is a reward service for the exam of
small_suites.py. Prints one JSON object; test_trainers.py says what must be in it.
"""

import asyncio
import json
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch
from omegaconf import OmegaConf
from verl import DataProto
from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
from verl.trainer.ppo.reward import get_custom_reward_fn

SAID = ["0", "7", "broken", "?"]


class Tokenizer:
    """A token is a character."""

    def decode(self, ids: torch.Tensor, skip_special_tokens: bool) -> str:
        return "".join(chr(int(one)) for one in ids)


def row(n: int, reply: str) -> DataProto:
    """Return a generation as verl holds it, the question named in the data set's columns."""
    ids = torch.tensor([[ord(one) for one in reply]])
    return DataProto.from_dict(
        tensors={"responses": ids, "attention_mask": torch.ones_like(ids)},
        non_tensors={
            "data_source": np.array(["graded"], dtype=object),
            "reward_model": np.array([{"ground_truth": ""}], dtype=object),
            "extra_info": np.array([{"question": f"q{n}"}], dtype=object),
        },
    )


async def main(url: str, on_unscored: str) -> list[Any]:
    """Reward four generations at once; an exception is told by its name."""
    spec = find_spec("podium.harness.rewards.trainers")
    assert spec is not None
    asked = {"path": spec.origin, "name": "compute_score"}
    kwargs = {"url": url, "on_unscored": on_unscored}
    reward = {"custom_reward_function": {**asked, "reward_kwargs": kwargs}}
    config = OmegaConf.create({"reward": reward})
    compute = get_custom_reward_fn(config)
    manager = NaiveRewardManager(config, Tokenizer(), compute)
    work = (manager.run_single(row(n, reply)) for n, reply in enumerate(SAID))
    made = await asyncio.gather(*work, return_exceptions=True)
    return [type(one).__name__ if isinstance(one, BaseException) else one for one in made]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
