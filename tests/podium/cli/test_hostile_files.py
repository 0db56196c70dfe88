"""Every file that a user hands over, replaced by hostile ones: one sentence, never a traceback.

`python -m tests.benchmarks.fuzz files` runs thousands of cases; the fuzzer is hostile_files.py.
"""

import gzip
import io
import itertools
import struct
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from podium.cli import main
from podium.harness.cassette import record
from podium.harness.errors import UserError
from podium.harness.files import (
    RATIO,
    SMALL,
    TooLarge,
    decimal_of,
    dicts_of_csv,
    inflate,
    parse_json,
    parse_toml,
    refuse_bomb,
    unpack_gzip,
)
from podium.harness.ledger.logs import find_logs, newest_logs, open_log, read_log
from podium.harness.model_judge import regrade_dir
from podium.harness.redact import redact
from tests.podium.cli.hostile_files import TARGETS, cases, fuzz

SLOW = ("config", "checkpoint", "verdicts", "cassette", "recorded pool", "table", "lm-eval")
QUICK = tuple(replace(one, commands=one.commands[:1]) for one in TARGETS if one.name not in SLOW)
"""The first command of each file, but for those that import a lot: the benchmark has all."""


@pytest.mark.parametrize("every", [24, pytest.param(4, marks=pytest.mark.slow)])
def test_hostile_files_are_refused_in_one_sentence_by_every_command(
    every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of so many cases of one seed, one is carried out."""
    monkeypatch.setenv("PODIUM_DATA", str(tmp_path))
    tally = fuzz(tmp_path / "files", itertools.islice(cases(5, QUICK), 0, None, every))
    assert tally.inputs > 600 // every
    assert (tally.tracebacks, tally.wrong_codes, tally.slow, tally.many_lines) == ([], [], [], [])
    assert set(tally.codes) == {"0", "1", "2"}


def bomb(path: Path, member: str, size: int, *, says: int | None = None) -> Path:
    """Write an archive whose one member unpacks to `size` zeros, and may say another size."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open(member, "w") as file,
    ):
        for _ in range(size >> 20):
            file.write(bytes(1 << 20))
    content = made.getvalue()
    if says is not None:
        content = content.replace(struct.pack("<I", size), struct.pack("<I", says))
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("says", [None, 1000], ids=["it-says-so", "it-lies"])
def test_a_log_that_unpacks_to_gigabytes_is_refused_before_it_is_unpacked_by_every_reader(
    tmp_path: Path, says: int | None
) -> None:
    path = bomb(tmp_path / "bomb.eval", "header.json", 200 << 20, says=says)
    readers = {
        "raw": lambda: open_log(path).__enter__(),
        "inspect": lambda: read_log(path),
        "newest": lambda: newest_logs([tmp_path]),
        "record": lambda: record(find_logs([path]), tmp_path / "tape.jsonl"),
        "redact": lambda: redact([tmp_path], tmp_path / "out"),
        "regrade": lambda: regrade_dir(tmp_path, {}, None),
    }
    for name, read in readers.items():
        started = time.process_time()
        with pytest.raises(UserError, match="unpack"):
            read()
        assert time.process_time() - started < 1, name


def test_what_an_archive_says_of_its_members_together_is_limited_too(tmp_path: Path) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("samples/0.json", bytes(1 << 20))
    size = len(made.getvalue())
    with zipfile.ZipFile(made) as archive:
        archive.filelist *= 1200  # as many members, of which none is large
        with pytest.raises(TooLarge, match=r"would unpack to 1\.2 GiB"):
            refuse_bomb(archive, size)


def test_a_frame_that_promises_more_than_the_index_does_takes_no_memory() -> None:
    packed = zstandard.ZstdCompressor().compress(bytes(200 << 20))
    with pytest.raises(TooLarge):
        inflate(packed, 93, 10)


def test_a_gzip_bomb_is_left_at_the_limit() -> None:
    layer = gzip.compress(bytes(1 << 20))
    assert len(unpack_gzip(layer)) == 1 << 20
    with pytest.raises(TooLarge):
        unpack_gzip(layer * (5 * SMALL >> 20))


def test_a_large_log_of_a_real_run_stays_far_below_every_limit() -> None:
    """A thousand calls of 40 kB in a log pack by 5 to 30: JSON that models wrote."""
    text = " ".join(str(number * 7919 % 10_007) for number in range(9_000)).encode()
    members = [zstandard.ZstdCompressor().compress(text) for _ in range(3)]
    assert len(text) / len(members[0]) < RATIO / 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a = " + "[" * 100_000, "too deeply"),
        ("a = " + "9" * 5_000, "thousands of digits"),
        ("a = 1e999999", "not a finite number"),
        ("a = nan", "not a finite number"),
        (".".join(["a"] * 100_000) + " = 1", "more than 100 parts"),
        ("a = \0", "Invalid"),
    ],
    ids=["deep", "long", "infinite", "nan", "dotted", "nul"],
)
def test_toml_that_no_reader_takes_is_a_value_error_of_one_line(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as found:
        parse_toml(text)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "too deeply"),
        ('{"a":' * 100_000, "too deeply"),
        ("9" * 5_000, "thousands of digits"),
        ("1e999999", "not a finite number"),
        ("[NaN]", "NaN is not a number"),
        ("", "Expecting value"),
        (b"\xff", "utf-8"),
    ],
    ids=["arrays", "objects", "long", "infinite", "nan", "empty", "bytes"],
)
def test_json_that_no_reader_takes_is_a_value_error_of_one_line(
    text: str | bytes, said: str
) -> None:
    with pytest.raises(ValueError, match=said) as found:
        parse_json(text)
    assert "\n" not in str(found.value)


def test_a_field_of_any_length_is_a_field() -> None:
    rows = dicts_of_csv(iter(["a,b\n", "x" * 131_073 + ",1\n", "short\n"]))
    assert [row["b"] for _, row in rows] == ["1", None]


@pytest.mark.parametrize("text", ["1e999999", "1e-999999", "nan", "inf", "x", "9" * 500])
def test_an_amount_beyond_all_use_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        decimal_of(text)


RUN = ("run", "--suite", "practice-integer", "--log-dir", "x", "--dry-run")


@pytest.mark.parametrize(
    "arguments",
    [
        (*RUN, "--epochs", "999999999999"),
        (*RUN, "--epochs", "9" * 5_000),
        (*RUN, "--limit", "999999999999"),
        (*RUN, "--seed", "9" * 40),
        (*RUN, "--time-scale", "nan"),
        (*RUN, "--time-scale", "1e999"),
        (*RUN, "--max-usd", "nan"),
        (*RUN, "--max-usd", "inf"),
        (*RUN, "--max-usd", "-1"),
        (*RUN, "--max-usd", "1e999"),
        (*RUN, "--max-usd-per-query", "1e-999999"),
        (*RUN, "--max-sandboxes", "999999999999"),
        (*RUN, "--train-calls", "999999999999"),
        (*RUN, "--system", "self-consistency@99999999999"),
        (*RUN, "--system", "self-consistency@" + "9" * 5_000),
        (*RUN, "--system", "self-consistency@.."),
        (*RUN, "--system", "moa@.."),
        (*RUN, "--system", "moa@99999999999"),
        ("report", "x", "--epochs", "999999999999"),
        ("power", "--questions", "9" * 40),
        ("train", "practice-cpu", "--seed", "9" * 40, "--dry-run"),
    ],
    ids=lambda arguments: "-".join(arguments[-2:])[:40],
)
def test_a_number_beyond_all_use_is_refused_at_once(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = [str(tmp_path / word) if word == "x" else word for word in arguments]
    started = time.process_time()
    try:
        code: object = main(words)
    except SystemExit as done:
        code = done.code
    said = capsys.readouterr().err
    assert code == 2
    assert time.process_time() - started < 3  # with the imports of whoever comes first
    assert "Traceback" not in said
    assert len(said.splitlines()[-1]) < 1_000
