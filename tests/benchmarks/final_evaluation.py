"""The final evaluation of the trained conductors on practice suites: one command, resumable.

    python tests/benchmarks/final_evaluation.py --runs training --out evaluation

Parts: `fixed` (all seeds of all trainings beside the whole field, on the pool that they conducted),
`changed` (that pool in another order and with workers left out), `regimes` (pools on which
orchestration should not win, a conductor of either reward trained on each), `drawn` (pools from the
declared prior, by the adaptive checkpoint, by conductors trained on other drawn pools and, with
--train-drawn, by one trained on each), `profiled` (drawn pools, four of them written here, by the
policies that plan by profiles, beside who learns there with the same --train-calls). Each ends in a
table of targets; leads.md holds all pools. Dry: --split validation --limit 2 --parts changed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from podium.conductor.checkpoint import cards_digest, read_info, write_info
from podium.harness.pool_config import POOLS, read_pool

SUITES = ("practice-integer", "practice-choice", "practice-code", "practice-composed")
POOL = "rehearsal"
REGIMES = ("rehearsal-dominant", "rehearsal-homogeneous", "rehearsal-correlated")
DRAWN = range(1, 9)
LEFT_OUT = 2
"""Workers that a pool with workers left out lacks."""
FIELD = (
    "single", "best-single", "self-consistency", "self-moa", "moa-lite", "best-of-n", "debate",
    "self-reflection", "planner-executor-verifier", "router-knn", "router-cluster",
    "router-logistic", "router-mf", "template-router", "random-worker", "random-workflow", "oracle",
)  # fmt: skip
BESIDE = ("single", "best-single", "moa-lite", "oracle")
TRAINED = ("practice-cpu", "practice-cpu-cost-aware", "practice-cpu-adaptive",
           "practice-cpu-recursive")  # fmt: skip
FIXED, CHEAP, ADAPTIVE, _ = TRAINED
PROFILED = "practice-cpu-profiled"
LATER = range(9, 13)
"""Pools of the same prior that are written for the exam of `PROFILED`, after its trainings."""
UNMET = "practice-cpu-drawn"
"""Trained on drawn pools, none of them one of `drawn`, where `template-router` learns beside it."""


@dataclass(frozen=True, slots=True)
class Sitting:
    """One pool, who sits its exams, and where."""

    name: str
    pool: str
    systems: tuple[str, ...]


def podium(*words: str) -> None:
    """Run one command of podium; CalledProcessError where it fails."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "podium", *words], check=True, env=env)


def seeds(runs: Path, config: str, system: str = "conductor") -> list[str]:
    """Return the systems of all seeds of a training, in order."""
    found = sorted(runs.glob(f"{config}-seed-*/best"))
    return [f"{system}@{path}" for path in found]


def later_pools(folder: Path) -> list[Path]:
    """Write the pools that no training and no earlier exam has."""
    drawing = ("-m", "podium.suites.practice.workers.drawing")
    found: list[Path] = []
    for seed in LATER:
        done = subprocess.run(
            [sys.executable, *drawing, f"{seed}"], check=True, capture_output=True, text=True
        )
        found.append(_written(folder / f"drawn-{seed}.toml", done.stdout))
    return found


def changed_pools(folder: Path) -> list[Path]:
    """Write the pool in two other orders, and twice with workers left out; fixed by their seeds."""
    head, *workers = (POOLS / f"{POOL}.toml").read_text().split("[[workers]]\n")
    last, _, tail = workers[-1].partition("[conductor]")
    workers[-1] = last
    found: list[Path] = []
    for kind, kept in (("permuted", len(workers)), ("left-out", len(workers) - LEFT_OUT)):
        for seed in (1, 2):
            name = f"{POOL}-{kind}-{seed}"
            drawn = Random(f"podium {name}").sample(workers, kept)
            blocks = "".join(f"[[workers]]\n{one.strip()}\n\n" for one in drawn)
            text = head.replace(f'name = "{POOL}"', f'name = "{name}"')
            found.append(_written(folder / f"{name}.toml", f"{text}{blocks}[conductor]{tail}"))
    return found


def as_if_its_own(system: str, pool: Path, folder: Path) -> str:
    """Return a copy of a conductor that says it was trained on a pool, for podium refuses others.

    What a conductor of one pool does on a changed one is asked here on purpose, and nowhere else.
    """
    source = Path(system.partition("@")[2])
    copy = folder / pool.stem / source.parent.name / source.name
    shutil.copytree(source, copy, dirs_exist_ok=True)
    about = read_info(copy)
    spec = read_pool(f"{pool}")
    cards = cards_digest([one.card for one in spec.workers]) if about.cards_sha256 else ""
    write_info(replace(about, workers=spec.names, cards_sha256=cards), copy)
    return f"conductor@{copy}"


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def trained_on(pool: str, given: argparse.Namespace, config: str = FIXED) -> str:
    """Train a conductor on a pool, or resume or skip that; return its system."""
    folder = given.out / "training" / f"{Path(pool).stem}{config.removeprefix(FIXED)}-seed-0"
    if not (folder / "last" / "podium.json").is_file():
        again = ["--resume"] if (folder / "manifest.json").is_file() else []
        sets = [f"pool.name={pool}", f"grpo.max_steps={given.steps}"]
        words = [word for one in sets for word in ("--set", one)]
        podium("train", config, "--out", f"{folder}", "--seed", "0", *words, *again)
    return f"conductor@{folder / 'best'}"


def system_runs(part: str, given: argparse.Namespace) -> list[Sitting]:
    """Return what a part runs, after training what it needs."""
    runs, pools = given.runs, given.out / "pools"
    adaptive = seeds(runs, ADAPTIVE)
    if part == "fixed":
        every = [one for config in TRAINED for one in seeds(runs, config)]
        return [Sitting("fixed", POOL, (*every, "conductor-untrained", *FIELD))]
    if part == "changed":
        fixed, copies = seeds(runs, FIXED), given.out / "copies"
        found = [
            (one, [as_if_its_own(who, one, copies) for who in fixed])
            for one in changed_pools(pools)
        ]
        return [
            Sitting(f"changed-{one.stem}", f"{one}", (*adaptive, *own, *BESIDE))
            for one, own in found
        ]
    if part == "regimes":
        both = FIXED, CHEAP
        own = {one: [trained_on(one, given, reward) for reward in both] for one in REGIMES}
        return [Sitting(one, one, (*own[one], *BESIDE)) for one in REGIMES]
    if part == "profiled":
        mine = seeds(runs, PROFILED, "conductor-profiled")
        mine += seeds(runs, PROFILED, "conductor-profiled-shuffled")
        pools_ = [f"drawn-{seed}" for seed in DRAWN] + [f"{one}" for one in later_pools(pools)]
        beside = ("best-single", "template-router", "conductor-profiled-untrained")
        learnt = f"-{given.train_calls}" if given.train_calls else ""
        return [
            Sitting(f"profiled{learnt}-{Path(pool).stem}", pool, (*mine, *beside))
            for pool in (*pools_, *REGIMES[:2])
        ]
    drawn: list[Sitting] = []
    unmet = seeds(runs, UNMET)
    for seed in DRAWN:
        pool = f"drawn-{seed}"
        own = [trained_on(pool, given)] if given.train_drawn else []
        drawn.append(Sitting(pool, pool, (*adaptive, *unmet, *own, *BESIDE, "template-router")))
    return drawn


def sit(one: Sitting, given: argparse.Namespace) -> Path:
    """Run one pool's exams and write its targets; return their folder."""
    logs = given.out / "logs" / one.name
    suites = [word for suite in SUITES for word in ("--suite", suite)]
    systems = [word for name in one.systems for word in ("--system", name)]
    some = ["--limit", f"{given.limit}"] if given.limit else []
    often = ["--epochs", f"{given.epochs}"] if given.epochs else []
    often += ["--train-calls", f"{given.train_calls}"] if given.train_calls else []
    podium(
        "run", *suites, *systems, "--pool", one.pool, "--split", given.split,
        "--log-dir", f"{logs}", "--display", "none", *some, *often,
    )  # fmt: skip
    targets = Path(__file__).with_name("targets.py")
    subprocess.run([sys.executable, targets, logs, "--out", logs / "report"], check=True)
    return logs / "report" / "targets.json"


def leads(found: dict[str, Path]) -> str:
    """Return every pool's lead over its best single worker, losses included."""
    heads = ("pool", "conductor", "mean", "best single", "its mean", "lead", "interval",
             "dollars beside it", "of the oracle's lead")  # fmt: skip
    lines = [heads, ("---",) * len(heads)]
    for name, path in found.items():
        held = json.loads(path.read_text())
        field = {one["name"]: one for one in held["field"]}
        lines.extend(_lead(name, one, field) for one in held["trained"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _lead(pool: str, one: dict[str, Any], field: dict[str, Any]) -> tuple[str, ...]:
    singles = [each for each in one["against"] if each["other"].startswith("single:")]
    near = min(singles, key=lambda each: each["found"]["mean"])
    mine, best, found = field[one["name"]], field[near["other"]], near["found"]
    ends = found["interval"] or (found["mean"], found["mean"])
    share = one["reach"][0]["share"] if one["reach"] else None
    ratio = mine["usd"] / best["usd"] if mine["usd"] is not None and best["usd"] else None
    return (
        pool,
        one["name"],
        f"{100 * mine['mean']:.1f}",
        near["other"],
        f"{100 * best['mean']:.1f}",
        f"{100 * found['mean']:+.1f}",
        f"[{100 * ends[0]:+.1f},{100 * ends[1]:+.1f}]",
        "-" if ratio is None else f"{ratio:.2f} x",
        "-" if share is None else f"{100 * share:.0f} %",
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run the parts, and write leads.md after each pool."""
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ("fixed", "changed", "regimes", "drawn", "profiled")
    parser.add_argument("--runs", type=Path, default=Path("training"), help="of make reproduce")
    parser.add_argument("--out", type=Path, default=Path("evaluation"))
    parser.add_argument("--parts", nargs="+", default=list(parts), choices=parts)
    parser.add_argument("--split", default="eval", choices=("eval", "validation"))
    parser.add_argument("--limit", type=int, help="first N questions of each suite (all)")
    parser.add_argument("--epochs", type=int, help="times each question is asked (1)")
    parser.add_argument("--train-calls", type=int, help="worker calls that each may learn from")
    parser.add_argument("--steps", type=int, default=60, help="of GRPO on each pool of its own")
    parser.add_argument("--train-drawn", action="store_true", help="train on each drawn pool, too")
    given = parser.parse_args(words)
    found: dict[str, Path] = {}
    for part in given.parts:
        for one in system_runs(part, given):
            found[one.name] = sit(one, given)
            _written(given.out / "leads.md", leads(found))
    print((given.out / "leads.md").read_text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
