"""The warm start: supervised steps on random valid plans, before any reward.

Cross-entropy on the plan's tokens, AdamW with a short warm-up and a cosine. Every step draws new
plans, so nothing is learnt by heart. Which plans those are is said in corpus.py. A checkpoint that
learns to be asked again keeps what it plans in first rounds: it learns its own plans beside.
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

import math
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from conductor.reading import read
from conductor.training.config import TrainingConfig
from conductor.training.corpus import corpus_of
from conductor.training.folder import WARM, append_line, is_main
from conductor.training.generating import greedy
from conductor.training.rows import Row, Shown
from harness.workflow import Workflow


def warm_start(
    config: TrainingConfig, model: Any, tokenizer: Any, rows: Sequence[Shown], folder: Path
) -> None:
    """Train a model in place; one line per 20 steps in `folder`/warm_start.jsonl."""
    import torch

    start, rng = config.warm_start, Random(config.run.seed)
    if is_main():
        (folder / WARM).unlink(missing_ok=True)  # of one that was killed: this one begins anew
    corpus = corpus_of(config, rows)
    if config.recursion and config.model.path:
        corpus.own = own_plans(config, model, tokenizer, rows)
    optimiser: Any = torch.optim.AdamW(model.parameters(), lr=start.learning_rate, weight_decay=0.0)
    model.train()
    for step in range(start.steps):
        for group in optimiser.param_groups:
            group["lr"] = start.learning_rate * _schedule(step, start.steps)
        drawn = rng.choices(rows, k=start.batch)
        texts = [corpus.drawn(one, rng) for one in drawn]
        loss = model(**_batch(tokenizer, texts)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if is_main() and (step % 20 == 0 or step + 1 == start.steps):
            append_line(folder / WARM, {"step": step, "loss": round(loss.item(), 4)})


def own_plans(
    config: TrainingConfig, model: Any, tokenizer: Any, rows: Sequence[Shown]
) -> dict[Row, str]:
    """Return what a model plans greedily in first rounds, without what is no plan."""
    most = int(config.grpo.get("max_completion_length", 256))  # TRL's own
    size, found = config.validation.batch, dict[Row, str]()
    for at in range(0, len(rows), size):
        some = rows[at : at + size]
        texts = greedy(model, tokenizer, [one.prompt for one in some], most)
        for one, text in zip(some, texts, strict=True):
            if isinstance(read(config.form, text, one.workers), Workflow):
                found[one.row] = text
    return found


def _schedule(step: int, steps: int) -> float:
    """Return the share of the learning rate: 20 steps up, then half a cosine down."""
    return min(1.0, (step + 1) / 20) * 0.5 * (1 + math.cos(math.pi * step / steps))


def _batch(tokenizer: Any, texts: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return padded ids, mask and labels; a prompt's tokens have no label."""
    import torch

    end = tokenizer.eos_token_id
    pairs = [
        (
            tokenizer.encode(prompt, add_special_tokens=False),
            [*tokenizer.encode(plan, add_special_tokens=False), end],
        )
        for prompt, plan in texts
    ]
    width = max(len(prompt) + len(plan) for prompt, plan in pairs)
    ids = [[*p, *c, *[tokenizer.pad_token_id] * (width - len(p) - len(c))] for p, c in pairs]
    labels = [[*[-100] * len(p), *c, *[-100] * (width - len(p) - len(c))] for p, c in pairs]
    mask = [[1] * (len(p) + len(c)) + [0] * (width - len(p) - len(c)) for p, c in pairs]
    return {
        "input_ids": torch.tensor(ids),
        "labels": torch.tensor(labels),
        "attention_mask": torch.tensor(mask),
    }
