"""What a form reads: as JSON, and with its ablations."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.conductor.parse import (
    MAX_JSON,
    NOTHING_TO_DO,
    SOLVE,
    Access,
    PlanFormat,
    parse_json,
    parse_lists,
    read_plan,
)
from podium.harness.workflow import Malformed, Step, Workflow
from tests.conductor.fuzz_readers import WORKERS

ONE = 'model_id = [0]\nsubtasks = ["a"]\naccess_list = [[]]'
TWO = 'model_id = [1, 0]\nsubtasks = ["a", "b"]\naccess_list = [[], ["all"]]'


def lists(models: str, subtasks: str, access: str) -> str:
    return f"model_id = {models}\nsubtasks = {subtasks}\naccess_list = {access}"


AS_TWO = (Step("sage", "a"), Step("abacus", "b", "all"))


# --- JSON -------------------------------------------------------------------------------------

STEPS = (
    '[{"model_id": 1, "subtask": "a", "access_list": []},'
    ' {"model_id": 0, "subtask": "b", "access_list": ["all"]}]'
)
OBJECT = '{"model_id": [1, 0], "subtasks": ["a", "b"], "access_list": [[], ["all"]]}'


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(OBJECT, id="three-lists"),
        pytest.param(STEPS, id="steps"),
        pytest.param(f'{{"why": "x", "steps": {STEPS}}}', id="steps-under-their-name"),
        pytest.param(f"I think {{so}}.\n```json\n{OBJECT}\n```\nDone.", id="text-around"),
        pytest.param(f'{{"model_id": [2]}}\nNo, better: {OBJECT}', id="the-last-one-counts"),
        pytest.param(f'{OBJECT}\n{{"model_id": [2], "subt', id="cut-off-draft"),
        pytest.param(f'{{"why": "{{\\"model_id\\": 9}}", {OBJECT[1:]}', id="json-in-a-string"),
    ],
)
def test_a_plan_in_json_is_read(text: str) -> None:
    assert read_plan(PlanFormat(reply="json"), text, WORKERS) == Workflow(AS_TWO)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no complete JSON object"),
        (TWO, "no complete JSON object"),
        ('{"model_id": [0], "subtasks": ["a"]}', "no key access_list"),
        ('{"model_id": 0, "subtasks": ["a"], "access_list": [[]]}', "model_id must be a list"),
        ('{"model_id": [true], "subtasks": ["a"], "access_list": [[]]}', "must be an integer"),
        ('{"model_id": [0.0], "subtasks": ["a"], "access_list": [[]]}', "must be an integer"),
        ('{"model_id": [NaN], "subtasks": ["a"], "access_list": [[]]}', "NaN is no JSON"),
        ('{"model_id": [7], "subtasks": ["a"], "access_list": [[]]}', "no Model 7"),
        ('{"model_id": [0], "model_id": [1], "subtasks": [""], "access_list": [[]]}', "twice"),
        ('{"model_id": [0], "subtasks": ["a\nb"], "access_list": [[]]}', "not valid JSON"),
        ('{"model_id": [0], "subtasks": ["\\u0000"], "access_list": [[]]}', "null character"),
        ('{"model_id": [], "subtasks": [], "access_list": []}', NOTHING_TO_DO),
        ('{"model_id": [0], "steps": []}', NOTHING_TO_DO),
        ('{"model_id": [0], "steps": {}}', "steps must be a list"),
        ('[{"model_id": 0}]', "step 1 has no key subtask"),
        ('[{"model_id": 0, "subtask": 1, "access_list": []}]', "must be a string"),
        ('{"model_id": [' + "9" * 5000 + '], "subtasks": [""], "access_list": [[]]}', "JSON"),
        ('{"model_id": [[[[[0]]]]], "subtasks": [""], "access_list": [[]]}', "no complete"),
        ('{"model_id": [0], "subtasks": ["' + "a" * MAX_JSON + '"], "access_list": [[]]}', "no c"),
    ],
)
def test_json_that_is_no_plan_says_why(text: str, why: str) -> None:
    plan = parse_json(text, WORKERS)
    assert isinstance(plan, Malformed)
    assert re.search(re.escape(why), plan.reason)


def test_half_a_character_in_json_becomes_one_that_can_be_sent() -> None:
    plan = parse_json('{"model_id": [0], "subtasks": ["\\ud800"], "access_list": [[]]}', WORKERS)
    assert isinstance(plan, Workflow)
    assert plan.steps[0].subtask == "?"


WORKFLOWS = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.text(
            st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\\"), max_size=9
        ),
        st.sampled_from(("all", ())),
    ),
    min_size=1,
    max_size=5,
)


@given(WORKFLOWS)
def test_a_plan_means_the_same_in_lists_and_in_json(
    steps: list[tuple[int, str, str | tuple[()]]],
) -> None:
    models, subtasks, access = map(list, zip(*steps, strict=True))
    entries = [["all"] if reads else [] for reads in access]
    spelled = {"model_id": models, "subtasks": subtasks, "access_list": entries}
    as_json = parse_json(json.dumps(spelled), WORKERS)
    written = (f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in spelled.items())
    as_lists = parse_lists("\n".join(written), WORKERS)
    assert as_json == as_lists
    assert isinstance(as_json, Workflow)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"' * 200_000, id="openings"),
        pytest.param('[{"a": ' * 60_000, id="nested"),
        pytest.param("{" + " " * 400_000 + '"', id="spaces"),
        pytest.param('{"model_id": "' + "\\" * 400_001, id="backslashes"),
        pytest.param("model_id = (" * 50_000, id="named"),
        pytest.param("model_id: [0, " * 50_000, id="unclosed"),
        pytest.param('subtasks: "' * 50_000, id="quotes"),
        pytest.param("“" * 400_000, id="typographic"),
    ],
)
def test_hostile_text_ends_in_a_reason(text: str) -> None:
    for reply in ("lists", "json"):
        assert isinstance(read_plan(PlanFormat(reply=reply), text, WORKERS), Malformed)


# --- what a form makes of a plan --------------------------------------------------------------

FINE = lists("[1, 0, 2]", '["a", "b", "c"]', '[[], [0], "all"]')


@pytest.mark.parametrize(
    ("access", "reads"),
    [("fine", [(), (0,), "all"]), ("off", [(), (), ()]), ("binary", None)],
)
def test_access_is_what_the_form_allows(access: Access, reads: list[object] | None) -> None:
    plan = read_plan(PlanFormat(access=access), FINE, WORKERS)
    if isinstance(plan, Workflow):
        assert [step.reads for step in plan.steps] == reads
    else:
        assert reads is None
        assert plan.reason == 'step 2: access must be [] or ["all"]'


def test_without_subtasks_every_worker_is_asked_to_solve_the_question() -> None:
    plan = read_plan(PlanFormat(subtasks=False), FINE, WORKERS)
    assert isinstance(plan, Workflow)
    assert [step.subtask for step in plan.steps] == ["", SOLVE, SOLVE]


def test_a_forced_worker_does_every_step_and_no_other_word_of_the_plan_changes() -> None:
    plan, free = (
        read_plan(PlanFormat(worker="sage"), FINE, WORKERS),
        read_plan(PlanFormat(), FINE, WORKERS),
    )
    assert isinstance(plan, Workflow)
    assert isinstance(free, Workflow)
    assert {step.worker for step in plan.steps} == {"sage"}
    assert [(s.subtask, s.reads) for s in plan.steps] == [(s.subtask, s.reads) for s in free.steps]


def test_numbers_are_those_of_the_workers_that_were_shown() -> None:
    plan = read_plan(PlanFormat(), ONE, ("scribe", "abacus"))
    assert isinstance(plan, Workflow)
    assert plan.steps[0].worker == "scribe"
    assert isinstance(read_plan(PlanFormat(), TWO, ("scribe",)), Malformed)
