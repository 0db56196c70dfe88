"""The trained conductor as a system: a checkpoint in the conductor's role, run and audited."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai import eval as evaluate  # pyright: ignore[reportUnknownVariableType]
from inspect_ai.log import read_eval_log

from podium.cli import main
from podium.cli.list_commands import controls, whole_catalogue
from podium.conductor.checkpoint import (
    CheckpointInfo,
    cards_digest,
    grader_versions,
    read_info,
    released_names,
    taught_digests,
    write_info,
)
from podium.conductor.parse import PlanFormat
from podium.conductor.trained import conductor, conductor_served, conductor_slot, trained_system
from podium.harness.errors import UserError
from podium.harness.ledger.logs import find_logs
from podium.harness.pool_config import POOLS, read_pool
from podium.harness.records import Question
from podium.harness.rewards.splits import question_digest
from podium.harness.run.catalogue import RunRequest, conductor_override
from podium.harness.run.preflight import match_target, moved_graders, why_unfit
from podium.harness.run.run import examine_run
from podium.harness.run.run_request import RequestReader
from podium.harness.suite import TaskRefusal
from podium.suites import strip_instruction
from podium.suites.practice.integer import practice_integer
from tests import ROOT
from tests.conductor.toy_checkpoint import Sizes, Toy, parrot, write_checkpoint
from tests.providers.scripted import scripted_pool
from tests.reports.audit.audited_run import failing, rows_below

PLAN = 'model_id = [1]\nsubtasks = ["Solve the question."]\naccess_list = [[]]'
POOL = read_pool("rehearsal")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return parrot(tmp_path / "toy", PLAN)


def run(*words: object) -> int:
    return main([str(word) for word in words])


def podium_run(toy: Path, logs: Path, *more: object) -> int:
    asked = ("run", "--suite", "practice-integer", "--pool", "rehearsal", "--limit", 3)
    return run(*asked, "--system", f"conductor@{toy}", "--log-dir", logs, *more)


# --- what a checkpoint says about itself ------------------------------------------------------


def test_what_is_written_beside_weights_is_read_back(toy: Path) -> None:
    about = replace(
        Toy().described(),
        form=PlanFormat(layout="compact", access="binary", max_steps=3),
        taught=("00ff" * 4,),
        reward="cost-aware",
        steps=120,
    )
    written = write_info(about, toy)
    assert read_info(toy) == written == replace(about, weights_sha256=written.weights_sha256)
    assert len(written.weights_sha256) == 64


def test_other_weights_than_those_described_are_refused(toy: Path) -> None:
    with (toy / "model.safetensors").open("ab") as file:
        file.write(b" ")
    with pytest.raises(UserError, match=r"is not the file that podium\.json describes"):
        read_info(toy)


@pytest.mark.parametrize("content", ["", "{}", '{"form": {"layout": "round"}}'])
def test_a_damaged_description_is_refused(toy: Path, content: str) -> None:
    (toy / "podium.json").write_text(content)
    with pytest.raises(UserError, match=r"podium\.json is damaged or of another version"):
        read_info(toy)


def test_a_folder_without_a_description_is_no_conductor(toy: Path) -> None:
    (toy / "podium.json").unlink()
    assert "has no podium.json" in str(why_unfit(f"conductor@{toy}", whole_catalogue(), POOL))


def test_digests_of_cards_depend_on_their_order() -> None:
    assert cards_digest(["a", "b"]) != cards_digest(["b", "a"])
    assert cards_digest(["ab", ""]) != cards_digest(["a", "b"])


# --- the system -------------------------------------------------------------------------------


def test_a_checkpoint_is_asked_by_its_own_form() -> None:
    about = replace(Toy().described(), form=PlanFormat(layout="compact", cards=False))
    rig = scripted_pool(sage="3", abacus="4", conductor=PLAN)
    answer = anyio.run(trained_system(about), Question("q", "What is 2 + 2?", "integer"), rig.pool)
    assert rig.heard[0].last == "What is 2 + 2?\n\nModels:\n0:\n1:\n\nPlan:"
    assert (answer.text, rig.asked) == ("4", ["conductor", "abacus"])


def test_a_plan_that_cannot_be_read_is_not_asked_for_again() -> None:
    rig = scripted_pool(abacus="4", conductor="no plan")
    answer = anyio.run(
        trained_system(Toy().described()), Question("q", "Why?", "integer"), rig.pool
    )
    assert (answer.text, rig.asked) == ("", ["conductor"])


def test_the_seat_stands_before_the_pools_own_conductor(toy: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    assert podium_run(toy, logs, "--system", "conductor-prompted") == 0
    headers = [read_eval_log(str(path), header_only=True) for path in find_logs([logs])]
    roles = {
        str(log.eval.metadata["podium"]["system"]): log.eval.model_roles
        for log in headers
        if log.eval.metadata
    }
    models = {name: (held or {})["conductor"] for name, held in roles.items()}
    assert getattr(models[f"conductor@{toy}"], "model", "") == f"embedded/{toy}"
    assert getattr(models["conductor-prompted"], "model", "") == "rehearsal/planner"


def test_a_run_of_a_checkpoint_is_billed_and_the_audit_passes(toy: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    assert podium_run(toy, logs) == 0
    assert failing(logs) == set()
    rows = rows_below(logs)
    conducted = [row for row in rows if row.role == "conductor"]
    assert [row.model for row in conducted] == [f"embedded/{toy}"] * 3
    assert {row.role for row in rows} == {"conductor", "abacus"}
    for row in conducted:
        assert row.price_ref == "embedded/conductor"
        assert row.usd is not None
        assert row.usd > 0


def test_a_resumed_run_goes_on_with_the_same_weights_only(toy: Path, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    assert podium_run(toy, logs) == 0
    parrot(toy, PLAN.replace("[1]", "[0]"))
    assert podium_run(toy, logs, "--limit", 4) != 0


def test_inspect_alone_runs_a_checkpoint_by_the_solvers_name(toy: Path, tmp_path: Path) -> None:
    [log] = evaluate(
        practice_integer(),
        solver=conductor(str(toy), "rehearsal"),
        model=None,
        limit=2,
        log_dir=str(tmp_path / "logs"),
        display="none",
    )
    assert log.status == "success"
    calls = [
        (event.role, event.model)
        for sample in log.samples or []
        for event in sample.events
        if event.event == "model"
    ]
    assert calls == [("conductor", f"embedded/{toy}"), ("abacus", "rehearsal/abacus")] * 2


def test_another_model_for_the_role_is_refused_in_words(toy: Path, tmp_path: Path) -> None:
    [log] = evaluate(
        practice_integer(),
        solver=conductor(str(toy), "rehearsal"),
        model=None,
        model_roles={"conductor": "rehearsal/planner"},
        limit=1,
        log_dir=str(tmp_path / "logs"),
        display="none",
    )
    assert log.error is not None
    assert "brings its own conductor" in log.error.message


def test_a_served_checkpoint_is_asked_at_the_pools_conductor(toy: Path, tmp_path: Path) -> None:
    pool = tmp_path / "served.toml"
    text = (ROOT / "harness" / "pools" / "rehearsal.toml").read_text()
    pool.write_text(text.replace('name = "rehearsal"', 'name = "served"'))
    logs = tmp_path / "logs"
    asked = ("run", "--suite", "practice-integer", "--pool", pool, "--limit", 1, "--log-dir", logs)
    assert run(*asked, "--system", f"conductor-served@{toy}") == 0
    conducted = [row for row in rows_below(logs) if row.role == "conductor"]
    assert [row.model for row in conducted] == ["rehearsal/planner"]
    assert failing(logs) == set()


def test_a_served_checkpoint_must_be_named() -> None:
    said = str(why_unfit("conductor-served", whole_catalogue(), POOL))
    assert said.endswith("as in conductor-served@FOLDER.")


def test_a_dry_run_bounds_a_checkpoint_at_its_own_price(
    toy: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no cell is folded
    assert podium_run(toy, tmp_path / "logs", "--dry-run") == 0
    said = capsys.readouterr().out
    assert "1 conductor call" in said
    assert not (tmp_path / "logs").exists()


# --- whose grader rewarded it -----------------------------------------------------------------

THEN = {"practice-integer": "0-A", "practice-code": "0-A"}


def moved_since(named: str, then: Mapping[str, str] = THEN) -> str:
    now = whole_catalogue().suites
    moves = (f"{name} {old} (now {now[name].version})" for name, old in then.items())
    return f"The training of {named} used other grader versions: {', '.join(moves)}."


@pytest.mark.parametrize("more", [(), ("--dry-run",)], ids=["run", "dry run"])
def test_the_first_lines_of_a_run_are_not_about_graders_of_a_checkpoint(
    more: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    about = replace(Toy().described(), graders=THEN, suites=tuple(THEN), steps=3)
    toy = parrot(tmp_path / "toy", PLAN, Toy(about=about))
    assert podium_run(toy, tmp_path / "logs", "--limit", 1, *more) == 0
    assert "grader versions" not in capsys.readouterr().out


def test_a_doctor_notes_which_graders_of_a_checkpoint_have_moved(tmp_path: Path) -> None:
    toy = learnt(tmp_path / "toy", graders=THEN, steps=3)
    request = RunRequest(
        ("practice-integer",), (f"conductor@{toy}",), "rehearsal", tmp_path / "new"
    )
    found = examine_run(request, whole_catalogue(), controls())
    assert not found.problems
    assert moved_since(f"conductor@{toy}") in found.notes


def test_checkpoints_that_the_same_graders_rewarded_share_a_sentence(tmp_path: Path) -> None:
    one, other = (f"conductor@{learnt(tmp_path / at, graders=THEN, steps=3)}" for at in "ab")
    systems = [one, "single:sage", other, "conductor-prompted"]
    assert moved_graders(systems, whole_catalogue()) == [moved_since(f"{one}, {other}")]


def test_graders_that_nobody_wrote_down_are_said_to_be_unknown(tmp_path: Path) -> None:
    name = f"conductor@{learnt(tmp_path / 'old', steps=3)}"
    said = f"The training of {name} used unknown grader versions."
    assert moved_graders([name], whole_catalogue()) == [said]


@pytest.mark.parametrize(
    "changes", [{}, {"steps": 3, "role": "study"}], ids=["a warm start", "a study"]
)
def test_what_no_grader_rewarded_has_none_that_moved(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    name = f"conductor@{learnt(tmp_path / 'toy', **changes)}"
    assert moved_graders([name], whole_catalogue()) == []


def test_graders_that_stand_where_they_stood_are_not_mentioned(tmp_path: Path) -> None:
    now = {name: whole_catalogue().suites[name].version for name in THEN}
    name = f"conductor@{learnt(tmp_path / 'toy', graders=now, steps=3)}"
    assert moved_graders([name], whole_catalogue()) == []


@pytest.mark.parametrize("name", [name for name in released_names() if name != "untrained"])
def test_a_released_checkpoint_tells_its_graders_by_the_log_of_its_seed(name: str) -> None:
    folder = Path(conductor_folder(name))
    found = grader_versions(folder) or {}
    assert tuple(sorted(found)) == tuple(sorted(read_info(folder).suites))
    assert all(version.endswith("-A") for version in found.values())


def test_an_older_checkpoint_tells_its_graders_by_the_manifest_of_its_training(
    tmp_path: Path,
) -> None:
    folder = learnt(tmp_path / "run" / "best", suites=("practice-code",), steps=3)
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_text('{"data": {"practice-code": {"version": "1-A", "publishable": true}}}')
    assert grader_versions(folder) == {"practice-code": "1-A"}


@pytest.mark.parametrize(
    "content", ["", "[]", '{"data": {"mbpp": {}}}', '{"data": {"mbpp": {"version": "1-A"}}}']
)
def test_a_manifest_of_something_else_says_nothing_of_a_checkpoint(
    content: str, tmp_path: Path
) -> None:
    folder = learnt(tmp_path / "best", suites=("practice-code",), steps=3)
    (tmp_path / "manifest.json").write_text(content)
    assert grader_versions(folder) is None


# --- what is refused --------------------------------------------------------------------------


def pool_of(folder: Path, *workers: str, name: str = "other") -> str:
    """Write a pool of some of the practice workers, in this order."""
    head, *blocks = (POOLS / "rehearsal.toml").read_text().split("[[workers]]\n")
    blocks[-1] = blocks[-1].partition("[conductor]")[0]
    known = {block.split('"')[1]: block for block in blocks}
    kept = "".join(f"[[workers]]\n{known[one].strip()}\n\n" for one in workers)
    path = folder / f"{name}.toml"
    path.write_text(head.replace('name = "rehearsal"', f'name = "{name}"') + kept)
    return str(path)


FIXED = "was trained for the 8 workers of pool 'rehearsal' alone"


@pytest.mark.parametrize("workers", [POOL.names[:2], POOL.names[::-1], POOL.names[1:]])
@pytest.mark.parametrize("system", ["conductor", "conductor-untrained", "conductor-cost-aware"])
def test_a_conductor_of_one_pool_is_refused_on_a_part_of_it_and_in_another_order(
    system: str, workers: tuple[str, ...], tmp_path: Path
) -> None:
    spec = read_pool(pool_of(tmp_path, *workers))
    said = str(why_unfit(system, whole_catalogue(), spec))
    assert said.startswith(f"{system} {FIXED}")
    assert said.endswith("Use conductor-prompted, which plans with the pool's conductor model.")
    assert why_unfit("conductor-adaptive", whole_catalogue(), spec) is None


def test_a_conductor_of_one_pool_conducts_the_same_workers_under_another_name(
    tmp_path: Path,
) -> None:
    spec = read_pool(pool_of(tmp_path, *POOL.names))
    assert why_unfit("conductor", whole_catalogue(), spec) is None


def test_a_folder_is_refused_on_another_pool_as_a_released_checkpoint_is(tmp_path: Path) -> None:
    spec, folder = read_pool("openrouter"), conductor_folder("trained")
    for system in (f"conductor@{folder}", f"conductor-served@{folder}"):
        assert f"{system} {FIXED}" in str(why_unfit(system, whole_catalogue(), spec))
    assert why_unfit(f"conductor@{conductor_folder('adaptive')}", whole_catalogue(), spec) is None


def test_all_leaves_out_who_was_trained_for_another_pool_and_says_why(tmp_path: Path) -> None:
    request = RunRequest(("practice-integer",), ("all",), "openrouter", tmp_path / "new")
    found = RequestReader(request, whole_catalogue(), controls()).read()
    assert "conductor-prompted" in found.systems
    (unread,) = [line for line in found.left_out if "knows no card" in line]
    assert unread.startswith("conductor-adaptive: knows no card of pool 'openrouter', so it would")
    (line,) = [line for line in found.left_out if FIXED in line]
    assert line.startswith("conductor, conductor-cost-aware, conductor-untrained: was trained for")


def test_inspect_alone_refuses_a_pool_that_a_conductor_was_not_trained_for_in_a_sentence() -> None:
    with pytest.raises(TaskRefusal, match="This checkpoint was trained for the 8 workers of pool"):
        conductor(pool="openrouter")
    with pytest.raises(TaskRefusal, match="Use conductor-prompted"):
        conductor_served(conductor_folder("cost-aware"), pool="openrouter")
    assert conductor("adaptive", pool="openrouter")
    assert conductor(pool="rehearsal", order="random")


def test_roles_that_a_conductor_was_not_trained_for_are_refused_before_it_plans() -> None:
    rig = scripted_pool(sage="3", abacus="4", conductor=PLAN)
    system = trained_system(read_info(Path(conductor_folder("trained"))))
    rig.pool.spec = None
    with pytest.raises(UserError, match="this eval has other workers or another order"):
        anyio.run(system, Question("q", "Why?", "integer"), rig.pool)
    assert rig.asked == []


@pytest.mark.parametrize(("drawn", "refused"), [(True, False), (False, True), (None, False)])
def test_a_checkpoint_that_reads_cards_says_whether_its_workers_changed_in_training(
    drawn: bool | None, refused: bool, tmp_path: Path
) -> None:
    folder = learnt(tmp_path / "carded", workers=POOL.names, drawn=drawn)
    found = why_unfit(f"conductor@{folder}", whole_catalogue(), read_pool("openrouter"))
    assert (found is not None) == refused


def learnt(folder: Path, **changes: Any) -> Path:
    write_checkpoint(folder, Toy(about=replace(Toy().described(), **changes)))
    return folder


def test_a_run_that_asks_what_was_taught_is_refused_before_a_call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = whole_catalogue().suites["practice-integer"].load("eval")[1]
    folder = learnt(tmp_path / "cribbed", taught=taught_digests([asked], strip_instruction))
    assert podium_run(folder, tmp_path / "logs") != 0
    said = capsys.readouterr().err
    assert "was trained on 1 questions of practice-integer" in said
    assert not any((tmp_path / "logs").glob("*.eval"))


def test_taught_questions_are_kept_without_their_suites_instruction() -> None:
    question = Question("q", "Answer with a number.\nWhat is 2 + 2?", "integer")
    kept = taught_digests([question], lambda one: one.text.splitlines()[1])
    assert kept == (question_digest("What is 2 + 2")[:16],)


def test_two_taught_choices_with_one_stem_and_other_options_are_two_questions() -> None:
    def choice(*options: str) -> Question:
        return Question("q", "Which is true?", "choice", metadata={"choices": options})

    kept = taught_digests([choice("a", "b"), choice("b", "a"), choice("a", "c")])
    assert len(kept) == 2


def test_a_checkpoint_too_small_for_the_prompt_gives_wrong_answers_and_no_crash(
    tmp_path: Path,
) -> None:
    write_checkpoint(tmp_path / "small", sizes=Sizes(context=32))
    assert podium_run(tmp_path / "small", tmp_path / "logs") == 0
    assert failing(tmp_path / "logs") == set()


@pytest.mark.parametrize("name", ["conductor@", "conductor@no/such/folder", "conductor@has space"])
def test_a_name_that_is_no_checkpoint_is_refused(name: str) -> None:
    assert why_unfit(name, whole_catalogue(), POOL) is not None


def test_controls_are_matched_with_the_trained_conductor_where_it_is_there(toy: Path) -> None:
    names = ["single:sage", "conductor-prompted", f"conductor@{toy}"]
    assert match_target(None, names) == f"conductor@{toy}"
    assert match_target(None, names[:2]) == "conductor-prompted"
    assert match_target("single:sage", names) == "single:sage"


def test_every_released_checkpoint_is_a_row_that_can_be_seated() -> None:
    parts = whole_catalogue()
    for name in released_names():
        system = "conductor" if name == "trained" else f"conductor-{name}"
        seated = conductor_override(system, parts)
        assert seated == conductor_slot(name)
        assert read_info(Path(conductor_folder(name))).role == "practice"


def conductor_folder(name: str) -> str:
    return str(ROOT / "conductor" / "released" / name)


def test_json_of_a_description_holds_no_text_of_a_question(tmp_path: Path) -> None:
    question = Question("q", "What is the secret word?", "text")
    about: CheckpointInfo = replace(Toy().described(), taught=taught_digests([question]))
    folder = learnt(tmp_path / "quiet", taught=about.taught)
    assert "secret" not in json.dumps(json.loads((folder / "podium.json").read_text()))
