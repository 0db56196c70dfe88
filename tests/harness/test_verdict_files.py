"""The file that `podium grade` writes: a full disk or a second run takes nothing from it."""

import json
from pathlib import Path

import pytest

from podium.harness.errors import UserError
from podium.harness.grade_file import VerdictOrigin, open_verdicts

MADE = VerdictOrigin(suite="toy", suite_version="1-A", problems="p", replies="r")
OTHER = MADE.model_copy(update={"replies": "s"})
FULL = Path("/dev/full")
"""Every write to it fails as on a full disk."""


def verdict(line: int) -> dict[str, object]:
    return {"question_id": str(line), "value": 1.0, "line": line}


def lines(path: Path) -> list[int]:
    return [json.loads(text)["line"] for text in path.read_text().splitlines()]


def test_verdicts_are_kept_as_they_came_when_there_is_no_room_to_order_them(
    tmp_path: Path,
) -> None:
    out, scratch = tmp_path / "out.jsonl", tmp_path / "out.jsonl.new"
    with open_verdicts(out, MADE) as verdicts:
        verdicts.add(verdict(2))
        verdicts.add(verdict(1))
        scratch.symlink_to(FULL)
        refused = (
            r"out\.jsonl\.new cannot be written \(Too many levels of symbolic links\)"
            ".*Free some space"
        )
        with pytest.raises(UserError, match=refused):  # a link is never followed
            verdicts.put_in_order()
    assert lines(out) == [2, 1]
    assert not scratch.is_symlink()
    with open_verdicts(out, MADE) as verdicts:
        verdicts.put_in_order()
    assert lines(out) == [1, 2]
    assert not scratch.exists()


def test_a_full_disk_is_named_when_nothing_is_graded_yet(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.with_name("out.jsonl.meta.json").symlink_to(FULL)
    with (
        pytest.raises(
            UserError, match=r"out\.jsonl\.meta\.json cannot .*No space.*free some space"
        ),
        open_verdicts(out, MADE),
    ):
        pass


def test_a_second_run_changes_nothing_while_the_first_has_written_no_verdict(
    tmp_path: Path,
) -> None:
    out = tmp_path / "out.jsonl"
    with open_verdicts(out, MADE) as first:
        with pytest.raises(UserError, match="Another podium grade"), open_verdicts(out, OTHER):
            pass
        first.add(verdict(1))
    with open_verdicts(out, MADE) as again:
        assert again.graded == {1}
