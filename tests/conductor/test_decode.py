"""Which tokens are taken: guesses that a pass confirms, several requests at once, and a guide."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from podium.conductor.decode import CONTEXT, GUESSES, DecodeOptions, DecodeQueue, GuessTable, decode
from podium.conductor.decoder import Decoder, read_decoder
from podium.conductor.embedded import open_checkpoint
from podium.conductor.guided_decoding import NEVER, plan_regex
from podium.conductor.parse import PlanFormat
from podium.harness.errors import UserError
from tests.conductor.toy_checkpoint import END, Sizes, speaker, write_model

PROMPTS = [[7, 9, 200, 41, 41, 3], [5] * 30, [11, 12], [90, 91, 92, 93]]
HOW = DecodeOptions(max_tokens=40)
LLAMA = Sizes(heads=4, kv_heads=2, family="llama")


@pytest.fixture(params=["qwen2", "llama"])
def model(tmp_path: Path, request: pytest.FixtureRequest) -> Decoder:
    write_model(tmp_path, Sizes(heads=4, kv_heads=2, family=request.param), ends=[END])
    return read_decoder(tmp_path)


def together(queue: DecodeQueue, prompts: Sequence[list[int]]) -> list[list[int]]:
    with ThreadPoolExecutor(len(prompts)) as threads:
        return [one.tokens for one in threads.map(lambda one: queue.decode(one, HOW), prompts)]


def test_requests_of_several_threads_get_what_each_alone_gets(model: Decoder) -> None:
    alone = [decode(model, prompt, HOW).tokens for prompt in PROMPTS]
    assert together(DecodeQueue(model), PROMPTS) == alone


def test_guesses_save_passes_and_change_nothing(model: Decoder) -> None:
    queue = DecodeQueue(model)
    queue.decode(PROMPTS[0], HOW)
    first = queue.passes
    again = DecodeOptions(max_tokens=39)  # another request, so not the reply that is remembered
    assert queue.decode(PROMPTS[0], again) == decode(model, PROMPTS[0], again)
    assert queue.passes - first <= first / 4


def test_wrong_guesses_change_nothing(model: Decoder) -> None:
    queue, draws = DecodeQueue(model), np.random.default_rng(2)
    wanted = decode(model, PROMPTS[0], HOW)
    for _ in range(200):
        queue._table.learn(draws.choice(wanted.tokens, 9).tolist())  # pyright: ignore[reportPrivateUsage]
    assert queue.decode(PROMPTS[0], HOW) == wanted


def test_a_greedy_reply_is_given_again_without_a_pass(model: Decoder) -> None:
    queue = DecodeQueue(model)
    first = queue.decode(PROMPTS[1], HOW)
    passes = queue.passes
    assert queue.decode(PROMPTS[1], HOW) is first
    assert queue.passes == passes


def test_draws_follow_their_seed_whoever_asks_beside_them(model: Decoder) -> None:
    hot = [DecodeOptions(1.0, seed, max_tokens=20) for seed in range(4)]
    queue = DecodeQueue(model)
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda how: queue.decode(PROMPTS[0], how), hot))
    assert found == [decode(model, PROMPTS[0], how) for how in hot]
    assert len({tuple(one.tokens) for one in found}) > 1


def test_a_few_guesses_are_not_worth_a_pass() -> None:
    table = GuessTable()
    table.learn([1, 2, 3, 4, 5])
    assert table.guesses([1, 2, 3], 7) == []
    table.learn(list(range(1, 20)))
    assert table.guesses([1, 2, 3], 2) == []
    assert table.guesses([1, 2, 3], 5) == [4, 5, 6, 7, 8]
    assert len(table.guesses([0, 1, 2, 3], 99)) == 16
    assert CONTEXT == GUESSES[0] == 3


def test_one_token_is_weighed_as_all_of_them_are(tmp_path: Path) -> None:
    form = PlanFormat(layout="compact", max_steps=2)
    guide = open_checkpoint(str(speaker(tmp_path))).guide(plan_regex(form, 3))
    state = guide.automaton.start
    for sign in "\nmodel_id = [2, 0]\nsubtasks = [":
        needs = guide.needs(state)
        assert [guide.need(state, one) for one in range(len(needs))] == needs.tolist()
        state = guide.automaton.moved(state, sign)


def test_who_cannot_go_on_is_told_and_the_others_are_not(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(str(speaker(tmp_path)))
    lost = DecodeOptions(max_tokens=20, guide=checkpoint.guide("abäc"))  # it has bytes of ä alone
    assert lost.guide is not None
    assert lost.guide.needs(lost.guide.automaton.start).min() < NEVER
    queue = DecodeQueue(checkpoint.model)
    with ThreadPoolExecutor(3) as threads:
        well = [threads.submit(queue.decode, one, HOW) for one in PROMPTS[:2]]
        ill = threads.submit(queue.decode, PROMPTS[0], lost)
    assert [one.result() for one in well] == [
        decode(checkpoint.model, one, HOW) for one in PROMPTS[:2]
    ]
    with pytest.raises(
        UserError, match="no token that can continue the request's regular expression"
    ):
        ill.result()


def test_llama_has_no_biases_of_queries_keys_and_values(tmp_path: Path) -> None:
    tensors = write_model(tmp_path, LLAMA)
    assert read_decoder(tmp_path).parameters == sum(held.size for held in tensors.values())
    assert not any("bias" in name for name in tensors)
