"""A cassette file is read as it was written, or refused with the line that is wrong."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from podium.harness.cassette import (
    CassetteHeader,
    RecordedReply,
    RecordedTokens,
    open_cassette,
    write_cassette,
)
from podium.harness.errors import UserError

ROW = RecordedReply(
    worker="sage",
    digest="d",
    epoch=1,
    occurrence=0,
    text="line\u2028separator",
    usage=RecordedTokens(input=3, output=2, reasoning=1),
    model="m",
    source="s",
)
HEADER = CassetteHeader(created_from=("a.eval",), source_sha256=("0",), source_label="live")


def test_a_cassette_is_read_as_it_was_written(tmp_path: Path) -> None:
    unknown = ROW.model_copy(update={"occurrence": 1, "usage": None})
    write_cassette(tmp_path / "a.jsonl", HEADER, [ROW, unknown])
    tape = open_cassette(str(tmp_path / "a.jsonl"))
    assert tuple(tape.rows.values()) == (ROW, unknown)
    assert tape.header == HEADER


def damaged() -> Sequence[tuple[str, str]]:
    head, row = HEADER.model_dump_json(), ROW.model_dump_json()
    return [
        (head.replace(',"source_label":"live"', ""), "first line must be a header"),
        (row, "first line must be a header"),
        ("", "first line must be a header"),
        (head.replace(":1,", ":2,"), "not a cassette of this version"),
        (f"{head}\n{row}\n{row}", "line 3, repeats"),
        (f"{head}\n{row[:-9]}", "line 2, is damaged"),
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    damaged(),
    ids=["no-source-label", "no-header", "empty", "other-version", "twice", "cut-off"],
)
def test_a_damaged_cassette_is_refused_with_its_line(
    content: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.jsonl").write_text(content)
    with pytest.raises(UserError, match=said):
        open_cassette(str(tmp_path / "bad.jsonl"))


def test_an_unknown_cassette_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="no cassette 'nothing'; give the path"):
        open_cassette("nothing")
    with pytest.raises(UserError, match="make one with `podium record`"):
        open_cassette("absent.jsonl")
