"""The model to train: load or build it, warm it up by supervised steps, merge its adapters."""
# pyright: basic, reportMissingImports=false
# torch's libraries have no types here: they are not installed in this environment.

import math
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from podium.conductor.base_model import base_folder
from podium.conductor.checkpoint import (
    ADAPTED,
    ADAPTERS,
    BASE,
    INFO,
    RELEASED,
    renew_info,
    stands_on_base,
)
from podium.conductor.embedded import CHAT_TEMPLATE
from podium.conductor.parse import read_plan
from podium.conductor.training.config import LOOK_BACK, TrainingConfig, refuse_look_up_sizes
from podium.conductor.training.given_plans import NO_PLAN, read_plans
from podium.conductor.training.grpo_options import autocast, is_main, lora_config, weight_dtype
from podium.conductor.training.run_folder import BEST, LAST, MERGED, START, WARM, append_line
from podium.conductor.training.training_rows import (
    ChatTemplate,
    PlanCorpus,
    ShownRow,
    TrainingRow,
    plan_corpus,
)
from podium.harness.errors import UserError
from podium.harness.workflow import Workflow


def load_model(path: str, config: Any, dtype: str = "") -> tuple[Any, Any]:
    """Load a model and tokenizer from a folder or the Hugging Face Hub; UserError if it fails."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if (RELEASED / path / INFO).is_file():
        path = str(RELEASED / path)
    if (Path(path) / ADAPTERS).is_file():
        from peft import PeftConfig, PeftModel

        adapters: Any = PeftConfig.from_pretrained(path)
        base = str(adapters.base_model_name_or_path)
        if getattr(adapters, "megatron_config", None):  # peft would import a module that it names
            raise UserError(
                f"[model] path {path!r} has adapters of Megatron, which podium does not load. Use "
                "other adapters."
            )
        on_base = stands_on_base(Path(path))
        model, tokenizer = load_model(BASE if on_base else base, config, dtype)
        return PeftModel.from_pretrained(model, path, is_trainable=True), tokenizer
    if path == BASE:
        path = str(base_folder())
    auto: Any = AutoModelForCausalLM
    tokens: Any = AutoTokenizer
    options: dict[str, Any] = dict(config.grpo.get("model_init_kwargs") or {})
    options["dtype"] = dtype or weight_dtype(config)
    try:
        model = auto.from_pretrained(path, trust_remote_code=False, **options)
        tokenizer = tokens.from_pretrained(path, trust_remote_code=False)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        reason = reason.rstrip(".")
        fix = "Name a folder or a model of the Hugging Face Hub"
        raise UserError(f"[model] path {path!r} cannot be loaded: {reason}. {fix}.") from error
    if not tokenizer.chat_template:
        raise UserError(f"[model] path {path!r} has no chat template. Use an instruct model.")
    return model, tokenizer


def with_adapters(model: Any, config: TrainingConfig) -> Any:
    """Return a model with new LoRA adapters; a warm start also trains only the adapters."""
    from peft import get_peft_model

    return get_peft_model(model, lora_config(config))


def chat_template(tokenizer: Any) -> ChatTemplate:
    """Return a function that renders chat messages as a prompt, by a tokenizer's chat template."""
    return partial(tokenizer.apply_chat_template, tokenize=False, add_generation_prompt=True)


# --- attention that begins as a look-up ---------------------------------------------------------
#
# If workers change their order, the model must read a worker's number in the prompt: find the line
# whose card begins with a word, take the number before that word, and repeat it in the list.
# Transformers learn such steps as induction heads (arXiv 2209.11895). As in mimetic initialisation
# (arXiv 2305.09828), the initial weights set which positions attend to which, but no word, worker
# or number; the warm start trains them all. EXPERIMENTS.md has the measured effect.

LINES = (0, 1)
"""How many tokens before a query, and before a key, are the words that the first half of the second
layer's heads compares. A query at the word of `Looks3` (reasoning) finds the token after that word
in the prompt's line `3: Looks up`; the worker's number is 3 tokens before the token found."""
LISTS = (2, 3)
"""The same for the other half. A query 2 tokens after a number in the list `[3, ` finds the token
3 after the same number in the reasoning `Looks3, Does4`: the next number of the list."""
THETA = 1e6  # base of the rotary angles: fast pairs encode positions, slow ones compare words
FAST = 6  # pairs of dimensions that encode positions
SHARP, COPIED = 8.0, 0.2  # sharpness of attention to a position; scale of a copied word
ALIKE = {"word": 4.5, "copy": 1.8}  # weights in comparing equal words, and equal copies


def look_up(model: Any) -> None:
    """Initialise the first two layers of a Qwen2 model to look up workers' numbers, in place."""
    import torch

    config = model.config
    heads = config.num_attention_heads
    refuse_look_up_sizes(config.num_hidden_layers, heads, config.num_key_value_heads)
    lower, upper = (model.model.layers[n].self_attn for n in (0, 1))
    words = config.hidden_size // 2
    read = torch.linalg.qr(torch.randn(words, config.hidden_size // heads))[0].T
    with torch.no_grad():
        model.model.embed_tokens.weight[:, words:] = 0
        for layer in model.model.layers:
            layer.mlp.down_proj.weight.mul_(0.1)
        for projection in (lower.q_proj, lower.k_proj, upper.q_proj, upper.k_proj):
            projection.weight.mul_(0.1)
        upper.o_proj.weight.mul_(0.3)
        _look_back(lower, read)
        _compare(upper, read)


def _look_back(attention: Any, read: Any) -> None:
    """Make each head copy the token at its offset (`LOOK_BACK`), projected by `read`."""
    import torch

    wide, words = read.shape
    angles = THETA ** (-torch.arange(wide // 2).float() / (wide // 2))
    place = torch.where(torch.arange(wide // 2) < FAST, SHARP, 0.0)
    attention.v_proj.weight.zero_()
    attention.o_proj.weight.zero_()
    for head in range(len(attention.k_proj.bias) // wide):
        mine = slice(head * wide, (head + 1) * wide)
        attention.k_proj.bias[mine] = torch.cat([place, torch.zeros(wide // 2)])
        attention.v_proj.weight[mine, :words] = read
    for head, back in enumerate(LOOK_BACK):
        turned = torch.cat([place * torch.cos(-back * angles), place * torch.sin(-back * angles)])
        attention.q_proj.bias[head * wide : (head + 1) * wide] = turned
        copied = _copied(back, words)
        there = torch.arange(copied.stop - copied.start)
        attention.o_proj.weight[copied.start + there, head * wide + there] = COPIED


def _compare(attention: Any, read: Any) -> None:
    import torch

    wide, words = read.shape
    slow = torch.cat([torch.arange(FAST, wide // 2), torch.arange(wide // 2 + FAST, wide)])
    each = len(attention.q_proj.bias) // len(attention.k_proj.bias)
    for group, places in enumerate((LINES, LISTS)):
        heads = range(group * each, (group + 1) * each)
        for weight, rows, back in (
            *((attention.q_proj.weight, head, places[0]) for head in heads),
            (attention.k_proj.weight, group, places[1]),
        ):
            copied = _copied(back, words)
            some = slow[: copied.stop - copied.start] + rows * wide
            if back:
                weight[some, copied] = torch.eye(len(some)) * ALIKE["copy"]
            else:
                weight[some, :words] = read[: len(some)] * ALIKE["word"]


def _copied(back: int, words: int) -> slice:
    """Return the dimensions of a residual vector that copy the token `back` positions earlier.

    `words` is where the copies begin, and how many dimensions they share. For `back` = 0, use only
    the slice's length: the token itself is not copied.
    """
    width, index = words // len(LOOK_BACK), LOOK_BACK.index(back) if back else 0
    return slice(words + index * width, words + (index + 1) * width)


PAD, END = "<|pad|>", "<|end|>"


def build_model(config: TrainingConfig, rows: Sequence[ShownRow] = ()) -> tuple[Any, Any]:
    """Return a new model and tokenizer by [model.from_scratch]; torch's seed sets the weights.

    Weights that only carry adapters are made on the device and in the type in which they are read.
    """
    from transformers import Qwen2Config, Qwen2ForCausalLM

    size = config.model.from_scratch
    if size is None:
        raise UserError("[model.from_scratch] is missing. Add this table to the config.")
    corpus, rng = plan_corpus(config, rows), Random(f"tokenizer {config.run.seed}")
    plans = [corpus.plan(row, rng) for row in rows for _ in range(4)]
    later = [text for row in rows for text in corpus.later(row, rng)] if config.recursion else []
    tokenizer = _train_tokenizer(size.vocab, [*(row.prompt for row in rows), *plans, *later])
    settings: Any = Qwen2Config(
        vocab_size=max(len(tokenizer), size.embeddings or 0),
        hidden_size=size.hidden,
        intermediate_size=size.intermediate,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads,
        max_position_embeddings=size.context,
        tie_word_embeddings=size.tied,
        initializer_range=size.initializer_range,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    if size.look_up:
        settings.rope_parameters = {"rope_type": "default", "rope_theta": THETA}
    if config.lora and config.warm_start.kind == "none" and not size.look_up:
        return _carrier(config, settings), tokenizer
    model = Qwen2ForCausalLM(settings)  # from_config would divide it under ZeRO-3, in one process
    if size.look_up:
        look_up(model)
    return model, tokenizer


def _carrier(config: TrainingConfig, settings: Any) -> Any:
    """Return a model whose random weights stay as they are, under adapters that are trained."""
    import torch
    from transformers import AutoModelForCausalLM

    auto: Any = AutoModelForCausalLM
    # Seven billion float32 weights, made on the CPU, would take 30 GB of memory and of disk.
    with torch.device("cuda" if config.run.device == "gpu" else "cpu"):
        kind = weight_dtype(config).replace("auto", "float32")
        return auto.from_config(settings, trust_remote_code=False, dtype=getattr(torch, kind))


FRAME = (
    *("\nmodel_id = [", "]\nsubtasks = [", "]\naccess_list = [", '["all"]', "[]", '", "'),
    *("\n\nModels:\n", "\n\nPlan:"),
)
"""Texts that occur in all prompts and plans; each becomes one token."""
UNKNOWN = "<|endoftext|>"  # unused by a byte-level tokenizer; Qwen2's class adds it


def _train_tokenizer(vocab: int, texts: Sequence[str]) -> Any:
    """Return a byte-level BPE tokenizer that splits texts as Qwen2's tokenizer class does.

    AutoTokenizer and servers load every folder of the Qwen2 architecture with that class, whose
    normalizer and pre-tokenizer replace those in `tokenizer.json`.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Tokenizer

    qwen2: Any = Qwen2Tokenizer()
    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.normalizer = qwen2.backend_tokenizer.normalizer
    tokenizer.pre_tokenizer = qwen2.backend_tokenizer.pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer: Any = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[PAD, END, UNKNOWN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    frame = [AddedToken(text, normalized=False, special=False) for text in FRAME]
    tokenizer.add_tokens(frame)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(frame)
    names = {"pad_token": PAD, "eos_token": END, "unk_token": UNKNOWN}
    fast_tokenizer: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    fast_tokenizer.chat_template = CHAT_TEMPLATE
    fast_tokenizer.padding_side = "left"
    return fast_tokenizer


def warm_start(
    config: TrainingConfig, model: Any, tokenizer: Any, rows: Sequence[ShownRow], folder: Path
) -> None:
    """Train a model on plans, by supervised steps, in place; log the loss in `folder`."""
    import torch

    model.to("cuda" if config.run.device == "gpu" else "cpu")
    start, rng = config.warm_start, Random(config.run.seed)
    if is_main():
        (folder / WARM).unlink(missing_ok=True)  # lines of a killed warm start, which is repeated
    corpus = plan_corpus(config, rows)
    if start.is_listed:
        rows, corpus.own = _given_plans(config, corpus, rows)
    elif config.recursion and config.model.path:
        corpus.own = _own_plans(config, model, tokenizer, rows)
    optimiser: Any = torch.optim.AdamW(model.parameters(), lr=start.learning_rate, weight_decay=0.0)
    model.train()
    for step in range(start.steps):
        for group in optimiser.param_groups:
            # linear warm-up over 20 steps, and half a cosine down to 0
            share = min(1.0, (step + 1) / 20) * 0.5 * (1 + math.cos(math.pi * step / start.steps))
            group["lr"] = start.learning_rate * share
        drawn = rng.choices(rows, k=start.batch)
        texts = [corpus.drawn(row, rng) for row in drawn]
        with autocast(config):
            loss = model(**_batch(tokenizer, texts).to(model.device)).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        if is_main() and (step % 20 == 0 or step + 1 == start.steps):
            append_line(folder / WARM, {"step": step, "loss": round(loss.item(), 4)})


def _given_plans(
    config: TrainingConfig, corpus: PlanCorpus, rows: Sequence[ShownRow]
) -> tuple[list[ShownRow], dict[TrainingRow, str]]:
    """Return the training rows that have given plans, and row -> its plan as a completion."""
    plans = read_plans(config)
    usable = [row for row in rows if {*plans.get(row.row.question, ("",))} <= {*row.workers}]
    if not usable:
        raise UserError(NO_PLAN)
    return usable, {row.row: corpus.given(row, plans[row.row.question]) for row in usable}


def _own_plans(
    config: TrainingConfig, model: Any, tokenizer: Any, rows: Sequence[ShownRow]
) -> dict[TrainingRow, str]:
    from podium.conductor.training.generation import greedy_texts

    limit = int(config.grpo.get("max_completion_length", 256))  # TRL's default
    prompts = [row.prompt for row in rows]
    with autocast(config):
        texts = greedy_texts(model, tokenizer, prompts, limit, config.validation.batch)
    return {
        row.row: text
        for row, text in zip(rows, texts, strict=True)
        if isinstance(read_plan(config.form, text, row.workers), Workflow)
    }


def _batch(tokenizer: Any, texts: Sequence[tuple[str, str]]) -> Any:
    """Return texts as padded token ids, mask and labels; a prompt's labels are -100 (ignored)."""
    import torch
    from transformers import BatchEncoding

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text, add_special_tokens=False)

    pairs = [(encode(prompt), [*encode(plan), tokenizer.eos_token_id]) for prompt, plan in texts]
    width = max(len(prompt) + len(plan) for prompt, plan in pairs)

    def filled(rows: list[list[int]], filler: int) -> Any:
        return torch.tensor([row + [filler] * (width - len(row)) for row in rows])

    return BatchEncoding(
        {
            "input_ids": filled([p + c for p, c in pairs], tokenizer.pad_token_id),
            "labels": filled([[-100] * len(p) + c for p, c in pairs], -100),
            "attention_mask": filled([[1] * (len(p) + len(c)) for p, c in pairs], 0),
        }
    )


def merge_adapters(config: TrainingConfig, out: Path) -> None:
    """Merge trained adapters into full models in best/ and last/; move the adapters to adapter/."""
    if config.lora is None:
        return
    from peft import PeftModel

    base = str(out / START) if (out / START / "config.json").is_file() else config.model.path
    for folder in (out / BEST, out / LAST):
        if not (folder / ADAPTERS).is_file():
            continue
        model = load_model(base, config)[0]
        PeftModel.from_pretrained(model, str(folder)).merge_and_unload().save_pretrained(folder)
        renew_info(folder)
        adapters = folder / MERGED
        shutil.rmtree(adapters, ignore_errors=True)
        adapters.mkdir()
        for name in (ADAPTED, ADAPTERS):
            (folder / name).rename(adapters / name)  # last: an interrupted merge is repeated
