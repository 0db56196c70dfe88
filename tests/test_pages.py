"""What README and docs show works: commands and code run, what cannot run here is parsed."""

import importlib
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from inspect_ai._cli.main import inspect as inspect_command

import podium
from podium.baselines import SYSTEMS as BASELINES
from podium.cli import main
from podium.cli.commands import build_parser
from podium.conductor import SYSTEMS as CONDUCTORS
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.reports.audit import INVARIANTS
from podium.suites import SUITES
from tests import ROOT
from tests.pages import PAGES, PARSE, PRINTED, RUN, Block, blocks, cells
from tests.readme_demo import QUICKSTART, parted, six_rows

README, *DOCS = PAGES
TEXT = "\n".join(page.read_text() for page in PAGES)
LONGEST = 130
"""Lines of README."""


QUICK = ("README", "suites", "systems")
"""Pages that run in `make test`: what a newcomer meets first, and both guides."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=() if page.stem in QUICK else pytest.mark.slow)
        for page in PAGES
    ],
)
def test_what_a_page_shows_runs(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODIUM_DATA", str(tmp_path / "no-data"))
    monkeypatch.syspath_prepend(str(tmp_path))
    names, before = dict[str, Any](), set(sys.modules)
    for block in blocks(page):
        if block.mark == PRINTED:
            printed = cells(capsys.readouterr().out)
            assert [line for line in cells(block.text) if line not in printed] == []
        else:
            use(block, names)
    for name in set(sys.modules) - before:  # a page's own files are of its own folder
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def use(block: Block, names: dict[str, Any]) -> None:
    """Write the file that a block is, or run it where it runs."""
    if block.title:
        Path(block.title).write_text(block.text)
        importlib.invalidate_caches()
    elif block.runs and block.language == "python":
        exec(compile(block.text, "(python of a page)", "exec"), names)
    elif block.runs:
        for command in block.commands:
            assert command[0] == "podium"
            assert main(command[1:]) == 0, command


def marked(page: Path) -> list[Block]:
    return [one for one in blocks(page) if one.language in ("console", "python") and not one.title]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_runs_or_says_why_it_does_not(page: Path) -> None:
    fences = re.findall(r"^ *```\w+", page.read_text(), re.MULTILINE)
    assert len(fences) == len([*blocks(page)])
    unmarked = [one.text for one in marked(page) if not one.runs and len(one.mark) < len(PARSE) + 9]
    assert unmarked == []
    assert all(one.mark == RUN or one.mark.startswith(PARSE) for one in marked(page))


def unread(page: Path) -> list[list[str]]:
    return [words for one in marked(page) if one.mark != RUN for words in one.commands]


@pytest.mark.parametrize(
    "words", [words for page in PAGES for words in unread(page)], ids=lambda words: " ".join(words)
)
def test_a_command_that_cannot_run_here_is_one_that_exists(words: list[str]) -> None:
    if words[0] == "accelerate":  # launches `-m podium` on every card
        words = words[words.index("podium") :]
    reader = READERS[words[0]]
    reader(words[1:])


def read_podium(words: list[str]) -> None:
    args = build_parser().parse_args(words)
    suites, systems = getattr(args, "suite", None), getattr(args, "system", None)
    asked = suites if isinstance(suites, list) else []
    assert {one for one in asked if "/" not in one} <= set(SUITES)  # else an Inspect task
    known = {*BASELINES, *CONDUCTORS, "single", "single:abacus"}
    assert {name.partition("@")[0] for name in systems or ()} <= known
    if getattr(args, "pool", None):
        read_pool(args.pool)


def read_make(words: list[str]) -> None:
    assert all(f"\n{target}:" in (ROOT / "Makefile").read_text() for target in words)


def read_pip(words: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert words[0] == "install"
    assert all(name in extras for name in re.findall(r"\[([\w,-]+)\]", " ".join(words)))


def read_inspect(words: list[str]) -> None:
    name, *rest = words
    inspect_command.commands[name].make_context(name, rest)


def read_script(words: list[str]) -> None:
    source = (ROOT / words[0]).read_text()
    assert all(f'"{word}"' in source for word in words if word.startswith("--"))


READERS = {
    "podium": read_podium,
    "python": read_script,
    "make": read_make,
    "pip": read_pip,
    "inspect": read_inspect,
    "curl": lambda words: None,  # asks the service that the command above it starts
}


def test_readme_is_one_page() -> None:
    assert len(README.read_text().splitlines()) <= LONGEST
    assert len((ROOT / "DECISIONS.md").read_bytes()) <= 12 * 1024


def test_readme_shows_six_rows_of_what_the_quickstart_shows() -> None:
    """CI holds both against a demo that has just run: readme_demo.py."""
    shown = parted(README)[1]
    assert shown == six_rows(parted(QUICKSTART)[1])
    starts = [line.split()[0] for line in shown.splitlines()]
    assert len(starts[starts.index("system") + 1 :]) == 6


def test_code_on_pages_imports_podium_and_nothing_else_of_ours() -> None:
    code = "\n".join(one.text for page in PAGES for one in blocks(page) if one.language == "python")
    found = set(re.findall(r"^(?:from|import) (\w+)", code, re.MULTILINE))
    ours = {"harness", "suites", "baselines", "conductor", "sandbox", "reports"}
    assert "podium" in found
    assert found & ours == set()


def test_every_public_name_is_on_the_page_of_python() -> None:
    page = (ROOT / "docs" / "api.md").read_text()
    assert [name for name in podium.__all__ if f"podium.{name}" not in page] == []


def test_the_pool_on_the_page_is_priced() -> None:
    """Its own page writes and reads it; here its price book has its worker."""
    (pool,) = (one for page in DOCS for one in blocks(page) if one.title == "mine.toml")
    spec = tomllib.loads(pool.text)
    assert spec["workers"][0]["model"] in read_book(spec["prices"]).prices


def test_the_files_of_a_question_are_there() -> None:
    text = (ROOT / "docs" / "question.md").read_text()
    files = re.findall(r"`((?:podium|harness|reports|conductor)/[\w/]+\.py)`", text)
    assert len(files) >= 8
    assert [file for file in files if not (ROOT / file).is_file()] == []


def stems(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.toml"))


def command_names() -> list[str]:
    names = re.findall(r"^    ([a-z]+) ", build_parser().format_help(), re.MULTILINE)
    assert "demo" in names
    return names


def test_every_command_is_on_the_page_of_commands() -> None:
    page = (ROOT / "docs" / "commands.md").read_text()
    assert [name for name in command_names() if f"| `podium {name}` |" not in page] == []


def test_every_invariant_of_the_audit_is_on_its_page_in_order() -> None:
    page = (ROOT / "docs" / "invariants.md").read_text()
    shown = re.findall(r"^\| (I\d+) \| ([^|]+) \|", page, re.MULTILINE)
    assert shown == [(one.id, one.title) for one in INVARIANTS]


@pytest.mark.parametrize("folder", ["pools", "prices"])
def test_every_pool_and_price_book_is_in_the_docs(folder: str) -> None:
    names = stems(ROOT / "harness" / folder)
    assert names
    assert [name for name in names if f"`{name}`" not in TEXT] == []


def test_every_system_is_in_the_docs() -> None:
    names = [*BASELINES, *CONDUCTORS]
    assert [name for name in names if f"`{name}" not in TEXT] == []


def test_every_suite_is_in_the_docs() -> None:
    assert [name for name in SUITES if f"`{name}`" not in TEXT] == []
