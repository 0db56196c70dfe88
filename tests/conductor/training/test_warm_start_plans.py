"""What a warm start is taught, without torch: plans of first and of later rounds, and no answer."""

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.parse import KEEP, PlanFormat, read_later_plan, read_plan
from podium.conductor.training.config import PlanRecipe, read_config
from podium.conductor.training.job import TrainingJob, find_job
from podium.conductor.training.training_rows import (
    PlanCorpus,
    ShownRow,
    made_up_reply,
    plan_corpus,
)
from podium.harness.errors import UserError
from podium.harness.rewards.splits import SuiteSplit
from podium.harness.workflow import Workflow

SMALL = (
    'suites.names=["practice-integer", "practice-choice"]', "suites.weights={}", "suites.train=12",
    "validation.questions=3",
)  # fmt: skip


@pytest.fixture(scope="module")
def training() -> TrainingJob:
    config = read_config("practice-cpu-recursive", (*SMALL, "model.path=anywhere"))
    return find_job(config, Path("none"), whole_catalogue(), controls().bare, dry=True)


def shown(training: TrainingJob) -> list[ShownRow]:
    return [training.prompts.shown(row) for row in training.rows(16)]


def drawn(
    corpus: PlanCorpus, rows: list[ShownRow], count: int = 400
) -> list[tuple[ShownRow, str, str]]:
    """Return rows with what is drawn for them: a prompt and what is to be said."""
    rng = Random(0)
    return [(one, *corpus.drawn(one, rng)) for one in rng.choices(rows, k=count)]


def test_half_of_what_is_drawn_are_later_rounds_and_all_of_it_can_be_read(
    training: TrainingJob,
) -> None:
    form, later = training.config.form, 0
    for one, prompt, said in drawn(plan_corpus(training.config, shown(training)), shown(training)):
        if prompt == one.prompt:
            assert isinstance(read_plan(form, said, one.workers), Workflow)
            continue
        later += 1
        start = one.prompt.removesuffix("Plan:") + "Earlier plan:\n"
        assert prompt.startswith(start)
        before, _, reply = prompt.removeprefix(start).partition("\n\nEarlier answer:\n")
        assert isinstance(read_plan(form, before, one.workers), Workflow)
        assert reply.endswith("\n\nPlan:")
        assert read_later_plan(form, said, one.workers) == KEEP or isinstance(
            read_later_plan(form, said, one.workers), Workflow
        )
    assert 160 < later < 240


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_as_many_later_rounds_keep_the_answer_as_are_asked_for(
    training: TrainingJob, share: float
) -> None:
    rows, form = shown(training), training.config.form
    corpus = PlanCorpus(rows, form, PlanRecipe(later=1.0, keep=share), 0)
    keeps = [
        read_later_plan(form, said, one.workers) == KEEP for one, _, said in drawn(corpus, rows)
    ]
    assert abs(sum(keeps) / len(keeps) - share) < 0.06


def test_a_training_without_later_rounds_draws_none_and_the_same_plans_as_before(
    training: TrainingJob,
) -> None:
    once, rows = read_config("practice-cpu", SMALL), shown(training)
    corpus, rng, again = plan_corpus(once, rows), Random(0), Random(0)
    assert [corpus.drawn(one, rng) for one in rows] == [
        (one.prompt, corpus.plan(one, again)) for one in rows
    ]


def test_a_warm_start_knows_no_target_topic_or_other_hidden_fact(training: TrainingJob) -> None:
    bare = {
        name: SuiteSplit(
            exam.suite,
            {
                id: replace(one, target=None, topic="", metadata={})
                for id, one in exam.questions.items()
            },
        )
        for name, exam in training.splits.items()
    }
    unknowing = replace(training, splits=bare)
    said = [
        [texts for _, *texts in drawn(plan_corpus(one.config, shown(one)), shown(one))]
        for one in (training, unknowing)
    ]
    assert said[0] == said[1]


def test_a_made_up_reply_has_words_of_the_question_and_ends_with_a_number_a_letter_or_a_word() -> (
    None
):
    question, rng = "How many primes divide 462?", Random(0)
    replies = [made_up_reply(question, rng) for _ in range(300)]
    words, ends = {*question.split()}, {reply.split()[-1] for reply in replies}
    assert all(word in words for reply in replies for word in reply.split()[:-1])
    assert ends & words
    assert ends & {*"ABCDE"}
    assert len([one for one in ends if one.isdigit()]) > 50
    assert max(len(reply.split()) for reply in replies) <= 8 * 12 + 1
    assert len(made_up_reply("", rng).split()) <= 1


def test_a_model_that_is_asked_again_is_taught_its_own_first_rounds(training: TrainingJob) -> None:
    rows = shown(training)
    corpus = plan_corpus(training.config, rows)
    own = '\nmodel_id = [2]\nsubtasks = ["My own words."]\naccess_list = [[]]'
    corpus.own = {one.row: own for one in rows}
    found = drawn(corpus, rows)
    assert all(said == own for one, prompt, said in found if prompt == one.prompt)
    later = [(prompt, said) for one, prompt, said in found if prompt != one.prompt]
    shares = [sum(own in texts[at] for texts in later) / len(later) for at in (0, 1)]
    assert 0.4 < shares[0] < 0.6
    assert 0.15 < shares[1] < 0.35  # of those that keep no answer, half


@pytest.mark.parametrize(
    "form",
    [PlanFormat(reply="json"), PlanFormat(access="off"), PlanFormat(layout="compact", max_steps=1)],
    ids=["json", "no access", "one step"],
)
def test_later_rounds_are_drawn_in_every_form(training: TrainingJob, form: PlanFormat) -> None:
    rows = shown(training)
    corpus = PlanCorpus(rows, form, PlanRecipe(later=1.0, names=True), 0)
    for one, prompt, said in drawn(corpus, rows, 60):
        plan = read_later_plan(form, said, one.workers)
        assert plan == KEEP or isinstance(plan, Workflow)
        assert one.question in prompt


@pytest.mark.parametrize("setting", ["keep=1.5", "later=-0.1", "trust=2", "kinds=0"])
def test_shares_that_are_none_are_refused(setting: str) -> None:
    named = rf"warm_start\.options\.{setting.partition('=')[0]}: input"
    with pytest.raises(UserError, match=named):
        read_config("practice-cpu", [f"warm_start.options.{setting}"])


def test_first_and_later_rounds_are_taught_in_the_template_that_the_policy_is_asked_in(
    training: TrainingJob,
) -> None:
    def marked(turns: list[dict[str, str]]) -> str:
        return "".join(f"<{turn['role']}>{turn['content']}" for turn in turns) + "<assistant>"

    asking = replace(training.prompts, template=marked)
    rows = [asking.shown(row) for row in training.rows(16)]
    found = drawn(plan_corpus(training.config, rows), rows)
    assert {prompt == one.prompt for one, prompt, _ in found} == {True, False}
    assert all(prompt.startswith("<user>") for _, prompt, _ in found)
    assert all(prompt.endswith("<assistant>") for _, prompt, _ in found)
