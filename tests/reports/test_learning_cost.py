"""What learning cost: whose selection it is, what is unknown, and where a system breaks even."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.conductor.checkpoint import checkpoint_digest
from podium.harness.ledger.totals import SystemRun
from podium.reports.derived import compare
from podium.reports.learning_cost import LearningCost, learning_costs, learning_markdown, trainings
from tests import ROOT
from tests.harness.runs import BOOK, sit
from tests.reports.made_runs import graded, made_run
from tests.reports.small_reports import report

RELEASED = ROOT / "conductor" / "released"
CHOSEN = {"worker": "sage", "chosen_on": "train", "n": 2}
RIGHT, WRONG = graded(1.0, 1.0), graded(0.0, 0.0)


def best(usd: str = "0.010", **changes: Any) -> SystemRun:
    return made_run("best-single", RIGHT, usd=usd, args=CHOSEN, **changes)


def tried(worker: str, right: bool, usd: str | None = "0.5", **changes: Any) -> SystemRun:
    """Return a single worker on two train questions, as a run's `selection/` has it."""
    about: dict[str, Any] = {"purpose": "selection", "split": "train", "home": "logs/selection"}
    grades, args = RIGHT if right else WRONG, {"worker": worker}
    return made_run(f"single:{worker}", grades, usd=usd, args=args, **{**about, **changes})


SELECTION = [tried("sage", True), tried("clerk", False)]


def costs(*runs: SystemRun) -> dict[str, LearningCost]:
    return {one.row.system: one for one in compare(runs).learning}


def test_a_best_single_worker_pays_for_all_that_were_tried_beside_it() -> None:
    found = costs(best(), *SELECTION)["best-single"]
    assert (found.usd, found.versus) == (Decimal(2), "reference")
    assert found.usd_at == (Decimal("0.03"), Decimal("0.012"), Decimal("0.0102"))
    assert found.what.endswith("chosen on train questions of numbers (4 calls)")


def test_who_runs_on_the_chosen_worker_pays_for_the_choice_as_well() -> None:
    voting = made_run("self-consistency", RIGHT, args={"worker": "sage"})
    mixture = made_run("moa-lite", RIGHT, args={"aggregator": "clerk"})
    found = costs(best(), voting, mixture, made_run("conductor-prompted", RIGHT), *SELECTION)
    assert list(found) == ["best-single", "self-consistency"]
    assert found["self-consistency"].usd == Decimal(2)
    assert found["self-consistency"].versus == "at once", "as much learning, cheaper each time"


@pytest.mark.parametrize(
    ("usd", "tries", "queries", "said"),
    [
        pytest.param("0.004", "7", 1000, "1,000 queries", id="later"),
        pytest.param("0.004", "0.5", 0, "at once", id="less-of-both"),
        pytest.param("0.010", "7", None, "never", id="as-dear"),
        pytest.param("0.010", "0.1", 0, "at once", id="as-dear-and-less-learning"),
        pytest.param("0.020", "0.1", None, "never", id="dearer"),
        pytest.param(None, "7", None, "unknown", id="no-price"),
    ],
)
def test_a_router_breaks_even_where_its_tries_are_saved(
    usd: str | None, tries: str, queries: int | None, said: str
) -> None:
    args = {"learned": "learned/numbers/template-router.npz"}
    notes = ["trained by 1 worker calls on train questions of numbers"]
    router = made_run("template-router", RIGHT, usd=usd, args=args, notes=notes)
    about: dict[str, Any] = {"purpose": "selection", "split": "train"}
    home = "logs/tuning/numbers/template-router/1"
    rounds = made_run("template-router", graded(1.0), usd=tries, home=home, **about)
    other = made_run("trinity", graded(1.0), usd="9", home=home.replace("template-", ""), **about)
    alone = [tried("sage", True, usd="0.25"), tried("clerk", False, usd="0.25")]
    found = costs(best(), router, rounds, other, *alone)["template-router"]
    assert found.usd == Decimal(tries)
    assert (found.break_even, found.versus) == (queries, said)


def test_a_router_of_single_workers_learns_from_the_suites_that_it_names() -> None:
    notes = ["trained on 4 x 2 worker calls on train questions of sums, words"]
    router = made_run("router-knn", RIGHT, args={"learned": "x.npz"}, notes=notes)
    taught = [tried("sage", True, suite=suite) for suite in ("sums", "words", "numbers")]
    found = costs(best(usd="0.1"), router, *taught)
    assert found["router-knn"].usd == Decimal(2)
    assert found["router-knn"].what.endswith("of sums, words (4 calls)")
    assert found["best-single"].usd == Decimal(1)


def test_what_was_learnt_before_the_run_is_unknown() -> None:
    router = made_run("router-knn", RIGHT, usd="0.001", args={"learned": "/elsewhere/knn.npz"})
    found = costs(best(), router, *SELECTION)["router-knn"]
    assert (found.usd, found.versus) == (None, "unknown")


def test_tries_of_another_run_are_nobody_elses() -> None:
    elsewhere = [tried("sage", True, home="other/selection")]
    found = costs(best(), *elsewhere)["best-single"]
    assert (found.usd, found.usd_at) == (None, (None, None, None))
    assert found.what.endswith("logs not found")


def test_tries_without_a_price_are_unknown_and_not_free() -> None:
    found = costs(best(), tried("sage", True, usd=None))["best-single"]
    assert found.usd is None
    assert found.what.endswith("some without a price")


def test_who_did_not_learn_or_chose_in_hindsight_has_no_row() -> None:
    late = made_run("best-single", RIGHT, args=CHOSEN, reference_allowed=False)
    assert costs(late, made_run("single:sage", RIGHT), made_run("moa-lite", RIGHT)) == {}
    assert learning_markdown([]) == ""


def test_a_reference_that_was_named_beforehand_has_learnt_nothing() -> None:
    trained = conductor("trained")
    found = costs(made_run("single:sage", RIGHT, prices=trained.facts.prices), trained)
    assert (found["single:sage"].usd, found["single:sage"].versus) == (0, "reference")


def conductor(name: str, **changes: Any) -> SystemRun:
    args = {"checkpoint": name, "sha256": checkpoint_digest(RELEASED / name)}
    (book,) = {one["price_book_sha256"] for one in trainings().values()} - {""}
    prices = {**BOOK.as_json(), "sha256": book}
    about: dict[str, Any] = {"usd": "0.0001", "args": args, "prices": prices, **changes}
    return made_run("conductor", RIGHT, **about)


def test_a_released_conductor_pays_for_the_training_of_all_its_seeds() -> None:
    single = made_run("single:sage", RIGHT, usd="0.0101", prices=conductor("trained").facts.prices)
    found = costs(single, conductor("trained"))["conductor"]
    assert found.usd == Decimal("33.99581305")
    assert (found.break_even, found.versus) == (3400, "3,400 queries")
    free = costs(single, conductor("untrained"))["conductor"]
    assert (free.usd, free.versus) == (0, "at once")


def test_a_training_that_no_log_here_tells_of_is_unknown() -> None:
    own = {"checkpoint": "runs/mine/best", "sha256": "0" * 64}
    single = made_run("single:sage", RIGHT)
    found = costs(single, made_run("conductor@runs/mine/best", RIGHT, usd="0.0001", args=own))
    assert found["conductor@runs/mine/best"].versus == "unknown"
    assert "no log here states its dollars" in found["conductor@runs/mine/best"].what
    dear = costs(single, made_run("conductor@runs/mine/best", RIGHT, usd="0.5", args=own))
    assert dear["conductor@runs/mine/best"].versus == "never", "whatever the training cost"


def test_dollars_of_another_price_book_are_another_currency() -> None:
    found = costs(conductor("trained", prices=BOOK.as_json()))["conductor"]
    assert found.usd is None
    assert found.what.endswith("priced at another price book")


def test_without_a_reference_nobody_breaks_even() -> None:
    found = costs(conductor("trained"))["conductor"]
    assert (found.break_even, found.versus) == (None, "no reference")


def test_trainings_are_what_the_released_logs_add_up_to() -> None:
    known = dict(trainings())
    for place in RELEASED.iterdir():
        told, dollars, books = known.pop(checkpoint_digest(place)), Decimal(0), {""}
        for log in place.glob("log/seed-*"):
            books = {json.loads((log / "manifest.json").read_text())["prices"]["sha256"]}
            for line in (log / "metrics.jsonl").read_text().splitlines():
                step = json.loads(line, parse_float=Decimal)
                dollars += step.get("usd", 0) + step.get("validation", {}).get("usd", 0)
        assert (Decimal(told["usd"]), {told["price_book_sha256"]}) == (dollars, books)
    assert known == {}, "no training of what is not released"


def test_a_report_has_it_in_table_md_and_table_json(tmp_path: Path) -> None:
    home = tmp_path / "logs"
    sit(home, "best-single", args=CHOSEN)
    about: dict[str, Any] = {"args": {"worker": "sage"}, "purpose": "selection", "split": "train"}
    sit(home / "selection", "single:sage", **about)
    found = report(tmp_path)
    assert "### What learning cost" in found.files[0].read_text()
    (one,) = json.loads(found.files[2].read_text())["learning"]
    assert (one["row"], one["system"], one["versus"]) == (0, "best-single", "reference")
    assert one["usd"] == 0.000056, "four calls"
    assert one["usd_at"]["100"] == pytest.approx(0.000014 + 0.00000056)


def test_a_block_without_a_learner_says_nothing() -> None:
    assert learning_costs([], []) == []
