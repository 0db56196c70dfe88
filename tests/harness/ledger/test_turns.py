"""A sample of a task turn by turn: who acted, which tools answered, what it has come to."""

from decimal import Decimal
from pathlib import Path
from typing import Any

from podium.cli.functions import run
from podium.harness.ledger.details import QuestionFilter, as_json, details
from tests.harness.foreign_tasks import SEEN
from tests.harness.test_inspect_tasks import act, pool, ran
from tests.providers import CLIENTS_WARN
from tests.providers.server import serve

pytestmark = CLIENTS_WARN


def in_json(folder: Path, question: str, system: str) -> Any:
    (one,) = details(folder, QuestionFilter(question, system))
    return as_json(one, folder)


def test_turns_say_who_was_asked_who_acted_and_what_tools_answered(tmp_path: Path) -> None:
    with serve(act) as server:
        assert ran(tmp_path, server, "looking", "moa-lite", "single:a", limit=1).finished
    found = in_json(tmp_path / "run", "0", "moa-lite")
    first, last = found["turns"]
    roles = [found["calls"][place]["role"] for turn in (first, last) for place in turn["calls"]]
    assert roles == ["a", "b", "a"] * 2
    assert [found["calls"][turn["acted"]]["step"] for turn in (first, last)] == ["step 3: a"] * 2
    (tool,) = first["tools"]
    assert (tool["function"], tool["arguments"], tool["failed"]) == (
        "look",
        {"place": "box"},
        False,
    )
    assert tool["answer"] == f"{SEEN} the box."
    assert (last["reply"], last["tools"]) == ("It is 7.", [])
    assert Decimal(first["usd_list"]) < Decimal(last["usd_list"])
    assert Decimal(last["usd_list"]) == Decimal(found["sums"]["usd_list"])
    alone = in_json(tmp_path / "run", "0", "single:a")
    assert [turn["calls"] for turn in alone["turns"]] == [[0], [1]]


def test_what_a_user_says_stands_behind_the_turn_and_is_none_of_its_calls(tmp_path: Path) -> None:
    with serve(act) as server:
        assert ran(tmp_path, server, "talking", "single:a", limit=1).finished
    found = in_json(tmp_path / "run", "a", "single:a")
    assert [len(turn["calls"]) for turn in found["turns"]] == [1, 1]
    assert [[one["role"] for one in turn["others"]] for turn in found["turns"]] == [["user"]] * 2
    said = [turn["reply"] for turn in found["turns"]]
    assert said == [None, None], "the task does not say that its texts may be shown"
    assert [one["text"] for turn in found["turns"] for one in turn["others"]] == [None, None]


def test_a_suite_that_asks_once_has_no_turns(tmp_path: Path) -> None:
    with serve(act) as server:
        made = pool(tmp_path, server)
        run("practice-integer", "moa-lite", pool=made, limit=1, log_dir=tmp_path / "run", yes=True)
    assert "turns" not in in_json(tmp_path / "run", "practice-integer-eval-0001", "moa-lite")
