"""Real replies, with the verdicts that others left on record beside them: ours are the same.

Which replies differ, and who is right, is printed by tests/benchmarks/graded_records.py. MATH-500
is in test_math500.py.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from podium.harness.errors import UserError
from tests.benchmarks.graded_records import SETS, Record, main, verdict

AT_MOST = {
    "aime25": (1, 0),
    "RouterBench, ARC": (3, 1),
    "RouterArena, four letters": (0, 2),
    "RouterArena, by rlpr": (3, 8),
    "RouterArena, words": (0, 1),
    "RouterArena, numbers": (0, 5),
}
"""Replies on record as right that fail here, and on record as wrong that pass here. Each was read:
of the latter all are right (`95 minutes` for 95); of the former nobody can say, but for three."""


def records(name: str) -> list[Record]:
    """Return a part of the data folder; skip where it is absent."""
    try:
        return list(SETS[name]())
    except (OSError, UserError) as error:
        pytest.skip(f"{error}; name its folder in PODIUM_DATA")


@pytest.mark.parametrize("name", [name for name in SETS if not name.startswith("MATH-500")])
def test_our_verdicts_are_those_on_record_but_for_a_few_that_were_read(name: str) -> None:
    every = records(name)
    for of_set in {record.set for record in every}:
        said = [(one, mine) for one in every if one.set == of_set and (mine := verdict(one))]
        failed = [one.id for one, mine in said if one.right and not mine.right]
        passed = [one.id for one, mine in said if mine.right and not one.right]
        assert (len(failed) <= AT_MOST[of_set][0], failed) == (True, failed)
        assert (len(passed) <= AT_MOST[of_set][1], passed) == (True, passed)


def test_a_reply_of_ones_own_is_graded_and_shown_where_it_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = {"set": "own", "suite": "gpqa-diamond", "gold": "C", "choices": ["1", "2", "3", "4"]}
    said = run(
        [
            own | {"id": "first", "reply": "So it is.\n\nAnswer: C", "right": True},
            own | {"id": "second", "reply": "Nobody knows.\n\nAnswer: B", "right": True},
        ],
        tmp_path,
        monkeypatch,
        capsys,
    )
    assert "| own | 2 | 50.00% | 0 | 1 | 0 |" in said
    assert "second: key 'C'; recorded True; ours False ('B')" in said
    assert "first: key" not in said


def run(
    rows: Sequence[dict[str, object]],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> str:
    """Return what the program prints of these rows alone."""
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    monkeypatch.setenv("PODIUM_DATA", str(folder))
    main(["--differences", "--rows", str(file)])
    return capsys.readouterr().out
