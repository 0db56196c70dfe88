"""Ten thousand hostile texts through every reader of plans: none raises, none is executed.

`make fuzz` reads a million; the fuzzer is tests/conductor/fuzz_readers.py.
"""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import ROOT
from tests.conductor.fuzz_readers import FORMS, SEEDS, fuzz, read_by_all


@pytest.mark.parametrize("texts", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_mutated_plans_are_read_or_refused_with_a_reason(texts: int) -> None:
    tally = fuzz(texts)
    assert sum(tally.values()) == texts * len(FORMS)
    assert min(tally[kind] for kind in ("plan", "keep", "malformed")) > texts // 100


@pytest.mark.slow
def test_reading_compiles_bounded_literals_and_does_nothing_else_that_python_audits() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tests.conductor.watched_reading", "1000"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "a literal"), done.stderr or done.stdout


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(SEEDS) | st.text(st.characters(), max_size=9), max_size=6))
def test_any_text_is_read_or_refused_by_every_reader(parts: list[str]) -> None:
    read_by_all("".join(parts))
