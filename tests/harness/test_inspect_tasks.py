"""Any Inspect task, played by any system: through `podium run` and through Inspect itself."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval
from inspect_ai.log import read_eval_log
from inspect_ai.model import get_model

from podium.cli import main
from podium.cli.functions import run
from podium.harness.errors import UserError
from podium.harness.ledger.journal import read_lines
from podium.harness.ledger.logs import find_logs
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import system_totals
from podium.harness.records import PODIUM
from podium.reports.audit import audit
from podium.reports.report import write_report
from tests.harness.foreign_tasks import LOOK, SEEN
from tests.providers import CLIENTS_WARN
from tests.providers.dialect import Asked
from tests.providers.script import Act, failing, ok
from tests.providers.scripted import script
from tests.providers.server import Server, serve

pytestmark = CLIENTS_WARN
TASKS = Path(__file__).with_name("foreign_tasks.py")
CALL = {"name": "look", "arguments": '{"place": "box"}'}
SYSTEMS = (
    "single:a",
    "moa-lite",
    "self-consistency@3",
    "router-llm",
    "router-switchyard",
    "conductor-prompted",
)
PLAN = """model_id = [0, 1]
subtasks = ["Look.", "Answer."]
access_list = [[], [0]]"""


def _calling(body: Mapping[str, Any]) -> object:
    call = {"id": "call-9", "type": "function", "function": CALL}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {**body, "choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}


def act(asked: Asked) -> Act:
    """Look first, then say what was seen; whoever reads a transcript has no tools to call."""
    if asked.model == "conductor":
        return ok(PLAN if "subtasks" in asked.prompt else "model_id = [0]")
    has_tools = LOOK in asked.prompt and "Tool of the assistant" not in asked.prompt
    return Act(change=_calling) if has_tools and SEEN not in asked.prompt else ok("It is 7.")


def pool(folder: Path, server: Server) -> str:
    """Write a pool of two workers, a conductor and a user at a server; return its path."""
    tables = {"[[workers]]\nname = 'a'": "a", "[[workers]]\nname = 'b'": "b"}
    tables |= {"[conductor]": "conductor", "[roles.user]": "user"}
    address = f'{{ base_url = "{server.openai}", api_key = "k" }}'
    rest = 'knowledge_cutoff = "unknown"\nprice = { input = "1", output = "2" }'
    text = "".join(
        f'{head}\nmodel = "openai-api/local/{name}"\n{rest}\nargs = {address}\n'
        for head, name in tables.items()
    )
    (folder / "pool.toml").write_text(f'name = "two"\nlabel = "live"\n{text}')
    return str(folder / "pool.toml")


def ran(folder: Path, server: Server, task: str, *systems: str, **more: Any) -> Any:
    where = f"{TASKS}@{task}"
    made = pool(folder, server)
    return run(where, systems, pool=made, log_dir=folder / "run", yes=True, **more)


def called(log_dir: Path) -> list[dict[str, Any]]:
    """Return the calls of all journals: what was asked, and how it ended."""
    lines = [line for path in log_dir.glob("ledger/*/*.jsonl") for line in read_lines(path)]
    ended = {line["call"]: line for line in lines if line["kind"] == "outcome"}
    return [{**line, **ended[line["call"]]} for line in lines if line["kind"] == "intent"]


@pytest.mark.slow
def test_systems_of_all_kinds_call_the_tools_of_a_task_and_the_ledger_has_every_call(
    tmp_path: Path,
) -> None:
    with serve(act) as server:
        assert ran(tmp_path, server, "looking", *SYSTEMS).finished
    runs, _ = load_runs([tmp_path / "run"])
    assert {one.facts.system: system_totals(one).calls for one in runs} == {
        "single:a": 2.0,  # two turns of one call
        "moa-lite": 6.0,
        "self-consistency@3": 6.0,
        "router-llm": 4.0,
        "router-switchyard": 2.0,
        "conductor-prompted": 6.0,
    }
    assert {attempt.value for one in runs for attempt in one.attempts} == {1.0}
    assert audit(tmp_path / "run").ok
    billed = [(line.model, line.usage.input, line.usage.output) for line in server.bill.billed]
    assert Counter(billed) == Counter(
        (line["model"].rpartition("/")[2], *map(line["usage"].get, ("input", "output")))
        for line in called(tmp_path / "run")
        if not line["shared_from"]  # bought by another system
    )


def test_steps_before_the_last_read_a_transcript_and_the_last_has_the_tools(
    tmp_path: Path,
) -> None:
    with serve(act) as server:
        ran(tmp_path, server, "looking", "moa-lite", limit=1)
    first, second = server.bill.lines[:3], server.bill.lines[3:]
    assert len(second) == 3
    for turn in (first, second):
        transcripts = [line for line in turn if "Tool of the assistant: look(place)" in line.prompt]
        assert len(transcripts) == 2
    assert 'Tool calls: [["look", {"place": "box"}]]' in second[0].prompt
    assert SEEN in second[-1].prompt


def test_what_a_user_costs_is_in_no_column_of_a_system(tmp_path: Path) -> None:
    with serve(act) as server:
        assert ran(tmp_path, server, "talking", "single:a").finished
    assert main(["report", str(tmp_path / "run")]) == 0
    (one,), _ = load_runs([tmp_path / "run"])
    assert system_totals(one).calls == 2.0
    assert audit(tmp_path / "run").ok
    scopes = {(line["role"], line["scope"]) for line in called(tmp_path / "run")}
    assert scopes == {("a", "inference"), ("user", "environment")}
    written = (tmp_path / "run" / "report" / "table.md").read_text()
    assert "the task's own models, in no column: USD" in written


def test_requests_are_those_of_the_worker_alone(tmp_path: Path) -> None:
    with serve(act) as ours:
        ran(tmp_path, ours, "looking", "single:a")
    with serve(act) as plain:
        model = get_model("openai-api/local/a", base_url=plain.openai, api_key="k")
        (log,) = inspect_eval(f"{TASKS}@looking", model=model, log_dir=str(tmp_path / "plain"))
    assert log.status == "success"
    assert sorted(one.prompt for one in ours.bill.lines) == sorted(
        one.prompt for one in plain.bill.lines
    )
    (path,) = find_logs([tmp_path / "run"])
    own = read_eval_log(str(path))
    assert own.results
    assert log.results
    assert {one.name for one in own.results.scores} == {PODIUM, "includes"}
    theirs = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    assert theirs == {name: one.value for name, one in own.results.scores[1].metrics.items()}


def test_inspects_own_command_plays_a_system_by_its_name(tmp_path: Path) -> None:
    with serve(act) as server:
        model = get_model("podium/moa-lite", pool=pool(tmp_path, server), memoize=False)
        (log,) = inspect_eval(f"{TASKS}@looking", model=model, log_dir=str(tmp_path / "plain"))
    assert log.status == "success"
    assert log.results
    assert log.results.scores[0].metrics["accuracy"].value == 1.0
    assert {*log.stats.model_usage} == {"openai-api/local/a", "openai-api/local/b"}


def test_a_limit_of_the_task_ends_a_sample_which_is_graded(tmp_path: Path) -> None:
    with serve(act) as server:
        assert ran(tmp_path, server, "limited", "single:a", "moa-lite").finished
    runs, _ = load_runs([tmp_path / "run"])
    assert [attempt.value for one in runs for attempt in one.attempts] == [0.0, 0.0]
    assert main(["report", str(tmp_path / "run")]) == 0
    rows = json.loads((tmp_path / "run" / "report" / "table.json").read_text())["rows"]
    told = [[row[name] for name in ("turns", "tool_calls", "n_limited")] for row in rows]
    assert told == [[1.0, 1.0, 1]] * 2
    assert audit(tmp_path / "run").ok


def test_two_turns_at_once_in_a_sample_are_counted_apart(tmp_path: Path) -> None:
    with serve(act) as server:
        assert ran(tmp_path, server, "parallel", "single:a", "moa-lite").finished
    runs, _ = load_runs([tmp_path / "run"])
    assert {one.facts.system: system_totals(one).calls for one in runs} == {
        "single:a": 3.0,
        "moa-lite": 9.0,
    }
    assert audit(tmp_path / "run").ok


def test_a_sample_that_is_begun_again_buys_nothing_twice(tmp_path: Path) -> None:
    broken = True

    def sometimes(asked: Asked) -> Act:
        return failing(400) if broken and SEEN in asked.prompt else act(asked)

    with serve(sometimes) as server:
        assert not ran(tmp_path, server, "looking", "single:a", "moa-lite", limit=1).finished
        bought = len(server.bill.billed)
        broken = False
        assert ran(tmp_path, server, "looking", "single:a", "moa-lite", limit=1).finished
        prompts = [(line.model, line.prompt) for line in server.bill.billed]
    assert 0 < bought < len(prompts)
    assert len(prompts) == len({*prompts})
    assert audit(tmp_path / "run").ok


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("empty", "has no samples"),
        ("twice", "has two samples with the id 'a'"),
        ("unscored", "has no scorer"),
        ("raising", "cannot be made (RuntimeError: no data)"),
    ],
)
def test_a_task_that_cannot_be_examined_is_refused_in_a_sentence(
    task: str, words: str, tmp_path: Path
) -> None:
    with serve(act) as server, pytest.raises(UserError, match="The task") as refused:
        ran(tmp_path, server, task, "single:a")
    assert words in str(refused.value)
    assert not server.bill.lines


def test_a_task_that_nobody_has_installed_is_refused(tmp_path: Path) -> None:
    with serve(act) as server, pytest.raises(UserError, match="nowhere/tau3 cannot be made"):
        run("nowhere/tau3", "single:a", pool=pool(tmp_path, server), log_dir=tmp_path, yes=True)


def test_a_task_with_tools_needs_no_names_of_systems(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", "--suite", f"{TASKS}@looking", "--pool", "rehearsal-agents", "--dry-run"]
    assert main([*asked, "--log-dir", str(tmp_path)]) == 0
    planned = capsys.readouterr().out
    assert "moa-lite" in planned
    assert "oracle" not in planned


@pytest.mark.slow
def test_shards_play_a_task_with_tools(tmp_path: Path) -> None:
    asked = ["run", "--suite", f"{TASKS}@looking", "--pool", "rehearsal-agents", "--yes"]
    asked += ["--system", "single:steward", "--system", "moa-lite", "--shards", "2"]
    assert main([*asked, "--log-dir", str(tmp_path / "run")]) == 0
    runs, _ = load_runs([tmp_path / "run"])
    assert sorted(len(played.attempts) for played in runs) == [2, 2]
    assert audit(tmp_path / "run").ok


@pytest.mark.parametrize("system", ["oracle", "all"])
def test_who_plans_by_single_replies_has_no_place_in_a_task_with_tools(
    system: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", "--suite", f"{TASKS}@looking", "--pool", "rehearsal", "--system", system]
    assert main([*asked, "--log-dir", str(tmp_path), "--yes", "--dry-run"]) == 2 * (system != "all")
    said = " ".join("".join(capsys.readouterr()).split())
    assert "which foreign_tasks.py@looking cannot give: leave oracle out. It gives tools" in said


def test_two_files_of_one_name_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / TASKS.name).write_text(TASKS.read_text())
    names = [str(tmp_path / folder / f"{TASKS.name}@looking") for folder in ("x", "y")]
    asked = ["run", "--suite", names[0], "--suite", names[1], "--system", "single:steward"]
    assert main([*asked, "--pool", "rehearsal-agents", "--log-dir", str(tmp_path / "run")]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{names[0]} and {names[1]} are both called 'foreign_tasks.py@looking'" in said


@pytest.mark.parametrize("command", ["run --log-dir run", "reward serve"])
def test_an_argument_that_a_task_does_not_have_is_refused(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [*command.split(), "--suite", f"{TASKS}@adding", "-T", "m=2"]
    assert main(asked) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "foreign_tasks.py@adding has no argument 'm': correct -T m" in said
    assert [*tmp_path.iterdir()] == []


def test_a_task_is_graded_again_by_inspect_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(act) as server:
        ran(tmp_path, server, "looking", "single:a")
    assert main(["regrade", str(tmp_path / "run"), "--all"]) == 2
    assert "of the Inspect task foreign_tasks.py@looking, whose scorer" in capsys.readouterr().err


def test_a_scorer_that_returns_words_leaves_answers_unscored(tmp_path: Path) -> None:
    with serve(act) as server:
        outcome = ran(tmp_path, server, "judged_in_words", "single:a")
        again = ran(tmp_path, server, "judged_in_words", "single:a")
    assert (outcome.unscored, again.unscored, len(server.bill.lines)) == (1, 1, 1)


def test_a_score_above_1_is_no_verdict_and_the_report_says_so(tmp_path: Path) -> None:
    with serve(act) as server:
        outcome = ran(tmp_path, server, "judged_in_stars", "single:a")
    assert (outcome.unscored, len(server.bill.lines)) == (1, 1)
    write_report([tmp_path / "run"], tmp_path / "report")
    table = (tmp_path / "report" / "table.md").read_text()
    assert "returns a value of 7, and podium compares values from 0 to 1" in table


def test_who_answers_in_words_only_is_asked_nothing_in_a_task_with_tools(tmp_path: Path) -> None:
    with serve(act) as server:
        outcome = ran(tmp_path, server, "reacting", "debate")
        with pytest.raises(UserError, match="debate answers in words only, and foreign_tasks"):
            ran(tmp_path, server, "looking", "debate")
    assert not outcome.finished
    assert not server.bill.lines
    assert "debate answers in words only" in outcome.trouble[0]


def test_a_limit_of_dollars_is_named_as_it_is(tmp_path: Path) -> None:
    with serve(act) as server:
        outcome = ran(tmp_path, server, "looking", "single:a", max_usd="0.000001")
    assert not outcome.finished
    assert "max" in outcome.trouble[0]
    assert "withheld" not in outcome.trouble[0]


@pytest.mark.parametrize(("task", "graded"), [("buying", [1.0]), ("judged_by_its_own", [None])])
def test_a_model_that_the_pool_does_not_name_is_not_asked_past_the_ledger(
    task: str, graded: list[float | None], tmp_path: Path
) -> None:
    asked = list[str]()
    script("outsider", lambda heard: asked.append(heard.last) or "yes")
    with serve(act) as server:
        ran(tmp_path, server, task, "single:a")
    assert asked == []
    (one,), _ = load_runs([tmp_path / "run"])
    assert [attempt.value for attempt in one.attempts] == graded
    (path,) = find_logs([tmp_path / "run"])
    sample = (read_eval_log(path).samples or [])[0]
    assert (sample.limit is not None) == (task == "buying")
    assert "calls scripted/outsider itself" in sample.model_dump_json()
    assert audit(tmp_path / "run").ok
