"""How many seconds of slow workers are hidden behind plans that are still written; same steps?

    PYTHONPATH=. python tests/benchmarks/rewards_ahead.py --rounds 2

The released conductor is trained for three steps on rehearsal workers that sleep, in alternated
rounds with rewards begun ahead and after; figures are per step, its first step left out.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

SETTINGS = (
    *("model.path=trained", "warm_start.kind=none", "grpo.max_steps=3", "run.tensorboard=false"),
    *("grpo.per_device_train_batch_size=32", "validation.every=1000", "validation.questions=1"),
    *("reward.concurrency=64", "run.save_every=1000", "suites.weights={}", "suites.train=40"),
    'suites.names=["practice-integer", "practice-composed"]',
)
PARTS = ("seconds", "generation_seconds", "ahead_seconds", "reward_seconds", "update_seconds")


def steps(folder: Path, ahead: bool, scale: float) -> list[dict[str, Any]]:
    """Train, and return the lines of its steps."""
    config = folder / "slow.toml"
    config.write_text('base = "practice-cpu"\n[model]\npath = "trained"\n')
    out = folder / ("ahead" if ahead else "after")
    more = (*SETTINGS, f"reward.ahead={str(ahead).lower()}", f"reward.time_scale={scale}")
    sets = [word for one in more for word in ("--set", one)]
    words = [sys.executable, "-W", "ignore", "-m", "podium", "train", str(config)]
    subprocess.run([*words, "--out", str(out), *sets], check=True, stdout=subprocess.DEVNULL)
    lines = (out / "metrics.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["step"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--scale", type=float, default=0.3)
    args = parser.parse_args()
    found: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for _ in range(args.rounds):
        with TemporaryDirectory() as folder:
            both = {ahead: steps(Path(folder), ahead, args.scale) for ahead in (False, True)}
        plain = [
            [(line["reward"], line["loss"], line["usd"]) for line in one] for one in both.values()
        ]
        print("same steps:", plain[0] == plain[1])
        for ahead, lines in both.items():
            found[ahead] += lines[1:]
    for ahead, lines in found.items():
        means = {part: round(fmean(line[part] for line in lines), 2) for part in PARTS}
        print("ahead" if ahead else "after", json.dumps(means))


if __name__ == "__main__":
    main()
