"""Draw pools of rehearsal workers from the declared prior (prior.toml).

python -m harness.rehearsal.drawing 1 > harness/pools/drawn-1.toml
"""

import argparse
import csv
import gzip
import hashlib
import io
import json
import math
import random
import statistics
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from harness.pool_config import POOLS, read_pool
from harness.prices import BOOKS
from harness.rehearsal.chat import count_tokens
from harness.rehearsal.workers import find_worker

# § Draw pools of rehearsal workers from the declared prior (prior.toml).
# §
# §     python -m harness.rehearsal.drawing 1 > harness/pools/drawn-1.toml
# §
# § The text of a drawn pool follows from its seed; a test holds the shipped files to it.


class Span(BaseModel):
    """Bounds of one drawn quantity."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    least: float
    most: float


class Prior(BaseModel):
    """The prior as it is declared."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    candidates: tuple[str, ...]
    tiers: tuple[str, ...]
    workers: Span
    slip_factor: Span
    verbosity_factor: Span


def read_prior() -> Prior:
    """Return the declared prior."""
    path = Path(__file__).with_name("prior.toml")
    return Prior.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


def role_cards() -> dict[str, str]:
    """Return the role cards by worker."""
    path = Path(__file__).with_name("cards.toml")
    return {
        name: str(card) for name, card in tomllib.loads(path.read_text(encoding="utf-8")).items()
    }


def draw_pool(seed: int) -> str:
    """Return the TOML text of the pool that a seed draws from the prior."""
    prior, rng = read_prior(), random.Random(f"podium drawn pool {seed}")
    size = rng.randint(int(prior.workers.least), int(prior.workers.most))
    names = rng.sample(prior.candidates, size)
    lines = [
        f"# Drawn from harness/rehearsal/prior.toml: python -m harness.rehearsal.drawing {seed}",
        f'name = "drawn-{seed}"',
        'label = "rehearsal"',
        'prices = "rehearsal"',
        f'description = "Pool {seed} drawn from the declared prior of rehearsal pools."',
    ]
    for name in names:
        lines += ["", "[[workers]]", *_slot(name, prior, rng)]
    lines += ["", "[conductor]", 'model = "rehearsal/planner"', "config = { temperature = 1.0 }"]
    return "\n".join(lines) + "\n"


def _slot(name: str, prior: Prior, rng: random.Random) -> list[str]:
    worker = find_worker(name)
    factor = _log_uniform(prior.slip_factor, rng)
    verbosity = worker.verbosity * _log_uniform(prior.verbosity_factor, rng)
    tier = rng.choice(prior.tiers)
    return [
        f'name = "{name}"',
        f'model = "rehearsal/{name}"',
        f"card = {json.dumps(role_cards()[name])}",
        f'price = "rehearsal/{tier}"',
        "config = { temperature = 1.0, max_tokens = 2048 }",
        f"args = {{ slip = {worker.slip * factor:.5f}, "
        f"code_slip = {worker.code_slip * factor:.5f}, verbosity = {verbosity:.3f} }}",
    ]


def _log_uniform(span: Span, rng: random.Random) -> float:
    return math.exp(rng.uniform(math.log(span.least), math.log(span.most)))


def main() -> None:
    """Print the pool drawn by the seed on the command line."""
    sys.stdout.write(draw_pool(int(sys.argv[1])))


if __name__ == "__main__":
    main()


# § Measure, on recorded replies of real models, the ranges that rehearsal workers must fall
# § in.
# §
# §     python -m harness.rehearsal.drawing --data DIR > harness/rehearsal/calibration.toml
# §
# § Accuracy, correlation of errors between models (phi), and lengths of replies to the same
# § prompts.
# § Only aggregates leave the data; the file names every source with its sha256. A question
# § counts as
# § failed when fewer than half of a model's samples pass (LiveCodeBench's matrix has ten
# § samples).


COMMAND = "python -m harness.rehearsal.drawing --data DIR > harness/rehearsal/calibration.toml"
Figures = dict[str, float | int]


def leaderboard(content: bytes) -> Figures:
    """Return accuracies and error correlations of the LiveCodeBench leaderboard's models."""
    by_model: dict[str, dict[str, float]] = {}
    for row in json.loads(content)["performances"]:
        by_model.setdefault(row["model"], {})[row["question_id"]] = row["pass@1"] / 100
    accuracies = [statistics.mean(scores.values()) for scores in by_model.values()]
    questions = sorted(next(iter(by_model.values())))
    failed = {m: [scores[q] < 0.5 for q in questions] for m, scores in by_model.items()}
    phis = [phi(failed[a], failed[b]) for a, b in combinations(sorted(failed), 2)]
    return {
        "models": len(by_model),
        "questions": len(questions),
        **_spread("accuracy", accuracies),
        **_spread("phi", phis),
    }


def phi(left: Sequence[bool], right: Sequence[bool]) -> float:
    """Return the correlation of two lists of failures.

    >>> phi([True, True, False, False], [True, True, False, False])
    1.0
    """
    n = len(left)
    both = sum(a and b for a, b in zip(left, right, strict=True))
    a, b = sum(left), sum(right)
    spread = (a * (n - a) * b * (n - b)) ** 0.5
    return (n * both - a * b) / spread if spread else 0.0


def lighteval(content: bytes) -> Figures:
    """Return AIME25 accuracies and output tokens of four small reasoning models."""
    rows = [json.loads(line) for line in content.splitlines()]
    models = sorted({row["model"] for row in rows})
    accuracies = [statistics.mean(r["metric"] for r in rows if r["model"] == m) for m in models]
    tokens = [statistics.mean(r["out_tokens"] for r in rows if r["model"] == m) for m in models]
    return {
        "models": len(models),
        "replies": len(rows),
        **_spread("accuracy", accuracies),
        "out_tokens_ratio": round(max(tokens) / min(tokens), 3),
    }


def submissions(content: bytes) -> Figures:
    """Return pass@1 and the spread of reply lengths of one code model, ten samples a question."""
    rows = json.loads(content)
    lengths = sorted(count_tokens(reply) for row in rows for reply in row["output_list"])
    tenth = len(lengths) // 10
    return {
        "questions": len(rows),
        "accuracy": round(statistics.mean(statistics.mean(r["graded_list"]) for r in rows), 3),
        "tokens_mean": round(statistics.mean(lengths), 1),
        "tokens_p90_to_p10": round(lengths[-tenth - 1] / max(1, lengths[tenth]), 3),
    }


def routerbench(content: bytes) -> Figures:
    """Return mean reply lengths, longest model to shortest, of models asked the same programs."""
    csv.field_size_limit(sys.maxsize)
    rows = list(csv.DictReader(io.StringIO(content.decode())))
    columns = [name for name in rows[0] if name.endswith("|model_response")]
    means = [statistics.mean(count_tokens(row[column]) for row in rows) for column in columns]
    scores = [
        statistics.mean(float(row[column.removesuffix("|model_response")]) for row in rows)
        for column in columns
    ]
    return {
        "models": len(columns),
        "questions": len(rows),
        **_spread("accuracy", scores),
        "tokens_ratio": round(max(means) / min(means), 3),
        "tokens_ratio_to_median": round(max(means) / statistics.median(means), 3),
    }


def _spread(name: str, values: Sequence[float]) -> Figures:
    return {
        f"{name}_min": round(min(values), 3),
        f"{name}_median": round(statistics.median(values), 3),
        f"{name}_max": round(max(values), 3),
    }


_GUNI = "lcb_v6_guni/output_test6__{}__eval_all.json.gz"
SOURCES: Mapping[str, tuple[str, Callable[[bytes], Figures]]] = {
    "leaderboard": (
        "lcb_leaderboard_matrix/performances_generation_v6_16models_1055q.json.gz",
        leaderboard,
    ),
    "lighteval": ("saturn_lighteval/aime25_4models.jsonl.gz", lighteval),
    "code_deepseek": (_GUNI.format("DSCoder-V2-Lite-Instruct"), submissions),
    "code_gemma": (_GUNI.format("Gemma-2-9b-Ins"), submissions),
    "code_qwen": (_GUNI.format("Qwen2.5-Coder-Ins-7B"), submissions),
    "routerbench": ("routerbench_zs/mbpp_test.csv.gz", routerbench),
}


def measure_replies(data: Path) -> dict[str, dict[str, str | float | int]]:
    """Return the figures of every source, with the file's name and sha256."""
    found: dict[str, dict[str, str | float | int]] = {}
    for name, (file, method) in SOURCES.items():
        packed = (data / file).read_bytes()
        digest = hashlib.sha256(packed).hexdigest()
        found[name] = {"file": file, "sha256": digest, **method(gzip.decompress(packed))}
    return found


def calibration_toml(figures: Mapping[str, Mapping[str, str | float | int]]) -> str:
    """Return the figures as the text of calibration.toml."""
    lines = ["# Ranges measured on recorded replies of real models; made by", f"# {COMMAND}"]
    for name, row in figures.items():
        lines += ["", f"[{name}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in row.items()]
    return "\n".join(lines) + "\n"


def calibrate() -> None:
    """Print calibration.toml."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--data", type=Path, required=True)
    sys.stdout.write(calibration_toml(measure_replies(parser.parse_args().data)))


if __name__ == "__main__":
    calibrate()


# § The digest of all that rehearsal workers are: programs, tables, pools, prices.
# §
# §     python -m harness.rehearsal.drawing
# §
# § prints what `frozen.toml` must hold. Whoever changes a worker changes every rehearsal
# § number, so the
# § change is made knowingly: a new version there, a line under "Scores" in CHANGELOG.md.


HERE = Path(__file__).parent
FROZEN = HERE / "frozen.toml"


def workers_digest() -> str:
    """Return one sha256 over every frozen file, names included."""
    total = hashlib.sha256()
    for path in _files():
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        total.update(f"{path.parent.name}/{path.name} {content}\n".encode())
    return total.hexdigest()


def frozen_digest() -> dict[str, str]:
    """Return what was frozen: `version`, `date` and `sha256`."""
    return tomllib.loads(FROZEN.read_text())


def _files() -> Iterator[Path]:
    yield from sorted(path for path in HERE.glob("*.py"))
    yield from sorted(path for path in HERE.glob("*.toml") if path != FROZEN)
    yield from sorted(
        path for path in POOLS.glob("*.toml") if read_pool(str(path)).label == "rehearsal"
    )
    yield BOOKS / "rehearsal.toml"


if __name__ == "__main__":
    sys.stdout.write(f'sha256 = "{workers_digest()}"\n')
