"""The first page: every figure is table.json's, and all of it can be read without a script."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag

from podium.__main__ import main
from podium.harness.ledger.manifest import read_manifest
from podium.harness.prices import Book
from podium.harness.suite import Question, Split
from podium.reports.blocks import ReportOptions
from podium.reports.render import percent, points, usd
from podium.reports.report import Report, report_of
from podium.reports.site import SiteOptions, refuse_foreign_site, write_site
from podium.reports.site.comparison import COLUMNS, reference_files
from podium.reports.site.index import site_blocks
from podium.reports.site.pages import VENDOR
from tests import ROOT
from tests.harness.runs import Crew, Exam, sit, steps
from tests.reports.small_reports import interrupted_run

FREE = Book(name="none", date="undated", source="a test", prices={}, sha256="0" * 64)
WITHOUT_NETWORK = """
import sys
def refuse(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.bind"):
        raise OSError(f"there is no network here: {event}")
sys.addaudithook(refuse)
from podium.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def page_of(folder: Path) -> BeautifulSoup:
    return BeautifulSoup((folder / "index.html").read_text(encoding="utf-8"), "html.parser")


def said(tag: Tag | None) -> str:
    assert tag is not None
    return " ".join(tag.get_text(" ", strip=True).split())


def alerts(tmp_path: Path, *dirs: Path, versions: Mapping[str, str] | None = None) -> str:
    """Return what the page of some logs warns of; the plot is left out, for it takes a while."""
    folders = [*dirs] or [tmp_path / "logs"]
    found = report_of(folders)
    found = replace(found, contents={**found.contents, "plot.png": ""})
    write_site(folders, found, tmp_path / "site", SiteOptions(versions=versions or {}))
    listed = page_of(tmp_path / "site").select_one(".alert")
    return said(listed) if listed else ""


@pytest.fixture(scope="module")
def site(logs: Path, made: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site([logs], made, tmp_path_factory.mktemp("pages") / "site").folder


@pytest.fixture(scope="module")
def page(site: Path) -> BeautifulSoup:
    return page_of(site)


def cells_of(table: Tag) -> Iterator[tuple[int, str, Tag]]:
    """Yield each cell of a row that shows a column of table.csv, with the row's number."""
    assert table.thead is not None
    assert table.tbody is not None
    heads = [str(head.get("data-field", "")) for head in table.thead.find_all("th")]
    for line in table.tbody.find_all("tr"):
        cells = line.find_all(["th", "td"])
        for field, cell in zip(heads, cells, strict=True):
            if field and field != "system":
                yield int(str(line["data-row"])), field, cell


@pytest.mark.slow
def test_every_figure_is_that_of_table_json(page: BeautifulSoup, made: Report) -> None:
    rows: list[dict[str, Any]] = json.loads(made.files[2].read_text())["rows"]
    seen: set[str] = set()
    for table in page.select("table.comparison"):
        for place, field, cell in cells_of(table):
            seen.add(field)
            value, shown = rows[place][field], str(cell["data-value"])
            if isinstance(value, float):
                assert float(shown) == pytest.approx(value, rel=1e-5, abs=1e-6)
                assert is_shown(field, value, said(cell))
            else:
                assert shown == ("" if value is None else str(value))
    assert {column.field for column in COLUMNS} <= seen


def is_shown(field: str, value: float, text: str) -> bool:
    """Say whether a cell's text is its figure, as a reader would round it."""
    if field in ("accuracy", "paired_diff", "regret_accuracy"):
        return text in ("", percent(value), points(value))
    figure = float(text.split("–")[0].removesuffix(" %").replace(",", "").split()[0])
    return figure == pytest.approx(value, rel=0.005, abs=0.5 if abs(value) >= 1 else 5e-4)


def test_the_systems_stand_in_the_order_of_the_report(page: BeautifulSoup, made: Report) -> None:
    shown = [str(line["data-system"]) for line in page.select("table.comparison tbody tr")]
    assert shown == [row.system for row in made.rows]


def test_a_page_says_first_what_was_compared_and_what_so_many_questions_can_show(
    page: BeautifulSoup, made: Report
) -> None:
    assert said(page.select_one(".lead")) == "5 systems on 6 questions of numbers (live, each " + (
        "asked 2 times)."
    )
    block = page.select_one(".block")
    assert block is not None
    text = said(block)
    assert text.index(made.shown.fields[0].said) < text.index("accuracy %")
    assert said(page.select_one(".labels .badge.live")) == "live"
    assert "at a provider that was paid or on an own server" in said(page.select_one(".labels"))


def test_a_table_has_what_those_who_listen_need(page: BeautifulSoup) -> None:
    (table,) = page.select("table.comparison")
    assert table.caption is not None
    assert {str(head["scope"]) for head in table.select("thead th")} == {"col"}
    assert {str(head["scope"]) for head in table.select("tbody th")} == {"row"}
    assert [said(head) for head in table.select("[aria-sort=descending]")] == ["accuracy %"]
    bars = table.select("tbody svg.bar")
    assert all(str(bar["aria-label"]).startswith("95 % interval") for bar in bars)
    words = {said(word) for word in table.select(".verdict")}
    assert words <= {"better", "worse", "equivalent", "inconclusive", "reference"}


def test_eight_columns_are_there_at_once_and_the_rest_on_demand(page: BeautifulSoup) -> None:
    (table,) = page.select("table.comparison")
    at_once = [said(head) for head in table.select("thead th:not(.more)")]
    assert at_once == [
        "system", "accuracy %", "95 % interval 0 50 100", "difference", "verdict", "USD/query",
        "tokens out", "calls", "steps", "seconds",
    ]  # fmt: skip
    more = {said(head) for head in table.select("thead th.more")}
    assert {"no answer", "invalid plans", "graded/asked", "paid/query", "won/lost"} <= more


def test_footnotes_are_numbered_and_hold_what_limits_a_row(
    page: BeautifulSoup, made: Report
) -> None:
    for line in page.select("table.comparison tbody tr"):
        row = made.rows[int(str(line["data-row"]))]
        notes = [page.select_one(str(link["href"])) for link in line.select("sup a")]
        assert [said(note) for note in notes] == [one for one in row.notes.split("; ") if one]


def test_no_page_has_style_or_script_in_a_tag(site: Path) -> None:
    for path in site.glob("*.html"):
        found = BeautifulSoup(path.read_text(), "html.parser")
        assert not found.select("[style], style, script:not([src])")


def test_every_link_of_the_page_leads_to_a_file_or_a_place_of_it(
    page: BeautifulSoup, site: Path
) -> None:
    for link in page.select("[href], [src]"):
        path, _, place = str(link.get("href") or link.get("src")).partition("#")
        assert (site / path).exists() if path else page.find(id=place) is not None


def test_the_page_shows_the_audit_and_how_to_make_the_same_table(
    page: BeautifulSoup, logs: Path, made: Report
) -> None:
    assert page.find(string=f"podium report {logs.name} --site site")
    digest = sha256(made.files[2].read_bytes()).hexdigest()
    assert said(page.select_one("#digest")) == f"sha256:{digest}"
    assert len(page.select(".status")) == 18


def test_the_command_on_the_page_names_every_option_that_moves_the_table(
    logs: Path, made: Report, tmp_path: Path
) -> None:
    wanted = ReportOptions(vs="oracle", epochs=1, equivalence=0.02, columns=("accuracy", "calls"))
    write_site([logs], replace(made, wanted=wanted), tmp_path / "site")
    told = "--vs oracle --epochs 1 --equivalence 2 --columns accuracy,calls --site site"
    assert page_of(tmp_path / "site").find(string=f"podium report {logs.name} {told}")


def test_the_same_logs_give_the_same_bytes(
    site: Path, logs: Path, made: Report, tmp_path: Path
) -> None:
    again = write_site([logs], made, tmp_path / "again").folder
    names = [path.relative_to(site) for path in site.rglob("*") if path.is_file()]
    assert len(names) > 10
    for name in names:
        assert (again / name).read_bytes() == (site / name).read_bytes(), name


def test_a_run_that_was_interrupted_says_how_much_is_there(tmp_path: Path) -> None:
    interrupted_run(tmp_path / "logs")
    assert "interrupted, 2 of 4 answers are there" in alerts(tmp_path)


def test_a_manifest_that_cannot_be_read_is_said_and_stops_no_page(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    (tmp_path / "logs" / "MANIFEST.json").write_text("{broken")
    assert "I14 (integrity)" in alerts(tmp_path)


def test_a_run_without_a_graded_question_says_so(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", crew=Crew(sage=lambda heard: "broken"))
    text = alerts(tmp_path)
    assert "no question was graded, so there is nothing to compare" in text
    assert "4 answers could not be scored: the matrix page lists the reasons; " in text
    assert "podium regrade --unscored grades them again" in text


def test_a_run_without_prices_says_that_it_has_no_dollars(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", prices=FREE.as_json())
    assert "no dollars: 4 calls have no price" in alerts(tmp_path)


def test_a_run_of_another_version_of_a_suite_says_so(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    assert "numbers 1-A (now 2-A)" in alerts(tmp_path, versions={"numbers": "2-A"})
    assert alerts(tmp_path, versions={"numbers": "1-A"}) == ""


def test_a_run_that_was_edited_fails_its_audit_at_the_top_of_the_page(tmp_path: Path) -> None:
    run = tmp_path / "logs"
    words = "run --suite practice-integer --system single:sage --limit 1 --display none"
    assert main([*words.split(), "--log-dir", str(run)]) == 0
    assert alerts(tmp_path) == ""
    assert page_of(tmp_path / "site").find(string=read_manifest(run / "MANIFEST.json").root)
    (journal,) = run.glob("ledger/*/*.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b'"prompt_bytes":', b'"prompt_bytes":1', 1))
    assert "The audit of logs fails: I14 (integrity)" in alerts(tmp_path)


def test_a_system_whose_name_attacks_is_a_text(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:<script>\u202ex</script>", steps("sage"))
    assert alerts(tmp_path) == ""
    assert "<script>\\u202ex" in said(page_of(tmp_path / "site").select_one("tbody th"))


def test_files_of_others_are_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "site" / "notes.txt"
    own.parent.mkdir()
    own.write_text("mine")
    absent = str(tmp_path / "absent")
    assert main(["report", absent, "--site", str(own.parent)]) == 2
    assert "notes.txt was not written by podium" in capsys.readouterr().err
    assert own.read_text() == "mine"
    assert main(["report", absent, "--out", f"{absent}/x", "--site", absent]) == 2
    assert "Name another --out directory" in capsys.readouterr().err


def test_a_site_replaces_an_earlier_one_and_leaves_nothing_of_it(
    logs: Path, made: Report, tmp_path: Path
) -> None:
    out = tmp_path / "site"
    write_site([logs], replace(made, contents={**made.contents, "old/table.tex": "old"}), out)
    assert (out / "downloads" / "old" / "table.tex").is_file()
    (out / "index.html.new").write_text("what a killed podium left")
    write_site([logs], made, out)
    assert not (out / "downloads" / "old").exists()
    refuse_foreign_site(out)


def test_a_listing_cannot_name_files_outside_of_its_site(
    logs: Path, made: Report, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "mine.txt").write_text("mine")
    listing = {"schema": "podium-site-1", "files": ["../mine.txt", str(tmp_path / "mine.txt")]}
    (tmp_path / "site" / "site.json").write_text(json.dumps(listing))
    write_site([logs], made, tmp_path / "site")
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_what_learning_cost_is_there_where_somebody_learnt(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    sit(logs, "best-single", args={"worker": "sage", "chosen_on": "train", "n": 4})
    tried: dict[str, Any] = {"purpose": "selection", "split": "train", "args": {"worker": "sage"}}
    sit(logs / "selection", "single:sage", **tried)
    assert alerts(tmp_path) == ""
    lines = page_of(tmp_path / "site").select("section[aria-labelledby=learning] tbody tr")
    learnt = report_of([logs]).shown.learning
    for line, one in zip(lines, learnt, strict=True):
        assert said(line).startswith(one.row.system)
        assert all(usd(each) in said(line) for each in (one.usd, *one.usd_at))
    assert [one.row.system for one in learnt] == ["best-single"]


def test_two_suites_have_a_block_each_and_rows_over_both(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    sit(tmp_path / "logs", "single:sage", exam=Exam(name="others"))
    assert alerts(tmp_path) == ""
    found = page_of(tmp_path / "site")
    assert [said(one) for one in found.select(".block h2")] == ["numbers live", "others live"]
    (one,) = report_of([tmp_path / "logs"]).shown.across
    (line,) = found.select("section[aria-labelledby=across] tbody tr")
    cells = [said(cell) for cell in line.find_all("td") if cell.find("svg") is None]
    assert cells[:3] == [percent(one.accuracy), usd(one.usd_per_query), usd(one.usd_total)]


def test_a_folder_holds_other_references_of_blocks_that_are_not_too_large(
    made: Report, page: BeautifulSoup, site: Path
) -> None:
    numbers = str(page.select(".block")[0]["data-references"]).split()
    assert [made.rows[int(one)].system for one in numbers] == [
        row.system for row in made.rows if row.verdict != "reference"
    ]
    files = sorted(path.stem for path in (site / "data" / "against").rglob("*.js"))
    assert files == sorted(numbers)
    (block,) = site_blocks(made.shown)
    large = replace(block, questions=tuple(map(str, range(100_000))))
    assert not reference_files(made, [large])
    assert len(reference_files(made, [large], served=True)) == len(numbers)


@dataclass(frozen=True, slots=True)
class ExamOfSubjects(Exam):
    """Five questions of one subject and two of another."""

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the questions."""
        return [
            Question(id=f"q{n}", text=f"Say {n}", kind="integer", target=str(n), topic=topic)
            for n, topic in enumerate(["many"] * 5 + ["few"] * 2)
        ]


def test_a_subject_of_fewer_than_five_questions_has_its_share_and_no_bar(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", exam=ExamOfSubjects())
    assert alerts(tmp_path) == ""
    (table,) = page_of(tmp_path / "site").select("details table:has(th[colspan])")
    assert [said(head) for head in table.select("th[colspan]")] == ["few n = 2", "many n = 5"]
    cells = table.select("tbody td")
    assert [said(cells[at]) for at in (0, 2)] == ["100.0", "100.0"]
    assert [cell.find("svg") is not None for cell in cells] == [False, False, False, True]


def test_a_page_has_no_section_without_data(page: BeautifulSoup) -> None:
    assert [page.find(id=name) for name in ("across", "learning", "published")] == [None] * 3


@pytest.mark.slow
def test_an_archive_on_another_path_without_a_network_gives_the_table_that_the_page_names(
    logs: Path, made: Report, site: Path, tmp_path: Path
) -> None:
    archive = tmp_path / "elsewhere" / logs.name
    copytree(logs, archive)
    command = [sys.executable, "-c", WITHOUT_NETWORK, "report", logs.name, "--site", "site"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=archive.parent, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "To look at: file://" in done.stdout
    table = (archive / "report" / "table.json").read_bytes()
    assert f"sha256:{sha256(table).hexdigest()}" == said(page_of(site).select_one("#digest"))
    assert (archive.parent / "site" / "index.html").read_bytes() == (
        site / "index.html"
    ).read_bytes()


def test_vendored_files_are_those_that_are_pinned_and_named_with_their_licence() -> None:
    pinned = tomllib.loads((VENDOR / "pinned.toml").read_text())
    named = (VENDOR / "THIRD_PARTY.txt").read_text()
    for name, one in pinned.items():
        assert sha256((VENDOR / one["file"]).read_bytes()).hexdigest() == one["sha256"]
        assert f"{name}-{one['version']}" in named.replace("observablehq-plot", "plot")
    scripts = {path.name for path in (ROOT / "reports/site/vendor").glob("*.js")}
    assert scripts == {one["file"] for one in pinned.values()}
