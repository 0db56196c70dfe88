"""A conductor from nothing: a tokenizer trained on the spot and a Qwen2 model of random weights.

The tokenizer reads the prompts and plans of the warm start. What every plan has in common is one
token each, so that a plan of two steps takes some 35 tokens.
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

from collections.abc import Sequence
from random import Random
from typing import Any

from conductor.training.config import TrainingConfig
from conductor.training.corpus import corpus_of
from conductor.training.lookup_heads import THETA, look_up
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
    tokenizer = train_tokenizer(size.vocab, _texts(config, shown))
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
    model = Qwen2ForCausalLM(settings)
    if size.look_up:
        look_up(model)
    return model, tokenizer


def _texts(config: TrainingConfig, shown: Sequence[Shown]) -> list[str]:
    """Return prompts and plans, some plans for every prompt."""
    corpus, rng = corpus_of(config, shown), Random(f"tokenizer {config.run.seed}")
    plans = [corpus.plan(one, rng) for one in shown for _ in range(4)]
    later = [text for one in shown for text in corpus.later(one, rng)] if config.recursion else []
    return [*(one.prompt for one in shown), *plans, *later]


FRAME = (
    "\nmodel_id = [",
    "]\nsubtasks = [",
    "]\naccess_list = [",
    '["all"]',
    "[]",
    '", "',
    "\n\nModels:\n",
    "\n\nPlan:",
)
"""What all prompts and plans have in common: a token each."""

UNKNOWN = "<|endoftext|>"
"""Never met by a byte-level tokenizer; Qwen2's class adds it where it is missing."""


def train_tokenizer(vocab: int, texts: Sequence[str]) -> Any:
    """Return a byte-level BPE tokenizer that cuts texts as Qwen2's class does.

    Whoever loads a folder of the Qwen2 architecture (AutoTokenizer, a server) gets that class, with
    its normalizer and pre-tokenizer, whatever `tokenizer.json` says: another cut would be undone.
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
    frame = [AddedToken(one, normalized=False, special=False) for one in FRAME]
    tokenizer.add_tokens(frame)
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(frame)
    names = {"pad_token": PAD, "eos_token": END, "unk_token": UNKNOWN}
    made: Any = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    made.chat_template = TEMPLATE
    made.padding_side = "left"
    return made
