"""Honest runs pass: whatever a provider did and however often a run was begun, all commands agree.

`tests/benchmarks/honest_runs.py` makes many more, larger ones.
"""

import zipfile
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inspect_ai.log import read_eval_log

from podium.cli import main
from podium.harness.ledger.logs import open_log
from podium.reports.audit import audit
from tests.providers import CLIENTS_WARN
from tests.reports.audit.mixed_run import (
    FATES,
    LAST,
    SYSTEMS,
    WORKERS,
    Mix,
    run_mixed,
    troubles,
    verified,
    weaknesses,
)

pytestmark = CLIENTS_WARN

BAD_DAYS = st.dictionaries(
    st.tuples(st.sampled_from(WORKERS), st.integers(0, 1)),
    st.lists(st.sampled_from([*FATES]), min_size=1, max_size=4),
    max_size=6,
)
MIXES = st.builds(
    Mix,
    st.sampled_from(SYSTEMS),
    st.just(2),
    BAD_DAYS,
    epochs=st.integers(1, 2),
    grows=st.sampled_from([{}, {"limit": 3}, {"epochs": 3}, {"systems": ("moa-lite", "self-moa")}]),
)


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of long replies that one question got no reply in, and the same command again."""
    fates = {("olive", at): ["very long"] * 2 for at in range(4)}
    fates["olive", 1] = ["refused", "very long"]
    return run_mixed(tmp_path_factory.mktemp("resumed"), Mix("single:olive", 4, fates))


def newest(home: Path) -> Path:
    return max(home.glob("*.eval"))


@pytest.mark.slow
def test_a_failed_attempt_that_stays_in_the_log_of_the_run_that_went_on_is_no_fault(
    resumed: Path,
) -> None:
    with zipfile.ZipFile(newest(resumed)) as archive:
        twice = [name for name, count in Counter(archive.namelist()).items() if count > 1]
    assert [name.rpartition("-")[2] for name in twice] == ["0002_epoch_1.json"]
    assert troubles(resumed) == []
    assert weaknesses(resumed) == []


def test_inspect_and_podium_take_the_same_copy_of_a_sample(resumed: Path) -> None:
    theirs = read_eval_log(str(newest(resumed))).samples or []
    with open_log(newest(resumed)) as log:
        ours = {str(one["uuid"]) for one in log.samples()}
        passed_over = {str(one["uuid"]) for one in log.superseded()}
    assert {str(one.uuid) for one in theirs} == ours
    assert len(passed_over) == 1
    assert not passed_over & ours


@pytest.mark.slow
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_refusal_for_length_has_used_no_token_for_the_table_and_the_witness(
    system: str, tmp_path: Path
) -> None:
    fates = {("olive", 0): ["too long"], ("olive", 1): ["brief", "too long"]}
    home = run_mixed(tmp_path, Mix(system, 2, fates))
    assert troubles(home) == []
    assert weaknesses(home) == []
    assert main(["audit", str(home), "--strict"]) == 0
    done = verified(home)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_refusal_for_length_that_is_read_back_is_still_one(tmp_path: Path) -> None:
    fates = {("olive", 0): ["too long"], ("plum", 0): [LAST]}
    home = run_mixed(tmp_path, Mix("moa-lite", 1, fates))
    assert troubles(home) == []
    assert weaknesses(home) == []


def test_a_directory_may_be_named_from_where_it_lies(
    resumed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["report", str(resumed)])
    monkeypatch.chdir(resumed)
    assert audit(Path()).ok


def check(mix: Mix) -> None:
    """Make a run, and let everything read it."""
    with TemporaryDirectory() as scratch:
        assert troubles(run_mixed(Path(scratch), mix)) == []


@pytest.mark.slow
@settings(max_examples=2, derandomize=True, database=None)
@given(mix=MIXES)
def test_a_run_over_a_provider_with_bad_days_passes(mix: Mix) -> None:
    check(mix)


@pytest.mark.slow
@settings(max_examples=40, derandomize=True, database=None)
@given(mix=MIXES)
def test_many_runs_over_a_provider_with_bad_days_pass(mix: Mix) -> None:
    check(mix)
