"""Greedy plans for fixed questions, and what they are worth: validation.

Each process writes its share of the plans; the first one has them carried out and graded, by the
reward's own code. Greedy decoding draws no random number, so training goes on as if nobody had
looked.
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from conductor.training.job import Training
from conductor.training.rows import Row
from conductor.training.watch import Watching, mean, summary, worker_shares
from harness.rewards.outcome import RewardItem
from harness.rewards.trainers import run_in_loop


@dataclass(frozen=True, slots=True)
class Validator:
    """What a validation needs, whatever model it looks at."""

    training: Training
    watching: Watching
    rows: Sequence[Row]
    most_tokens: int

    def texts(self, model: Any, tokenizer: Any, rows: Sequence[Row]) -> list[str]:
        """Return the greedy completion of each row's prompt."""
        size = self.training.config.validation.batch
        asking = self.training.asking
        found: list[str] = []
        for at in range(0, len(rows), size):
            prompts = [
                tokenizer.apply_chat_template(
                    asking.messages(row), tokenize=False, add_generation_prompt=True
                )
                for row in rows[at : at + size]
            ]
            found.extend(greedy(model, tokenizer, prompts, self.most_tokens))
        return found

    def judged(self, rows: Sequence[Row], texts: Sequence[str]) -> dict[str, Any]:
        """Return what these plans came to, over all and by suite."""
        started = monotonic()
        items = [
            RewardItem(row.suite, row.question, text, row.epoch, 0, row.workers, row.first)
            for row, text in zip(rows, texts, strict=True)
        ]
        run_in_loop(self.watching.score(items))
        seen = self.watching.take()
        read = self.training.read_plan
        right = [one.components.get("correct") for one in seen.outcomes]
        by_suite = {
            suite: mean(
                [r for i, r in zip(items, right, strict=True) if i.suite == suite and r is not None]
            )
            for suite in self.training.held_out
        }
        return {
            **summary(seen, read),
            "suites": by_suite,
            "workers": worker_shares(seen, read),
            "questions": len(items),
            "seconds": round(monotonic() - started, 3),
        }


def part_of(rows: Sequence[Row], rank: int, processes: int) -> list[Row]:
    """Return the rows that one process writes, as many in each: the last row is written twice.

    Where weights are divided, a batch is written by all processes together: one that had a batch
    less would leave the others waiting.

    >>> [len(part_of([Row("s", str(n)) for n in range(5)], rank, 2)) for rank in (0, 1)]
    [3, 3]
    """
    each = -(-len(rows) // processes)
    mine = list(rows[rank::processes])
    return [*mine, *list(rows[-1:]) * (each - len(mine))]


def _divided(model: Any) -> bool | None:
    """Return True for weights that torch's FSDP2 divides; None leaves it to transformers."""
    return any(type(one).__name__ == "DTensor" for one in model.parameters()) or None


def greedy(model: Any, tokenizer: Any, prompts: Sequence[str], most_tokens: int) -> list[str]:
    """Return greedy completions of some prompts; the model's mode is left as it was."""
    import torch

    was, side = model.training, tokenizer.padding_side
    model.eval()
    tokenizer.padding_side = "left"
    batch = tokenizer(list(prompts), return_tensors="pt", padding=True, add_special_tokens=False)
    with torch.no_grad():
        written = model.generate(
            input_ids=batch["input_ids"].to(model.device),
            attention_mask=batch["attention_mask"].to(model.device),
            do_sample=False,
            max_new_tokens=most_tokens,
            pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id,
            synced_gpus=_divided(model),  # then no process stops before the last one has ended
        )
    model.train(was)
    tokenizer.padding_side = side
    new = written[:, batch["input_ids"].shape[1] :]
    return list(tokenizer.batch_decode(new, skip_special_tokens=True))
