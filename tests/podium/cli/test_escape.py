"""Escapes and HTML in every string that others write: none reaches a terminal or a page."""

import contextlib
import io
import json
import re
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.harness.text import escape_controls, escape_markdown, markdown_cell, say
from tests.podium.cli.hostile_files import BOOK, prepared

EVIL = "\x1b[31m\x07\x9b2J\u202e\u200b\u2060\U000e0041<img src=x onerror=alert(1)>|$\\frac"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\U000e0041]")
TAG = re.compile(r"<(?!!-- podium)[A-Za-z/!?]")
SHAPE = frozenset((
    "version", "status", "created", "event", "type", "role", "uuid", "id", "task_id", "eval_id",
    "run_id", "span_id", "parent_id", "kind", "scope", "purpose", "label", "split", "prompt",
    "schema", "timestamp", "completed", "started", "started_at", "completed_at", "updated_at",
    "at", "pid", "call", "hash", "prev", "data_revision", "stop_reason", "billable", "input",
    "output", "source", "usd", "list_usd", "paid", "usd_list", "service", "finished", "sha256",
    "pool_sha256", "book_sha256", "prompt_sha256", "output_sha256", "dates", "book", "event_id",
    "span", "model_event", "suite_version", "evidence", "date", "retrieved", "action", "root",
    "written", "path", "last", "rest", "samples", "value", "working_start", "type_", "name",
    "overflows", "draws",
))  # fmt: skip
"""What a reader must know to go on: who changes it is refused, in a sentence."""


def planted(value: Any, key: str = "") -> Any:
    """Return JSON with something evil behind every string whose key is not of its shape."""
    if isinstance(value, dict):
        return {name: planted(one, name) for name, one in value.items()}
    if isinstance(value, list):
        return [planted(one, key) for one in value]
    free = isinstance(value, str) and key not in SHAPE and not key.startswith("usd")
    return value + EVIL if free else value


def everywhere(value: Any, key: str = "") -> Any:
    """Return JSON with something evil behind every string."""
    if isinstance(value, dict):
        return {name: everywhere(one) for name, one in value.items()}
    if isinstance(value, list):
        return [everywhere(one) for one in value]
    return value + EVIL if isinstance(value, str) else value


Plant = Callable[[Any], Any]


def plant_log(path: Path, plant: Plant) -> None:
    """Change every member of an Inspect log."""
    made = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w") as new:
        for name in old.namelist():
            new.writestr(name, json.dumps(plant(json.loads(old.read(name)))))
    path.write_bytes(made.getvalue())


def plant_run(folder: Path, plant: Plant) -> None:
    """Change the logs, journals, experiment and manifest of a run, and the cards of a pool."""
    for path in folder.glob("run/**/*.eval"):
        plant_log(path, plant)
    for path in folder.glob("run/ledger/*/*.jsonl"):
        lines = [plant(json.loads(line)) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for path in (folder / "run" / "experiment.json", folder / "run" / "MANIFEST.json"):
        path.write_text(json.dumps(plant(json.loads(path.read_text()))))
    evil = EVIL.encode("unicode_escape").decode().replace("\\x", "\\u00").replace('"', "")
    (folder / "book.toml").write_text(
        BOOK.replace("a test", evil).replace("abacus", f"abacus{evil}")
        + f'[usd_per_mtok."rehearsal/abacus"]\ninput = "1"\noutput = "3"\nsource = "{evil}"\n'
    )
    pool = (folder / "pool.toml").read_text()
    (folder / "pool.toml").write_text(f'description = "{evil}"\n' + pool.replace("adds up", evil))


COMMANDS = (
    "report {d}/run --out {d}/out/report --derived",
    "audit {d}/run",
    "audit {d}/run --query practice-integer-eval-0001",
    "audit {d}/run --query {q}",
    "audit {d}/run --invoice {d}/invoice-csv",
    "reprice {d}/run --book {d}/book.toml",
    "reprice {d}/run --book rehearsal",
    "ledger export {d}/run --out {d}/out/md --format md",
    "ledger export {d}/run --out {d}/out/csv --format csv",
    "ledger sql {d}/run select|*|from|queries --format csv",
    "export latex {d}/run --out {d}/out/latex",
    "ledger sql {d}/run select|*|from|queries",
    "ledger sql {d}/run select|*|from|calls --format json",
    "ledger sql {d}/run nonsense\x1b[31m",
    "prices verify {d}/book.toml",
    "prices list {d}/book.toml",
    "prices diff {d}/book.toml rehearsal",
    "workers --pool {d}/pool.toml",
    "doctor --pool {d}/pool.toml",
    "systems",
    "systems no\x1b[31msuch",
    "suites",
    "suites no\x1b[31msuch",
    "manifest verify {d}/run",
    "manifest write {d}/run",
    "power --from {d}/run",
    "record {d}/run --out {d}/out/tape.jsonl",
    "regrade {d}/run --all",
    "redact {d}/run --out {d}/out/copies",
    "no\x1b[31msuch",
    "run --suite practice-integer --system s\x1b[31m --log-dir {d}/run --pool {d}/pool.toml",
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("escapes") / "files"
    prepared(folder)
    return folder


def said(command: str, folder: Path) -> tuple[object, str]:
    """Return the exit code and all output of a command."""
    query = f"practice-integer-eval-0001{EVIL}"
    words = [word.replace("|", " ").format(d=folder, q=query) for word in command.split(" ")]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code: object = main(words)
        except SystemExit as done:
            code = done.code
    return code, out.getvalue() + err.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("plant", [planted, everywhere], ids=["texts", "every-string"])
def test_no_command_prints_a_control_byte_that_a_run_a_book_or_a_pool_holds(
    files: Path, tmp_path: Path, plant: Plant
) -> None:
    folder = tmp_path / "files"
    shutil.copytree(files, folder)
    plant_run(folder, plant)
    codes: dict[str, object] = {}
    for command in COMMANDS:
        codes[command], text = said(command, folder)
        assert text, command
        assert not RAW.search(text), (command, RAW.findall(text), text[:400])
        assert codes[command] in (0, 1, 2), command
    for kind in ("csv", "tex", "bib"):
        for path in (folder / "out").rglob(f"*.{kind}"):
            assert not RAW.search(path.read_text()), path
    pages = [*(folder / "out").rglob("*.md")]
    for page in pages:
        text = page.read_text()
        assert not RAW.search(text), page
        assert not TAG.search(text), (page, TAG.findall(text))
    for page in (folder / "out").rglob("*.html"):
        assert "<img" not in page.read_text()
    if plant is planted:  # the rest are refusals: of names that are none, and of damaged logs
        refused = [command for command, code in codes.items() if code == 2]
        assert {page.name for page in pages} >= {"table.md", "queries.md", "schema.md"}, refused
        tables = {path.name for path in (folder / "out").rglob("*.csv")}
        assert tables == {"table.csv", "calls.csv", "queries.csv"}, refused
        assert len(refused) < 11, refused


def test_what_would_steer_a_terminal_is_spelt_out_and_all_else_stays() -> None:
    spelt = "\\u001b[31m\\u0007\\u009b2J\\u202e\\u200b\\u2060\\udb40\\udc41"
    assert escape_controls(EVIL) == f"{spelt}<img src=x onerror=alert(1)>|$\\frac"
    assert escape_controls("Zürich\t日本 ×\r\nnext") == "Zürich\t日本 ×\nnext"
    assert escape_controls("\ud800") == "\\ud800"


def test_json_that_is_printed_stays_json_of_the_same_value() -> None:
    text = json.dumps({"a": "x\u009by\u202e\x1b"}, ensure_ascii=False)
    assert json.loads(escape_controls(text)) == {"a": "x\u009by\u202e\x1b"}


def test_markdown_keeps_figures_and_loses_tags_entities_and_scripts() -> None:
    assert escape_markdown("p <0.01, a < b & c") == "p <0.01, a < b & c"
    assert (
        escape_markdown("<b>&lt;[x](javascript:alert)") == "&lt;b>&amp;lt;[x]\\(javascript:alert)"
    )
    assert markdown_cell("a|b\nc") == "a\\|b c"


def test_a_stream_that_lacks_a_character_gets_it_spelt_out() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii", write_through=True)
    say("naïve – 日本", file=stream)
    assert raw.getvalue() == b"na\\xefve \\u2013 \\u65e5\\u672c\n"
