"""The command line: help, version, completion, near misses, JSON, and paths in the way."""

import json
import os
import shlex
import subprocess
import sys
from argparse import ArgumentParser
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from podium.cli import main
from podium.cli.arguments import every_parser
from podium.cli.commands import COMMANDS, build_parser
from podium.cli.completion import every_action, known_names
from podium.cli.list_commands import whole_catalogue
from podium.harness.run.catalogue import ANY_SINGLE
from podium.harness.run.preflight import GROUPS

ROOT = Path(__file__).parents[3]


def said(capsys: pytest.CaptureFixture[str], words: str) -> tuple[int, str, str]:
    """Return the exit code of a command, and what it wrote to both streams."""
    try:
        code: Any = main(words.split())
    except SystemExit as done:
        code = done.code
    out, err = capsys.readouterr()
    return code or 0, out, err


def test_a_bare_podium_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "")
    assert (code, err) == (0, "")
    assert all(name in out for name in COMMANDS)
    assert said(capsys, "--help") == (code, out, err)


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "--version") == (0, f"podium {version('podium')}\n", "")


PARSERS = [*every_parser(build_parser())]


@pytest.mark.parametrize("parser", PARSERS, ids=lambda parser: parser.prog)
def test_every_help_fits_80_columns_and_ends_with_a_command_that_parses(
    parser: ArgumentParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    *lines, last = parser.format_help().splitlines()
    assert max(map(len, (*lines, last))) <= 80
    example = last.removeprefix("for example: ")
    assert f"{example} ".startswith(f"{parser.prog} ")
    command = build_parser().parse_args(shlex.split(example)[1:]).command_name
    assert command == (parser.prog.split()[1:] or ["demo"])[0]


@pytest.mark.parametrize("words", ["--help", "run --help", "completion bash"])
def test_help_and_completion_import_no_inspect(words: str) -> None:
    code = (
        "import sys\nfrom podium.cli import main\n"
        f"try: main({words.split()!r})\nexcept SystemExit: pass\n"
        "assert not {'inspect_ai', 'numpy', 'suites'} & {*sys.modules}"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_run_imports_no_client_of_a_provider_that_it_does_not_ask(tmp_path: Path) -> None:
    words = [
        "run",
        "--suite",
        "practice-integer",
        "--pool",
        "rehearsal",
        "--system",
        "single:sage",
        "--limit",
        "1",
    ]
    code = (
        "import sys\nfrom podium.cli import main\n"
        f"assert main({[*words, '--log-dir', str(tmp_path / 'run')]!r}) == 0\n"
        "assert not {'openai', 'anthropic'} & {*sys.modules}\n"
        "from inspect_ai.model import _assistant_internal as kept\n"
        "assert not kept._HAS_OPENAI and not kept._HAS_ANTHROPIC\n"
        "import inspect_ai.model._providers.anthropic, inspect_ai.model._openai_responses\n"
        "assert kept._HAS_OPENAI and kept._HAS_ANTHROPIC\n"  # a sample has a place for both again
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- completion ---------------------------------------------------------------------------------

ASK_BASH = """
source /dev/stdin <<< "$SCRIPT"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
$(complete -p podium | sed 's/.*-F //;s/ .*//')
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["pri"], {"prices"}),
        (["prices", ""], {"list", "verify", "diff", "snapshot", "update", "export"}),
        (["run", "--max-u"], {"--max-usd", "--max-usd-per-query"}),
        (["run", "--suite", "practice-i"], {"practice-integer"}),
        (["run", "--system", "moa-l"], {"moa-lite"}),
        (["workers", "--pool", "rehearsal-d"], {"rehearsal-deep", "rehearsal-dominant"}),
        (["prices", "list", "pap"], {"paper-2025-12-04"}),
        (["train", "small"], {"small-gpu"}),
    ],
    ids=lambda words: " ".join(sorted(words)),
)
def test_bash_completes_commands_options_and_names(
    typed: list[str], offered: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    _, script, _ = said(capsys, "completion bash")
    words = ["bash", "-c", ASK_BASH, "bash", "podium", *typed]
    done = subprocess.run(
        words, env={"SCRIPT": script, "PATH": "/usr/bin:/bin"}, capture_output=True
    )
    assert {*done.stdout.decode().split()} == offered, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_told_the_same(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, script, _ = said(capsys, f"completion {shell}")
    assert all(name in script for name in (*COMMANDS, "max-usd", "gpqa-diamond", "moa-lite"))


def test_the_names_that_are_completed_are_those_there_are() -> None:
    known, names = whole_catalogue(), known_names()
    assert {*names["suite"]} == {*known.suites}
    assert {*names["system"]} == {*known.systems, *GROUPS, "single"} - {ANY_SINGLE}


# --- near misses --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "near"),
    [
        ("audti d", "audit"),
        ("prices lst", "list"),
        ("run --sute aime25 --log-dir d", "--suite"),
        ("run --suit aime25 --log-dir d", "--suite"),
        ("report d --derivd", "--derived"),
        ("ledger export d --out e --format paquet", "parquet"),
        ("suites aime24", "aime25"),
        ("data verify humanevl", "humaneval"),
        ("systems moa-lit", "moa-lite"),
        ("run --suite practice-integer --system contestant --log-dir d", "contestants"),
        ("run --suite practice-integer --system single:abacu --log-dir d", "abacus"),
        ("run --suite practice-integer --train-on practice-integr --log-dir d", "practice-integer"),
        ("grade --suite practice-codes --replies r --out o", "practice-code"),
        ("reward serve --suite practice-codes", "practice-code"),
        ("workers --pool rehersal", "rehearsal"),
        ("prices diff none rehersal", "rehearsal"),
        ("train practice-cp", "practice-cpu"),
        ("ablate routing-onli", "routing-only"),
        ("route routerbnch", "routerbench"),
    ],
)
def test_a_slip_of_the_hand_is_answered_with_what_was_meant(
    words: str, near: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = said(capsys, words)
    assert (code, out) == (2, "")
    assert err.partition(": ")[2].startswith(f"Did you mean '{near}'? ")
    assert err.count("\n") == 1


# --- listings -----------------------------------------------------------------------------------

LISTINGS = {
    "suites": lambda found: [one["suite"] for one in found],
    "suites math500": lambda found: found["title"] + found["licence"],
    "systems": lambda found: [one["system"] for one in found],
    "systems moa-lite": lambda found: found["solver"] + found["source"],
    "workers": lambda found: [one["model"] for one in found["workers"]],
    "data verify practice-code": lambda found: [*found, found["practice-code"][0]["said"]],
    "prices list": lambda found: [one["book"] for one in found],
    "prices list rehearsal": lambda found: [*found["usd_per_mtok"], found["sha256"]],
    "prices verify rehearsal none": lambda found: [one["book"] for one in found],
    "prices diff none rehearsal": lambda found: [one["model"] for one in found],
    "train --list": lambda found: found,
    "ablate --list": lambda found: [one["name"] for one in found],
    "route --list": lambda found: [one["holds"] for one in found],
    "doctor": lambda found: [found["what"], *found["notes"]],
    "sandbox status": lambda found: [one["says"] for one in found],
}
"""Each command that lists something, and what of its JSON its text says, too."""


@pytest.mark.parametrize("words", LISTINGS)
def test_a_listing_is_json_of_the_same_facts(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")  # no cell is folded
    code, text, _ = said(capsys, words)
    code_too, found, _ = said(capsys, f"{words} --json")
    facts = LISTINGS[words](json.loads(found))
    assert code == code_too
    assert facts
    plain = " ".join(text.split())
    assert [fact for fact in facts if " ".join(fact.split()) not in plain] == []


def test_every_command_with_json_is_in_that_table() -> None:
    lists = {command for command, action in every_action(build_parser()) if action.dest == "json"}
    assert lists - {"audit"} == {words.split()[0] for words in LISTINGS}  # it writes a file


# --- paths --------------------------------------------------------------------------------------

ONE = "--suite practice-integer --system single:abacus --limit 1"
NO_FILE = "{0}/no.toml is not there: give the path of a {1}, or a name: "
REFUSED = {
    "workers --pool {0}/no.toml": NO_FILE.replace("{1}", "pool"),
    "workers --pool {0}/dir.toml": "{0}/dir.toml is no file: give the path of a pool, or a name: ",
    f"run {ONE} --pool {{0}}/no.toml --log-dir {{0}}/new": NO_FILE.replace("{1}", "pool"),
    "train {0}/no.toml": NO_FILE.replace("{1}", "training config"),
    "prices list {0}/no.toml": NO_FILE.replace("{1}", "price book"),
    "reprice {1} --book {0}/no.toml": NO_FILE.replace("{1}", "price book"),
    "ablate --file {0}/no.toml": "The ablation file {0}/no.toml does not exist. Give another --"
    "file.",
    f"run {ONE} --log-dir {{0}}/file": "{0}/file is not a directory; name another --log-dir.",
    f"run {ONE} --dry-run --log-dir {{0}}/file/x": "{0}/file is not a directory; name another "
    "--log",
    f"run {ONE} --log-dir /proc/podium": "/proc is not writable; name another --log-dir.",
    "demo --out /proc/podium": "/proc is not writable; name another --out.",
    "report {1} --out /proc/podium": "/proc is not writable; name another --out directory.",
    "record {1} --out /proc/podium/t.jsonl": "/proc is not writable; name another --out.",
    "redact {1} --out {0}/file": "{0}/file is not a directory; name another --out.",
    "train practice-cpu --out /proc/podium": "/proc is not writable; name another --out.",
    "ablate --out /proc/podium": "/proc is not writable; name another --out directory.",
    "ledger export {1} --out {0}/file/x": "{0}/file is not a directory; name another --out.",
    "reprice {1} --book none --out /proc/x": "/proc is not writable; name another --out.",
    "manifest key --out /proc/podium/k": "/proc is not writable; name another --out.",
    "audit {1} --json /proc/x.json": "/proc is not writable; name another --json.",
    "route aime25 --router router-knn --save /proc/x": "/proc is not writable; name another",
    "reward serve --suite mbpp --pool rehearsal --log-dir {0}/file": "{0}/file is not a "
    "directory; ",
    "grade --suite mbpp --replies {0} --out {0}/o.jsonl": "{0} is a directory; name a file.",
    "grade --suite mbpp --replies {0}/file --out /proc/o": "/proc is not writable; name ano",
    **{
        f"{words} {{0}}/no": "There is no "
        for words in (
            *("report", "power --from", "redact --out o", "regrade", "audit", "manifest write"),
            *("ledger export --out o", "manifest verify", "reprice --book none"),
        )
    },
    **{
        f"{words} {{0}}/file": "{0}/file is not an .eval log. Name a log, or the directory of a "
        "run."
        for words in ("report", "regrade", "audit", "ledger export --out o", "reprice --book none")
    },
    "manifest verify {0}/file": "There is no directory {0}/file. Give the one that `podium run` wr",
    "ablate --table --out {0}/no": "There is no folder {0}/no. Give the one that `podium ablate` w",
    "train --plot {0}/no": "it has no metrics.jsonl; name a folder that `podium train` wrote.",
}
"""What cannot be read or written, and the sentence. /proc takes no file, from root neither."""


@pytest.mark.slow
@pytest.mark.parametrize("words", REFUSED)
def test_a_path_that_does_not_work_is_named_with_the_fix(
    words: str,
    logs: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("kept")
    (tmp_path / "dir.toml").mkdir()
    code, out, err = said(capsys, words.format(tmp_path, logs))
    assert (code, out) == (2, "")
    assert err.startswith("podium: ")
    assert err.count("\n") == 1
    assert REFUSED[words].format(tmp_path) in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dir.toml", "file"]
    assert (tmp_path / "file").read_text() == "kept"


def test_a_doctor_says_what_a_run_would_refuse(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = said(capsys, f"doctor {ONE} --log-dir /proc/podium")
    assert code == 1
    assert "- /proc is not writable; name another --log-dir." in out


@pytest.mark.parametrize("words", [*LISTINGS, "data list", "workers --pool paper-constrained"])
def test_a_listing_is_as_wide_as_the_terminal(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    folded = said(capsys, words)[1].splitlines()
    assert [line for line in folded if len(line) > 80 and " " in line.strip()] == []


def test_a_pipe_gets_whole_lines() -> None:
    row = ["long " * 60] * 3
    code = f"from podium.harness.text import columns; print(columns({row}, [{row}]))"
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert [line.split() for line in done.stdout.splitlines()] == [["long"] * 180] * 2


def test_json_goes_to_standard_output_or_beside_the_text_into_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "suite.json"
    text, printed = said(capsys, "suites math500"), said(capsys, "suites math500 --json")
    assert said(capsys, "suites --json math500") == printed  # no PATH, for it ends in no .json
    assert said(capsys, f"suites math500 --json {place}") == text
    assert place.read_text() == printed[1].rstrip("\n")
    code, _, err = said(capsys, f"suites math500 --json {place}")
    assert (code, f"{place} already exists" in err) == (2, True)
