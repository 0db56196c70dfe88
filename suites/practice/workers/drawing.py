"""Pools of rehearsal workers: drawn from a prior, calibrated on real models' replies, frozen.

    python -m podium.suites.practice.workers.drawing 1 > harness/pools/drawn-1.toml
    python -m podium.suites.practice.workers.drawing --data DIR > calibration.toml
    python -m podium.suites.practice.workers.drawing freeze

The text of a drawn pool follows from its seed alone; a test compares the shipped files with it.
"""

import csv
import gzip
import hashlib
import io
import json
import math
import random
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from statistics import mean, median

from pydantic import BaseModel, ConfigDict

from podium.harness.errors import UserError
from podium.harness.pool_config import POOLS, PoolSpec, pool_of, read_pool
from podium.harness.prices import BOOKS
from podium.suites.practice.workers.workers import count_tokens, find_worker

HERE = Path(__file__).parent
FROZEN = HERE / "frozen.toml"


class Span(BaseModel):
    """The bounds between which one quantity of a pool or worker is drawn."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    least: float
    most: float

    def log_uniform(self, rng: random.Random) -> float:
        """Return a random factor between the bounds, uniform in its logarithm."""
        return math.exp(rng.uniform(math.log(self.least), math.log(self.most)))


class Prior(BaseModel):
    """The prior of drawn pools, as prior.toml declares it: which workers, and how they may vary."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    candidates: tuple[str, ...]
    tiers: tuple[str, ...]
    workers: Span
    slip_factor: Span
    verbosity_factor: Span


def role_cards() -> dict[str, str]:
    """Return worker name -> card, the description of the worker for conductors (cards.toml)."""
    return tomllib.loads((HERE / "cards.toml").read_text(encoding="utf-8"))


def draw_pool(seed: int) -> str:
    """Return the TOML text of the pool that a seed draws from the prior."""
    lines = [
        f"# Drawn from prior.toml: python -m podium.suites.practice.workers.drawing {seed}",
        *_head(f"drawn-{seed}", f"Pool {seed} drawn from the declared prior of rehearsal pools."),
    ]
    cards = role_cards()
    for name, *settings in _drawn(random.Random(f"podium drawn pool {seed}"), _prior()):
        lines += _worker(name, name, cards[name], settings)
    return "\n".join([*lines, *CONDUCTOR]) + "\n"


def draw_many(count: int) -> PoolSpec:
    """Return `count` pools joined to one, to train conductors; worker names end in pool numbers.

    No seed is that of a pool on which conductors are evaluated. Cards come in several wordings.
    """
    prior, cards = _prior(), role_cards()
    wordings = tomllib.loads((HERE / "wordings.toml").read_text(encoding="utf-8"))
    lines = _head(f"drawn-train-{count}", f"{count} pools drawn for training, none of an exam.")
    for number in range(count):
        rng = random.Random(f"podium drawn pool {TRAINING + number}")
        for name, *settings in _drawn(rng, prior):
            card = rng.choice([cards[name], *wordings[name]])
            lines += _worker(f"{name}.{number}", name, card, settings)
    return pool_of("\n".join([*lines, *CONDUCTOR]))


TRAINING = 1_000_000
"""The first seed of the pools on which conductors are trained."""
CONDUCTOR = ["", "[conductor]", 'model = "rehearsal/planner"', "config = { temperature = 1.0 }"]


def _head(name: str, description: str) -> list[str]:
    return [
        f'name = "{name}"',
        'label = "rehearsal"',
        'prices = "rehearsal"',
        f'description = "{description}"',
    ]


def _prior() -> Prior:
    return Prior.model_validate(tomllib.loads((HERE / "prior.toml").read_text(encoding="utf-8")))


def _drawn(rng: random.Random, prior: Prior) -> Iterator[tuple[str, str, str]]:
    """Yield the workers of a pool: name of the program, price tier, and a line of arguments."""
    size = rng.randint(int(prior.workers.least), int(prior.workers.most))
    for name in rng.sample(prior.candidates, size):
        worker = find_worker(name)
        factor = prior.slip_factor.log_uniform(rng)
        verbosity = worker.verbosity * prior.verbosity_factor.log_uniform(rng)
        args = (
            f"args = {{ slip = {worker.slip * factor:.5f}, "
            f"code_slip = {worker.code_slip * factor:.5f}, verbosity = {verbosity:.3f} }}"
        )
        yield name, rng.choice(prior.tiers), args


def _worker(name: str, program: str, card: str, settings: Sequence[str]) -> list[str]:
    tier, args = settings
    return [
        "",
        "[[workers]]",
        f'name = "{name}"',
        f'model = "rehearsal/{program}"',
        f"card = {json.dumps(card)}",
        f'price = "rehearsal/{tier}"',
        "config = { temperature = 1.0, max_tokens = 2048 }",
        args,
    ]


# Calibration: the ranges that rehearsal workers must fall in, measured on recorded replies of real
# models. Only aggregates leave the data. A question counts as failed when fewer than half of a
# model's samples pass (LiveCodeBench's matrix has ten samples).
COMMAND = "python -m podium.suites.practice.workers.drawing --data DIR > calibration.toml"
Figures = dict[str, float | int]


def leaderboard(content: bytes) -> Figures:
    """Return the spread of accuracies and error correlations of LiveCodeBench's leaderboard."""
    by_model: dict[str, dict[str, float]] = {}
    for row in json.loads(content)["performances"]:
        by_model.setdefault(row["model"], {})[row["question_id"]] = row["pass@1"] / 100
    questions = sorted(next(iter(by_model.values())))
    failed = {m: [scores[q] < 0.5 for q in questions] for m, scores in by_model.items()}
    return {
        "models": len(by_model),
        "questions": len(questions),
        **_spread("accuracy", [mean(scores.values()) for scores in by_model.values()]),
        **_spread("phi", [phi(failed[a], failed[b]) for a, b in combinations(sorted(failed), 2)]),
    }


def phi(left: Sequence[bool], right: Sequence[bool]) -> float:
    """Return the correlation (phi) of two models' lists of failures on the same questions.

    >>> phi([True, True, False, False], [True, True, False, False])
    1.0
    """
    n = len(left)
    both = sum(a and b for a, b in zip(left, right, strict=True))
    a, b = sum(left), sum(right)
    spread = (a * (n - a) * b * (n - b)) ** 0.5
    return (n * both - a * b) / spread if spread else 0.0


def lighteval(content: bytes) -> Figures:
    """Return the spread of AIME25 accuracies and output tokens of four small reasoning models."""
    rows = [json.loads(line) for line in content.splitlines()]
    models = sorted({row["model"] for row in rows})
    tokens = [mean(r["out_tokens"] for r in rows if r["model"] == m) for m in models]
    return {
        "models": len(models),
        "replies": len(rows),
        **_spread("accuracy", [mean(r["metric"] for r in rows if r["model"] == m) for m in models]),
        "out_tokens_ratio": round(max(tokens) / min(tokens), 3),
    }


def submissions(content: bytes) -> Figures:
    """Return pass@1 and the spread of reply lengths of a code model, ten samples a question."""
    rows = json.loads(content)
    lengths = sorted(count_tokens(reply) for row in rows for reply in row["output_list"])
    tenth = len(lengths) // 10
    return {
        "questions": len(rows),
        "accuracy": round(mean(mean(r["graded_list"]) for r in rows), 3),
        "tokens_mean": round(mean(lengths), 1),
        "tokens_p90_to_p10": round(lengths[-tenth - 1] / max(1, lengths[tenth]), 3),
    }


def routerbench(content: bytes) -> Figures:
    """Return the spread of accuracies and mean reply lengths of models with the same questions."""
    csv.field_size_limit(sys.maxsize)
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    names = [n.removesuffix("|model_response") for n in rows[0] if n.endswith("|model_response")]
    means = [mean(count_tokens(row[f"{name}|model_response"]) for row in rows) for name in names]
    return {
        "models": len(names),
        "questions": len(rows),
        **_spread("accuracy", [mean(float(row[name]) for row in rows) for name in names]),
        "tokens_ratio": round(max(means) / min(means), 3),
        "tokens_ratio_to_median": round(max(means) / median(means), 3),
    }


def _spread(name: str, values: Sequence[float]) -> Figures:
    of = {"min": min(values), "median": median(values), "max": max(values)}
    return {f"{name}_{which}": round(value, 3) for which, value in of.items()}


_GUNI = "lcb_v6_guni/output_test6__{}__eval_all.json.gz"
_LEADERBOARD = "lcb_leaderboard_matrix/performances_generation_v6_16models_1055q.json.gz"
SOURCES: Mapping[str, tuple[str, Callable[[bytes], Figures]]] = {
    "leaderboard": (_LEADERBOARD, leaderboard),
    "lighteval": ("saturn_lighteval/aime25_4models.jsonl.gz", lighteval),
    "code_deepseek": (_GUNI.format("DSCoder-V2-Lite-Instruct"), submissions),
    "code_gemma": (_GUNI.format("Gemma-2-9b-Ins"), submissions),
    "code_qwen": (_GUNI.format("Qwen2.5-Coder-Ins-7B"), submissions),
    "routerbench": ("routerbench_zs/mbpp_test.csv.gz", routerbench),
}


def calibration_toml(data: Path) -> str:
    """Return the text of calibration.toml: per data source its file, sha256 and figures."""
    lines = ["# Ranges measured on recorded replies of real models; made by", f"# {COMMAND}"]
    for name, (file, method) in SOURCES.items():
        packed = (data / file).read_bytes()
        row = {"file": file, "sha256": hashlib.sha256(packed).hexdigest()}
        figures = {**row, **method(gzip.decompress(packed))}
        lines += ["", f"[{name}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in figures.items()]
    return "\n".join(lines) + "\n"


def workers_digest() -> str:
    """Return one sha256 over all that defines rehearsal workers: programs, tables, pools, prices.

    A changed reply changes every number of a rehearsal, so it needs a new version in frozen.toml
    and a line under "Scores" in CHANGELOG.md.
    """
    rehearsals = [one for one in POOLS.glob("*.toml") if read_pool(str(one)).label == "rehearsal"]
    tables = [path for path in HERE.glob("*.toml") if path != FROZEN]
    books, total = sorted(BOOKS.glob("rehearsal*.toml")), hashlib.sha256()
    for path in (*sorted(HERE.glob("*.py")), *sorted(tables), *sorted(rehearsals), *books):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.parent.name}/{path.name} {content}\n".encode())
    return total.hexdigest()


def frozen_digest() -> dict[str, str]:
    """Return frozen.toml: `version` and `date` of rehearsal workers, `sha256` of their files."""
    return tomllib.loads(FROZEN.read_text())


def main(words: Sequence[str]) -> str:
    """Return what the command line prints: a drawn pool, calibration.toml, or the frozen digest."""
    match words:
        case ["--data", data]:
            return calibration_toml(Path(data))
        case ["freeze"]:
            return f'sha256 = "{workers_digest()}"\n'
        case [seed] if seed.isdecimal():
            return draw_pool(int(seed))
        case _:
            raise UserError("Name a seed to draw a pool, --data DIR to calibrate, or freeze.")


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]))
