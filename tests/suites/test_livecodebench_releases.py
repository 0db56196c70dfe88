"""LiveCodeBench releases and windows: their published counts, their names, and wrong names."""

from dataclasses import replace
from pathlib import Path

import pytest

from podium.harness.errors import UserError
from podium.suites import SUITES
from podium.suites.data import sources
from podium.suites.livecodebench import (
    COUNTS,
    LIVECODEBENCH,
    LiveCodeBench,
    Window,
    livecodebench,
    named_release,
    read_window,
    release_of,
    window_of,
)
from tests.suites.livecodebench_rows import all_rows, members, needs_data, pinned, six_files

TAGS = {
    "release_v1": 400,
    "release_v2": 511,
    "release_v3": 612,
    "release_v4": 713,
    "release_v5": 880,
    "release_v6": 1055,
    "release_latest": 1055,
    "v6": 175,
    "v5": 167,
    "v4_v5": 268,
    "v1_v6": 1055,
}

WINDOWS = {
    ("release_v5", "2024-08-01", "2025-02-01"): 279,
    ("release_v5", "2024-10-01", "2025-02-01"): 166,
    ("release_v5", "2024-07-01", "2025-01-31"): 322,
    ("release_v6", "2024-08-01", "2025-05-01"): 454,
    ("release_v6", "2025-02-01", "2025-05-01"): 131,
    ("release_v6", "2024-08-01", "2025-02-01"): 329,
    ("release_v6", "2024-08-01", "2025-02-02"): 335,
    ("v6", None, None): 175,
    ("release_v6", None, None): 1055,
}
"""Published counts, and two that show the official rule: midnight of the last day is the end."""


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> LiveCodeBench:
    """All 1,055 problems as six files."""
    folder = tmp_path_factory.mktemp("lcb")
    return LiveCodeBench(data=folder, pinned=pinned(folder, six_files()))


@pytest.mark.parametrize(("tag", "count"), TAGS.items())
def test_a_tag_of_the_hub_is_its_files_with_their_published_count(tag: str, count: int) -> None:
    release = release_of(tag)
    assert release.count == count
    assert sum(sources()[name].rows or 0 for name in release.files) == count


def test_the_pinned_files_are_the_hub_s_six_at_one_revision() -> None:
    tables = [sources()[f"livecodebench-{number}"] for number in range(1, 7)]
    assert [table.rows for table in tables] == list(COUNTS)
    assert {(table.hub, table.revision) for table in tables} == {
        ("livecodebench/code_generation_lite", "0fe84c3912ea0c4d4a78037083943e8f0c4dd505")
    }
    assert sum(table.size or 0 for table in tables) == 4_485_994_821
    assert tables[0].file == "livecodebench/test.jsonl"
    assert tables[5].file == "livecodebench/test6.jsonl"


@needs_data
@pytest.mark.parametrize(("asked", "count"), WINDOWS.items())
def test_a_window_of_a_release_has_its_published_count(
    whole: LiveCodeBench, asked: tuple[str, str | None, str | None], count: int
) -> None:
    tag, start, end = asked
    suite = replace(whole, release=release_of(tag), window=window_of(start, end))
    assert len(suite.load()) == count


@needs_data
def test_the_paper_s_exam_is_what_v6_added(whole: LiveCodeBench) -> None:
    questions = whole.load()
    assert whole.name == "livecodebench"
    assert {q.id for q in questions} == set(members()["v6"]) - set(members()["v5"])
    dates = sorted(all_rows()[q.id]["contest_date"][:10] for q in questions)
    assert (dates[0], dates[-1]) == ("2025-01-04", "2025-04-06")
    platforms = [q.metadata["platform"] for q in questions]
    assert (platforms.count("atcoder"), platforms.count("leetcode")) == (112, 63)
    topics = [q.topic for q in questions]
    assert [topics.count(one) for one in ("easy", "medium", "hard")] == [43, 52, 80]


@needs_data
def test_a_window_without_contests_is_refused(whole: LiveCodeBench) -> None:
    with pytest.raises(UserError, match=r"livecodebench@2030-01-01\.\. has no questions"):
        replace(whole, window=Window("2030-01-01")).load()


def test_only_whole_days_and_midnights_decide() -> None:
    window = Window("2024-08-01", "2025-02-01")
    assert window.holds("2024-08-01T00:00:00")
    assert window.holds("2025-02-01T00:00:00")
    assert not window.holds("2025-02-01T06:30:00")
    assert not window.holds("2024-07-31T23:59:59")
    assert Window().holds("1999-01-01T00:00:00")


@pytest.mark.parametrize(
    ("name", "tag", "dates"),
    [
        ("livecodebench", "v6", "2025-01..2025-04"),
        ("livecodebench-v1", "release_v1", "2023-05..2024-03"),
        ("livecodebench-v6", "release_v6", "2023-05..2025-04"),
        ("livecodebench-new-v4_v5", "v4_v5", "up to 2025-01"),
        ("livecodebench-new-v1", "v1", "2023-05..2024-03"),
        ("livecodebench-v5@2024-08-01..2025-02-01", "release_v5", "2024-08-01..2025-02-01"),
        ("livecodebench@2025-02-01..", "v6", "2025-02-01.."),
        ("livecodebench-v6@..2024-12-31", "release_v6", "..2024-12-31"),
    ],
)
def test_a_name_says_release_and_window_and_comes_back_in_logs(
    name: str, tag: str, dates: str
) -> None:
    suite = SUITES[name]
    assert isinstance(suite, LiveCodeBench)
    assert (suite.name, suite.release.tag, suite.dates) == (name, tag, dates)
    assert suite.data_revision.endswith(f"@{sources()['livecodebench-1'].revision} {tag}")
    assert name in SUITES
    assert SUITES[name] is suite


def test_every_release_has_a_name_that_means_it() -> None:
    tags = [f"release_v{n}" for n in range(1, 7)]
    tags += [f"v{a}" if a == b else f"v{a}_v{b}" for a in range(1, 7) for b in range(a, 7)]
    found = [named_release(release_of(tag).suite) for tag in tags]
    assert [release.tag if release else None for release in found] == tags


def test_only_plain_names_are_listed() -> None:
    assert [name for name in SUITES if "@" in name or name.startswith("livecodebench-")] == []
    assert SUITES["livecodebench"] is LIVECODEBENCH
    assert len(SUITES) == len(list(SUITES))
    assert {"livecodebench-v5", "aime25", "none"} & SUITES.keys() == {"livecodebench-v5", "aime25"}


@pytest.mark.parametrize(
    "name", ["nonsense", "livecodebench-v7", "livecodebench-", "livecodebenchv5", "x@2024-01-01.."]
)
def test_an_unknown_name_is_no_suite(name: str) -> None:
    assert name not in SUITES
    with pytest.raises(KeyError):
        SUITES[name]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("livecodebench@2024-08-01", "is not a window"),
        ("livecodebench@..", "is not a window"),
        ("livecodebench-v5@2024-8-1..2025-02-01", "'2024-8-1' is not a date"),
        ("livecodebench-v5@2024-08-01..2025-02-30", "'2025-02-30' is not a date"),
        ("livecodebench@2025-02-01..2024-08-01", "ends before it starts"),
        ("aime25@2024-08-01..2025-02-01", "have no dates"),
    ],
)
def test_a_wrong_window_is_one_sentence(name: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        SUITES.get(name)


@pytest.mark.parametrize("tag", ["v7", "release_v0", "v5_v4", "", "latest", "release_v4_v5"])
def test_a_wrong_tag_is_refused_with_those_there_are(tag: str) -> None:
    with pytest.raises(UserError, match=r"It has release_v1 \.\.\. release_v6"):
        release_of(tag)


def test_the_task_refuses_a_wrong_window_before_it_looks_for_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'today' is not a date"):
        livecodebench(start_date="today", data=str(tmp_path))


def test_a_window_is_read_as_it_is_written() -> None:
    for text in ("2024-08-01..2025-02-01", "2024-08-01..", "..2025-02-01"):
        assert str(read_window(text)) == text
