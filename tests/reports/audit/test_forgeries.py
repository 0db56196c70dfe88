"""Every forgery of the table in forging.py is caught, or known to be one that no file can show.

`tests/benchmarks/forgeries.py` prints the same table, for an older podium too.
"""

import json
import shutil
from pathlib import Path

import pytest

from podium.reports.audit import audit
from tests.reports.audit.forged_archives import ARCHIVES
from tests.reports.audit.forgeries import (
    FORGERIES,
    Forgery,
    caught,
    repacked,
    rewritten,
    run,
)

pytestmark = pytest.mark.filterwarnings("ignore:Duplicate name")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run of two systems, as `podium run` leaves it."""
    return run(tmp_path_factory.mktemp("ran") / "run")


def test_nothing_is_wrong_with_the_run_that_is_forged(ran: Path) -> None:
    assert audit(ran, strict=True).ok
    assert caught(ran) == caught(ran, anew=True) == "nothing"


@pytest.mark.parametrize("forgery", [*FORGERIES, *ARCHIVES], ids=lambda one: one.name)
def test_a_forgery_is_caught_with_its_manifest_kept_and_made_anew(
    forgery: Forgery, ran: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(ran, tmp_path / "run")
    forgery.forge(folder)
    assert "I14" in caught(folder)
    rewritten(folder)
    assert caught(folder) == forgery.caught
    if forgery.regrade:
        assert caught(folder, anew=True) == forgery.regrade


@pytest.mark.parametrize("correct", [True, False])
def test_a_sample_that_a_stopped_run_wrote_twice_is_no_fault(
    correct: bool, ran: Path, tmp_path: Path
) -> None:
    def written_twice(members: list[tuple[str, bytes]]) -> list[tuple[str, bytes]]:
        name, data = next(member for member in members if "0001" in member[0])
        sample = json.loads(data)
        if not correct:
            sample["output"]["choices"][0]["message"]["content"] = "another answer"
        return [(name, json.dumps(sample, indent=4).encode()), *members]

    folder = shutil.copytree(ran, tmp_path / "run")
    repacked(written_twice)(folder)
    rewritten(folder)
    assert caught(folder) == ("nothing" if correct else "fail I14")


def test_at_least_forty_forgeries_are_tried_and_all_but_four_leave_a_trace() -> None:
    assert len(FORGERIES) >= 40
    assert sum(one.caught == "nothing" for one in FORGERIES) == 4
