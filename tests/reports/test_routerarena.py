"""RouterArena: what a run is there, what each row is charged, and what is refused."""

import json
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.__main__ import main
from podium.harness.errors import UserError
from podium.harness.prices.cost import Price, Rates, Tier
from podium.reports.audit.routerarena_audit import audit_predictions
from podium.reports.routerarena import Submission, write_routerarena
from tests.harness.runs import BOOK, Exam, sit, steps

PREDICTIONS = "router_inference/predictions"


@dataclass(frozen=True, slots=True)
class Board:
    """A folder of files for their board, and what was said of it."""

    home: Path
    said: dict[str, Submission]

    def rows(self, router: str) -> list[dict[str, Any]]:
        """The rows of one router."""
        return json.loads((self.home / PREDICTIONS / f"{router}.json").read_text())


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    home = tmp_path_factory.mktemp("board")
    sit(home / "runs", "panel", steps("clerk", "sage", "clerk"))
    sit(home / "runs", "single:sage", steps("sage"))
    made = write_routerarena([home / "runs"], home / "out", {"scripted/clerk": "acme/clerk-1"})
    return Board(home / "out", {one.router: one for one in made})


def test_a_row_has_the_tokens_of_every_call_and_names_each(board: Board) -> None:
    row = board.rows("panel")[0]
    used = row["generated_result"]["token_usage"]
    assert [one["model"] for one in row["calls"]] == ["acme/clerk-1", "sage", "acme/clerk-1"]
    assert used["input_tokens"] == sum(one["input_tokens"] for one in row["calls"])
    assert used["total_tokens"] == used["input_tokens"] + used["output_tokens"]
    assert (row["global index"], row["prompt"]) == ("q1", "Say 1")


def test_a_row_is_charged_no_less_than_it_cost(board: Board) -> None:
    panel, single = board.said["panel"], board.said["single_sage"]
    assert {row["prediction"] for row in board.rows("panel")} == {"sage"}
    assert panel.charged > panel.usd > 0
    assert single.charged == single.usd
    assert panel.understated == single.understated == 0


def test_the_audit_reckons_what_the_export_said_and_misses_only_questions(board: Board) -> None:
    for router, said in board.said.items():
        found = audit_predictions(board.home / PREDICTIONS / f"{router}.json")
        assert found.usd == said.charged
        assert [one.said.partition(",")[0] for one in found.faults] == ["4 questions"]


def test_config_and_prices_name_the_models_that_were_called(board: Board) -> None:
    config = json.loads((board.home / "router_inference/config/panel.json").read_text())
    assert config["pipeline_params"] == {"router_name": "panel", "models": ["acme/clerk-1", "sage"]}
    prices = json.loads((board.home / "model_cost/model_cost.json").read_text())
    assert prices["acme/clerk-1"] == {
        "input_token_price_per_million": 1.0,
        "output_token_price_per_million": 3.0,
    }


def test_calls_left_out_of_the_tokens_are_found(board: Board, tmp_path: Path) -> None:
    rows = board.rows("panel")
    last = rows[1]["calls"][-1]
    used = {name: last[name] for name in ("input_tokens", "output_tokens")}
    rows[1]["generated_result"]["token_usage"] = used
    path = tmp_path / "panel.json"
    path.write_text(json.dumps(rows))
    found = {one.rule: one.rows for one in audit_predictions(path).faults}
    assert found["uncharged"] == (2,)


def test_a_price_with_tiers_is_said_to_understate(tmp_path: Path) -> None:
    dear = Tier(1, Rates(Decimal(4), Decimal(20)))
    book = replace(BOOK, prices={"scripted/sage": Price(Decimal(2), Decimal(10), tiers=(dear,))})
    sit(tmp_path / "runs", "solo", steps("sage"), prices=book.as_json())
    (said,) = write_routerarena([tmp_path / "runs"], tmp_path / "out", {})
    assert (said.understated, said.usd) == (4, 2 * said.charged)
    assert "4 rows cost more than it charges" in str(said)


def private(home: Path) -> None:
    sit(home, "solo", steps("sage"), exam=Exam(publishable=False))


def several(home: Path) -> None:
    sit(home, "solo", steps("sage"))
    sit(home, "solo", steps("sage"), exam=Exam(name="letters"))


def twice(home: Path) -> None:
    sit(home, "solo", steps("sage"), epochs=2)


def unpriced(home: Path) -> None:
    sit(home, "solo", steps("sage"), prices=replace(BOOK, prices={}).as_json())


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (private, "is private, and a RouterArena row holds question and answer"),
        (several, "There are runs of several suites (letters, numbers)"),
        (twice, "asked each question 2 times"),
        (unpriced, "4 calls of solo have no price"),
    ],
    ids=["private", "several suites", "two epochs", "no prices"],
)
def test_what_cannot_stand_there_is_refused_before_anything_is_written(
    made: Any, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path / "runs")
    out = tmp_path / "out"
    assert main(["export", "routerarena", str(tmp_path / "runs"), "--out", str(out)]) == 2
    assert said in capsys.readouterr().err
    assert not out.exists()


def test_two_prices_under_one_name_are_refused(tmp_path: Path) -> None:
    sit(tmp_path / "runs", "panel", steps("clerk", "sage"))
    names = {"scripted/clerk": "one", "scripted/sage": "one"}
    with pytest.raises(UserError, match="Give them different names with --model"):
        write_routerarena([tmp_path / "runs"], tmp_path / "out", names)


def test_a_model_goes_by_another_name_throughout_and_an_unknown_one_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sit(tmp_path / "runs", "solo", steps("sage"))
    words = ["export", "routerarena", str(tmp_path / "runs"), "--out"]
    assert main([*words, str(tmp_path / "out"), "--model", "sage=acme/wise"]) == 0
    path = tmp_path / "out" / PREDICTIONS / "solo.json"
    for row in json.loads(path.read_text()):
        told = (row["prediction"], row["generated_result"]["model_used"], row["calls"][0]["model"])
        assert told == ("acme/wise",) * 3
    assert {one.rule for one in audit_predictions(path).faults} == {"rows"}
    assert main([*words, str(tmp_path / "other"), "--model", "nobody=x"]) == 2
    assert "which these runs did not call. Name one of: " in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
