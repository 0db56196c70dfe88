"""Generation of plans in training: sampled or greedy, with merged adapters, and with a callback."""
# pyright: basic, reportMissingImports=false
# torch's libraries have no types here: they are installed elsewhere.

import shutil
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers import CompileConfig, StoppingCriteria

Told = Callable[[Sequence[int], Sequence[str]], None]
"""Callback for plans that have just ended: it gets their rows' indices in the batch, and their
texts."""


class MergedAdapters:
    """Context manager: merges LoRA adapters into copies of their base weights during generation.

    Base weights are never changed, so rounding errors do not add up. The copies keep their memory
    addresses, because a CUDA graph reads from the addresses at which it was recorded.
    """

    def __init__(self, model: Any) -> None:
        """Find the model's layers with LoRA adapters; there are none if all weights are trained."""
        self.layers: list[Any] = []
        if hasattr(model, "peft_config"):
            from peft.tuners.tuners_utils import BaseTunerLayer

            self.layers = [layer for layer in model.modules() if isinstance(layer, BaseTunerLayer)]
        self._copies: list[Any] = []

    @contextmanager
    def __call__(self) -> Generator[None]:
        """Merge the adapters; restore the base weights at the end."""
        bases = [layer.get_base_layer() for layer in self.layers]
        weights = [base.weight.data for base in bases]
        try:
            for layer in self.layers:
                layer.merge(safe_merge=True)  # safe_merge: the result is a new tensor
            if self._copies:
                for base, copy in zip(bases, self._copies, strict=True):
                    base.weight.data = copy.copy_(base.weight.data)
            self._copies = [base.weight.data for base in bases]
            yield
        finally:
            for layer, base, weight in zip(self.layers, bases, weights, strict=True):
                base.weight.data = weight
                layer.merged_adapters.clear()


class _EndsTold(StoppingCriteria):
    """Calls `notify` for the rows of a batch that reached an end token; it never stops a row."""

    def __init__(self, tokenizer: Any, begins: int, ends: Any, notify: Told) -> None:
        self._tokenizer, self._begins, self._told = tokenizer, begins, notify
        self._ends, self._open = ends, None

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        none = torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)
        running = ~none if self._open is None else self._open
        finished = running & torch.isin(input_ids[:, -1], self._ends)
        self._open = running & ~finished
        if rows := finished.nonzero().flatten().tolist():
            completions = input_ids[rows, self._begins :]
            self._told(rows, self._tokenizer.batch_decode(completions, skip_special_tokens=True))
        return none


def sampled_ids(
    model: Any, tokenizer: Any, prompts: Sequence[Sequence[int]], config: Any, notify: Told | None
) -> list[list[int]]:
    """Return token ids of one sampled completion per prompt, with the end token if reached."""
    batch = tokenizer.pad({"input_ids": list(prompts)}, padding_side="left", return_tensors="pt")
    batch = batch.to(model.device)
    begins = batch["input_ids"].shape[1]
    ends = torch.tensor(config.eos_token_id, device=model.device)
    telling = [_EndsTold(tokenizer, begins, ends, notify)] if notify else []
    with torch.no_grad():
        written = model.generate(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            generation_config=config,
            stopping_criteria=telling,
        )[:, begins:]
    is_end = torch.isin(written, ends).int()
    masks = (is_end.cumsum(1) - is_end == 0).cpu()  # up to the first end token, no padding
    return [row[mask].tolist() for row, mask in zip(written.cpu(), masks, strict=True)]


def record_graphs(config: Any) -> None:
    """Let transformers compile decoding into CUDA graphs if `cache_implementation` is `static`.

    Without graphs each token costs a kernel launch per operation, even for few rows. Graphs need no
    C compiler; with one, operations are also fused.
    """
    if config.cache_implementation != "static":
        return
    config.disable_compile = False
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        config.compile_config = CompileConfig(backend="cudagraphs", mode=None)


def greedy_texts(
    model: Any, tokenizer: Any, prompts: Sequence[str], most_tokens: int, size: int
) -> list[str]:
    """Return each prompt's greedy completion, in batches of `size`; the model stays in its mode."""
    was, side = model.training, tokenizer.padding_side
    # If FSDP2 shards weights, all processes must stop together; None: transformers decides.
    divided = any(type(parameter).__name__ == "DTensor" for parameter in model.parameters()) or None
    model.eval()
    tokenizer.padding_side = "left"
    texts: list[str] = []
    for start in range(0, len(prompts), size):
        some = list(prompts[start : start + size])
        batch = tokenizer(some, return_tensors="pt", padding=True, add_special_tokens=False)
        with torch.no_grad():
            written = model.generate(
                input_ids=batch["input_ids"].to(model.device),
                attention_mask=batch["attention_mask"].to(model.device),
                do_sample=False,
                max_new_tokens=most_tokens,
                pad_token_id=tokenizer.pad_token_id,
                eos_token_id=tokenizer.eos_token_id,
                synced_gpus=divided,
            )
        new = written[:, batch["input_ids"].shape[1] :]
        texts += tokenizer.batch_decode(new, skip_special_tokens=True)
    model.train(was)
    tokenizer.padding_side = side
    return texts
