"""A conductor from nothing: a tokenizer trained on the spot and a Qwen2 model of random weights.

Minimal: a byte-level tokenizer over the prompts and plans of the warm start.
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

from collections.abc import Sequence
from typing import Any

from conductor.training.config import TrainingConfig
from conductor.training.corpus import plan_text
from conductor.training.rows import Shown
from harness.errors import UserError

PAD, END = "<|pad|>", "<|end|>"

TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
"""A chat is its contents, one after another: what `compact` prompts are made for."""


def build(config: TrainingConfig, shown: Sequence[Shown] = ()) -> tuple[Any, Any]:
    """Return (model, tokenizer) as [model.from_scratch] has them; torch's seed decides weights."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    size = config.model.from_scratch
    if size is None:
        raise UserError("[model.from_scratch] is missing.")
    tokenizer = train_tokenizer(size.vocab, [text for one in shown for text in _texts(one)])
    settings: Any = Qwen2Config(
        vocab_size=len(tokenizer),
        hidden_size=size.hidden,
        intermediate_size=size.intermediate,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.kv_heads,
        max_position_embeddings=size.context,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    return Qwen2ForCausalLM(settings), tokenizer


def _texts(shown: Shown) -> tuple[str, str]:
    return shown.prompt, plan_text(shown, seed=0)


def train_tokenizer(vocab: int, texts: Sequence[str]) -> Any:
    """Return a byte-level BPE tokenizer, as transformers wraps one."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer: Any = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer: Any = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=[PAD, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    made: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=END)
    made.chat_template = TEMPLATE
    made.padding_side = "left"
    return made
