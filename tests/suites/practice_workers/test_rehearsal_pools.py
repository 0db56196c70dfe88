"""The shipped rehearsal pools, the declared prior, and the regimes they set up."""

import asyncio
import os
import tomllib
from pathlib import Path

import pytest
from inspect_ai.model import ChatMessageUser

from podium.harness.pool import Pool, pool_models
from podium.harness.pool_config import POOLS, read_pool
from podium.harness.prices import read_book
from podium.suites.practice.workers.drawing import calibration_toml, draw_pool, phi, role_cards
from podium.suites.practice.workers.workers import WORKERS, count_tokens, final_answer
from tests import ROOT
from tests.suites.practice_workers.asking import QUESTIONS, accuracy, ask, prompt

SHIPPED = [
    "rehearsal",
    "rehearsal-homogeneous",
    "rehearsal-dominant",
    "rehearsal-correlated",
    "rehearsal-deep",
    "rehearsal-agents",
    *(f"drawn-{seed}" for seed in range(1, 9)),
]
DATA = Path(os.environ.get("PODIUM_DATA", ROOT.parent / "shared" / "data"))
CALIBRATION = ROOT / "suites" / "practice" / "workers" / "calibration.toml"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_pool_is_read_set_up_and_priced(name: str) -> None:
    spec = read_pool(name)
    book = read_book(spec.prices)
    assert all(worker.price_ref in book.prices for worker in spec.workers)
    assert set(pool_models(spec)) == {*spec.names, *dict(spec.roles())}
    assert all(worker.card == role_cards()[worker.model.split("/")[1]] for worker in spec.workers)


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_drawn_pool_is_what_its_seed_draws(seed: int) -> None:
    assert (POOLS / f"drawn-{seed}.toml").read_text(encoding="utf-8") == draw_pool(seed)


def test_other_seeds_draw_other_pools() -> None:
    assert len({draw_pool(seed) for seed in range(20)}) == 20


def _answers(pool: Pool, name: str) -> list[str | None]:
    texts = [prompt("integer", item) for item in QUESTIONS["integer"]]
    replies = [
        asyncio.run(pool.ask(name, [ChatMessageUser(content=text)], "step"))
        for text in texts
        for _ in range(3)
    ]
    return [final_answer(reply.text, "number") for reply in replies]


def _failures(pool_name: str) -> list[list[bool]]:
    spec = read_pool(pool_name)
    targets = [item["target"] for item in QUESTIONS["integer"] for _ in range(3)]
    pool = Pool(models=pool_models(spec, seed=7), spec=spec)
    return [
        [said != wanted for said, wanted in zip(_answers(pool, n), targets, strict=True)]
        for n in spec.names[:2]
    ]


def test_workers_that_share_a_stream_fail_together_and_others_do_not() -> None:
    together, apart = (
        phi(*_failures("rehearsal-correlated")),
        phi(*_failures("rehearsal-homogeneous")),
    )
    assert together > 0.8
    assert apart < together


def test_the_dominant_worker_is_best_and_cheapest() -> None:
    spec = read_pool("rehearsal-dominant")
    book = read_book(spec.prices)
    best, *others = spec.workers
    assert all(
        book.prices[best.price_ref].output <= book.prices[w.price_ref].output for w in others
    )
    for kind in ("integer", "choice", "composed"):
        mine = accuracy("polymath", kind, heat=1.0, draws=4)
        names = [worker.model.split("/")[1] for worker in others]
        assert all(mine >= accuracy(name, kind, heat=1.0, draws=4) for name in names)


def test_the_calibration_is_what_the_data_says() -> None:
    if not (DATA / "lcb_leaderboard_matrix").is_dir():
        pytest.skip("the recorded replies are not on this machine (PODIUM_DATA)")
    assert calibration_toml(DATA) == CALIBRATION.read_text(encoding="utf-8")


def test_workers_are_as_accurate_in_their_field_as_real_models_are() -> None:
    measured = tomllib.loads(CALIBRATION.read_text(encoding="utf-8"))
    low = measured["lighteval"]["accuracy_min"]
    high = 0.95
    fields = {
        "abacus": "integer",
        "scribe": "program",
        "scholar": "choice",
        "sage": "choice",
        "swift": "integer",
    }
    for worker, kind in fields.items():
        assert (
            low <= accuracy(worker, kind, heat=1.0, draws=4 if kind != "program" else 1) <= high
        ), worker


def test_reply_lengths_keep_the_measured_ratio_of_wordy_to_terse() -> None:
    measured = tomllib.loads(CALIBRATION.read_text(encoding="utf-8"))["routerbench"]
    texts = [prompt("integer", item) for item in QUESTIONS["integer"]]
    lengths = {
        name: sum(count_tokens(ask(name, text)) for text in texts)
        for name in ("sage", "swift", "abacus")
    }
    assert 1.2 < lengths["sage"] / lengths["swift"] < 1.6 * measured["tokens_ratio"]


def test_every_worker_has_a_card_and_a_price() -> None:
    assert set(role_cards()) == set(WORKERS)
    books = ("rehearsal", "rehearsal-deep", "rehearsal-agents")
    priced = {model for name in books for model in read_book(name).prices}
    assert {f"rehearsal/{name}" for name in WORKERS} <= priced
