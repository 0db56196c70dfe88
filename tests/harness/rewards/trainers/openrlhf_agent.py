"""Run by a Python that has openrlhf's files: its own executor asks our `reward_func`.

`python openrlhf_agent.py URL raise|zero`, where URL is a reward service for the exam of
small_suites.py. Prints one JSON object; test_trainers.py says what must be in it. The
packages above openrlhf/utils/agent.py are not run: they import DeepSpeed.
"""

import asyncio
import importlib.util
import json
import sys
import tempfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

MINE = """
from podium.harness.rewards.outcome import RewardClient
from podium.harness.rewards.trainers import openrlhf_reward
reward_func = openrlhf_reward(lambda: RewardClient({url!r}), on_unscored={on_unscored!r})
"""


def agent() -> Any:
    """Return openrlhf.utils.agent as the wheel has it."""
    spec = importlib.util.find_spec("openrlhf")
    assert spec is not None
    home = Path(*(spec.submodule_search_locations or ())[:1])
    for name, folder in (("openrlhf", home), ("openrlhf.utils", home / "utils")):
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return importlib.import_module("openrlhf.utils.agent")


class Tokenizer:
    """A token is a character; one beyond them is how a model ends."""

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        ids = [ord(one) for one in text]
        return {"input_ids": [SimpleNamespace(tolist=lambda: ids)]}

    def decode(self, ids: list[int], skip_special_tokens: bool) -> str:
        return "".join("<|im_end|>" if one < 0 else chr(one) for one in ids)


class Engine:
    """Generates one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def generate(self, *_: Any, **__: Any) -> Any:
        ids = [*(ord(one) for one in self.text), -1]
        made = SimpleNamespace(token_ids=ids, finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[made])


async def executed(executor: Any, n: int, text: str) -> dict[str, Any]:
    """Return what the executor fills in for one generation."""
    sampling = SimpleNamespace(max_tokens=100, logprobs=None)
    made = await executor.execute(
        f"Say {n}.", f"graded/q{n}", sampling, 1000, Tokenizer(), Engine(text)
    )
    return {key: made[key] for key in ("reward", "scores", "extra_logs")}


async def main(url: str, on_unscored: str) -> list[dict[str, Any]]:
    """Reward four generations at once, each in a thread of its own."""
    with tempfile.TemporaryDirectory() as folder:
        mine = Path(folder, "my_reward.py")
        mine.write_text(MINE.format(url=url, on_unscored=on_unscored))
        executor = agent().SingleTurnAgentExecutor(str(mine))
        said = ["0", "7", "broken", "?"]
        return await asyncio.gather(*(executed(executor, n, text) for n, text in enumerate(said)))


if __name__ == "__main__":
    print(json.dumps(asyncio.run(main(*sys.argv[1:]))))
