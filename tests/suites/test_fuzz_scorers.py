"""No reply crashes a scorer or takes it over two seconds, and what is right stays right.

Every suite that reads answers out of text is shown text of all kinds. PODIUM_FUZZ sets the number
of replies per suite and property (100 unless set, the same ones each time); `-rP` shows how many
there were and how long the slowest took.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.harness.suite import ModelGraded, Suite, at_epoch, usual_epochs
from podium.suites import SUITES
from podium.suites.math_verify_pool import CPU_S

EXAMPLES = int(os.environ.get("PODIUM_FUZZ", "100"))
LONGEST_S = 2.0 - CPU_S
"""Seconds of processor time that a grade may take here; what math-verify does beside it is ended
after `CPU_S`, so together no reply takes two."""
LONGEST = 100_000
"""Characters."""

READ = [name for name, suite in SUITES.items() if not suite.needs_box]
KINDS: dict[str, tuple[str, ...]] = {
    "choice": ("C",),
    "integer": ("70", "0", "999"),
    "text": (r"\frac{14}{3}", "70", "(3, \\frac{\\pi}{2})", "x^2 + 1", "C", "42 m", "blue whale"),
}
"""Targets by the kind of a suite's questions."""

OF_SUITE = {"aime25": "integer", "practice-integer": "integer", "practice-composed": "integer"}
OF_SUITE |= {"gpqa-diamond": "choice", "mmlu": "choice", "practice-choice": "choice"}

FUZZ = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize="PODIUM_FUZZ" not in os.environ,
    database=None,
    suppress_health_check=[*HealthCheck],  # pyright: ignore[reportArgumentType],
)


def kind(name: str) -> str:
    return OF_SUITE.get(name, "text")


def question(name: str, target: str) -> Question:
    """Return a question of a suite's kind, none of its own: a failure would show its text."""
    choices = (
        {"choices": ["41 m", "42 m", "43 m", "None of these"]} if kind(name) == "choice" else {}
    )
    return Question("fuzz", "?", kind(name), target, metadata=choices)  # pyright: ignore[reportArgumentType]


# --- replies ----------------------------------------------------------------------------------

OF_LATEX = r"""
    \boxed{ } { \frac{ \text{ \left( \right) $ $$ \( \) \[ \] ^ _ \circ \sqrt \begin{pmatrix}
    \end{pmatrix} & \\ \pi \infty \cup - + = , / 1 70 999 2003^{2002^{2001}} x C \boxed{70}
    \boxed{C} \frac{14}{3} \, \! {,} \% ~ \ldots \le % #
    """
OF_WORDS = """
    ** * _ ` ``` # > | 1. <think> </think> <answer> </answer> Answer: Answer ANSWER: A B C D (C) E
    Option is correct 70 Therefore Wait, or and not . : answer The final ' " <|im_end|> \uff23
    \u7b54\u6848\uff1a R\u00e9ponse \u0627\u0644\u0625\u062c\u0627\u0628\u0629: \u200f
    42 m None of these
    """
LATEX, WORDS = tuple(OF_LATEX.split()), tuple(OF_WORDS.split())
SPACES = (" ", "\n", "\n\n", "\t", "\r\n", "\x00", "\ufeff", "\u2028", "")
SAID = (
    "Answer: {}",
    "**Answer:** {}",
    "ANSWER: ${}$",
    r"So \boxed{{{}}}.",
    "The answer is {}.",
    "### Final Answer\n\n{}",
    "<think>so {}</think>\n\nAnswer: {}",
    "Therefore x = {}",
    "{}",
    "<answer>{}</answer>",
    "\u7b54\u6848\uff1a{}",
    r"$\boxed{{\text{{{}}}}}$",
    "Answer: {} or 71",
    r"\boxed{{7}} and then \boxed{{{}}}",
    "Answer: 1\nAnswer: {}",
    "It is not {}",
    "Answer: ({})",
)
VALUES = (
    *("C", "B", "(C)", "E", "", "42 m", "None of these", "blue whale", "Blue whales."),
    *(
        "70",
        "070",
        "7,0",
        "1,234",
        "70.0",
        "-70",
        "999",
        "9" * 400,
        "\u0664\u0662",
        "\u00b2",
        "4.67",
    ),
    *(r"\frac{14}{3}", "14/3", "x^2+1", "1+x^2", r"(3, \frac{\pi}{2})", "10^{10^{10}}", "1/0"),
    *(r"\sqrt{" * 30, r"\frac{1}{0}", "\u221e", "x=" * 50 + "1", "(" * 200, "1" + "+1" * 500),
)


def soup(pieces: tuple[str, ...]) -> st.SearchStrategy[str]:
    pair = st.tuples(st.sampled_from(pieces), st.sampled_from(SPACES))
    return st.lists(pair.map("".join), max_size=60).map("".join)


def near() -> st.SearchStrategy[str]:
    one = st.builds(
        lambda said, value: said.format(value, value),
        st.sampled_from(SAID),
        st.sampled_from(VALUES),
    )
    return st.lists(one, min_size=1, max_size=4).map("\n".join)


def long() -> st.SearchStrategy[str]:
    piece = st.one_of(st.text(max_size=20), soup(LATEX), soup(WORDS), near())
    times = st.sampled_from((10, 100, 1000, 20_000, LONGEST))
    return st.builds(lambda text, n, end: (text * n)[:LONGEST] + end, piece, times, near())


REPLIES = st.one_of(
    st.text(max_size=400),
    soup(LATEX),
    soup(WORDS),
    soup(LATEX + WORDS),
    near(),
    st.builds(lambda a, b: f"{a}\n{b}", soup(LATEX + WORDS), near()),
    long(),
)
BEFORE = st.one_of(
    st.just(""), st.sampled_from(("Let me see.\n\n", "We have x = 3.\n", "# Solution\n\nFirst,\n"))
)
ENDINGS: tuple[Callable[[str], str], ...] = (
    lambda reply: f"{reply}\n\nHope this helps!",
    lambda reply: f"{reply}\n",
    lambda reply: f"  {reply}  ",
    lambda reply: reply if "\n" in reply or "*" in reply else f"**{reply}**",
)
"""What may be put around a reply without changing what it answers."""


# --- properties -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", READ)
def test_no_reply_crashes_a_scorer_or_takes_it_over_two_seconds(name: str) -> None:
    suite, slowest = SUITES[name], [0.0, 0.0]

    @FUZZ
    @given(reply=REPLIES, target=st.sampled_from(KINDS[kind(name)]))
    def graded(reply: str, target: str) -> None:
        before = time.process_time()
        grade = suite.grade(question(name, target), reply)
        seconds = time.process_time() - before
        slowest[:] = max(slowest[0], seconds), slowest[1] + 1
        assert 0.0 <= grade.value <= 1.0
        assert grade.extracted is not None or grade.value == 0.0
        assert seconds < LONGEST_S

    graded()
    cpu, replies = slowest
    sys.stdout.write(f"{name}: {replies:.0f} replies, slowest {cpu:.3f} s of processor\n")


@pytest.mark.parametrize("name", READ)
def test_what_is_right_stays_right_in_bold_and_with_a_pleasantry(name: str) -> None:
    suite = SUITES[name]

    @FUZZ
    @given(
        before=BEFORE,
        said=st.sampled_from(SAID),
        target=st.sampled_from(KINDS[kind(name)]),
        change=st.sampled_from(ENDINGS),
    )
    def kept(before: str, said: str, target: str, change: Callable[[str], str]) -> None:
        asked, reply = question(name, target), before + said.format(target, target)
        if suite.grade(asked, reply).value == 1.0:
            assert suite.grade(asked, change(reply)).value == 1.0, change(reply)

    kept()


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("reply", ["", " ", "\n\n\t\n", "\u3000", "\u200b", "\x00"], ids=ascii)
def test_an_empty_reply_is_wrong_and_has_no_answer(name: str, reply: str) -> None:
    for target in KINDS[kind(name)]:
        grade = SUITES[name].grade(question(name, target), reply)
        assert (grade.value, grade.extracted) == (0.0, None)


def real(name: str) -> Iterator[Question]:
    """Yield the questions that are here, as every epoch asks them; skip where there are none."""
    suite, found = SUITES[name], 0
    for question in at_hand(suite):
        found += 1
        yield question
        for epoch in range(2, usual_epochs(suite) + 1):
            yield at_epoch(suite, question, epoch)
    if not found:
        pytest.skip(f"the data of {name} is absent; name its folder in PODIUM_DATA")


def at_hand(suite: Suite[Any]) -> Iterator[Question]:
    """Yield the questions of every split that is here, without those that need a judge."""
    for split in suite.splits:
        try:
            loaded = suite.load(split)
        except UserError:
            continue
        judged = suite if isinstance(suite, ModelGraded) else None
        yield from (one for one in loaded if judged is None or not judged.needs_judge(one))


@pytest.mark.parametrize("name", READ)
def test_gold_is_right_for_every_question_at_hand(name: str) -> None:
    suite, wrong, total = SUITES[name], list[str](), 0
    for asked in real(name):
        gold = f"Answer: {asked.target}" if asked.kind == "choice" else rf"\boxed{{{asked.target}}}"
        total += 1
        if suite.grade(asked, f"So we have it.\n\n{gold}").value != 1.0:
            wrong.append(asked.id)
    sys.stdout.write(f"{name}: {total - len(wrong)} of {total} golds are right\n")
    assert wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("name", READ)
def test_the_question_itself_is_no_answer(name: str) -> None:
    suite = SUITES[name]
    some = [*real(name)][:: 8 if name == "mmlu" else 1]
    assert [one.id for one in some if suite.grade(one, one.text).value != 0.0] == []
