"""Every option that names a file to write refuses what is none: a pipe, a device, a link, a folder.

Nothing is read before, so what the commands would read need not be there.
"""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.files import refuse_unwritable, refuse_unwritable_file, replace_file

COMMANDS = {
    "grade": "grade --suite mmlu --replies {d}/none --out",
    "record": "record {d}/none --out",
    "record-batch": "record {d}/none --requests {d}/none --out",
    "audit": "audit {d}/none --json",
    "audit-query": "audit {d}/none --query x --json",
    "audit-routerarena": "audit --routerarena {d}/none --json",
    "snapshot": "prices snapshot --models openai/gpt-5 --out",
    "export": "prices export list-2026-11-27 --inspect",
    "key": "manifest key --out",
    "plot": "train --plot {d}/none --to",
}


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link(to: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(to)


PLACES: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (pipe, "is not a regular file"),
    "zero": (link("/dev/zero"), "is not a regular file"),
    "full": (link("/dev/full"), "is not a regular file"),
    "null": (link("/dev/null"), "is not a regular file"),
    "loop": (link("x.json"), "Too many levels of symbolic links"),
    "nothing": (link("nowhere"), "is a link to a missing file"),
    "folder": (Path.mkdir, "is a directory"),
}


@contextmanager
def reader(path: Path) -> Generator[None]:
    """Read from a pipe, so that a command that opens it does not wait for ever."""
    is_pipe = path.is_fifo()
    handle = os.open(path, os.O_RDWR | os.O_NONBLOCK) if is_pipe else None
    try:
        yield
    finally:
        if handle is not None:
            os.close(handle)


def unchanged(path: Path) -> tuple[int, ...]:
    """Return what a file keeps unless it is written; to follow a link changes its access time."""
    status = path.lstat()
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one sentence with which a command refuses."""
    try:
        code: object = main(words)
    except SystemExit as done:
        code = done.code
    said = capsys.readouterr().err
    assert (code, len(said.splitlines())) == (2, 1), said
    return said


@pytest.mark.parametrize(
    ("command", "place"),
    [
        pytest.param(command, place, id=f"{name}-{kind}")
        for name, command in COMMANDS.items()
        for kind, place in PLACES.items()
        if (name, kind) != ("plot", "folder")  # which is where a page goes
    ],
)
def test_what_is_no_file_is_refused_before_anything_is_read(
    command: str,
    place: tuple[Callable[[Path], None], str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    put, said = place
    out = tmp_path / "x.json"
    put(out)
    before = unchanged(out)
    with reader(out):
        refused = refusal([*command.format(d=tmp_path).split(), str(out)], capsys)
    assert said in refused
    assert "x.json" in refused
    assert unchanged(out) == before
    assert [one.name for one in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/dev/zero", "is not a regular file"),
        ("/dev/full", "is not a regular file"),
        ("x" * 300, "cannot be a path"),
        ("a\0b", "is not a valid file name"),
        ("\ud800", "is not a valid file name"),
    ],
    ids=["zero", "full", "long", "nul", "surrogate"],
)
@pytest.mark.parametrize("command", ["grade", "record", "audit", "snapshot", "key"])
def test_a_name_that_no_file_can_have_is_refused(
    command: str, name: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert said in refusal([*COMMANDS[command].format(d=tmp_path).split(), name], capsys)


@pytest.mark.parametrize(
    "command",
    [
        "run --suite mmlu --log-dir {x}",
        "report {x}",
        "report {d} --out {x}",
        "report {d} --site {x}",
        "audit {x}",
        "audit {d} --invoice {x}",
        "grade --suite mmlu --replies {x} --out {d}/y",
        "record {x} --out {d}/y",
        "redact {d} --out {x}",
        "ledger export {d} --out {x}",
        "export latex {d} --out {x}",
        "train practice-cpu --out {x} --dry-run",
        "reprice {d} --book none --out {x}",
        "serve --log-dir {x}",
        "serve --keys {x} --new-key me",
        "reward serve --suite mmlu --token-file {x}",
        "demo --out {x}",
    ],
)
def test_a_loop_of_links_is_refused_in_a_sentence_by_every_option(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x").symlink_to("x")
    said = refusal(command.format(d=tmp_path, x=tmp_path / "x").split(), capsys)
    assert "Too many levels of symbolic links" in said


def test_a_folder_that_is_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to("nowhere")
    for out in (tmp_path / "x", tmp_path / "x" / "inside"):
        with pytest.raises(UserError, match="is a link to a missing file; name another --out"):
            refuse_unwritable(out, "--out")


def test_the_origin_of_verdicts_is_no_pipe_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "x.json.meta.json")
    words = [*COMMANDS["grade"].format(d=tmp_path).split(), str(tmp_path / "x.json")]
    assert "x.json.meta.json is not a regular file" in refusal(words, capsys)


@pytest.mark.parametrize("put", [pipe, link("other")], ids=["pipe", "link"])
def test_what_lies_beside_a_file_that_is_replaced_is_not_written_to(
    tmp_path: Path, put: Callable[[Path], None]
) -> None:
    put(tmp_path / "a.new")
    with pytest.raises(OSError, match="a"):
        replace_file(tmp_path / "a", b"text")
    assert not (tmp_path / "other").exists()


def test_a_link_to_a_file_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "real.toml").touch()
    (tmp_path / "x.toml").symlink_to("real.toml")
    refuse_unwritable_file(tmp_path / "x.toml", "--out")
