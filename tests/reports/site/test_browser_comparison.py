"""The first page in a real browser: it sorts, compares, draws, and does without a script."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from podium.__main__ import main
from podium.reports.blocks import ReportOptions
from podium.reports.report import Report, report_of
from podium.reports.site import write_site
from tests.harness.runs import sit
from tests.reports.site.conftest import Look, Open, serious_faults

LOOKS = {
    "light": Look(),
    "dark": Look(dark=True),
    "narrow": Look(width=320),
    "four times as large": Look(scale=4),
    "without a script": Look(javascript=False),
}
COMPARATIVE = {
    "paired_diff": "difference",
    "paired_low": "its interval",
    "paired_high": "its interval",
    "verdict": "verdict",
    "reference": "verdict",
    "min_detectable": "detectable",
    "paired_bca_low": "difference, BCa",
    "paired_bca_high": "difference, BCa",
    "p_value": "p",
    "p_holm": "p (Holm)",
    "test": "test",
    "n_paired": "won/lost",
    "n_better": "won/lost",
    "n_worse": "better/worse",
    "correlation": "correlation",
    "reference_rule": "verdict",
    "equivalence_margin": "90 % interval",
    "equivalence_low": "90 % interval",
    "equivalence_high": "90 % interval",
    "p_equivalence": "p",
    "p_equivalence_holm": "p (Holm)",
    "usd_ratio": "times the reference",
    "usd_ratio_low": "times the reference",
    "usd_ratio_high": "times the reference",
}
"""Columns of table.csv that go by the reference, and the head of the column that shows each."""
TEXTS = """tables => tables.map((table) => [...table.rows].map((row) =>
    [...row.cells].map((cell) => cell.textContent.trim().replace(/\\s+/g, " "))))"""
VALUES = """(at) => ["paired_diff", "n_better"].map((field) => {
    const head = document.querySelector(`.comparison th[data-field="${field}"]`);
    const { cells } = document.querySelector(`tr[data-row="${at}"]`);
    const { value } = cells[head.cellIndex].dataset;
    return value === "" ? null : Number(value);
})"""


OVERLAPS = """() => {
    const boxOf = (cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return range.getBoundingClientRect();
    };
    return [...document.querySelectorAll("tbody tr")].flatMap((row) =>
        [...row.cells].slice(1).filter((cell, at) => {
            const [own, before] = [boxOf(cell), boxOf(row.cells[at])];
            return own.width && before.width && before.right > own.left + 0.5;
        }).map((cell) => `${row.cells[0].textContent}: ${cell.textContent}`));
}"""
LINES = """heads => heads.map((head) => {
    const range = document.createRange();
    range.selectNode(head.firstChild);
    return [head.firstChild.textContent, range.getClientRects().length];
})"""


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


def reported(logs: Path, out: Path, *options: str) -> dict[str, Any]:
    """Return what `podium report` writes."""
    words = ["report", str(logs), "--equivalence", "50", "--out", str(out)]
    assert main([*words, *options]) == 0
    return json.loads((out / "table.json").read_text())


def choose(page: Page, other: str) -> None:
    page.get_by_label("reference", exact=True).select_option(label=other)
    page.locator(f"tr[data-system='{other}'] td[data-value='reference']").wait_for()


def compared(page: Page) -> dict[tuple[str, str], str]:
    """Return every cell of a block's tables, by its system and the head of its column."""
    return {
        (system, f"{at} {head}"): text
        for at, table in enumerate(page.locator(".block table").evaluate_all(TEXTS))
        for system, *texts in table[1:]
        for head, text in zip(table[0][1:], texts, strict=True)
    }


def long_names(home: pytest.TempPathFactory) -> Path:
    """Return the page of systems whose names have hyphens."""
    logs = home.mktemp("names")
    with ThreadPoolExecutor(1) as apart:  # the browser's driver has a loop in this thread
        for name in ("single:sage", "conductor-prompted", "single:r1-distill-qwen-7b"):
            apart.submit(sit, logs, name).result()
    return write_site([logs], report_of([logs]), home.mktemp("pages")).folder / "index.html"


@pytest.fixture(scope="module")
def equivalence(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a report that asks about equivalence, too: then no column is empty."""
    found = report_of([logs], ReportOptions(equivalence=0.5))
    found = replace(found, contents={**found.contents, "plot.png": ""})
    return write_site([logs], found, tmp_path_factory.mktemp("pages")).folder / "index.html"


def test_no_column_depends_on_the_reference_but_those_that_a_reader_sees_change(
    logs: Path, tmp_path: Path
) -> None:
    tables = [
        reported(logs, tmp_path / "report", *options)["rows"]
        for options in ([], ["--vs", "oracle"], ["--vs", "single:clerk"])
    ]
    moved = {
        column
        for rows in zip(*tables, strict=True)
        for column in rows[0]
        if len({str(row[column]) for row in rows}) > 1
    }
    assert moved == set(COMPARATIVE)


@pytest.mark.parametrize("other", ["oracle", "single:clerk"])
def test_another_reference_changes_all_that_is_compared_to_what_the_report_says(
    logs: Path, equivalence: Path, site_page: Open, tmp_path: Path, other: str
) -> None:
    options = ["--vs", other, "--site", str(tmp_path / "site")]
    report = reported(logs, tmp_path / "report", *options)
    page, written = site_page(equivalence), site_page(tmp_path / "site" / "index.html")
    before = compared(page)
    choose(page, other)
    (block,) = report["blocks"]
    assert page.locator(".headline").inner_text() == f"{block['headline']}."
    assert page.locator(".block > .said").inner_text() == f"{block['said']}."
    for at, row in enumerate(report["rows"][: len(block["rows"])]):
        line = page.locator(f".comparison tr[data-row='{at}']")
        assert line.locator(f"[data-value='{row['verdict']}']").count() == 1
        shown = page.evaluate(VALUES, at)
        assert shown == pytest.approx([row[name] for name in ("paired_diff", "n_better")], abs=1e-6)
    after = compared(page)
    assert after == compared(written)
    moved = {head for cell, text in after.items() if before.get(cell) != text for head in cell[1:]}
    assert {head.partition(" ")[2] for head in moved} >= set(COMPARATIVE.values())
    page.get_by_label("reference", exact=True).select_option(label="best-single")
    page.locator("tr[data-system='best-single'] td[data-value='reference']").wait_for()
    assert compared(page) == before


def test_a_reader_who_chooses_a_reference_keeps_what_was_opened_and_sorted(
    index: Path, site_page: Open
) -> None:
    page = site_page(index)
    page.get_by_label("all columns").check()
    page.locator("summary").first.click()
    page.get_by_role("button", name="tokens out").press("Enter")
    order = systems(page)
    choose(page, "oracle")
    assert systems(page) == order
    assert page.get_by_label("all columns").is_checked()
    assert page.locator("details").first.get_attribute("open") is not None
    assert page.locator(":focus").get_attribute("id") == "reference-0"
    assert page.locator(".plot svg").count() == 1
    assert "Chosen after the run" in page.locator("[data-controls]").inner_text()
    assert serious_faults(page) == []


def test_won_and_lost_against_two_systems_are_each_others_mirror(
    index: Path, site_page: Open
) -> None:
    page = site_page(index)
    page.get_by_label("all columns").check()
    told: list[list[str]] = []
    for one, other in (("oracle", "single:clerk"), ("single:clerk", "oracle")):
        choose(page, one)
        cells = compared(page).items()
        (text,) = [
            text for (name, head), text in cells if name.startswith(other) and head == "0 won/lost"
        ]
        told.append(text.split(" of ")[0].split("/"))
    assert told[0] == told[1][::-1]


def test_no_name_is_broken_and_no_cell_lies_over_another_in_a_narrow_window(
    tmp_path_factory: pytest.TempPathFactory, site_page: Open
) -> None:
    page = site_page(long_names(tmp_path_factory), Look(width=390))
    page.get_by_label("all columns").check()
    for summary in page.locator("summary").all():
        summary.click()
    lines = dict(page.locator(".comparison tbody th").evaluate_all(LINES))
    assert lines == {"single:sage": 1, "conductor-prompted": 1, "single:r1-distill-qwen-7b": 1}
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("width", [390, 1400])
def test_a_table_with_all_columns_scrolls_and_says_so(
    index: Path, site_page: Open, width: int
) -> None:
    page = site_page(index, Look(width=width))
    page.get_by_label("all columns").check()
    scroll = page.locator(".chooser .scroll")
    assert scroll.evaluate("one => one.scrollWidth > one.clientWidth")
    cue = scroll.evaluate("""one => {
        const { content, display } = getComputedStyle(one, "::before");
        return [content, display];
    }""")
    assert cue == ['"more columns: scroll sideways \u2192"', "block"]


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
