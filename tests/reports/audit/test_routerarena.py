"""Prediction files of RouterArena: what each rule finds in one, and which rows it names."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.__main__ import main
from podium.harness.errors import UserError
from podium.reports.audit.routerarena_audit import RULES, audit_predictions, predictions_text

Row = dict[str, Any]
SMALL, LARGE = "small", "acme/large"
COSTS = {
    SMALL: {"input_token_price_per_million": 1.0, "output_token_price_per_million": 2.0},
    "large": {"input_token_price_per_million": 6.0, "output_token_price_per_million": 10},
    "free": {"input_token_price_per_million": 0, "output_token_price_per_million": 0},
}


def honest(number: int) -> Row:
    """Return a row of their sub_10 split, as a router would submit it."""
    sent, came = 30 + number % 97, 5 + number % 13
    model = LARGE if number % 5 == 0 else SMALL
    return {
        "global index": f"AIME_{number}",
        "prompt": f"What is {number} plus {'1 ' * (number % 97)}?",
        "prediction": model,
        "generated_result": {
            "generated_answer": f"\\boxed{{{number}}}",
            "success": True,
            "token_usage": {
                "input_tokens": sent,
                "output_tokens": came,
                "total_tokens": sent + came,
            },
            "provider": "acme",
            "error": None,
        },
        "cost": None,
        "accuracy": None,
        "for_optimality": False,
    }


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder that is laid out as their repository."""

    home: Path

    def put(self, rows: object, name: str = "mine") -> Path:
        """Write predictions; return their place."""
        path = self.home / "router_inference" / "predictions" / f"{name}.json"
        path.write_text(json.dumps(rows))
        return path


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    for name in ("router_inference/predictions", "router_inference/config", "model_cost"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "model_cost" / "model_cost.json").write_text(json.dumps(COSTS))
    config = {"pipeline_params": {"router_name": "mine", "models": [SMALL, LARGE, "free", "new"]}}
    (tmp_path / "router_inference" / "config" / "mine.json").write_text(json.dumps(config))
    return Checkout(tmp_path)


def usage(row: Row, **tokens: Any) -> None:
    row["generated_result"]["token_usage"] = tokens


def forty(rows: list[Row]) -> None:
    """State the same input tokens for every prompt, as their issue 191 tells."""
    for row in rows:
        came = row["generated_result"]["token_usage"]["output_tokens"]
        usage(row, input_tokens=40, output_tokens=came)


def quarter(rows: list[Row]) -> None:
    for row in rows:
        usage(row, input_tokens=len(row["prompt"]) // 4, output_tokens=len(row["prompt"]) % 7 + 1)


def redirected(rows: list[Row]) -> None:
    """Let a dearer model answer to a name, as their issue 166 tells."""
    rows[1]["generated_result"]["model_used"] = "acme/large"


def voted(rows: list[Row]) -> None:
    """Name the calls of voters that nobody is charged for, as their issue 198 tells."""
    rows[3]["votes"] = [
        {"model": SMALL, "usage": {"prompt_tokens": 33, "completion_tokens": 8}},
        {"model": LARGE, "usage": {"prompt_tokens": 33, "completion_tokens": 9}},
    ]


def cheap(rows: list[Row]) -> None:
    rows[0]["cost"] = 0.000001


def answer(row: Row, text: object, tokens: int = 7) -> None:
    sent = row["generated_result"]["token_usage"]["input_tokens"]
    row["generated_result"].update(generated_answer=text)
    usage(row, input_tokens=sent, output_tokens=tokens, total_tokens=sent + tokens)


def short_counts(rows: list[Row]) -> None:
    """State few tokens for each answer: too few for all answers together, not for any alone."""
    for at, row in enumerate(rows):
        answer(row, "to " * 200, at % 12 + 2)


Break = Callable[[list[Row]], Any]
BROKEN: dict[str, tuple[Break, str, tuple[int, ...], str]] = {
    "a word for a cost": (
        lambda rows: rows[1].update(cost="a"),
        "cost",
        (2,),
        "its cost is not a number",
    ),
    "a list for a cost": (
        lambda rows: rows[1].update(cost=[1]),
        "cost",
        (2,),
        "its cost is not a number",
    ),
    "a call that is counted in words": (
        lambda rows: rows[3].update(calls=[{"input_tokens": "x", "output_tokens": 1}]),
        "uncharged",
        (4,),
        "not a whole number",
    ),
    "tokens beyond any count": (
        lambda rows: usage(rows[2], input_tokens=10**400, output_tokens=1),
        "usage",
        (3,),
        "not a whole number",
    ),
    "no prompt": (lambda rows: rows[2].pop("prompt"), "rows", (3,), "no prompt"),
    "no index": (lambda rows: rows[2].pop("global index"), "rows", (3,), "no global index"),
    "a number for a row": (lambda rows: rows.__setitem__(4, 7), "rows", (5,), "not an object"),  # pyright: ignore[reportArgumentType, reportCallIssue] - on purpose
    "twice": (
        lambda rows: rows[9].update({"global index": "AIME_0"}),
        "rows",
        (10,),
        "is already in an earlier row",
    ),
    "one too few": (lambda rows: rows.pop(), "rows", (), "808 questions"),
    "not of the config": (
        lambda rows: rows[1].update(prediction="large"),
        "rows",
        (2,),
        "not in the router's config",
    ),
    "negative": (
        lambda rows: usage(rows[6], input_tokens=-3, output_tokens=2),
        "usage",
        (7,),
        "not a whole number",
    ),
    "NaN": (
        lambda rows: usage(rows[6], input_tokens=float("nan"), output_tokens=2),
        "usage",
        (7,),
        "not a whole number",
    ),
    "other keys": (
        lambda rows: usage(rows[6], prompt_tokens=40, completion_tokens=2),
        "usage",
        (7,),
        "the RouterArena evaluator reads as none",
    ),
    "an answer for nothing": (
        lambda rows: usage(rows[6], input_tokens=40, output_tokens=0),
        "usage",
        (7,),
        "without output tokens",
    ),
    "a small total": (
        lambda rows: usage(rows[6], input_tokens=40, output_tokens=3, total_tokens=42),
        "usage",
        (7,),
        "less than input and output",
    ),
    "200 words of 7 tokens": (
        lambda rows: answer(rows[6], "four " * 200),
        "plausible",
        (7,),
        "7 output tokens of small for 999 characters",
    ),
    "200 short words in every row": (
        short_counts,
        "plausible",
        tuple(range(1, 810, 5)),
        "of acme/large for 97,038 characters",
    ),
    "right without an answer": (
        lambda rows: (rows[6].update(accuracy=1.0), answer(rows[6], " ")),
        "right",
        (7,),
        "marked right but has no answer",
    ),
    "right and never asked": (
        lambda rows: rows[6].update(accuracy=True, generated_result=None),
        "right",
        (7,),
        "marked right but has no answer",
    ),
    "right in their cache's words": (
        lambda rows: (rows[6].update(evaluation_result={"score": 1}), answer(rows[6], None)),
        "right",
        (7,),
        "marked right but has no answer",
    ),
    "constant tokens": (forty, "constant", tuple(range(1, 810, 5)), "have 40 input tokens"),
    "guessed tokens": (quarter, "estimated", tuple(range(1, 810, 5)), "characters over 4"),
    "an unknown model": (
        lambda rows: rows[1].update(prediction="new"),
        "price",
        (2,),
        "new has no price: USD 0",
    ),
    "a price of nothing": (
        lambda rows: rows[1].update(prediction="free"),
        "price",
        (2,),
        "a price that is 0",
    ),
    "a redirected name": (redirected, "served", (2,), "up to 6.00 times as much"),
    "uncharged voters": (voted, "uncharged", (4,), "more tokens than it is charged for"),
    "another cost": (cheap, "cost", (1,), "they state USD 0.000001"),
}


def test_an_honest_file_breaks_no_rule(checkout: Checkout) -> None:
    found = audit_predictions(checkout.put([honest(at) for at in range(809)]))
    assert found.ok, predictions_text(found)
    assert (found.rows, found.answered, found.gaps) == (809, 809, ())


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN.keys())
def test_each_rule_names_its_rows(
    checkout: Checkout, broken: tuple[Break, str, tuple[int, ...], str]
) -> None:
    breaks, rule, numbers, said = broken
    rows = [honest(at) for at in range(809)]
    breaks(rows)
    faults = audit_predictions(checkout.put(rows)).faults
    assert [one.rule for one in faults if one.rule != rule] == []
    assert any(one.rows == numbers and said in one.said for one in faults), faults


def test_a_wrong_answer_may_be_empty_and_reasoning_may_be_long(checkout: Checkout) -> None:
    rows = [honest(at) for at in range(809)]
    rows[1].update(accuracy=0.0)
    rows[1]["generated_result"]["generated_answer"] = ""
    answer(rows[2], "4", tokens=60_000)
    assert audit_predictions(checkout.put(rows)).ok


def test_dollars_are_tokens_times_price_with_reasoning_at_the_rate_of_output(
    checkout: Checkout,
) -> None:
    row = honest(1)
    usage(row, input_tokens=100, output_tokens=10, total_tokens=130)
    found = audit_predictions(checkout.put([row]))
    assert found.usd == (100 * Decimal(1) + 30 * Decimal(2)) / 1_000_000


def test_a_dated_name_of_the_same_model_is_the_same_model(checkout: Checkout) -> None:
    rows = [honest(at) for at in range(809)]
    rows[1]["generated_result"]["model_used"] = "small-2026-01-02"
    assert audit_predictions(checkout.put(rows)).ok


def test_a_retired_name_without_evidence_of_who_answered_is_a_gap(checkout: Checkout) -> None:
    row = honest(1) | {"prediction": "grok-4-1-fast-reasoning"}
    (gap,) = audit_predictions(checkout.put([row], "theirs")).gaps
    assert "grok-4.3 has answered under that name" in gap


def test_further_answers_for_optimality_are_no_duplicates(checkout: Checkout) -> None:
    rows = [honest(at) for at in range(809)]
    others = [honest(at) | {"for_optimality": True, "prediction": LARGE} for at in range(1, 4)]
    assert audit_predictions(checkout.put(rows + others)).ok


def test_without_prices_the_rest_is_audited_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "alone.json"
    path.write_text(json.dumps([honest(at) for at in range(809)]))
    found = audit_predictions(path)
    assert found.ok
    assert found.usd is None
    assert "no model_cost.json beside it" in found.gaps[0]


@pytest.mark.parametrize("text", ["", "no JSON", "{}", "[]", "7", "[" * 100_000, "[1" + "0" * 6000])
def test_what_is_no_prediction_file_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(UserError) as refused:
        audit_predictions(path)
    assert str(refused.value).startswith(str(path))
    assert "\n" not in str(refused.value)


def test_the_command_says_every_rule_and_fails_on_a_broken_one(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [honest(at) for at in range(809)]
    good = checkout.put(rows)
    assert main(["audit", "--routerarena", str(good)]) == 0
    said = capsys.readouterr().out
    assert all(f"ok    {rule}" in said for rule in RULES)
    forty(rows)
    bad = checkout.put(rows)
    told = checkout.home / "audit.json"
    assert main(["audit", "--routerarena", str(bad), "--json", str(told)]) == 1
    assert "FAILS constant" in capsys.readouterr().out
    (file,) = json.loads(told.read_text())["files"]
    assert file["faults"][0]["rows"] == list(range(1, 810, 5))
    assert main(["audit", "--routerarena", str(bad), "--json", str(told)]) == 1


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--costs", "x", "runs"],
        ["runs", "--routerarena", "x"],
        ["--routerarena", "x", "--strict"],
    ],
    ids=["nothing", "costs alone", "both", "another option"],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", *words]) == 2
    assert "--routerarena" in capsys.readouterr().err


def test_a_price_below_0_is_no_price(checkout: Checkout, tmp_path: Path) -> None:
    costs = tmp_path / "costs.json"
    below = {"input_token_price_per_million": -3.0, "output_token_price_per_million": 2.0}
    costs.write_text(json.dumps({**COSTS, SMALL: below}))
    found = audit_predictions(checkout.put([honest(one) for one in range(809)]), costs)
    assert "small has a price that is 0 or less" in next(
        one.said for one in found.faults if one.rule == "price"
    )
    assert found.usd is not None
    assert found.usd > 0


def test_half_of_a_surrogate_pair_is_told_in_json_as_it_was(
    checkout: Checkout, tmp_path: Path
) -> None:
    rows = [honest(one) for one in range(809)]
    rows[0]["prediction"] = "\ud800"
    out = tmp_path / "found.json"
    assert main(["audit", "--routerarena", str(checkout.put(rows)), "--json", str(out)]) == 1
    faults = json.loads(out.read_text())["files"][0]["faults"]
    said = [ascii(one["said"]) for one in faults]  # which a report of pytest's can hold
    assert r"'\ud800 has no price: USD 0'" in said
