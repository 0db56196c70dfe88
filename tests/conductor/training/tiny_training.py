"""A training of seconds: a model of ten thousand weights, a toy config, the real command."""

import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

TINY = """
[model.from_scratch]
hidden = 32
intermediate = 64
layers = 1
heads = 2
kv_heads = 1
vocab = 512
context = 512

[pool]
name = "rehearsal"

[suites]
names = ["practice-integer", "practice-choice"]
train = 24

[form]
layout = "compact"
examples = false
cards = false

[warm_start]
kind = "random-plans"
steps = 100
batch = 16
learning_rate = 1e-2

[grpo]
max_steps = 6
num_generations = 4
per_device_train_batch_size = 16
max_completion_length = 48
learning_rate = 2e-3
lr_scheduler_type = "cosine"
warmup_steps = 1
loss_type = "dapo"
beta = 0.0

[reward]
deduplicate = true

[validation]
every = 2
questions = 6

[run]
device = "cpu"
save_every = 2
"""

QUIET = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def tiny_config(folder: Path) -> Path:
    """Write the configuration and return its path."""
    path = folder / "tiny.toml"
    path.write_text(TINY)
    return path


def command(config: Path, out: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "podium", "train", str(config), "--out", str(out), *words]


def begun(config: Path, out: Path, *words: str) -> subprocess.Popen[str]:
    """Start a training in a process of its own."""
    return subprocess.Popen(
        command(config, out, *words),
        env={**os.environ, **QUIET},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def trained(config: Path, out: Path, *words: str) -> str:
    """Train to the end in a process of its own and return what was printed."""
    return finished(command(config, out, *words))


def together(processes: int, config: Path, out: Path, *words: str) -> list[str]:
    """Return the command that trains in several processes."""
    alone = command(config, out, *words)
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    return [alone[0], *launch, *alone[1:]]


def finished(words: list[str]) -> str:
    """Run a command to its end and return what was printed."""
    done = subprocess.run(
        words,
        env={**os.environ, **QUIET},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def lines(out: Path) -> list[dict[str, Any]]:
    """Return the lines of a run without what depends on the machine."""
    found = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [_timeless(line) for line in found]


def _timeless(line: dict[str, Any]) -> dict[str, Any]:
    kept = {
        key: value for key, value in line.items() if not key.endswith(("seconds", "memory_gib"))
    }
    if "validation" in kept:
        kept["validation"] = _timeless(kept["validation"])
    return kept


def trained_here(config: Path, out: Path, *words: str) -> str:
    """Train in this process, which has loaded torch already, and return what was printed."""
    code, said = _here(config, out, *words)
    assert code == 0, said
    return said


def refused_here(config: Path, out: Path, *words: str) -> str:
    """Return the sentence with which a training is refused in this process."""
    code, said = _here(config, out, *words)
    assert code == 2, said
    return said


def _here(config: Path, out: Path, *words: str) -> tuple[int, str]:
    from podium.cli import main

    os.environ.update(QUIET)
    with StringIO() as said, redirect_stdout(said), redirect_stderr(said):
        code = main(["train", str(config), "--out", str(out), *words])
        return code, said.getvalue()
