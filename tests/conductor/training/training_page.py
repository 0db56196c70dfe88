"""What trainings came to, as a page: from released logs, run folders and an evaluation's plans.

Reads files only. Not here: targets and the command (benchmarks/show_training.py), what the README
shows (readme_training.py).
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from statistics import fmean
from typing import Any

from podium.conductor.checkpoint import read_info
from podium.conductor.training.given_plans import PLANS
from podium.conductor.training.run_folder import MANIFEST, METRICS, read_lines
from podium.harness.errors import UserError
from podium.harness.ledger.journal import read_lines as journal_lines
from podium.reports.render import UNKNOWN, count, percent, usd

LATE = 20
"""Steps at the end of a training whose plans are looked at."""

HEAD = """\
# What the trainings came to

Rehearsal workers; dollars are of a made-up price book. Made by `tests/benchmarks/show_training.py`.

## Each seed

Right is greedy, on held-out questions (equally many of each exam); an adaptive training is shown a
part of the workers there too, so its figures are for smaller pools. A star marks the released seed,
the median by validation. Best is the highest of all validations and so optimistic; what picked
nothing is the `eval` split, in [fixed.md](fixed.md). Minutes are those of all steps and validations
beside other work on two cores, without the warm start. Seconds a step: the whole, and of it writing
plans, workers and grades, update. Calls and dollars are the training ledger's: a call that was paid
once is not made again. Steps a plan: mean of the last {late} steps."""

PLANNED = """\
## Whom it asks, exam by exam

The plans of each training's last {late} steps, sampled: steps a plan, and each worker's share of
the steps in percent. The released checkpoint is the best one, often of an earlier step, and plans
greedily: whom that asks is in EXPERIMENTS.md and `tests/benchmarks/plan_shapes.py` counts it. An
adaptive training is shown 2 to all of the workers, in an order of its own, for each question."""

SAID = """\
## What it asks them

Plans of the `eval` split (greedy): the share whose subtask holds
the answer (where that can be told), and right with and without those plans."""
Leaks = Mapping[str, float | None]  # as `plan_leaks` returns it


@dataclass(frozen=True, slots=True)
class Seed:
    """One training: its released log, and its folder where that is at hand."""

    config: str
    seed: int
    released: bool
    log: Path
    run: Path | None

    @property
    def name(self) -> str:
        """The seed, with a star where it is the released one."""
        return f"{self.seed}{'*' if self.released else ''}"


def found_seeds(config: str, released: Path, runs: Path | None) -> list[Seed]:
    """Return all seeds that were released; UserError where a run's folder is of another training.

    `released` holds a released checkpoint with its `log/`.
    """
    chosen = read_info(released).seed
    seeds: list[Seed] = []
    for log in sorted(released.glob("log/seed-*")):
        seed = int(log.name.removeprefix("seed-"))
        run = runs / f"{config}-{log.name}" if runs else None
        if run and not run.is_dir():
            run = None
        if run and (run / METRICS).read_bytes() != (log / METRICS).read_bytes():
            raise UserError(f"{run} is not the training that {log} was released of.")
        seeds.append(Seed(config, seed, seed == chosen, log, run))
    return seeds


def training_page(seeds: Sequence[Seed], said: Mapping[tuple[str, str], Leaks]) -> str:
    """Return the page; `said` has (config, seed) -> what its plans say."""
    parts = [HEAD.format(late=LATE), learning_table(seeds), PLANNED.format(late=LATE)]
    parts.append(_planned(seeds))
    if said:
        parts += [SAID, _said(seeds, said)]
    return "\n\n".join(parts) + "\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- each seed --------------------------------------------------------------------------------

LEARNT = ("training", "seed", "right at the start", "best at step", "right at best",
          "right at the end", "steps", "minutes", "seconds a step")  # fmt: skip
PAID = ("calls paid", "USD", "steps a plan")


def learning_table(seeds: Sequence[Seed]) -> str:
    """Return a line for each seed."""
    return table((*LEARNT, *PAID), [(*learnt(one), *_paid(one)) for one in seeds])


def learnt(one: Seed) -> tuple[str, ...]:
    """Return the cells that a released log alone gives."""
    lines = read_lines(one.log / METRICS)
    made = [(line["step"], line["validation"]) for line in lines if line.get("validation")]
    known = [(step, found["correct"]) for step, found in made if found["correct"] is not None]
    step, best = max(known, key=lambda pair: (pair[1], -pair[0]))
    seconds = sum(line.get("seconds", 0.0) for line in lines)
    seconds += sum(found["seconds"] for _, found in made)
    first, last = known[0], known[-1]
    return (
        f"`{one.config}`",
        one.name,
        percent(first[1]),
        str(step),
        percent(best),
        percent(last[1]),
        str(lines[-1]["step"]),
        f"{seconds / 60:.1f}",
        _step_seconds(lines),
    )


def _step_seconds(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return a step's mean seconds, and its parts'."""
    names = "seconds", "generation_seconds", "reward_seconds", "update_seconds"
    steps = [line for line in lines if all(name in line for name in names)]
    whole, *parts = (fmean(line[name] for line in steps) for name in names)
    return f"{whole:.1f} ({' + '.join(f'{part:.1f}' for part in parts)})"


def _paid(one: Seed) -> tuple[str, ...]:
    ends = [line["steps"] for line in read_lines(one.log / METRICS)[-LATE:]]
    late = f"{fmean(ends):.2f}"
    if one.run is None:
        return (UNKNOWN, UNKNOWN, late)
    calls, dollars = _bill(one.run)
    return (count(calls), usd(dollars), late)


def _bill(run: Path) -> tuple[int, Decimal | None]:
    """Return calls and would-be dollars of a training's journals; unknown dollars are None."""
    calls, known, dollars = 0, True, Decimal(0)
    for path in sorted(run.glob("ledger/ledger/*/*.jsonl")):
        for line in journal_lines(path):
            calls += line["kind"] == "intent"
            if line["kind"] == "outcome":
                known = known and line["usd"] is not None
                dollars += Decimal(line["usd"] or 0)
    return calls, dollars if known else None


# --- whom it asks -----------------------------------------------------------------------------


def _planned(seeds: Sequence[Seed]) -> str:
    rows: list[tuple[str, ...]] = []
    workers: list[str] = []
    for one in seeds:
        if one.run is None:
            continue
        workers = workers or json.loads((one.run / MANIFEST).read_text())["pool"]["workers"]
        plans = read_lines(one.run / PLANS)
        late = [line for line in plans if line["step"] > plans[-1]["step"] - LATE]
        for suite in sorted({line["suite"] for line in late}):
            rows.append(_planned_for(one, [x for x in late if x["suite"] == suite], workers))
    if not rows:
        return "No run folder was at hand."
    return table(("training", "seed", "exam", "plans", "steps", *workers), rows)


def _planned_for(
    one: Seed, lines: Sequence[dict[str, Any]], workers: Sequence[str]
) -> tuple[str, ...]:
    """Return one exam's line; plans that could not be read have no steps and do not count."""
    plans = [line["plan"] for line in lines if line["plan"]]
    shares = Counter(worker for plan in plans for worker, _ in plan)
    total = shares.total() or 1
    return (
        f"`{one.config}`",
        one.name,
        lines[0]["suite"],
        str(len(plans)),
        f"{shares.total() / len(plans):.2f}" if plans else UNKNOWN,
        *(f"{100 * shares[worker] / total:.0f}" for worker in workers),
    )


# --- what it asks them ------------------------------------------------------------------------

WORDS: Mapping[str, Callable[[Leaks], str]] = {
    "plans": lambda one: count(one["plans"]),
    "hold the answer, %": lambda one: percent(one["leaked"]),
    "right": lambda one: percent(one["right"]),
    "right without them": lambda one: percent(one["accuracy_unleaked"]),
}


def _said(seeds: Sequence[Seed], said: Mapping[tuple[str, str], Leaks]) -> str:
    rows = [
        (f"`{one.config}`", one.name, *(show(found) for show in WORDS.values()))
        for one in seeds
        if (found := said.get((one.config, str(one.seed))))
    ]
    return table(("training", "seed", *WORDS), rows)
