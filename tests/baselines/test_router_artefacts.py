"""What a router has learnt, as a file: the same choices, and refusals of what is not its own."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import anyio
import numpy as np
import pytest

from podium.baselines import SYSTEMS, _registry
from podium.baselines.common import import_extra
from podium.baselines.routers import EMBEDDERS, choose_workers, load_embedder
from podium.baselines.routers.router_systems import (
    ROUTERS,
    load_router,
    question_texts,
    router_system,
    rows_sha256,
    train_router,
)
from podium.baselines.single import single_system
from podium.harness.context import run_context
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import system_of
from podium.harness.learning import Artifact, read_artifact, write_artifact
from podium.harness.records import Question
from podium.harness.rewards.splits import question_digest
from tests.baselines import topics
from tests.providers.scripted import scripted_pool

EACH = pytest.mark.parametrize("name", list(ROUTERS))
TAUGHT = topics.two_topics(60, seed=0)
ASKED = topics.two_topics(40, seed=1)


@cache
def taught(name: str, seed: int = 5) -> Artifact:
    """Return what a router with default settings has learnt."""
    return train_router(ROUTERS[name](), TAUGHT, seed)


@EACH
@pytest.mark.parametrize("seed", [5, 7])
def test_a_saved_router_chooses_what_it_chose_before(name: str, seed: int, tmp_path: Path) -> None:
    learned = taught(name, seed)
    write_artifact(learned, tmp_path / "router.npz")
    with run_context(log_dir=tmp_path):
        read = read_artifact("router.npz", name, learned.sha256)
    before, after = (load_router(one)(question_texts(ASKED)) for one in (learned, read))
    assert np.array_equal(before.score, after.score)
    assert np.array_equal(before.usd, after.usd)
    assert choose_workers(before, 0.05).tolist() == choose_workers(after, 0.05).tolist()
    assert read.sha256 == learned.sha256


@EACH
def test_the_same_rows_and_seed_teach_the_same_bytes(name: str) -> None:
    assert train_router(ROUTERS[name](), TAUGHT, 5).as_bytes() == taught(name).as_bytes()


@EACH
def test_a_question_is_routed_alike_alone_and_among_others(name: str) -> None:
    trained = load_router(taught(name))
    together = choose_workers(trained(question_texts(ASKED))).tolist()
    assert [int(choose_workers(trained([text]))[0]) for text in question_texts(ASKED)] == together


def test_an_artefact_says_what_taught_it() -> None:
    about = taught("router-knn").about
    assert (about.system, about.embedder, about.workers) == ("router-knn", "tfidf", topics.WORKERS)
    assert about.settings == {"seed": 5, "k": None}
    assert about.questions == tuple(question_digest(text) for text in question_texts(TAUGHT))
    assert (about.calls, about.suites) == (180, ("topics",))


def test_other_scores_or_costs_are_other_rows() -> None:
    digests = {
        rows_sha256(TAUGHT),
        rows_sha256(replace(TAUGHT, scores=1 - TAUGHT.scores)),
        rows_sha256(replace(TAUGHT, usd=2 * TAUGHT.usd)),
        rows_sha256(TAUGHT.rows([0, 1])),
    }
    assert len(digests) == 4


def test_a_router_is_of_no_use_without_its_embedder() -> None:
    learned = taught("router-knn")
    stranger = Artifact(replace(learned.about, embedder="oracle-bone"), learned.arrays)
    with pytest.raises(UserError, match="no embedder 'oracle-bone'; there are tfidf, wordllama"):
        load_router(stranger)


@EACH
def test_an_artefact_that_lacks_a_part_is_refused(name: str) -> None:
    learned = taught(name)
    for lost in (part for part in learned.arrays if part != "router/known"):
        left = {part: values for part, values in learned.arrays.items() if part != lost}
        with pytest.raises(UserError, match="damaged"):
            load_router(Artifact(learned.about, left))
    fewer = replace(learned.about, workers=topics.WORKERS[:2])
    with pytest.raises(UserError, match="damaged"):
        load_router(Artifact(fewer, learned.arrays))
    with pytest.raises(UserError, match="damaged"):
        load_router(Artifact(replace(learned.about, settings={"depth": 3}), learned.arrays))


def test_a_question_without_text_teaches_no_router() -> None:
    silent = replace(TAUGHT, questions=tuple(replace(one, text="") for one in TAUGHT.questions))
    with pytest.raises(UserError, match="60 of 60 questions have no text"):
        train_router(ROUTERS["router-knn"](), silent)


def test_what_must_not_be_published_is_put_into_no_artefact() -> None:
    with pytest.raises(UserError, match="must not be published"):
        train_router(ROUTERS["router-knn"](), replace(TAUGHT, publishable=False))


def test_an_extra_that_is_absent_is_named() -> None:
    with pytest.raises(UserError, match=r"pip install '\.\[embeddings\]'"):
        import_extra("no_such_package", "embeddings")


def test_questions_without_a_word_are_refused() -> None:
    wordless = replace(TAUGHT, questions=tuple(replace(one, text="?!") for one in TAUGHT.questions))
    with pytest.raises(UserError, match="found no word"):
        train_router(ROUTERS["router-knn"](), wordless)


@pytest.mark.parametrize("name", list(EMBEDDERS))
def test_an_embedder_gives_each_text_its_own_vector_of_length_one(name: str) -> None:
    used = load_embedder(name)
    fitted = used.fit(question_texts(TAUGHT))
    vectors = used.embed(fitted, [*question_texts(ASKED), ""])
    assert np.allclose(np.linalg.norm(vectors[:-1], axis=1), 1)
    assert np.array_equal(vectors[3], used.embed(fitted, [question_texts(ASKED)[3]])[0])
    assert np.isfinite(vectors).all()


def test_words_that_were_never_seen_are_worth_nothing() -> None:
    used = load_embedder("tfidf")
    assert not used.embed(used.fit(question_texts(TAUGHT)), ["zebra"]).any()


def test_the_embedder_whose_weights_come_along_routes_as_well() -> None:
    learned = train_router(
        ROUTERS["router-logistic"](), topics.two_topics(200, 0), 0, load_embedder("wordllama")
    )
    chosen = choose_workers(load_router(learned)(question_texts(ASKED)))
    assert topics.share_right(ASKED.questions, chosen) >= 0.95


QUESTION = Question(id="q", text="sort the string array and parse the tree", kind="text")


@EACH
def test_a_trained_router_asks_one_worker_the_question_and_nothing_else(
    name: str, tmp_path: Path
) -> None:
    learned = train_router(ROUTERS[name](), topics.two_topics(200, seed=0))
    write_artifact(learned, tmp_path / "router.npz")
    make = getattr(_registry, SYSTEMS[name].solver.removeprefix("podium/"))
    with run_context(log_dir=tmp_path):
        system = system_of(make("router.npz", learned.sha256))
    rig = scripted_pool(algebraist="A", programmer="B", idler="C")
    answer = anyio.run(system, QUESTION, rig.pool)
    alone = anyio.run(single_system("programmer"), QUESTION, rig.again())
    assert (answer.text, answer.plan) == ("B", alone.plan)
    assert [heard.turns for heard in rig.heard] == [[("user", QUESTION.text)]] * 2


@EACH
def test_an_untrained_router_is_refused_before_it_is_asked_anything(name: str) -> None:
    make = getattr(_registry, SYSTEMS[name].solver.removeprefix("podium/"))
    with pytest.raises(UserError, match=f"{name} is not trained"):
        make()


def test_a_pool_without_the_workers_a_router_knows_is_refused() -> None:
    system = router_system(taught("router-knn"))
    rig = scripted_pool(algebraist="A", newcomer="B")
    with pytest.raises(UserError, match=r"trained on workers that this pool lacks \(programmer"):
        anyio.run(system, QUESTION, rig.pool)
    assert rig.heard == []


def test_a_question_that_taught_a_router_does_not_examine_it() -> None:
    system = router_system(taught("router-knn"))
    rig = scripted_pool(algebraist="A", programmer="B", idler="C")
    seen = Question(id="seen", text=TAUGHT.questions[4].text.upper(), kind="text")
    with pytest.raises(UserError, match="trained on seen"):
        anyio.run(system, seen, rig.pool)
    assert rig.heard == []


def test_a_willingness_needs_prices_before_the_first_question() -> None:
    unpriced = replace(TAUGHT, usd=np.full_like(TAUGHT.usd, np.nan))
    learned = train_router(ROUTERS["router-mf"](), unpriced)
    router_system(learned)
    with pytest.raises(UserError, match="no known price"):
        router_system(learned, willingness=1.0)


def test_a_willingness_of_next_to_nothing_asks_the_cheapest() -> None:
    system = router_system(taught("router-knn"), willingness=0.001)
    rig = scripted_pool(algebraist="A", programmer="B", idler="C")
    assert anyio.run(system, QUESTION, rig.pool).text == "C"


def test_a_router_decides_each_turn_of_a_sample_or_once() -> None:
    texts = question_texts(ASKED)
    chosen = choose_workers(load_router(taught("router-knn"))(texts), None).tolist()
    first, other = 0, next(at for at, worker in enumerate(chosen) if worker != chosen[0])
    turns = [Question(f"turn {at}", texts[at], "text") for at in (first, other)]
    for mode, same in (("turn", False), ("sticky", True)):
        system = router_system(taught("router-knn"), mode=mode)
        rig = scripted_pool(algebraist="A", programmer="B", idler="C")
        said = [anyio.run(system, turn, rig.pool).text for turn in turns]
        assert (said[0] == said[1]) is same
    arguments = SYSTEMS["router-knn"].methods.arguments
    assert [arguments(mode) for mode in ("", "sticky")] == [{}, {"mode": "sticky"}]
    with pytest.raises(UserError, match="router-knn@now is unknown"):
        arguments("now")


@EACH
def test_a_router_says_of_itself_what_a_table_must_say(name: str) -> None:
    manifest = SYSTEMS[name]
    assert "recorded" in manifest.traits
    assert manifest.calls.expected is not None
    assert manifest.calls.span(7, {}) == (1, 1)
    assert manifest.methods.learn(TAUGHT, 5).sha256 == taught(name).sha256
    assert manifest.deviations
    assert not manifest.prompts
