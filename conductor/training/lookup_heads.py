"""Attention that begins as a look-up, so that a model from nothing finds a worker by its card.

Where the order of workers changes, a plan's number has to be read off the prompt: find the line
whose card begins with a word, take the number before it, and say it again in the list. Transformers
learn such steps as induction heads (arXiv 2209.11895); from wholly random weights a warm start of
900 steps is 70 to 89 % sure of a thought's numbers, from these 99.8 % (EXPERIMENTS.md). As in
mimetic initialisation (arXiv 2305.09828) structure is set and the warm start trains all of it:
heads of the first layer copy the tokens just before into dimensions of their own, the second layer
attends where such copies are alike. Which places look at which is set; no word, worker or number.
"""
# pyright: basic, reportMissingImports=false
# What torch's libraries hand out has no types here: they are installed elsewhere.

from typing import Any

from harness.errors import UserError

BACK = (1, 2, 3, 4)
"""Tokens that the heads of the first layer look back, one head each."""
LINES = (0, 1)
"""Compared by the first half of the second layer's heads: a word (0 back: itself) in the thought
`Looks3` with the word 1 back in `3: Looks up`, where the number is 3 back."""
LISTS = (2, 3)
"""Compared by the other half: the number 2 back in `[3, ` with the one 3 back in `Looks3, Does4`,
which is where the next number stands."""
THETA = 1e6
"""Base of the rotary angles: fast pairs of dimensions tell places, slow ones compare words."""
FAST = 6
"""Pairs of dimensions that tell places."""
SHARP, COPIED = 8.0, 0.2
"""How strictly a head keeps to its place; how large a copy is beside the word it lies next to."""
ALIKE = {"word": 4.5, "copy": 1.8}
"""How strongly a word, and a copy of one, looks for its like: alike is about 10 above unlike."""


def refuse_sizes(layers: int, heads: int, kv_heads: int) -> None:
    """Refuse a model that has no room for a look-up; a UserError names the sizes that have."""
    if layers < 2 or heads != len(BACK) or kv_heads != 2:
        raise UserError(
            f"[model.from_scratch] look_up needs 2 layers or more, {len(BACK)} heads and "
            "2 kv_heads."
        )


def look_up(model: Any) -> None:
    """Set the first two layers of a Qwen2 model of random weights, in place.

    Words keep the first half of the dimensions; each head's copies have a share of the second half.
    UserError where the model has fewer than two layers, or another number of heads than `BACK`.
    """
    import torch

    config = model.config
    heads = config.num_attention_heads
    refuse_sizes(config.num_hidden_layers, heads, config.num_key_value_heads)
    first, second = (model.model.layers[at].self_attn for at in (0, 1))
    words = config.hidden_size // 2
    read = torch.linalg.qr(torch.randn(words, config.hidden_size // heads))[0].T
    with torch.no_grad():
        model.model.embed_tokens.weight[:, words:] = 0
        for layer in model.model.layers:
            layer.mlp.down_proj.weight.mul_(0.1)
        for projection in (first.q_proj, first.k_proj, second.q_proj, second.k_proj):
            projection.weight.mul_(0.1)
        second.o_proj.weight.mul_(0.3)
        _look_back(first, read)
        _compare(second, read)


def _look_back(attention: Any, read: Any) -> None:
    """Let each head copy the token some places back, as `read` (head dimensions, words) has it."""
    import torch

    wide, words = read.shape
    angles = THETA ** (-torch.arange(wide // 2).float() / (wide // 2))
    place = torch.where(torch.arange(wide // 2) < FAST, SHARP, 0.0)
    attention.v_proj.weight.zero_()
    attention.o_proj.weight.zero_()
    for at in range(len(attention.k_proj.bias) // wide):
        mine = slice(at * wide, (at + 1) * wide)
        attention.k_proj.bias[mine] = torch.cat([place, torch.zeros(wide // 2)])
        attention.v_proj.weight[mine, :words] = read
    for at, back in enumerate(BACK):
        turned = torch.cat([place * torch.cos(-back * angles), place * torch.sin(-back * angles)])
        attention.q_proj.bias[at * wide : (at + 1) * wide] = turned
        copied = _copied(back, words)
        there = torch.arange(copied.stop - copied.start)
        attention.o_proj.weight[copied.start + there, at * wide + there] = COPIED


def _compare(attention: Any, read: Any) -> None:
    """Let heads attend where what they read at two places is alike."""
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
    """Return the dimensions of the copy of the token so far back; the width of one for 0."""
    width, at = words // len(BACK), BACK.index(back) if back else 0
    return slice(words + at * width, words + (at + 1) * width)
