"""Attention that begins as a look-up finds a line by its first word, and what a thought named."""
# pyright: basic, reportMissingImports=false

from random import Random
from typing import Any

import pytest

from podium.conductor.training.model import THETA, look_up
from podium.harness.errors import UserError

WHY = "needs torch: pip install '.[train]'; make trainers runs it"
torch: Any = pytest.importorskip("torch", reason=WHY)
transformers: Any = pytest.importorskip("transformers", reason=WHY)

WORDS, LINES = 400, 8
COLON, COMMA, NEWLINE, FIRST_NUMBER, FIRST_WORD = 0, 1, 2, 10, 20


def model(**more: Any) -> Any:
    sizes = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, **more}
    torch.manual_seed(0)
    return transformers.Qwen2ForCausalLM(
        transformers.Qwen2Config(
            vocab_size=FIRST_WORD + WORDS,
            tie_word_embeddings=True,
            initializer_range=0.08,
            attn_implementation="eager",
            rope_parameters={"rope_type": "default", "rope_theta": THETA},
            **{**sizes, **heads},
        )
    )


def prompt(rng: Random) -> tuple[list[int], list[int], list[int]]:
    """Return `0: word word ...` lines and a thought, where each is to look, and from where."""
    heads = rng.sample(range(FIRST_WORD, FIRST_WORD + WORDS), LINES)
    tokens, lines = [], []
    for number, word in enumerate(heads):
        lines.append(len(tokens) + 3)  # after the line's first word
        tail = [rng.randrange(FIRST_WORD, FIRST_WORD + WORDS) for _ in range(rng.randint(1, 5))]
        tokens += [FIRST_NUMBER + number, COLON, word, *tail, NEWLINE]
    named = rng.sample(range(LINES), 3)
    asking = [len(tokens) + 3 * at for at in range(3)]
    for number in named:
        tokens += [heads[number], FIRST_NUMBER + number, COMMA]
    return tokens, [lines[number] for number in named], asking


def shares(made: Any) -> float:
    """Return the mean attention of the look-up heads from a thought's words to the right lines."""
    rng, found = Random(1), []
    for _ in range(20):
        tokens, lines, asking = prompt(rng)
        with torch.no_grad():
            seen = made(input_ids=torch.tensor([tokens]), output_attentions=True).attentions[1][0]
        found += [seen[0, ask, line].item() for ask, line in zip(asking, lines, strict=True)]
    return sum(found) / len(found)


def test_a_word_of_a_thought_looks_at_the_line_that_begins_with_it() -> None:
    made = model()
    assert shares(made) < 0.1
    look_up(made)
    assert shares(made) > 0.5


def test_a_number_of_a_list_looks_at_the_one_that_a_thought_named_next() -> None:
    made, rng = model(), Random(2)
    look_up(made)
    tokens, lines, asking = prompt(rng)
    numbers = [tokens[at + 1] for at in asking]
    tokens += [NEWLINE, numbers[0], COMMA, COLON]
    with torch.no_grad():
        seen = made(input_ids=torch.tensor([tokens]), output_attentions=True).attentions[1][0]
    after_number = lines[0]  # the number stands in its line, too: a warm start sorts that out
    assert (seen[2, -1, asking[1] + 1] + seen[2, -1, after_number]).item() > 0.5
    assert seen[2, -1, asking[1] + 1].item() > 2 / len(tokens)


@pytest.mark.parametrize(
    "sizes",
    [{"num_hidden_layers": 1}, {"num_attention_heads": 8}, {"num_key_value_heads": 4}],
    ids=str,
)
def test_other_sizes_are_refused_in_one_sentence(sizes: dict[str, int]) -> None:
    with pytest.raises(UserError, match="look_up needs 2 layers or more, 4 heads and 2 kv_heads"):
        look_up(model(**sizes))
