"""The first page in a real browser: it sorts, counts, draws, and does without a script."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from podium.reports.report import Report
from podium.reports.site import write_site
from tests.reports.site.conftest import Look, Open, serious_faults

LOOKS = {
    "light": Look(),
    "dark": Look(dark=True),
    "narrow": Look(width=320),
    "four times as large": Look(scale=4),
    "without a script": Look(javascript=False),
}


@pytest.fixture(scope="module")
def index(logs: Path, made: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site([logs], made, tmp_path_factory.mktemp("pages")).folder / "index.html"


def systems(page: Page) -> list[str]:
    return page.locator("table.comparison tbody th").evaluate_all(
        "heads => heads.map((one) => one.parentElement.dataset.system)"
    )


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_the_page_is_no_wider_than_its_window(index: Path, site_page: Open, look: Look) -> None:
    page = site_page(index, look)
    box = page.locator("html").bounding_box()
    wide = page.locator("body").evaluate("() => document.documentElement.scrollWidth")
    assert box is not None
    assert wide <= box["width"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_serious_keeps_anybody_from_reading(
    index: Path, site_page: Open, dark: bool
) -> None:
    page = site_page(index, Look(dark=dark))
    for summary in page.locator("summary").all():
        summary.click()
    page.check(".choose-more")
    assert serious_faults(page) == []


def test_a_head_sorts_by_mouse_and_by_keyboard_and_says_so(
    index: Path, site_page: Open, made: Report
) -> None:
    page = site_page(index)
    assert systems(page) == [row.system for row in made.rows]
    page.get_by_role("button", name="tokens out").click()
    tokens = {row.system: row.tokens_out or 0 for row in made.rows}
    assert [tokens[name] for name in systems(page)] == sorted(tokens.values(), reverse=True)
    page.keyboard.press("Enter")
    assert [tokens[name] for name in systems(page)] == sorted(tokens.values())
    head = page.locator("th[aria-sort]")
    assert head.get_attribute("data-field") == "tokens_out"
    assert head.get_attribute("aria-sort") == "ascending"
    page.get_by_role("button", name="system").press("Space")
    assert systems(page) == sorted(tokens)


@pytest.mark.parametrize("javascript", [True, False], ids=["with", "without"])
def test_all_columns_are_one_click_away_with_and_without_a_script(
    index: Path, site_page: Open, javascript: bool
) -> None:
    page = site_page(index, Look(javascript=javascript))
    more = page.locator("th.more").first
    assert not more.is_visible()
    page.get_by_label("all columns").check()
    assert more.is_visible()


def test_won_and_lost_against_the_reference_are_those_of_the_table(
    index: Path, site_page: Open, made: Report
) -> None:
    page = site_page(index)
    page.get_by_label("won and lost against").select_option("best-single")
    page.get_by_text("no test, no verdict").wait_for()
    for place, row in enumerate(made.rows):
        shown = page.locator(f"tr[data-row='{place}'] td[data-counted]").inner_text()
        if row.n_paired is None or row.n_better is None or row.n_worse is None:
            assert shown == "reference"
            continue
        tied = row.n_paired - row.n_better - row.n_worse
        assert shown == f"{row.n_better} / {row.n_worse} / {tied}"
    page.get_by_label("won and lost against").select_option("")
    assert page.locator("td[data-counted]:visible").count() == 0


def test_won_and_lost_against_any_other_are_each_others_mirror(
    index: Path, site_page: Open, made: Report
) -> None:
    page = site_page(index)
    places = {row.system: place for place, row in enumerate(made.rows)}
    told: list[list[str]] = []
    for one, other in (("oracle", "single:clerk"), ("single:clerk", "oracle")):
        page.get_by_label("won and lost against").select_option(one)
        page.locator(f"tr[data-row='{places[one]}'] td[data-counted='reference']").wait_for()
        cell = page.locator(f"tr[data-row='{places[other]}'] td[data-counted]")
        told.append(cell.inner_text().split(" / "))
    assert told[0] == [told[1][1], told[1][0], told[1][2]]


def test_accuracy_against_dollars_names_seven_systems_at_most_and_no_milli_dollars(
    index: Path, site_page: Open
) -> None:
    page = site_page(index)
    svg = page.locator(".plot svg")
    assert svg.is_visible()
    assert 1 <= svg.locator("text.named").count() <= 7
    ticks = [text for text in svg.locator("text").all_text_contents() if text[:1].isdigit()]
    assert ticks
    assert all(text.replace(",", "").replace(".", "").isdigit() for text in ticks)
    dot = svg.locator(".points [tabindex]").first
    dot.focus()
    tip = page.locator(".tip")
    assert tip.is_visible()
    assert tip.inner_text() == dot.get_attribute("aria-label")
    page.keyboard.press("Tab")
    assert tip.inner_text() != dot.get_attribute("aria-label")


def test_a_page_without_a_script_shows_the_plot_as_a_picture(index: Path, site_page: Open) -> None:
    page = site_page(index, Look(javascript=False))
    picture = page.locator("noscript img, figure img").first
    assert picture.is_visible()
    assert picture.evaluate("image => image.naturalWidth") > 100
    assert page.locator("table.comparison tbody tr").count() == 5
