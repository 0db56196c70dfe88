"""A board of several runs: what stands in one table, what proves a row, and a browser on it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.reports.site import write_board
from tests.harness.runs import BOOK, Crew, Exam, sit, steps
from tests.reports.audit.audited_run import sat
from tests.reports.site.conftest import Look, Open, serious_faults
from tests.reports.small_reports import interrupted_run, right_up_to

DEARER = replace(BOOK, name="dearer", sha256="2" * 64).as_json()
CUTOFF = {"model": "scripted/sage", "price": "scripted/sage", "knowledge_cutoff": "2026-03 (card)"}


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a board of an audited run, one without journals, and two that stand apart."""
    home = tmp_path_factory.mktemp("board")
    sat(home / "audited", "single:sage", steps("sage"), crew=Crew(sage=right_up_to(3)))
    sit(home / "bare", "single:sage", seed=7, workers={"sage": CUTOFF})
    sit(home / "dear", "single:sage", prices=DEARER)
    sit(home / "nested" / "bare", "single:sage", equal="calls=3")
    runs = [home / name for name in ("audited", "bare", "dear", "nested/bare")]
    write_board(runs, home / "out", {})
    return home / "out"


def test_rows_of_one_envelope_stand_together_and_say_what_proves_them(board: Path) -> None:
    made: dict[str, Any] = json.loads((board / "leaderboard.json").read_text())
    first, *apart = made["tables"]
    rows = [(row["run"], row["accuracy"], row["seed"], row["audit"]) for row in first["rows"]]
    (bare, *exact), (audited, *others) = ([*row[:3], row[3]["status"]] for row in rows)
    assert (bare, exact) == ("runs/bare/index.html", [1.0, 7, "not audited"])
    assert (audited, others) == ("runs/audited/index.html", [0.75, 0, "weak"])
    assert [table["apart"] for table in apart] == [
        ["prices dearer (22222222) (there test-book (00000000))"],
        ["equal budget calls=3 (there none)"],
    ]
    assert apart[1]["rows"][0]["audit"]["page"] == "runs/bare-2/audit.html"
    assert [line.partition(" (its")[0] for line in first["cautions"]] == [
        "questions public: 2026-01; knowledge cutoffs: sage 2026-03",
        "younger than the questions",
        "saturated, the best row has 100.0 % of 4 questions: no better system can be shown",
    ]


def test_runs_that_may_not_stand_on_one_board_are_refused_before_anything_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, other, begun = (tmp_path / name for name in ("here", "other", "begun"))
    sit(here, "single:sage")
    sit(other, "single:sage", exam=Exam(name="letters"))
    interrupted_run(begun)
    for dirs, said in (
        ([here, here], "hold the same run ("),
        ([here, other], "has only numbers, and no other of these runs has that suite"),
        ([here, begun], "has not been asked"),
    ):
        words = ["export", "site", *map(str, dirs), "--out", str(tmp_path / "out")]
        assert main(words) == 2
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_the_page_is_read_in_a_browser_and_its_links_lead_to_pages(
    board: Path, site_page: Open
) -> None:
    page = site_page(board / "index.html", Look(ready=False))
    assert page.locator("h2").count() == 3
    assert page.locator(".status.not-audited").count() == 3
    links = page.locator("main a").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    assert [one for one in links if not (board / one.partition("#")[0]).is_file()] == []
    assert serious_faults(page) == []
    narrow = site_page(board / "index.html", Look(javascript=False, width=320))
    assert narrow.evaluate("document.documentElement.scrollWidth <= innerWidth")
