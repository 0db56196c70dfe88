"""The conductor: reading its text, what it is told, and the prompted system."""

import re
import time

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import Heard, scripted_pool

import conductor
from conductor import _registry
from conductor.parse import MAX_LIST, NOTHING_TO_DO, parse
from conductor.policy import conductor_system
from conductor.prompt import EXAMPLES, INSTRUCTIONS, plan_request
from harness.errors import UserError
from harness.pool import Pool
from harness.pool_file import PoolSpec, WorkerSpec
from harness.records import Question
from harness.replicate import request_digest
from harness.workflow import Malformed, Step, Workflow, check

WORKERS = ("abacus", "sage", "scribe")
SUM = Question(id="sum-1", text="What is 2 + 2?", kind="integer")
SOLVE = 'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]'
CHAIN = 'model_id = [1, 0]\nsubtasks = ["Look up.", "Compute."]\naccess_list = [[], ["all"]]'


def plan_text(models: str, subtasks: str, access: str) -> str:
    """Return a conductor's text with these three lists."""
    return f"model_id = {models}\nsubtasks = {subtasks}\naccess_list = {access}"


def read(text: str) -> Workflow:
    """Parse text that is a plan."""
    workflow = parse(text, WORKERS)
    assert isinstance(workflow, Workflow), workflow
    return workflow


def reason(text: str) -> str:
    """Parse text that is no plan and return why."""
    malformed = parse(text, WORKERS)
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
    assert isinstance(parse(CHAIN, WORKERS, max_steps=1), Malformed)
    assert isinstance(parse(SOLVE, WORKERS, max_steps=1), Workflow)


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


@settings(max_examples=2000, deadline=None)
@given(st.lists(PIECES | st.text(st.characters(), max_size=5), max_size=25).map("".join))
def test_any_text_is_a_workflow_that_can_run_or_malformed_with_a_reason(text: str) -> None:
    plan = parse(text, WORKERS)
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
    start = time.perf_counter()
    parse(text, WORKERS)
    assert time.perf_counter() - start < 2


# --- what a conductor is told -----------------------------------------------------------------


def test_the_worked_examples_are_plans_that_we_can_read() -> None:
    workers = [f"model {number}" for number in range(7)]
    plans = [parse(part, workers) for part in EXAMPLES.split("Example ")[1:]]
    assert [len(plan.steps) for plan in plans if isinstance(plan, Workflow)] == [1, 2, 3, 4]


def test_the_instructions_and_the_question_alone_hold_no_plan() -> None:
    assert isinstance(parse(INSTRUCTIONS, WORKERS), Malformed)


def test_the_prompt_names_question_models_and_limit() -> None:
    [turn] = plan_request("Why?", ["does sums", ""], max_steps=3)
    assert turn.role == "user"
    assert "at most 3 steps" in turn.text
    _, tail = turn.text.split("USER QUESTION:\n")
    assert tail == "Why?\n\nAVAILABLE LANGUAGE MODELS:\nModel 0: does sums\nModel 1"


# --- the prompted conductor -------------------------------------------------------------------


def test_a_planned_workflow_is_carried_out_by_the_workers() -> None:
    rig = scripted_pool(
        abacus=lambda heard: f"sum of {heard.turns[1][1]}", sage="2 and 2", conductor=CHAIN
    )
    answer = anyio.run(conductor_system(), SUM, rig.pool)
    assert rig.asked == ["conductor", "sage", "abacus"]
    assert (answer.text, answer.depth) == ("sum of 2 and 2", 2)
    assert [reply.worker for reply in answer.replies] == ["sage", "abacus"]
    assert rig.heard[2].turns[-1] == ("user", "Compute.")


def test_a_conductor_sees_role_cards_unless_they_are_hidden() -> None:
    cards = {"abacus": "does sums", "sage": ""}
    slots = tuple(
        WorkerSpec(name=name, model="scripted/x", card=card) for name, card in cards.items()
    )
    chief = WorkerSpec(name="conductor", model="scripted/x")
    spec = PoolSpec(name="p", label="rehearsal", prices="b", workers=slots, conductor=chief)
    rig = scripted_pool(abacus="4", sage="4", conductor=SOLVE)
    for shown in (True, False):
        pool = Pool(models=rig.pool.models, spec=spec)
        anyio.run(conductor_system(cards=shown), SUM, pool)
    with_cards, without = [heard.last for heard in rig.heard if heard.worker == "conductor"]
    assert with_cards.endswith("Model 0: does sums\nModel 1")
    assert without.endswith("Model 0\nModel 1")
    assert "abacus" not in with_cards + without


def test_a_malformed_plan_is_tried_again_with_the_reason_shown() -> None:
    def plan(heard: Heard) -> str:
        return SOLVE if len(heard.messages) > 1 else "model_id = [7]"

    rig = scripted_pool(abacus="4", conductor=plan)
    answer = anyio.run(conductor_system(), SUM, rig.pool)
    assert (answer.text, rig.asked) == ("4", ["conductor", "conductor", "abacus"])
    _, said, told = rig.heard[1].turns
    assert said == ("assistant", "model_id = [7]")
    assert "no complete list subtasks" in told[1]


@pytest.mark.parametrize("retries", [0, 1, 3])
def test_a_plan_that_stays_malformed_is_an_empty_answer_that_says_why(retries: int) -> None:
    rig = scripted_pool(abacus="4", conductor="I would rather not.")
    answer = anyio.run(conductor_system(retries=retries), SUM, rig.pool)
    assert rig.asked == ["conductor"] * (retries + 1)
    assert (answer.text, answer.replies) == ("", ())
    assert answer.plan == "malformed: there is no complete list model_id = [...]"


def test_a_pool_without_a_conductor_is_refused_with_the_fix() -> None:
    rig = scripted_pool(abacus="4")
    with pytest.raises(UserError, match=r"\[conductor\] table .* --model-role conductor="):
        anyio.run(conductor_system(), SUM, rig.pool)
    with pytest.raises(UserError, match="at least 1"):
        conductor_system(max_steps=0)


def test_two_attempts_are_different_requests() -> None:
    rig = scripted_pool(abacus="4", conductor="no plan")
    anyio.run(conductor_system(retries=2), SUM, rig.pool)
    assert len({request_digest(heard.messages) for heard in rig.heard}) == 3


def test_the_table_of_systems_names_registered_solvers() -> None:
    assert {*conductor.SYSTEMS} == {"conductor-prompted"}
    assert conductor.SYSTEMS["conductor-prompted"].solver == "conductor/conductor_prompted"
    assert callable(_registry.conductor_prompted)
