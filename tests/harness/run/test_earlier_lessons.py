"""Answers of single workers that a run takes over from an earlier one: `podium run --profile`."""

from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.pool_config import read_pool
from podium.harness.profiles import read_profile
from tests.harness.toy_run import Toy, toy_pool, toy_run

HEAD = 'label = "rehearsal"\nprices = "rehearsal"\n'


def begun(folder: Path, *more: str, workers: str, calls: int = 24) -> int:
    """Run best-single on four practice questions, with a pool of these workers."""
    tables = (
        f'[[workers]]\nname = "{name}"\nmodel = "rehearsal/{name}"\n' for name in workers.split()
    )
    pool = folder.with_name(f"{folder.name}.toml")
    pool.write_text(HEAD + "".join(tables))
    asked = ["--suite", "practice-integer", "--system", "best-single", "--limit", "4"]
    limits = ["--train-calls", str(calls), "--time-scale", "0", "--yes"]
    return main(["run", *asked, *limits, "--pool", str(pool), "--log-dir", str(folder), *more])


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("taken") / "earlier"
    assert begun(folder, workers="sage abacus swift") == 0
    return folder


def lessons(folder: Path, below: str = "") -> set[str]:
    names = (path.name for path in (folder / "selection" / below).glob("*.eval"))
    return {name.partition("single-")[2].partition(" ")[0] for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("workers", "asked", "answered"),
    [
        pytest.param("scholar sage swift abacus", {"scholar"}, 6, id="a-worker-more"),
        pytest.param("abacus sage", set[str](), 8, id="a-worker-less"),
    ],
)
def test_only_a_worker_that_was_not_there_is_asked(
    earlier: Path, tmp_path: Path, workers: str, asked: set[str], answered: int
) -> None:
    folder = tmp_path / "later"
    assert begun(folder, "--profile", str(earlier), workers=workers) == 0
    assert lessons(folder) == asked
    assert lessons(folder, "earlier") == {*workers.split()} - asked
    rows = read_profile(folder, read_pool(str(folder.with_name("later.toml"))), {}).rows
    assert [row.worker for row in rows] == workers.split()
    assert {row.asked for row in rows if row.worker in asked} <= {answered}
    assert main(["audit", str(folder)]) == 0
    before = sorted(folder.rglob("*.eval"))
    assert begun(folder, workers=workers) == 0  # the same command, without the option, goes on
    assert sorted(folder.rglob("*.eval")) == before


def test_what_is_taken_over_is_left_out_of_the_estimate(
    earlier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, workers = tmp_path / "later", "scholar sage swift abacus"
    assert begun(folder, "--dry-run", workers=workers) == 0
    whole = capsys.readouterr().out
    assert begun(folder, "--dry-run", "--profile", str(earlier), workers=workers) == 0
    less = capsys.readouterr().out
    assert "single:sage" in whole
    assert "single:scholar" in less
    assert "single:sage" not in less
    assert not folder.exists()


@pytest.mark.parametrize(
    ("workers", "more", "said"),
    [
        pytest.param(
            "scribe verifier", (), "no worker of pool 'later' was asked there", id="other"
        ),
        pytest.param("sage abacus", ("--profile", "nowhere"), "no answers of single", id="empty"),
    ],
)
def test_a_run_of_which_nothing_can_be_taken_over_is_refused(
    earlier: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    workers: str,
    more: tuple[str, ...],
    said: str,
) -> None:
    folder = tmp_path / "later"
    assert begun(folder, "--profile", str(earlier), *more, workers=workers) == 2
    assert said in capsys.readouterr().err
    assert not folder.exists()


def test_a_run_that_asked_by_itself_takes_nothing_over(
    earlier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "later"
    assert begun(folder, workers="sage abacus") == 0
    more = ("--profile", str(earlier), "--system", "router-knn")
    assert begun(folder, *more, workers="sage abacus") == 2
    assert "has already asked its own train questions" in capsys.readouterr().err


def test_verdicts_of_an_older_grader_are_refused(tmp_path: Path) -> None:
    toy_pool(tmp_path / "old")
    learning = {"systems": ("best-single",), "limit": 1, "selection_limit": 4}
    toy_run(tmp_path / "old", **learning)
    toy_pool(tmp_path / "new")
    with pytest.raises(UserError, match=r"older verdicts: toy 1-A \(now 2-A\). Run podium regrade"):
        toy_run(tmp_path / "new", Toy("2-A"), profile=tmp_path / "old", **learning)
