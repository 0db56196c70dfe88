"""The matrix in a browser: what it shows is what the table counts, and its address says it all."""

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from podium.reports.report import write_report
from podium.reports.site import write_site
from tests.harness.runs import Crew, Exam, Heard, number, sit, steps, wrong
from tests.reports.site.conftest import Look, Open, Watch, serious_faults

SIZE = 52
"""Questions: more than a page of the table."""
HEADS = {"graded": "n_graded", "no answer": "n_unparsed", "won": "n_better", "lost": "n_worse"}
FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
SCROLLED = f"""async (steps) => {{
  const board = document.getElementById("board");
  for (const by of steps) {{
    board.scrollTop += by;
    await {FRAME};
  }}
  return [document.getElementById("canvas").toDataURL(), board.scrollTop];
}}"""
INKED = """() => {
  const canvas = document.getElementById("canvas");
  const ratio = canvas.width / canvas.clientWidth;
  const left = Math.min(170, Math.round(0.3 * document.getElementById("board").clientWidth));
  const inked = (...box) => {
    const { data } = canvas.getContext("2d").getImageData(...box.map((one) => one * ratio));
    return new Set(new Uint32Array(data.buffer)).size > 2;
  };
  return [inked(0, 0, left - 2, 95), inked(left, 0, 20, 60), inked(0, 110, left - 2, 14)];
}"""
ANEW = f"""async () => {{
  const board = document.getElementById("board");
  for (const width of [`${{board.clientWidth - 1}}px`, ""]) {{
    board.style.width = width;
    await {FRAME};
  }}
}}"""


def sage(heard: Heard) -> str:
    """Know the first thirty, say nothing to the first, and break the grader with the last."""
    asked = int(number(heard))
    if asked == 1:
        return "I cannot say"
    if asked == SIZE:
        return "broken"
    return number(heard) if asked <= 30 else wrong(heard)


def clerk(heard: Heard) -> str:
    """Know what is even."""
    return wrong(heard) if int(number(heard)) % 2 else number(heard)


def wavering(heard: Heard) -> str:
    """Know in the first of two epochs, and not in the second."""
    return number(heard) if heard.epoch == 1 else wrong(heard)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems on fifty-two questions, and on two questions twice."""
    with ThreadPoolExecutor(1) as apart:  # the browser's driver has a loop in this thread
        return apart.submit(made, tmp_path_factory.mktemp("matrix")).result()


def made(place: Path) -> Path:
    for name, system in (("single:sage", steps("sage")), ("single:clerk", steps("clerk"))):
        crew = Crew(sage=sage, clerk=clerk)
        sit(place / "logs", name, system, crew, exam=Exam(size=SIZE))
    again = Exam(name="twice", size=2)
    sit(place / "twice", "single:sage", crew=Crew(sage=wavering), exam=again, epochs=2)
    dirs = [place / "logs", place / "twice"]
    write_site(dirs, write_report(dirs, place / "report"), place / "site")
    return place / "site"


def rows_of(site: Path) -> list[dict[str, Any]]:
    found = json.loads((site / "downloads" / "table.json").read_text())
    return [row for row in found["rows"] if not row["derived"]]


def counts(page: Page) -> dict[str, dict[str, str]]:
    """Return the lines of the table of counts, by number of the row."""
    lines = [
        [cell.strip() for cell in line.split("\t")]
        for line in page.inner_text("#systems").split("\n")
        if line.strip()
    ]
    heads, *systems = lines
    numbers = page.eval_on_selector_all(
        "#systems tr[data-row]", "all => all.map(x => x.dataset.row)"
    )
    return {
        number: dict(zip(heads, cells, strict=True))
        for number, cells in zip(numbers, systems, strict=True)
    }


def questions(page: Page) -> list[str]:
    """Return the questions on this page of the table."""
    return page.locator("#grid tbody th").all_inner_texts()


def chosen(page: Page, **filters: str) -> Page:
    for name, value in filters.items():
        page.select_option(f"#filters [name={name}]", value)
    return page


def test_counts_of_all_that_is_shown_are_the_figures_of_the_table(
    site: Path, site_page: Open
) -> None:
    for block in ("numbers", "twice"):
        shown = counts(site_page(site / "matrix.html", address=f"#/m/{block}"))
        assert shown
        for place, found in shown.items():
            row = rows_of(site)[int(place)]
            for head, name in HEADS.items():
                if row["verdict"] == "reference" and head in ("won", "lost"):
                    assert found[head] == "-"
                elif row[name] is not None:
                    assert found[head] == str(row[name]), head
            assert found["invalid plan"] == str(row["n_invalid_plans"] or 0)
            asked = sum(int(found[name]) for name in ("graded", "unscored", "not asked"))
            assert asked == row["n_asked"]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("all", {*range(1, 53)}),
        ("right", {n for n in range(1, 53) if 1 < n <= 30 or n % 2 == 0}),
        ("wrong", {n for n in range(1, 53) if n == 1 or n % 2 or 30 < n < 52}),
        ("errors", {52}),
        ("no-answer", {1}),
        ("different", {n for n in range(2, 52) if (n <= 30) != (n % 2 == 0)}),
    ],
)
def test_each_mode_shows_the_questions_that_have_such_a_cell(
    site: Path, site_page: Open, mode: str, expected: set[int]
) -> None:
    page = chosen(site_page(site / "matrix.html", address="#/m/numbers"), mode=mode)
    found = questions(page)
    if len(expected) > len(found):
        page.get_by_role("button", name="Later questions").click()
        found += questions(page)
    assert sorted(found) == sorted(f"q{n}" for n in expected)
    assert f"{len(expected)} of 52 questions" in page.inner_text("#counts")


def test_a_reason_filters_when_it_is_pressed_and_again_shows_all(
    site: Path, site_page: Open
) -> None:
    page = site_page(site / "matrix.html", address="#/m/numbers")
    reason = page.locator("#reasons button", has_text="the box is down")
    assert reason.inner_text().startswith("1 ×")
    reason.press("Enter")
    assert questions(page) == ["q52"]
    assert "the box is down" in page.evaluate("document.activeElement.textContent")
    assert reason.get_attribute("aria-pressed") == "true"
    reason.click()
    assert "52 of 52 questions" in page.inner_text("#counts")
    page.locator("#reasons button", has_text="no answer found").click()
    assert questions(page) == ["q1"]


def test_questions_that_were_lost_to_the_reference_come_first_and_hard_ones_before_easy(
    site: Path, site_page: Open
) -> None:
    page = chosen(site_page(site / "matrix.html", address="#/m/numbers"), sort="lost")
    assert questions(page)[0] == "q11"
    assert questions(page)[:14] == sorted(f"q{n}" for n in range(3, 31, 2))
    chosen(page, ref="single:clerk")
    assert set(questions(page)[:10]) == {f"q{n}" for n in range(32, 52, 2)}
    chosen(page, sort="hardest")
    assert set(questions(page)[:12]) == {f"q{n}" for n in (1, *range(31, 52, 2))}
    chosen(page, sort="name")
    assert questions(page)[:3] == ["q1", "q10", "q11"]


def test_a_reload_of_an_address_gives_the_same_view(site: Path, site_page: Open) -> None:
    page = site_page(site / "matrix.html", address="#/m/numbers")
    chosen(page, mode="different", ref="single:clerk", sort="name", size="medium")
    page.fill("#filters [name=least]", "0.00001")
    page.fill("#filters [name=most]", "1")
    page.press("#filters [name=most]", "Tab")
    address = page.evaluate("location.hash")
    assert "mode=different" in address
    assert "usd=0.00001..1" in address
    again = site_page(site / "matrix.html", address=address)
    for what in ("#counts", "#systems", "#grid"):
        assert again.inner_text(what) == page.inner_text(what)
    for name in ("mode", "ref", "sort", "size", "least", "most"):
        field = f"#filters [name={name}]"
        assert again.input_value(field) == page.input_value(field)
    again.click("#everything")
    assert again.evaluate("location.hash") == "#/m/numbers"
    assert "52 of 52 questions" in again.inner_text("#counts")


def test_dollars_out_of_a_range_leave_nothing_and_no_number_is_marked(
    site: Path, site_page: Open
) -> None:
    page = site_page(site / "matrix.html", address="#/m/numbers?usd=5..")
    assert "0 of 52 questions" in page.inner_text("#counts")
    page.fill("#filters [name=least]", "cheap")
    page.press("#filters [name=least]", "Tab")
    assert page.get_attribute("#filters [name=least]", "aria-invalid") == "true"
    assert "52 of 52 questions" in page.inner_text("#counts")


def test_an_address_that_nobody_wrote_shows_everything(site: Path, site_page: Open) -> None:
    page = site_page(site / "matrix.html", address="#/m/gone?mode=odd&sys=nobody&page=99&ref=%E0")
    assert "52 of 52 questions × 2 of 2 systems" in page.inner_text("#counts")


def test_a_system_is_taken_out_by_its_box_and_the_address_says_who_is_left(
    site: Path, site_page: Open
) -> None:
    page = site_page(site / "matrix.html", address="#/m/numbers")
    page.get_by_role("checkbox", name="single:clerk").uncheck()
    assert "1 of 2 systems" in page.inner_text("#counts")
    assert page.evaluate("location.hash").endswith("?sys=single:sage")
    page.get_by_role("checkbox", name="single:clerk").check()
    assert page.evaluate("location.hash") == "#/m/numbers"
    page.get_by_role("button", name="Show single:sage alone").click()
    assert page.evaluate("location.hash").endswith("?sys=single:sage")


def test_arrow_keys_move_pages_turn_and_enter_opens_a_query(site: Path, site_page: Open) -> None:
    page = site_page(site / "matrix.html", address="#/m/numbers?sort=name")
    assert page.locator("#grid tbody tr").count() == 50
    page.locator("#grid td[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#said").startswith("q10, ")
    page.keyboard.press("PageDown")
    assert page.locator("#grid tbody tr").count() == 2
    assert "page=2" in page.evaluate("location.hash")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    system = page.locator("#grid thead th").nth(1).inner_text()
    last = questions(page)[-1]
    assert page.inner_text("#said").startswith(f"{last}, {system}: ")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/query.html#/q/numbers/{last}/1?sys={system}*")


def test_a_cell_says_what_it_is_and_a_click_opens_its_query(site: Path, site_page: Open) -> None:
    page = site_page(site / "matrix.html", address="#/m/twice")
    board = page.locator("#board")
    names = min(170, round(page.evaluate("document.getElementById('board').clientWidth") * 0.3))
    board.hover(position={"x": names + 4, "y": 132 + 8})
    first = page.inner_text("#said")
    assert "single:sage, epoch 1: right; USD 0.00" in first
    assert " tokens, 1 call, " in first
    board.hover(position={"x": names + 34, "y": 132 + 8})
    assert "single:sage, epoch 2: wrong; USD 0.00" in page.inner_text("#said")
    board.click(position={"x": names + 34, "y": 132 + 8})
    page.wait_for_url(re.compile(r"/query\.html#/q/twice/q\d/2\?sys=single:sage$"))


def test_epochs_are_beside_each_other_in_a_cell(site: Path, site_page: Open) -> None:
    page = site_page(site / "matrix.html", address="#/m/twice?mode=different")
    assert page.locator("#grid td").all_inner_texts() == ["✓✗ 1 of 2"] * 2


def test_scrolling_draws_what_drawing_all_would(site: Path, site_page: Open) -> None:
    page = site_page(site / "matrix.html", Look(height=500), "#/m/numbers")
    first, _ = page.evaluate(SCROLLED, [])
    moved, top = page.evaluate(SCROLLED, [31, 200, -77, 5, 1])
    assert top == 160
    assert moved != first
    page.evaluate(ANEW)
    assert page.evaluate(SCROLLED, []) == [moved, top]


@pytest.mark.parametrize("size", ["large", "medium", "small"])
def test_lines_and_columns_have_names_whatever_the_size_of_a_cell(
    site: Path, site_page: Open, size: str
) -> None:
    page = chosen(site_page(site / "matrix.html", Look(width=390)), size=size)
    page.evaluate(f"async () => {{ await {FRAME}; }}")
    assert all(page.evaluate(INKED)), "the corner, names of systems and names of questions"
    for table in ("#systems", "#grid"):
        heads = page.locator(f"{table} th").evaluate_all("all => all.map((one) => one.scope)")
        assert set(heads) == {"col", "row"}
    title = "numbers, version 1-A (eval), live"
    assert page.locator("[name=block] option").first.inner_text() == title


def test_a_page_without_its_data_says_so(
    site: Path, site_page: Open, watch: Watch, tmp_path: Path
) -> None:
    shutil.copytree(site / "assets", tmp_path / "assets")
    shutil.copy(site / "matrix.html", tmp_path)
    page = site_page(tmp_path / "matrix.html")
    assert "data/index.js is missing" in page.inner_text("#missing")
    assert page.locator("#matrix").is_hidden()
    watch.errors.clear()  # the browser says so as well


def test_without_scripts_the_page_says_where_the_figures_are(site: Path, site_page: Open) -> None:
    page = site_page(site / "matrix.html", Look(javascript=False))
    assert "scripts are off" in page.inner_text("main")
    assert page.locator("#matrix").is_hidden()
    assert page.get_attribute("noscript a", "href") == "downloads/table.csv"
    assert (site / "downloads" / "table.csv").is_file()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_nothing_keeps_people_from_reading_it(site: Path, site_page: Open, dark: bool) -> None:
    assert serious_faults(site_page(site / "matrix.html", Look(dark=dark), "#/m/numbers")) == []


@pytest.mark.parametrize("look", [Look(width=320), Look(scale=4.0)], ids=["narrow", "400 %"])
def test_only_tables_and_the_matrix_scroll_sideways(
    site: Path, site_page: Open, look: Look
) -> None:
    page = site_page(site / "matrix.html", look, "#/m/numbers")
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
