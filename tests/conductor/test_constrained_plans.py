"""Conductors that read cards write only plans that can be run, whoever stands in the pool.

The whole measurement is tests/benchmarks/valid_plans.py; here are its promises on a small scale.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import anyio
import numpy as np
import pytest
from inspect_ai import eval as evaluate  # pyright: ignore[reportUnknownVariableType]
from inspect_ai.log import read_eval_log
from inspect_ai.model import GenerateConfig, Model, get_model

from podium.cli import main
from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.checkpoint import checkpoint_folder, read_info
from podium.conductor.decode import DecodeOptions, decode, one_thread
from podium.conductor.embedded import open_checkpoint
from podium.conductor.guided_decoding import NEVER, Automaton, Guide, Vocabulary, plan_regex
from podium.conductor.parse import Keep, PlanFormat, read_later_plan, read_plan
from podium.conductor.policy import ask_for_plan, first_request
from podium.conductor.prompt import WHOLE_POOL, ShownWorkers, legible_workers, plan_prompt
from podium.conductor.trained import MOST_TOKENS, card_reading, conductor
from podium.conductor.training.config import read_config
from podium.conductor.training.job import find_job
from podium.conductor.training.training_rows import plan_corpus
from podium.harness.errors import UserError
from podium.harness.ledger.logs import find_logs
from podium.harness.pool_config import read_pool
from podium.harness.records import Question
from podium.harness.workflow import Workflow
from podium.suites.practice.integer import practice_integer
from podium.suites.practice.workers.drawing import role_cards as prior_cards
from tests.benchmarks.valid_plans import HOSTILE, WRITTEN, ask, drawn_cards, pool_of, questions
from tests.conductor.training.test_warm_start_plans import SMALL
from tests.conductor.training.test_warm_start_plans import drawn as corpus_drawn
from tests.providers import CLIENTS_WARN
from tests.providers.checkpoint_server import NAME, serve_checkpoint

ADAPTIVE = open_checkpoint("adaptive")
FORM = read_info(checkpoint_folder("adaptive")).form
NOW = ShownWorkers(reading=card_reading("adaptive", constrained=True))
SUITES = ("practice-integer", "practice-choice", "practice-code", "practice-composed")
FORMS = {
    "compact": FORM,
    "paper": PlanFormat(),
    "JSON": PlanFormat(reply="json"),
    "compact JSON": PlanFormat(layout="compact", reply="json"),
    "no access": PlanFormat(layout="compact", access="off", max_steps=2),
    "binary": PlanFormat(layout="compact", access="binary", max_steps=3),
    "no subtasks": PlanFormat(layout="compact", subtasks=False, max_steps=1),
}


@pytest.fixture(scope="module")
def model() -> Model:
    config = GenerateConfig(temperature=0.0, max_tokens=MOST_TOKENS)
    return get_model("embedded/adaptive", config=config, memoize=False)


def practice(each: int) -> list[Question]:
    suites = whole_catalogue().suites
    return [one for name in SUITES for one in suites[name].load("eval")[:each]]


def names(count: int) -> list[str]:
    return [f"worker-{at}" for at in range(count)]


def walked(guide: Guide, rng: Random, most: int) -> str:
    """Return a text of random tokens, each of those that may be written."""
    state, text = guide.automaton.start, ""
    for left in range(most - 1, -1, -1):
        (allowed,) = np.nonzero(guide.needs(state) <= left)
        token = int(rng.choice(allowed))
        if token in guide.vocabulary.ends:
            return text
        text += guide.vocabulary.texts[token]
        state = guide.after(state, token)
    raise AssertionError("a text has no end within its limit")


# --- the language of a plan -------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_whatever_may_be_written_is_a_plan_to_the_forms_own_reader(form: PlanFormat) -> None:
    rng = Random("walks")
    for workers in (1, 2, 5, 12):
        guide = ADAPTIVE.guide(plan_regex(form, workers))
        for _ in range(12):
            text = walked(guide, rng, rng.choice((80, 120, 250)))
            assert isinstance(read_plan(form, text, names(workers)), Workflow), text


def test_a_later_round_may_also_keep_the_answer() -> None:
    rng, kept = Random("later"), 0
    guide = ADAPTIVE.guide(plan_regex(FORM, 3, later=True))
    for _ in range(60):
        found = read_later_plan(FORM, walked(guide, rng, 120), names(3))
        assert isinstance(found, Keep | Workflow)
        kept += isinstance(found, Keep)
    assert 0 < kept < 60


def test_the_warm_starts_plans_are_in_the_language() -> None:
    config = read_config("practice-cpu-adaptive", SMALL)
    training = find_job(config, Path("none"), whole_catalogue(), controls().bare, dry=True)
    rows = [training.prompts.shown(row) for row in training.rows(16)]
    for one, _, said in corpus_drawn(plan_corpus(config, rows), rows, 60):
        assert Automaton(plan_regex(config.form, len(one.workers))).matches(said)


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_the_expression_means_the_same_to_python(form: PlanFormat) -> None:
    expression, rng = plan_regex(form, 11), Random("python")
    guide = ADAPTIVE.guide(expression)
    for _ in range(20):
        text = walked(guide, rng, 120)
        assert re.fullmatch(expression, text)
        at = rng.randrange(len(text))
        spoilt = text[:at] + rng.choice('0[]"\\\n,ax1') + text[at + 1 :]
        assert guide.automaton.matches(spoilt) is bool(re.fullmatch(expression, spoilt))


def test_no_number_of_an_absent_worker_can_be_written() -> None:
    automaton = Automaton(plan_regex(FORM, 11))
    plan = '\nmodel_id = [{}]\nsubtasks = ["x"]\naccess_list = [[]]'
    there = [at for at in range(130) if automaton.matches(plan.format(at))]
    assert there == [*range(11)]
    assert not automaton.matches(plan.format("01"))


def test_a_step_may_read_earlier_ones_alone() -> None:
    automaton = Automaton(plan_regex(FORM, 2))
    plan = '\nmodel_id = [0, 1]\nsubtasks = ["", ""]\naccess_list = [[], {}]'
    entries = ('["all"]', "[]", "[0]", "[1]", "[0, 0]", '"all"', "[2]")
    assert [automaton.matches(plan.format(one)) for one in entries] == [True] * 3 + [False] * 4


@pytest.mark.parametrize(
    "expression", ["a(b)", "a)", "(?:a", "[a", "a{2", "a{x}", "^a$", "a.b", "a+", "\\", "*", "a**"]
)
def test_an_expression_that_is_not_read_is_refused_in_one_sentence(expression: str) -> None:
    with pytest.raises(UserError, match="does not support this regular expression, at character"):
        Automaton(expression)


def test_an_expression_that_would_take_a_machine_is_refused() -> None:
    for hostile in ("(?:a{999}){999}", "a{99999999999}", "(?:" * 5000 + "a" + ")" * 5000):
        with pytest.raises(UserError, match="regular expression"):
            Automaton(hostile)


# --- decoding ---------------------------------------------------------------------------------


def test_a_plan_is_complete_within_any_limit_that_has_room_for_one() -> None:
    guide = ADAPTIVE.guide(plan_regex(FORM, 3))
    prompt = ADAPTIVE.tokens(plan_prompt(FORM, "How many?", ["", "", ""]))
    for most in (52, 60, 64, 70, 90, 300):
        for temperature in (0.0, 1.5):
            with one_thread():
                made = decode(ADAPTIVE.model, prompt, DecodeOptions(temperature, 3, most, guide))
            assert made.stop == "stop"
            assert made.written <= most
            text = ADAPTIVE.text(made.tokens)
            assert isinstance(read_plan(FORM, text, names(3)), Workflow)


def test_a_limit_that_no_plan_fits_into_ends_the_reply_as_any_limit_does() -> None:
    guide = ADAPTIVE.guide(plan_regex(FORM, 3))
    made = decode(ADAPTIVE.model, [40, 50], DecodeOptions(max_tokens=4, guide=guide))
    assert (made.stop, made.written) == ("max_tokens", 4)


def test_a_vocabulary_that_cannot_spell_the_text_is_refused() -> None:
    guide = Guide(Automaton("é"), Vocabulary(["a"] * 1024, [1]))
    assert (guide.needs(guide.automaton.start) == NEVER).all()
    with pytest.raises(
        UserError, match="no token that can continue the request's regular expression"
    ):
        decode(ADAPTIVE.model, [40], DecodeOptions(guide=guide))


def test_a_plan_that_was_valid_is_the_same_to_the_letter() -> None:
    asked, equal = practice(2), 0
    for pool in ("rehearsal", "drawn-5"):
        spec = read_pool(pool)
        guide = ADAPTIVE.guide(plan_regex(FORM, len(spec.names)))
        for question in asked:
            first = plan_prompt(FORM, question.text, [one.card for one in spec.workers])
            prompt = ADAPTIVE.tokens(first)
            with one_thread():
                free, held = (
                    decode(ADAPTIVE.model, prompt, DecodeOptions(max_tokens=300, guide=one))
                    for one in (None, guide)
                )
            assert isinstance(read_plan(FORM, ADAPTIVE.text(free.tokens), spec.names), Workflow)
            assert held == free
            equal += 1
    assert equal == 16


@pytest.mark.slow
def test_every_plan_on_pools_of_2_to_12_workers_can_be_run(model: Model) -> None:
    before, sizes = 0, set[int]()
    for number in (*range(2, 44, 4), *range(3, 44, 8)):
        _, cards = drawn_cards(number)
        sizes.add(len(cards))
        asked, pool = questions(6 if number < 7 else 2, number), pool_of(cards, model)
        assert not anyio.run(ask, pool, asked, FORM, NOW).wrong
        if number < 7:
            before += anyio.run(ask, pool, asked, FORM, WHOLE_POOL).wrong.total()
    assert sizes == {*range(2, 13)}
    assert before > 0, "what is drawn is no trial"


def test_a_pool_of_one_worker_can_be_planned_for(model: Model) -> None:
    for card in ("", prior_cards()["scribe"], "x" * 10_000):
        counted = anyio.run(ask, pool_of([card], model), questions(4, 0), FORM, NOW)
        assert not counted.wrong


# --- whom it cannot tell apart ----------------------------------------------------------------


async def asked_whom(cards: Sequence[str], asked: Sequence[Question], model: Model) -> Counter[str]:
    """Return how many questions each worker has a step of."""
    found, pool = Counter[str](), pool_of(cards, model)
    for question in asked:
        conductor, chat, _ = first_request(FORM, NOW, question, pool)
        plan = (await ask_for_plan(conductor, chat)).plan
        assert isinstance(plan, Workflow)
        found.update({step.worker for step in plan.steps})
    return found


UNKNOWN = (WRITTEN[0], *WRITTEN[2:6])


@pytest.mark.slow
def test_workers_whose_cards_it_does_not_know_are_asked_evenly(model: Model) -> None:
    found = anyio.run(asked_whom, UNKNOWN, practice(25), model)
    share = found.total() / len(UNKNOWN)
    assert len(found) == len(UNKNOWN)
    assert all(0.5 * share < times < 1.6 * share for times in found.values()), found


def test_a_card_that_it_knows_is_still_asked_for_its_kind_of_question(model: Model) -> None:
    composed = whole_catalogue().suites["practice-composed"].load("eval")[:20]
    cards = [*UNKNOWN[:2], prior_cards()["scholar"], *UNKNOWN[2:4]]
    found = anyio.run(asked_whom, cards, composed, model)
    assert found["worker-2"] >= 18, found
    assert max(times for name, times in found.items() if name != "worker-2") < 12, found


def test_the_draw_is_the_questions_own_and_the_same_again() -> None:
    workers = names(5)
    orders = {at: legible_workers(workers, UNKNOWN, f"q{at}", NOW) for at in range(30)}
    assert orders == {at: legible_workers(workers, UNKNOWN, f"q{at}", NOW) for at in range(30)}
    assert len(set(orders.values())) > 20
    other = replace(NOW, seed=1)
    assert any(legible_workers(workers, UNKNOWN, f"q{at}", other) != orders[at] for at in orders)


def test_a_pool_whose_cards_it_knows_is_shown_as_it_is() -> None:
    for pool in ("rehearsal", *(f"drawn-{at}" for at in range(1, 9))):
        spec = read_pool(pool)
        cards = [one.card for one in spec.workers]
        assert legible_workers(spec.names, cards, "q", NOW) == spec.names


def test_two_cards_that_open_alike_are_shown_in_a_drawn_order() -> None:
    cards = [prior_cards()["scholar"], "Looks for bugs.", prior_cards()["scribe"]]
    orders = {legible_workers(names(3), cards, f"q{at}", NOW) for at in range(20)}
    assert len(orders) > 1


def test_of_twelve_workers_it_is_shown_as_many_as_it_learnt_to_number() -> None:
    learnt = [card for name, card in prior_cards().items() if name != "polymath"][:3]
    cards = [*WRITTEN, "", *learnt]
    shown = [legible_workers(names(12), cards, f"q{at}", NOW) for at in range(40)]
    assert {len(one) for one in shown} == {8}
    times = Counter(worker for one in shown for worker in one)
    assert all(times[f"worker-{at}"] == 40 for at in (1, 9, 10, 11)), "known openings come first"
    assert all(10 < times[f"worker-{at}"] < 30 for at in (0, 2, 3, 4, 5, 6, 7, 8))


def test_whoever_seats_it_is_told_what_it_does_not_read() -> None:
    reading = NOW.reading
    assert reading is not None
    assert reading.remarks({"ada": prior_cards()["sage"]}) == []
    (unread,) = reading.remarks({"ada": "Looks up facts.", "bo": "Knows facts.", "cy": ""})
    assert unread == (
        "tells workers apart by the first word of a card and knows Arithmetic, Careful, Checks, "
        "Extracts, Fast, Looks, Takes, Writes, here ada. It does not know the card of bo, cy, so "
        "it chooses among these workers at random for each question."
    )
    many = reading.remarks({f"w{at}": "Looks up facts." for at in range(12)})
    assert many == [
        "was trained on at most 8 workers. Of these 12 it is shown 8: those whose cards it knows, "
        "then others drawn for each question."
    ]


def test_only_checkpoints_that_learnt_from_cards_are_held() -> None:
    for name in ("trained", "cost-aware", "untrained"):
        assert card_reading(name, constrained=True) is None
    assert NOW.reading is not None
    assert NOW.reading.constrained
    assert NOW.reading.most == 8


# --- prompts that are too long ----------------------------------------------------------------


def test_cards_are_cut_to_one_length_and_then_the_question_until_a_plan_has_room(
    model: Model,
) -> None:
    long = [f"{word} {'ü' * 9000} {word}" for word in ("Looks", "Writes", "Checks")]
    question = practice(1)[0]
    _, chat, noted = first_request(FORM, NOW, question, pool_of(long, model))
    tokens = len(ADAPTIVE.tokens(chat))
    assert 600 < tokens <= 1024 - 256
    assert re.fullmatch(r"\d+ characters", noted["cut"]["of each card"])
    cards = re.findall(r"^\d: (.*)$", chat[0].text, re.M)
    assert len({len(card) for card in cards}) == 1
    assert question.text.split("\n")[0][:40] in chat[0].text
    huge = replace(question, text="x" * 50_000)
    _, chat, noted = first_request(FORM, NOW, huge, pool_of(long, model))
    assert {*noted["cut"]} == {"of each card", "of the question"}
    assert len(ADAPTIVE.tokens(chat)) <= 1024 - 256


def test_what_fits_is_shown_as_it_always_was(model: Model) -> None:
    spec = read_pool("rehearsal")
    cards = [one.card for one in spec.workers]
    for question in practice(3):
        _, chat, noted = first_request(FORM, NOW, question, pool_of(cards, model))
        assert chat[0].text == plan_prompt(FORM, question.text, cards)[0].text
        assert noted == {}


# --- in a run ---------------------------------------------------------------------------------

POOL = """\
name = "strangers"
label = "rehearsal"
prices = "rehearsal"
"""
SLOT = """
[[workers]]
name = "{name}"
model = "rehearsal/{name}"
card = {card}
price = "rehearsal/tier-a"
"""


def strangers(folder: Path) -> Path:
    """Write a pool whose cards nobody trained on."""
    people = zip(("sage", "scribe", "swift"), ("A", "数学の専門家", HOSTILE[9]), strict=True)
    slots = (SLOT.format(name=name, card=json.dumps(card)) for name, card in people)
    path = folder / "strangers.toml"
    path.write_text(POOL + "".join(slots))
    return path


def logged(folder: Path) -> list[Any]:
    """Return the samples of a run's only log."""
    (path,) = find_logs([folder])
    return read_eval_log(str(path)).samples or []


def test_inspect_alone_labels_answers_whose_workers_were_drawn(tmp_path: Path) -> None:
    def noted(pool: str) -> list[Any]:
        (log,) = evaluate(
            practice_integer(),
            solver=conductor("adaptive", pool),
            model=None,
            limit=1,
            log_dir=str(tmp_path / "inspect"),
            display="none",
        )
        samples = log.samples or []
        return [one.metadata["podium"].get("noted", {}).get("workers") for one in samples]

    assert noted(str(strangers(tmp_path))) == ["workers drawn evenly"]
    assert noted("rehearsal") == [None]


def test_a_run_logs_what_its_conductor_was_held_to_whom_it_was_shown_and_what_it_cannot_read(
    tmp_path: Path,
) -> None:
    asked = ("run", "--suite", "practice-integer", "--limit", "4", "--system", "conductor-adaptive")
    more = ("--pool", f"{strangers(tmp_path)}", "--log-dir", f"{tmp_path / 'logs'}")
    assert main([*asked, *more]) == 0
    assert main(["audit", f"{tmp_path / 'logs'}"]) == 0
    samples = logged(tmp_path / "logs")
    assert len(samples) == 4
    for sample in samples:
        calls = [one for one in sample.events if one.event == "model" and one.role == "conductor"]
        held = [one.config.extra_body["structured_outputs"]["regex"] for one in calls]
        assert held == [plan_regex(FORM, 3)]
        work = sample.metadata["podium"]
        assert not work["plan"].startswith("malformed")
        assert sorted(work["noted"]["shown"]) == ["sage", "scribe", "swift"]
        assert work["noted"]["unread"] == work["noted"]["shown"]


@CLIENTS_WARN
def test_a_served_checkpoint_is_held_where_its_server_is_asked_to(model: Model) -> None:
    cards = ["A", "数学の専門家", HOSTILE[9], ""]
    with serve_checkpoint(checkpoint_folder("adaptive")) as (url, bill):
        served = get_model(
            f"openai-api/any/{NAME}",
            config=GenerateConfig(temperature=0.0, max_tokens=MOST_TOKENS),
            base_url=url,
            api_key="none",
            memoize=False,
        )

        async def plans(conductor: Model) -> list[str]:
            pool, said = pool_of(cards, conductor), list[str]()
            for question in practice(1):
                planner, chat, _ = first_request(FORM, NOW, question, pool)
                planned = await ask_for_plan(planner, chat)
                assert isinstance(planned.plan, Workflow)
                said.append(planned.said)
            return said

        assert anyio.run(plans, served) == anyio.run(plans, model)
    assert len(bill) == 4
