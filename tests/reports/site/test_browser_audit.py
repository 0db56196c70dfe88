"""The audit page and that of two runs in a real browser; they have no script."""

from pathlib import Path

import pytest

from podium.reports.site.pages import ASSETS
from tests.reports.audit.audited_run import sat
from tests.reports.site.conftest import Look, Open, serious_faults
from tests.reports.site.test_against_page import page_of as runs_page_of
from tests.reports.site.test_audit_page import page_of, tampered


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a run that adds up and of one whose journal was edited."""
    home = tmp_path_factory.mktemp("audited")
    sat(home / "good")
    sat(home / "bad")
    (home / "assets").mkdir()
    (home / "assets" / "podium.css").write_text((ASSETS / "podium.css").read_text())
    (home / "audit.html").write_text(page_of(home / "good", tampered(home / "bad")))
    (home / "runs.html").write_text(runs_page_of(home / "good", home / "bad"))
    return home / "audit.html"


@pytest.mark.parametrize(
    "look",
    [
        pytest.param(Look(ready=False), id="light"),
        pytest.param(Look(ready=False, dark=True), id="dark"),
        pytest.param(Look(javascript=False, width=320), id="narrow"),
        pytest.param(Look(ready=False, scale=4), id="400 %"),
    ],
)
def test_bars_are_as_long_as_their_figures_and_nothing_is_wider_than_the_window(
    audited: Path, site_page: Open, look: Look
) -> None:
    page = site_page(audited, look)
    bars = page.locator(".waterfall").first.locator("rect")
    assert [bars.nth(at).get_attribute("width") for at in range(3)] == ["100.0"] * 3
    assert page.locator("#I4-1 .status").inner_text() == "✕ fails"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert not look.javascript or serious_faults(page) == []


def test_a_row_at_fault_leads_to_its_query(audited: Path, site_page: Open) -> None:
    page = site_page(audited, Look(ready=False))
    links = page.locator("#I4-1 a")
    assert links.count() > 0
    assert (links.first.get_attribute("href") or "").startswith("query.html#/q/numbers/q")


def test_two_runs_can_be_read_in_a_narrow_window(audited: Path, site_page: Open) -> None:
    page = site_page(audited.with_name("runs.html"), Look(width=320, ready=False))
    assert page.locator("table").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious_faults(page) == []
