"""Every page of a run in which every string attacks: nothing runs, nothing is fetched."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from podium.reports.report import report_of
from podium.reports.site import Site, write_site
from tests.reports.site.conftest import Look, Open, Watch
from tests.reports.site.hostile import CLASSICS, hostile_run

PAGES = ("index.html", "matrix.html", "query.html", "audit.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    home = tmp_path_factory.mktemp("hostile")

    def made() -> Site:
        run = hostile_run(home / "run")
        return write_site([run], report_of([run]), home / "site")

    with ThreadPoolExecutor(1) as apart:  # the browser's driver has a loop in this thread
        return apart.submit(made).result()


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(
    "look",
    [Look(), Look(dark=True), Look(javascript=False), Look(width=320), Look(scale=4)],
    ids=["light", "dark", "without scripts", "320 px", "400 %"],
)
def test_a_page_shows_hostile_texts_and_does_nothing_else(
    site: Site, site_page: Open, name: str, look: Look
) -> None:
    scripted = look.javascript and name != "audit.html"
    page = site_page(site.folder / name, replace(look, ready=scripted))
    assert page.title() != "pwned"
    for bad in ("iframe", "base", "math", "main script", "main style", "[onload]", "[onerror]"):
        assert page.locator(bad).count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    if name == "index.html":
        assert CLASSICS[2] in page.locator("main").inner_text()


@pytest.mark.slow
def test_the_pages_of_an_attack_are_as_small_as_others(site: Site) -> None:
    """Ten million characters are cut in files; a view has them."""
    assert max(path.stat().st_size for path in site.files) < 2_000_000


def test_a_watch_would_see_an_attack(site_page: Open, watch: Watch, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(f"<html data-ready=1><body>{CLASSICS[0]}</body></html>")
    page = site_page(tmp_path / "page.html")
    assert page.title() == "pwned"
    assert watch.errors == []
