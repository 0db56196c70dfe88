"""`podium doctor` of a whole run: what `podium run` would refuse, all of it at once."""

from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.pool_config import read_pool

KEYS = ("GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY")


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    """Return the exit code of a doctor, and the problems it found."""
    code = main(["doctor", *words])
    lines = capsys.readouterr().out.splitlines()
    return code, [line[2:] for line in lines if line.startswith("- ") and "- note: " not in line]


def asked(suite: str, *systems: str, pool: str = "rehearsal") -> list[str]:
    named = [word for one in systems for word in ("--system", one)]
    return ["--suite", suite, *named, "--pool", pool]


REFUSED = {
    "pool": asked("practice-integer", "single", pool="nowhere"),
    "suite": asked("practice-nothing", "single"),
    "system": asked("practice-integer", "conductr"),
    "worker": asked("practice-integer", "single:nobody"),
    "number": asked("practice-integer", "moa-lite@3"),
    "checkpoint": asked("practice-integer", "conductor@no/such/folder"),
    "misplaced": asked("practice-integer", "conductor", pool="drawn-1"),
    "tests": asked("practice-integer", "best-of-n-tests"),
    "train": asked("gpqa-diamond", "router-knn"),
    "match": asked("practice-integer", "compute-matched-usd"),
    "budget": [*asked("practice-integer", "router-knn"), "--train-calls", "3"],
    "split": [*asked("gpqa-diamond", "single"), "--split", "train"],
    "box": [*asked("practice-code", "single"), "--box", "cellar"],
    "file": [*asked("practice-integer", "single"), "--log-dir", __file__],
    "key": asked("practice-integer", "conductor-prompted", pool="openrouter"),
    "unnamed": asked("practice-integer", pool="openrouter"),
    "cards": asked("practice-integer", "conductor-adaptive", pool="openrouter"),
    "conductor": asked("practice-integer", "conductor-prompted", pool="recorded-aime25"),
}
"""Requests that a run refuses, each for another reason."""


@pytest.mark.slow
@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED)
def test_what_a_run_refuses_a_doctor_says_in_the_same_words(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    where = [] if "--log-dir" in words else ["--log-dir", str(tmp_path / "run")]
    assert main(["run", *words, *where, "--display", "none"]) == 2
    refused = capsys.readouterr().err.removeprefix("podium: ").strip()
    code, found = checked(capsys, *words)
    assert code == 1
    assert found[0] == refused
    assert not (tmp_path / "run").exists()


def test_all_that_speaks_against_a_run_is_said_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    several = ["conductor", "conductr", "router-knn", "compute-matched-usd", "conductor-prompted"]
    words = [*asked("gpqa-diamond", *several, pool="openrouter"), "--suite", "practice-nothing"]
    code, found = checked(capsys, *words, "--box", "cellar")
    assert code == 1
    for said in (
        "There is no suite 'practice-nothing'",
        "There is no system 'conductr'",
        "conductor was trained for the 8 workers",
        "OPENROUTER_API_KEY",
        "router-knn must be trained before it runs on 'gpqa-diamond'",
        "'cellar'. Known boxes",
    ):
        assert any(said in one for one in found), said
    assert not any(one.startswith("compute-") for one in found)  # conductor-prompted is there
    assert len(found) == len(set(found))


def test_a_run_that_can_begin_is_ready_and_what_is_odd_is_a_note(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = asked("practice-integer", "conductor-adaptive", "routers", pool="drawn-5")
    assert main(["doctor", *words, "--limit", "3"]) == 0
    said = capsys.readouterr().out
    assert "practice-integer " in said
    assert "(eval): 3 questions, 1 time each." in said
    assert (
        "- note: conductor-adaptive sees the first 6 words of each worker's card; it "
        "was trained on pool 'rehearsal'."
    ) in said
    assert "Pool 'drawn-5' (rehearsal), " in said.splitlines()[-1]
    assert said.splitlines()[-1].endswith(": ready.")


@pytest.mark.slow
def test_what_learning_takes_is_said_before_it_begins(capsys: pytest.CaptureFixture[str]) -> None:
    spec = read_pool("drawn-5")
    each = 60 // len(spec.names)
    words = [*asked("practice-integer", "conductor-profiled", pool="drawn-5"), "--limit", "2"]
    assert main(["doctor", *words, "--train-calls", "60"]) == 0
    said = f"Learning on practice-integer: {each * len(spec.names)} calls, at most $"
    assert said in capsys.readouterr().out
    words = asked("practice-integer", "conductor-prompted", pool="drawn-5")
    assert main(["doctor", *words]) == 0
    assert "Learning" not in capsys.readouterr().out


def test_a_worker_without_a_card_is_named_where_a_conductor_reads_cards(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = tmp_path / "mine.toml"
    workers = "".join(
        f'[[workers]]\nname = "{name}"\nmodel = "rehearsal/{name}"\n' for name in ("sage", "abacus")
    )
    pool.write_text(f'label = "rehearsal"\nprices = "rehearsal"\n{workers}')
    main(["doctor", *asked("practice-integer", "conductor-adaptive", pool=str(pool))])
    said = capsys.readouterr().out
    assert "It does not know the card of sage, abacus, so it chooses among these workers" in said


@pytest.mark.slow
def test_an_experiment_that_a_run_would_go_on_with_is_looked_at_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    words = [*asked("practice-integer", "single:sage"), "--limit", "1"]
    assert main(["run", *words, "--log-dir", str(logs), "--display", "none"]) == 0
    capsys.readouterr()
    assert checked(capsys, *words, "--log-dir", str(logs)) == (0, [])
    other = [*asked("practice-integer", "single:sage", pool="drawn-5"), "--limit", "1"]
    code, (said,) = checked(capsys, *other, "--log-dir", str(logs))
    assert code == 1
    assert "holds a run with other settings: its pool is 'rehearsal'" in said


TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match

@task
def sums():
    return Task(dataset=[Sample("1 + 1?", target="2", id="a")], scorer=match())
"""


def test_systems_that_call_no_tools_are_named_where_a_task_may_have_some(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(TASK)
    main(["doctor", *asked(f"{file}@sums", "debate", "moa-lite", "fusion")])
    assert "- note: no tasks with tools for debate, fusion: " in capsys.readouterr().out
    main(["doctor", *asked("practice-integer", "debate")])
    assert "tools" not in capsys.readouterr().out
