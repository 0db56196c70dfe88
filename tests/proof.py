"""What a session did not run, each reason once; and how many tests passed in each box.

Where PODIUM_REQUIRE_DOCKER is set, as in CI, skipping a test of a box is failing it.
"""

import os
from collections import Counter
from collections.abc import Generator

import pytest

REQUIRED = "PODIUM_REQUIRE_DOCKER"
COUNTED = ("passed", "failed", "skipped", "error")


def box_of(report: pytest.TestReport) -> str | None:
    """Return which box a test ran in; None when it needs none that may be missing."""
    if "docker:runsc" in report.nodeid:
        return "docker:runsc"
    if "docker" in getattr(report, "keywords", {}):  # the mark; what failed to import has none
        return "docker"
    return "bwrap" if "bwrap" in report.nodeid else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and box_of(report) and os.environ.get(REQUIRED):
        report.outcome = "failed"
        report.longrepr = f"Skipped, though {REQUIRED} is set: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    told_once = Counter(
        report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        for report in terminalreporter.getreports("skipped")
    )
    for reason, skipped in told_once.most_common():
        terminalreporter.write_line(f"{skipped} x {reason}")
    counts: dict[str, Counter[str]] = {"docker": Counter(), "docker:runsc": Counter()}
    counts["bwrap"] = Counter()
    for outcome in COUNTED:
        for report in terminalreporter.getreports(outcome):
            box = box_of(report)
            if box:
                counts[box][outcome] += 1
    if any(counts.values()):
        terminalreporter.section("tests of the boxes")
    for box, count in counts.items():
        if count:
            told = ", ".join(f"{count[outcome]} {outcome}" for outcome in COUNTED if count[outcome])
            terminalreporter.write_line(f"{box}: {told}")
