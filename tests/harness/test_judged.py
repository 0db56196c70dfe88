"""Questions that only a model can judge: who must have a judge, and who is refused without one."""

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from inspect_ai import eval

from podium.harness.errors import UserError
from podium.harness.pool import active_pool, pool_models
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.evaluate import Controls
from podium.harness.run.preflight import problems, unpriced
from podium.harness.run.run import run
from podium.harness.suite import refuse_unjudged
from podium.suites.rlpr import RLPR, rlpr, rlpr_rules
from tests.harness.judged_run import (
    GRADER,
    POOL,
    ROWS,
    SAYS,
    Judge,
    everything,
    many,
    model,
    pool_file,
    pupil,
    scored,
    spec_of,
)
from tests.harness.toy_run import choose, make_plans, toy_catalogue
from tests.providers.scripted import Heard, script, scripted_pool
from tests.suites.test_rlpr import folder


def test_a_pool_may_have_a_grader_that_is_no_worker(tmp_path: Path) -> None:
    spec = read_pool(str(pool_file(tmp_path)))
    assert spec.grader is not None
    assert (spec.names, [slot.name for slot in spec.slots]) == (("pupil",), ["pupil", "grader"])
    script("pupil", pupil)
    script("judge", Judge())
    assert set(pool_models(spec)) == {"pupil", "grader"}


def test_a_conductor_and_a_grader_live_in_one_file(tmp_path: Path) -> None:
    text = POOL + GRADER + '[conductor]\nmodel = "scripted/planner"\n'
    spec = read_pool(str(pool_file(tmp_path, text)))
    assert [slot.name for slot in spec.slots] == ["pupil", "conductor", "grader"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        pytest.param('[grader]\nmodel = "gpt-5"\n', "line 9, field grader.model", id="no provider"),
        pytest.param(
            '[grader]\nmodel = "rehearsal/abacus"\n', "line 9, field grader.model", id="label"
        ),
        pytest.param(
            '[grader]\nname = "judge"\nmodel = "a/b"\n', "always named 'grader'", id="name"
        ),
        pytest.param(
            '[grader]\nmodel = "a/b"\nprize = "x"\n', "line 10, field grader.prize", id="?"
        ),
    ],
)
def test_a_mistake_in_the_graders_table_is_told_with_its_line(
    tmp_path: Path, table: str, said: str
) -> None:
    with pytest.raises(UserError, match=said.replace(".", r"\.")):
        read_pool(str(pool_file(tmp_path, f"{POOL}\n{table}")))


def test_a_grader_is_priced_and_checked_only_where_it_is_called(tmp_path: Path) -> None:
    text = (POOL + GRADER).replace("scripted/judge", "openai-api/acme/judge")
    spec = read_pool(str(pool_file(tmp_path, text)))
    script("pupil", pupil)
    book = read_book(spec.prices)
    assert unpriced(spec, book) == ["grader"]
    found = problems(spec, book)
    assert any("'grader' has no price" in problem for problem in found)
    assert problems(spec, book, grader=False) == []


def test_who_is_examined_cannot_ask_the_judge(tmp_path: Path) -> None:
    spec = read_pool(str(pool_file(tmp_path)))
    seen: list[tuple[str, ...]] = []

    async def look() -> None:
        seen.append(tuple(active_pool(spec).models))

    script("pupil", pupil)
    anyio.run(look)
    assert seen == [("pupil",)]
    with pytest.raises(UserError, match="no worker 'grader'"):
        anyio.run(scripted_pool(sage="hi").pool.ask, "grader", [], "step 1")


def test_prose_without_a_grader_is_refused_in_one_sentence(tmp_path: Path) -> None:
    questions = everything(folder(tmp_path, ROWS)).load()
    with pytest.raises(UserError) as refused:
        refuse_unjudged(RLPR, questions, spec_of(tmp_path))
    assert str(refused.value) == (
        "1 of the 2 questions of suite 'rlpr' need a model as judge: add a [grader] table to pool "
        "'pool', or under `inspect eval` give --model-role grader=PROVIDER/MODEL."
    )
    refuse_unjudged(RLPR, questions, spec_of(tmp_path, POOL + GRADER))
    refuse_unjudged(RLPR, questions[:1], spec_of(tmp_path))


def test_podium_run_refuses_before_the_first_call_and_writes_nothing(tmp_path: Path) -> None:
    asked: list[Heard] = []
    script("pupil", lambda heard: asked.append(heard) or "42")
    suite = everything(folder(tmp_path, ROWS))
    request = RunRequest(
        suites=("rlpr",),
        systems=("single:pupil",),
        pool=str(pool_file(tmp_path, POOL)),
        log_dir=tmp_path / "logs",
        display="none",
    )
    controls = Controls(choose=choose, make_plans=make_plans, opened=lambda *_: None)
    with pytest.raises(UserError, match=r"add a \[grader\] table"):
        run(request, replace(toy_catalogue(), suites={"rlpr": suite}), controls)
    assert asked == []
    assert not (tmp_path / "logs").exists()


@pytest.mark.slow
def test_inspects_own_command_refuses_before_the_first_call_too(tmp_path: Path) -> None:
    asked: list[Heard] = []
    (log,) = eval(
        rlpr(data=many(tmp_path)),
        model=model("examined", lambda heard: asked.append(heard) or "42"),
        log_dir=str(tmp_path / "logs"),
        display="none",
    )
    assert log.status == "error"
    assert log.error is not None
    assert "--model-role grader=PROVIDER/MODEL" in log.error.message
    assert asked == []


def test_inspects_own_command_asks_the_judge_it_is_given(tmp_path: Path) -> None:
    judge = Judge()
    (log,) = eval(
        rlpr(data=many(tmp_path)),
        model=model("examined", lambda heard: f"<answer>{SAYS}</answer>"),
        model_roles={"grader": model("judge", judge)},
        log_dir=str(tmp_path / "logs"),
        display="none",
    )
    assert log.status == "success"
    judged = [one for one in scored(log) if one.metadata["rule"] == "text"]
    assert len(judged) == len(judge.heard) > 0
    assert {one.value for one in judged} == {1.0}


def test_the_part_for_rules_needs_no_judge(tmp_path: Path) -> None:
    (log,) = eval(
        rlpr_rules(data=many(tmp_path)),
        model=model("examined", lambda heard: f"Answer: {heard.last.split()[-1]}"),
        log_dir=str(tmp_path / "logs"),
        display="none",
    )
    assert log.status == "success"
    assert {one.value for one in scored(log)} == {1.0}
