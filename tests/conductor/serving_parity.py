"""The same plans from a checkpoint wherever it runs: the embedded decoder, transformers, vLLM.

    python tests/conductor/serving_parity.py FOLDER [--url http://localhost:8000/v1]
        [--transformers] [--questions 20] [--max-tokens 96] [--suites practice-integer ...]

FOLDER is a checkpoint with podium.json. Each practice question is put to the conductor by podium's
own pool, in the checkpoint's own form, once to `embedded/FOLDER` and once to the server's model
through Inspect's `openai-api` provider (and to transformers in this process). Prints one JSON
object: how many texts are equal, and the seconds that each took.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from inspect_ai.model import ChatMessage, GenerateConfig, Model, get_model

from podium.cli.list_commands import whole_catalogue
from podium.conductor.checkpoint import CheckpointInfo, read_info
from podium.conductor.prompt import plan_prompt
from podium.harness.pool import Pool
from podium.harness.pool_config import read_pool
from podium.harness.records import CONDUCTOR

SUITES = ("practice-integer", "practice-choice", "practice-composed")
FOUR = (*SUITES, "practice-code")
"""With programs, whose texts are long: too long for a toy that reads letter by letter."""


@dataclass(frozen=True, slots=True)
class Said:
    """What one of them said, and how long it took for all."""

    texts: list[str]
    seconds: float


def requests_of(
    about: CheckpointInfo, count: int, names: Sequence[str] = SUITES
) -> list[list[ChatMessage]]:
    """Return what a conductor is asked about practice questions, in turn by suite."""
    cards = [worker.card for worker in read_pool("rehearsal").workers]
    suites = whole_catalogue().suites
    each = [suites[name].load("eval")[: count // len(names) + 1] for name in names]
    asked = [question for row in zip(*each, strict=False) for question in row][:count]
    return [plan_prompt(about.form, question.text, cards) for question in asked]


def by_pool(model: Model, asked: Sequence[list[ChatMessage]]) -> Said:
    """Return what a pool's conductor says."""
    pool = Pool(models={"worker": model, CONDUCTOR: model})

    async def each() -> list[str]:
        await pool.ask(CONDUCTOR, asked[0], "warm up")
        begun.append(time.perf_counter())
        return [(await pool.ask(CONDUCTOR, one, "plan")).text for one in asked]

    begun: list[float] = []
    texts = anyio.run(each)
    return Said(texts, time.perf_counter() - begun[0])


def by_transformers(folder: Path, asked: Sequence[list[ChatMessage]], most: int) -> Said:
    """Return what transformers' greedy decoding says to the checkpoint's own chat template."""
    import torch  # pyright: ignore[reportMissingImports]
    import transformers  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(folder)

    def said(messages: list[ChatMessage]) -> str:
        chat = [{"role": one.role, "content": one.text} for one in messages]
        text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        tokens = tokenizer(text, add_special_tokens=False, return_tensors="pt")
        with torch.inference_mode():
            found = model.generate(
                **{name: tokens[name] for name in ("input_ids", "attention_mask")},
                max_new_tokens=most,
                do_sample=False,
                pad_token_id=0,
            )
        new = found[0, tokens["input_ids"].shape[1] :]
        return tokenizer.decode(new, skip_special_tokens=True)

    return timed(lambda: [said(one) for one in asked])


def timed(work: Callable[[], list[str]]) -> Said:
    begun = time.perf_counter()
    texts = work()
    return Said(texts, time.perf_counter() - begun)


def served(url: str, name: str, config: GenerateConfig) -> Model:
    """Return a server's model, as `[conductor] model = "openai-api/serving/NAME"` names it."""
    where: dict[str, Any] = {"base_url": url, "api_key": "none"}
    return get_model(f"openai-api/serving/{name}", config=config, memoize=False, **where)


def main() -> int:
    """Compare and print; return 1 where texts differ."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url")
    parser.add_argument("--name", default="conductor")
    parser.add_argument("--transformers", action="store_true")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--suites", nargs="+", default=list(SUITES))
    args = parser.parse_args()
    asked = requests_of(read_info(args.folder), args.questions, args.suites)
    config = GenerateConfig(temperature=0, max_tokens=args.max_tokens)
    ours = by_pool(get_model(f"embedded/{args.folder}", config=config, memoize=False), asked)
    others: dict[str, Said] = {}
    if args.url:
        others["server"] = by_pool(served(args.url, args.name, config), asked)
    if args.transformers:
        others["transformers"] = by_transformers(args.folder, asked, args.max_tokens)
    report: dict[str, Any] = {
        "questions": len(asked),
        "characters": sum(map(len, ours.texts)),
        "embedded_s": round(ours.seconds, 3),
    }
    for name, other in others.items():
        equal = sum(one == two for one, two in zip(ours.texts, other.texts, strict=True))
        report[name] = {"equal": equal, "seconds": round(other.seconds, 3)}
    sys.stdout.write(f"{json.dumps(report)}\n")
    return int(any(one["equal"] < len(asked) for one in report.values() if isinstance(one, dict)))


if __name__ == "__main__":
    sys.exit(main())
