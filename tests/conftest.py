"""What several test files share."""

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from podium.harness.errors import UserError
from podium.reports.report import Report, write_report
from podium.suites.aime25 import saturn_cassette
from tests.harness.faulty_run import clean, retried, unanswered
from tests.harness.runs import Crew, number, sit, steps
from tests.installed import Installed, install
from tests.proof import pytest_runtest_makereport, pytest_terminal_summary
from tests.reports.small_reports import EXAM, right_up_to
from tests.sandbox.boxes import any_box, docker_box, isolating, opened, subprocess_box

# Tests are offline; `datasets` reads this once, at import, and would retry for long without it.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Tables are as wide as in a file, whatever terminal the tests are run from.
os.environ["COLUMNS"] = "120"

# A shell's background jobs ignore SIGINT, and so would each process that a test interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Nothing is judged by the clock on the wall, by hypothesis neither.
settings.register_profile("podium", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("podium")

collect_ignore = ["benchmarks"]
"""Programs that measure; each says how it is run."""

LONGEST = (
    "tests/sandbox/test_attacks.py",
    "tests/conductor/training",
    "tests/harness/rewards/test_trainers.py",
    "tests/harness/shards/test_ray_kills.py",
    "tests/baselines/test_frameworks.py",
    "tests/suites/test_mbpp.py",
    "tests/harness/run/test_kill.py",
    "tests/suites/practice_workers/test_regimes.py",
    "tests/test_pages.py",
    "tests/test_registry.py",
    "tests/harness/run/test_learning_resumed.py",
    "tests/sandbox",
)
"""What takes longest, begun first, so that no process is left with it alone at the end."""

OFTEN, SELDOM = gc.get_threshold(), (10_000, 20, 50)
"""Thresholds of the garbage collector; by the first it takes a quarter of a test run."""

LONG_RUNS = {"chromium", "unanswered", "worded"}
"""Fixtures: a browser, replies that never come, and all systems on exams in words."""

__all__ = [
    "any_box",
    "clean",
    "docker_box",
    "isolating",
    "opened",
    "pytest_runtest_makereport",
    "pytest_terminal_summary",
    "retried",
    "subprocess_box",
    "unanswered",
]


def pytest_collection() -> None:
    """Look for no garbage while everything is imported: there is none."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for it only in what tests make."""
    gc.enable()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Look for garbage seldom, but in tests that leave sockets of a container engine."""
    wanted = OFTEN if item.get_closest_marker("docker") else SELDOM
    if gc.get_threshold() != wanted:
        gc.collect()
        gc.set_threshold(*wanted)


def pytest_unconfigure() -> None:
    """Let the interpreter end as it would."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what needs a box that isolates or a long run; begin with what takes longest."""

    def place(item: pytest.Item) -> int:
        return next((n for n, at in enumerate(LONGEST) if item.nodeid.startswith(at)), len(LONGEST))

    for item in items:
        runs = LONG_RUNS.intersection(getattr(item, "fixturenames", ()))
        if runs or item.get_closest_marker("docker") or "bwrap" in item.nodeid:
            item.add_marker("slow")
    items.sort(key=place)


@pytest.fixture(scope="session")
def podium_wheel(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def recorded_aime25() -> str:
    """Return the name of the recorded pool; skip where its data is absent."""
    try:
        saturn_cassette()
    except UserError as error:
        pytest.skip(str(error))
    return "recorded-aime25"


@pytest.fixture(scope="session")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One experiment with its selection runs, as `podium run` leaves it."""
    home = tmp_path_factory.mktemp("experiment")
    sit(home, "single:sage", crew=Crew(sage=right_up_to(4)), exam=EXAM, epochs=2)
    sit(home, "single:clerk", steps("clerk"), Crew(clerk=right_up_to(1)), exam=EXAM, epochs=2)
    sit(home, "best-single", crew=Crew(sage=right_up_to(4)), exam=EXAM, epochs=2)
    sit(home, "oracle", exam=EXAM, uses_targets=True, epochs=2)
    flaky = Crew(sage=lambda heard: "broken" if "Say 2" in heard.last else number(heard))
    sit(home, "moa-lite", steps("clerk", "clerk", "sage"), flaky, exam=EXAM, epochs=2)
    sit(home / "selection", "single:sage", exam=EXAM, purpose="selection", split="train")
    return home


@pytest.fixture(scope="session")
def made(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return write_report([logs], tmp_path_factory.mktemp("report"))
