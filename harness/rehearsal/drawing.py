"""Draw pools of rehearsal workers from the declared prior (prior.toml).

    python -m harness.rehearsal.drawing 1 > harness/pools/drawn-1.toml

The text of a drawn pool follows from its seed; a test holds the shipped files to it.
"""

import json
import math
import random
import sys
import tomllib
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from harness.rehearsal.workers import find_worker


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


def cards() -> dict[str, str]:
    """Return the role cards by worker."""
    path = Path(__file__).with_name("cards.toml")
    return {
        name: str(card) for name, card in tomllib.loads(path.read_text(encoding="utf-8")).items()
    }


def draw(seed: int) -> str:
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
        f"card = {json.dumps(cards()[name])}",
        f'price = "rehearsal/{tier}"',
        "config = { temperature = 1.0, max_tokens = 2048 }",
        f"args = {{ slip = {worker.slip * factor:.5f}, "
        f"code_slip = {worker.code_slip * factor:.5f}, verbosity = {verbosity:.3f} }}",
    ]


def _log_uniform(span: Span, rng: random.Random) -> float:
    return math.exp(rng.uniform(math.log(span.least), math.log(span.most)))


def main() -> None:
    """Print the pool drawn by the seed on the command line."""
    sys.stdout.write(draw(int(sys.argv[1])))


if __name__ == "__main__":
    main()
