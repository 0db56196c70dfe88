"""The reader of a conductor's text: what is a plan, what is not and why, and hostile text."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.conductor.parse import MAX_LIST, NOTHING_TO_DO, parse_lists
from podium.harness.workflow import Malformed, Step, Workflow, check

WORKERS = ("abacus", "sage", "scribe")
SOLVE = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
CHAIN = 'model_id = [1, 0]\nsubtasks = ["Look up.", "Compute."]\naccess_list = [[], ["all"]]'


def plan_text(models: str, subtasks: str, access: str) -> str:
    """Return a conductor's text with these three lists."""
    return f"model_id = {models}\nsubtasks = {subtasks}\naccess_list = {access}"


def read(text: str) -> Workflow:
    """Parse text that is a plan."""
    workflow = parse_lists(text, WORKERS)
    assert isinstance(workflow, Workflow), workflow
    return workflow


def reason(text: str) -> str:
    """Parse text that is no plan and return why."""
    malformed = parse_lists(text, WORKERS)
    assert isinstance(malformed, Malformed), malformed
    return malformed.reason


# --- what can be read -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        pytest.param(SOLVE, [Step("abacus", "Solve it.")], id="one-step"),
        pytest.param(
            CHAIN, [Step("sage", "Look up."), Step("abacus", "Compute.", "all")], id="chain"
        ),
        pytest.param(
            f"I think.\n```python\n{SOLVE}\n```\nDone.", [Step("abacus", "Solve it.")], id="fenced"
        ),
        pytest.param(
            plan_text("[2,1,0]", "['a', 'b', 'c']", '[[], "all", [1]]'),
            [Step("scribe", "a"), Step("sage", "b", "all"), Step("abacus", "c", (1,))],
            id="bare-all-and-indices",
        ),
        pytest.param(
            plan_text("[\n  0,  # the first\n]", "['''two\nlines''',]", "[[],]"),
            [Step("abacus", "two\nlines")],
            id="comments-and-triple-quotes",
        ),
        pytest.param(
            plan_text("[0]", '["don\'t stop at ] or [ here"]', "[[]]"),
            [Step("abacus", "don't stop at ] or [ here")],
            id="brackets-in-strings",
        ),
        pytest.param(
            plan_text(
                "[0]", r"""["Find \frac{1}{2} of \theta, say \"x\"\nthen \\ stop"]""", "[[]]"
            ),
            [Step("abacus", 'Find \\frac{1}{2} of \\theta, say "x"\nthen \\ stop')],
            id="latex-survives",
        ),
        pytest.param(
            plan_text("[1]", "[\"Write model_id = [9] and subtasks = ['x']\"]", "[[]]"),
            [Step("sage", "Write model_id = [9] and subtasks = ['x']")],
            id="names-in-strings",
        ),
        pytest.param(f"{SOLVE}\nNo, better:\n{CHAIN}", [*read(CHAIN).steps], id="last-triple-wins"),
        pytest.param(f"{CHAIN}\nmodel_id = [2]\nsubt", [*read(CHAIN).steps], id="cut-off-draft"),
        pytest.param(f"access_list = [[5]]\n{CHAIN}", [*read(CHAIN).steps], id="stray-list-before"),
        pytest.param(
            f"model_id = [9]; or rather\n{SOLVE}", [Step("abacus", "Solve it.")], id="redone"
        ),
        pytest.param(plan_text("[0]", '[""]', "[[]]"), [Step("abacus")], id="empty-subtask"),
        pytest.param(
            plan_text("[0]", '["a \ud800"]', "[[]]"), [Step("abacus", "a ?")], id="surrogate"
        ),
    ],
)
def test_a_plan_is_read(text: str, steps: list[Step]) -> None:
    assert read(text).steps == tuple(steps)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "no complete list model_id", id="empty"),
        pytest.param("Use Model 1.", "no complete list model_id", id="prose"),
        pytest.param("model_id = [0]\nsubtasks = ['a']", "no complete list access_list", id="two"),
        pytest.param("model_id = [0]\naccess_list = [[]]\nsubtasks = ['a']", "follow", id="order"),
        pytest.param(plan_text("[]", "[]", "[]"), re.escape(NOTHING_TO_DO), id="three-empty-lists"),
        pytest.param(plan_text("[0, 1]", "['a']", "[[]]"), "lengths: 2, 1 and 1", id="lengths"),
        pytest.param(
            plan_text(str([0] * 6), str(["a"] * 6), "[[], [], [], [], [], []]"),
            "6 steps, at most 5",
            id="six",
        ),
        pytest.param(plan_text("[3]", "['a']", "[[]]"), "no Model 3, only 0 to 2", id="model-3"),
        pytest.param(plan_text("[-1]", "['a']", "[[]]"), "no Model -1", id="negative-model"),
        pytest.param(plan_text("['sage']", "['a']", "[[]]"), "must be an integer", id="model-name"),
        pytest.param(plan_text("[True]", "['a']", "[[]]"), "may hold only", id="true"),
        pytest.param(plan_text("[0.0]", "['a']", "[[]]"), "may hold only", id="float"),
        pytest.param(plan_text(f"[{'9' * 5000}]", "['a']", "[[]]"), "may hold only", id="digits"),
        pytest.param(plan_text("[007]", "['a']", "[[]]"), "not a valid", id="leading-zeros"),
        pytest.param(plan_text("[0 1]", "['a']", "[[]]"), "not a valid", id="no-comma"),
        pytest.param(plan_text("[0]", "[1]", "[[]]"), "subtask must be a string", id="number"),
        pytest.param(plan_text("[0]", "[['a']]", "[[]]"), "subtask must be a string", id="nested"),
        pytest.param(plan_text("[0]", "[b'a']", "[[]]"), "may hold only", id="bytes"),
        pytest.param(plan_text("[0]", "[f'{1}']", "[[]]"), "may hold only", id="f-string"),
        pytest.param(plan_text("[0]", "['a\nb']", "[[]]"), "subtasks", id="newline-in-string"),
        pytest.param(plan_text("[0]", "['a\0b']", "[[]]"), "not a valid", id="null-byte"),
        pytest.param(plan_text("[0]", "['a', [", "[[]]"), "subtasks", id="never-closed"),
        pytest.param(plan_text("[0]", "['a']", "[]"), "lengths: 1, 1 and 0", id="no-access"),
        pytest.param(plan_text("[0]", "['a']", "[[0]]"), "earlier steps only", id="reads-itself"),
        pytest.param(plan_text("[0]", "['a']", "[[-1]]"), "earlier steps only", id="reads-minus-1"),
        pytest.param(plan_text("[0]", "['a']", "['some']"), "access must be", id="reads-some"),
        pytest.param(plan_text("[0]", "['a']", "[0]"), "access must be", id="reads-number"),
        pytest.param(
            plan_text("[0,0]", "['a','b']", "[[],['all', 0]]"), "no step index", id="all-and-index"
        ),
        pytest.param(
            plan_text("[0,0]", "['a','b']", "[[],[0, 0]]"), "same step twice", id="reads-twice"
        ),
        pytest.param(plan_text("[__import__('os')]", "['a']", "[[]]"), "may hold only", id="code"),
        pytest.param(plan_text("[0]", "['a' * 9]", "[[]]"), "may hold only", id="expression"),
        pytest.param(plan_text("[[[0]]]", "['a']", "[[]]"), "model_id", id="too-deep"),
        pytest.param(plan_text("[0]", f"['{'a' * MAX_LIST}']", "[[]]"), "subtasks", id="too-long"),
    ],
)
def test_a_plan_that_cannot_run_says_why(text: str, why: str) -> None:
    assert re.search(why, reason(text))


def test_the_number_of_steps_allowed_is_the_callers() -> None:
    assert isinstance(parse_lists(CHAIN, WORKERS, max_steps=1), Malformed)
    assert isinstance(parse_lists(SOLVE, WORKERS, max_steps=1), Workflow)


PIECES = st.sampled_from(
    [
        *("model_id = ", "subtasks = ", "access_list = ", "[", "]", "[[]]", "[0]", "['a']"),
        *(
            '"',
            "'",
            '"""',
            "\\",
            "\n",
            "#",
            ",",
            "all",
            "-",
            "0",
            "9" * 30,
            "\0",
            "\ud800",
            "{",
            "(",
        ),
        *(SOLVE, CHAIN, plan_text("[]", "[]", "[]")),
    ]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES | st.text(st.characters(), max_size=5), max_size=25).map("".join))
def test_any_text_is_a_workflow_that_can_run_or_malformed_with_a_reason(text: str) -> None:
    plan = parse_lists(text, WORKERS)
    if isinstance(plan, Malformed):
        assert plan.reason
    else:
        assert check(plan, WORKERS) is plan
        assert all(step.subtask.encode().decode() == step.subtask for step in plan.steps)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("model_id = " + "[" * 200_000, id="brackets"),
        pytest.param("model_id = [" * 50_000, id="openings"),
        pytest.param('model_id = ["' * 50_000, id="openings-and-quotes"),
        pytest.param("model_id = [" + "0," * 200_000, id="one-endless-list"),
        pytest.param("model_id = ['" + "\\" * 400_001, id="backslashes"),
        pytest.param("model_id" + " " * 400_000, id="spaces"),
        pytest.param(plan_text("[" + "-" * 15_000 + "1]", "['a']", "[[]]"), id="minus-signs"),
        pytest.param(plan_text("[" + "0," * 9_000 + "]", "['a']", "[[]]"), id="many-models"),
        pytest.param(f"{CHAIN}\n" * 20_000 + "model_id = [", id="many-plans"),
    ],
)
def test_hostile_text_is_answered_quickly(text: str) -> None:
    start = time.process_time()
    parse_lists(text, WORKERS)
    assert time.process_time() - start < 20
