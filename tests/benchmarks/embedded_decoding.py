"""How long the embedded decoder takes for a plan, beside transformers' greedy on one CPU thread.

    python tests/benchmarks/embedded_decoding.py [--rounds 20] [--prompt 250] [--written 60]

A Qwen2 model of random weights (2 layers, hidden 128, 4 heads with 2 keys, tied, vocabulary 512),
which never ends by itself, so both write the same number of tokens. Needs podium[train] for the
peer; without it only ours is measured. Medians, and the best round.
"""

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.append(str(Path(__file__).parents[2]))

import numpy as np

from podium.conductor.decode import DecodeOptions, decode, one_thread
from podium.conductor.decoder import read_decoder
from tests.conductor.toy_checkpoint import Sizes, write_model

SIZES = Sizes(vocabulary=512, hidden=128, inner=384, layers=2, heads=4, kv_heads=2, context=1024)


def main() -> None:
    """Measure and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--prompt", type=int, default=250)
    parser.add_argument("--written", type=int, default=60)
    args = parser.parse_args()
    prompt = np.random.default_rng(1).integers(3, SIZES.vocabulary, args.prompt).tolist()
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder, SIZES, ends=[])
        model = read_decoder(folder)
        how = DecodeOptions(max_tokens=args.written)

        def ours() -> list[int]:
            with one_thread():
                return decode(model, prompt, how).tokens

        found: dict[str, Any] = {"parameters": model.parameters, "numpy": timed(ours, args)}
        theirs = peer(folder, prompt, args.written)
        if theirs:
            assert theirs() == ours(), "both write the same tokens"
            found["transformers"] = timed(theirs, args)
    print(json.dumps(found))


def timed(work: Callable[[], object], args: argparse.Namespace) -> dict[str, float]:
    """Return milliseconds of a round: median and least, after one that warms up."""
    work()
    took: list[float] = []
    for _ in range(args.rounds):
        begun = time.perf_counter()
        work()
        took.append((time.perf_counter() - begun) * 1000)
    return {"median_ms": round(statistics.median(took), 1), "least_ms": round(min(took), 1)}


def peer(folder: Path, prompt: list[int], written: int) -> Callable[[], list[int]] | None:
    """Return transformers' greedy decoding of the same checkpoint, None where it is absent."""
    try:
        import torch  # pyright: ignore[reportMissingImports]
        import transformers  # pyright: ignore[reportMissingImports]
    except ImportError:
        return None
    torch.set_num_threads(1)
    model: Any = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokens = torch.tensor([prompt])

    def greedy() -> list[int]:
        with torch.inference_mode():
            found = model.generate(
                tokens,
                attention_mask=torch.ones_like(tokens),
                max_new_tokens=written,
                do_sample=False,
                pad_token_id=0,
            )
        return found[0, len(prompt) :].tolist()

    return greedy


if __name__ == "__main__":
    main()
