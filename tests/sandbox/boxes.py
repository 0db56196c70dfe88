"""The boxes that tests run in, opened once per session, and what to do where one is missing.

On a machine without an engine the tests of Docker are skipped, with the reason; where
PODIUM_REQUIRE_DOCKER is set, as in CI, a missing box fails them instead.
"""

import os
from collections.abc import Generator
from functools import cache

import pytest

from podium.sandbox import Box, Limits, Program, ProgramOutcome, SandboxError, open_box

DOCKER, GVISOR, BWRAP, SUBPROCESS = "docker", "docker:runsc", "bwrap", "subprocess"
ISOLATING = (
    pytest.param(DOCKER, marks=pytest.mark.docker),
    pytest.param(GVISOR, marks=pytest.mark.docker),
    pytest.param(BWRAP),
)
"""The boxes that isolate: whatever is promised of one is promised of all."""

TIGHT = Limits(cpu_s=1.0, wall_s=3.0, memory_bytes=256 << 20, output_bytes=1 << 20, processes=24)
"""Limits under which a misbehaving program ends soon."""


@cache
def missing(name: str) -> str | None:
    """Return why a box cannot be used here; None when it can."""
    box = open_box(name)
    try:
        box.facts()
    except SandboxError as error:
        return str(error)
    finally:
        box.close()
    return None


def needs(name: str) -> str:
    """Skip the test, or fail it where boxes are required, when the box cannot be used here."""
    reason = missing(name)
    if reason and os.environ.get("PODIUM_REQUIRE_DOCKER"):
        pytest.fail(f"{name}: {reason}")
    if reason:
        pytest.skip(f"{name}: {reason}")
    return name


@pytest.fixture(scope="session")
def opened() -> Generator[dict[str, Box]]:
    """The boxes opened so far in this session, closed at its end."""
    boxes: dict[str, Box] = {}
    yield boxes
    for box in boxes.values():
        box.close()


@pytest.fixture(params=ISOLATING)
def isolating(request: pytest.FixtureRequest, opened: dict[str, Box]) -> Box:
    """Each box that isolates, in turn."""
    return _get(request.param, opened)


@pytest.fixture(params=[*ISOLATING, pytest.param(SUBPROCESS)])
def any_box(request: pytest.FixtureRequest, opened: dict[str, Box]) -> Box:
    """Each box, in turn."""
    return _get(request.param, opened)


@pytest.fixture
def docker_box(opened: dict[str, Box]) -> Box:
    """The Docker box; mark the test with `docker`."""
    return _get(DOCKER, opened)


@pytest.fixture
def subprocess_box(opened: dict[str, Box]) -> Box:
    """The box without isolation."""
    return _get(SUBPROCESS, opened)


def run(box: Box, source: str, *inputs: bytes, limits: Limits = TIGHT) -> list[ProgramOutcome]:
    """Run a script on each input, or on an empty one."""
    return list(box.run(Program(source), inputs or (b"",), limits))


def _get(name: str, opened: dict[str, Box]) -> Box:
    if name not in opened:
        opened[name] = open_box(needs(name))
    return opened[name]
