"""A dry run can count every system: places instead of replies break none of them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from podium.cli.list_commands import whole_catalogue
from podium.harness.context import run_context
from podium.harness.inspect_adapters import system_of
from podium.harness.pool_config import read_pool
from podium.harness.run.forecast import Unplannable, counted_all
from podium.harness.run.preflight import missing_extra, why_unfit
from podium.harness.system import Calls, SystemCard, exactly

ALL = whole_catalogue()
SPEC = read_pool("rehearsal")
GIVEN: dict[str, dict[str, Any]] = {
    "single:<worker>": {"worker": "sage"},
    "best-single": {"worker": "sage", "chosen_on": "train", "n": 1},
    "conductor-best-single": {"worker": "sage"},
    "compute-matched-usd": {"worker": "sage", "k": 3},
    "compute-matched-tokens": {"worker": "sage", "k": 3},
}
"""What a run fills in."""
COUNTED = [
    name
    for name, manifest in ALL.systems.items()
    if not manifest.learns
    and "sees targets" not in manifest.traits
    and manifest.group != "frameworks"
]


def brought(manifest: SystemCard) -> Mapping[str, Any]:
    return manifest.methods.arguments("")


@pytest.mark.parametrize("suite", ["practice-integer", "practice-choice", "practice-code"])
@pytest.mark.parametrize("name", COUNTED)
def test_every_system_can_be_counted_and_keeps_to_its_manifest(name: str, suite: str) -> None:
    manifest = ALL.systems[name]
    if missing_extra(manifest):
        pytest.skip(f"{name} needs the extra {manifest.methods.extra}")
    if manifest.takes_name and why_unfit(name, ALL, SPEC):
        pytest.skip(f"{name}: no such checkpoint is released")
    arguments = {**GIVEN.get(name, {}), **brought(manifest), "pool": SPEC.name}
    with run_context(log_dir=Path("nowhere"), spec=SPEC):
        system = system_of(ALL.solver(manifest.solver, arguments))
    question = ALL.suites[suite].load("eval")[0].sealed()
    try:
        counted = len(counted_all(system, [(question, 1)], SPEC.names, SPEC)[0])
    except Unplannable as stop:
        assert stop.first.worker == "conductor"  # noqa: PT017 - either way is right
        return
    if span := manifest.calls.span(len(SPEC.names), arguments):
        least, most = span
        assert least <= counted <= most


def test_expected_calls_are_a_range_or_follow_from_the_pool() -> None:
    assert Calls("2 to 5", expected=(2, 5)).span(7, {}) == (2, 5)
    assert Calls("n", exactly(lambda workers, args: workers)).span(7, {}) == (7, 7)
    assert Calls("nobody knows").span(7, {}) is None
