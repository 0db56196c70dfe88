"""The page of two runs: each system with itself, and every question on which it did otherwise."""

from pathlib import Path

from podium.reports.against import difference_of_runs
from podium.reports.render import usd
from podium.reports.report import report_of
from podium.reports.site.against_page import against_context
from podium.reports.site.index import site_blocks
from podium.reports.site.pages import SiteFrame, render_page
from tests.harness.runs import Crew, sit
from tests.providers.scripted import Heard
from tests.reports.site.page_tables import tables_in

FRAME = SiteFrame(pages=(("runs.html", "Two runs"),), made="Made by a test.")
SUMMARY = "Systems in both runs"


def page_of(here: Path, against: Path) -> str:
    """Return the page of one run that is held against another."""
    blocks = list(site_blocks(report_of([here]).shown))
    context = against_context(difference_of_runs([here], against), blocks)
    return render_page("runs.html", site=FRAME, **context)


def never_two(heard: Heard) -> str:
    """Answer as the others do, but for the second question."""
    return "9" if heard.last == "Say 2" else heard.last


def test_won_and_lost_questions_lead_to_their_queries(tmp_path: Path) -> None:
    sit(tmp_path / "now", "single:sage", seed=1)
    sit(tmp_path / "before", "single:sage", crew=Crew(sage=never_two))
    page = page_of(tmp_path / "now", tmp_path / "before")
    tables = tables_in(page)
    ((_, *rows),) = [found for name, found in tables.items() if name.startswith(SUMMARY)]
    assert [row[:3] + row[5:] for row in rows] == [
        ["numbers single:sage", "4", "+25.0", "1", "0", "3"]
    ]
    ((_, cost),) = [found for name, found in tables.items() if name.startswith("USD a query")]
    found = difference_of_runs([tmp_path / "now"], tmp_path / "before").systems[0].cost
    assert found
    assert cost[1:4] == ["4", usd(found.against), usd(found.here)]
    changed = tables["numbers single:sage: grades in percent, means over epochs"]
    assert changed[1:] == [["q2", "0.0", "100.0", "won"]]
    assert 'href="query.html#/q/numbers/q2/1?sys=single%3Asage"' in page
    assert ["seed", "1", "0", "all"] in tables["Facts of the runs that differ"]


def test_runs_that_are_alike_say_so(tmp_path: Path) -> None:
    for name in ("now", "before"):
        sit(tmp_path / name, "single:sage")
    page = page_of(tmp_path / "now", tmp_path / "before")
    assert "All that the logs state of both runs is the same" in page
    assert "None: every system has the same grade on every question in both runs." in page
