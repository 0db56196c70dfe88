"""A suite that shows its options in another order in each epoch, through Inspect and back."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from inspect_ai import eval
from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.solver import Solver

from podium.baselines.single import single
from podium.harness.cassette import CassetteHeader, RecordedReply, refuse_unrecorded, write_cassette
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import ASKED, as_task
from podium.harness.model_judge import question_in, regrade
from podium.harness.pool_config import PoolSpec, read_pool
from podium.harness.records import Grade, Question
from podium.harness.request import request_digest
from podium.harness.suite import Card, Split, at_epoch, usual_epochs
from podium.suites.base import LETTERS, choice_metadata, choice_text, grade_choice
from podium.suites.gpqa_diamond import arrange_options, first_places, order_seed, rotate_options
from tests.providers.scripted import Heard, ReplyFunction, script
from tests.suites.toy_card import CARD

SIZE = 6
STORY = "This is a long story, so that a log keeps it as an attachment. " * 30


@dataclass(frozen=True, slots=True)
class Moving:
    """Questions whose right option says so; it stands elsewhere in every epoch."""

    name: str = "moving"
    version: str = "1-A"
    data_revision: str = "generated-1"
    dates: str = "generated"
    splits: tuple[Split, ...] = ("eval",)
    publishable: bool = True
    needs_box: bool = False
    image: str = ""
    epochs: int = 4
    card: Card = CARD

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return six questions as epoch 1 asks them."""
        places = first_places(f"q{n}" for n in range(SIZE))
        return [moving(id, place) for id, place in sorted(places.items())]

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Refuse: the questions are made here."""
        raise UserError("its questions are generated: leave out --problems")

    def at_epoch(self, question: Question, epoch: int) -> Question:
        """Move the right option on by one letter an epoch."""
        return rotate_options(question, epoch)

    def grade(self, question: Question, reply: str, box: object = None) -> Grade:
        """Compare letters."""
        return grade_choice(question, reply)


SUITE = Moving()


def moving(id: str, place: int) -> Question:
    wrong = [f"wrong {id} {n}" for n in range(3)]
    printed = arrange_options(f"right {id}", wrong, place, order_seed(id, 1))
    return Question(
        id=id,
        text=choice_text(f"{STORY}Which of {id}?", printed),
        kind="choice",
        target=LETTERS[place],
        metadata=choice_metadata(printed),
    )


def knowing(heard: Heard) -> str:
    """Answer with the letter before the right option, wherever it stands."""
    (line,) = [line for line in heard.last.splitlines() if ") right " in line]
    return f"I recognise it.\n\nAnswer: {line[0]}"


def stubborn(heard: Heard) -> str:
    """Answer B, whatever is asked."""
    return "Answer: B"


def sat(log_dir: Path, reply: ReplyFunction, solver: Solver | None = None) -> EvalLog:
    """Let a model sit the exam, as `inspect eval` does; read the log back from its file."""
    model = get_model(script("chooser", reply), memoize=False)
    (log,) = eval(
        as_task(SUITE, solver=solver),
        model=model,
        model_roles={"sage": model},
        log_dir=str(log_dir),
        display="none",
    )
    assert log.status == "success", log.error
    return read_eval_log(log.location)


def samples(log: EvalLog) -> list[EvalSample]:
    return log.samples or []


def values(log: EvalLog) -> list[object]:
    return [sample.scores["podium"].value for sample in samples(log) if sample.scores]


WAYS = pytest.mark.parametrize("alone", [False, True], ids=["generate", "single"])


@WAYS
def test_a_model_is_sent_the_order_of_each_epoch(tmp_path: Path, alone: bool) -> None:
    sent: list[str] = []

    def listening(heard: Heard) -> str:
        sent.append(heard.last)
        return knowing(heard)

    sat(tmp_path, listening, single("sage") if alone else None)
    forms = [at_epoch(SUITE, one, epoch) for one in SUITE.load() for epoch in range(1, 5)]
    assert sorted(sent) == sorted(form.text for form in forms)
    assert len(set(sent)) == 4 * SIZE


@WAYS
def test_who_knows_the_right_option_is_right_in_every_epoch(tmp_path: Path, alone: bool) -> None:
    log = sat(tmp_path, knowing, single("sage") if alone else None)
    assert values(log) == [1.0] * (4 * SIZE)
    said = Counter(sample.scores["podium"].answer for sample in samples(log) if sample.scores)
    assert said == dict.fromkeys(LETTERS, SIZE)


def test_a_favourite_letter_is_right_once_in_four_epochs_of_every_question(tmp_path: Path) -> None:
    log = sat(tmp_path, stubborn)
    right = Counter(
        str(sample.id)
        for sample in samples(log)
        if sample.scores and sample.scores["podium"].value == 1.0
    )
    assert right == {question.id: 1 for question in SUITE.load()}


@pytest.mark.slow
@WAYS
def test_a_regrade_of_every_sample_changes_no_verdict(tmp_path: Path, alone: bool) -> None:
    for number, reply in enumerate((knowing, stubborn)):
        log = sat(tmp_path / str(number), reply, single("sage") if alone else None)
        before = values(log)
        again = regrade(log, SUITE, None, everything=True)
        assert again is not None
        assert (again.graded, again.still_unscored, again.changed) == (4 * SIZE, 0, 0)
        assert values(read_eval_log(str(again.log))) == before


def test_the_log_keeps_how_a_later_epoch_asked_and_epoch_one_is_the_sample(tmp_path: Path) -> None:
    questions = {question.id: question for question in SUITE.load()}
    log = sat(tmp_path, knowing)
    for sample in samples(log):
        form = at_epoch(SUITE, questions[str(sample.id)], sample.epoch)
        assert question_in(sample, SUITE) == form
        if sample.epoch == 1:
            assert ASKED not in sample.metadata
        else:
            assert sample.metadata[ASKED]["permutation"] == form.metadata["permutation"]
            assert sample.metadata[ASKED]["choices"] == form.metadata["choices"]
    assert Counter(sample.epoch for sample in samples(log)) == {1: SIZE, 2: SIZE, 3: SIZE, 4: SIZE}


def test_nothing_that_a_system_sees_says_which_option_is_right() -> None:
    for one in SUITE.load():
        for epoch in range(1, 5):
            form = at_epoch(SUITE, one, epoch)
            assert set(form.metadata) == {"choices", "permutation"}
            assert form.metadata == choice_metadata(form.metadata["choices"])
            assert form.sealed().target is None


def test_epoch_one_is_the_question_and_epoch_five_is_not_epoch_one_again() -> None:
    first = SUITE.load()
    fifth = [at_epoch(SUITE, one, 5) for one in first]
    assert [at_epoch(SUITE, one, 1) for one in first] == first
    assert [one.target for one in fifth] == [one.target for one in first]
    assert [one.text for one in fifth] != [one.text for one in first]
    assert usual_epochs(SUITE) == 4


def test_a_question_without_target_or_options_has_no_later_order() -> None:
    one = SUITE.load()[0]
    with pytest.raises(ValueError, match="sealed"):
        rotate_options(one.sealed(), 2)
    other = Question("q", "no options", "choice", "A", metadata=choice_metadata(list("abcd")))
    with pytest.raises(ValueError, match="q does not end with its options"):
        rotate_options(other, 2)


def taped(folder: Path, epochs: int) -> PoolSpec:
    """Return a pool that replays bare replies to the first `epochs` forms of each question."""
    rows = [
        RecordedReply(
            worker="chooser",
            digest=request_digest(
                [ChatMessageUser(content=at_epoch(SUITE, one, min(form, epochs)).text)]
            ),
            epoch=form,
            occurrence=0,
            text="Answer: A",
            usage=None,
            model="some/chooser",
            prompt_recorded=False,
            source="a test",
        )
        for one in SUITE.load()
        for form in range(1, 5)
    ]
    tape = folder / "tape.jsonl"
    header = CassetteHeader(
        created_from=("a test",), source_sha256=("0" * 64,), source_label="live"
    )
    write_cassette(tape, header, rows)
    pool = folder / "pool.toml"
    pool.write_text(
        'label = "recorded"\nprices = "none"\n[[workers]]\nname = "sage"\n'
        'model = "recorded/chooser"\n'
        f'args = {{ cassette = "{tape}" }}\n'
    )
    return read_pool(str(pool))


def test_a_recorded_pool_must_hold_every_epochs_form_of_a_question(tmp_path: Path) -> None:
    whole, first = tmp_path / "whole", tmp_path / "first"
    whole.mkdir()
    first.mkdir()
    refuse_unrecorded(taped(whole, 4), SUITE.load(), 4, SUITE)
    spec = taped(first, 1)
    refuse_unrecorded(spec, SUITE.load(), 1, SUITE)
    with pytest.raises(UserError, match="no recorded reply to 6 of 6 questions"):
        refuse_unrecorded(spec, SUITE.load(), 2, SUITE)
