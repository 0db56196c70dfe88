"""What one outcome says about a program, once it is compared with what was expected."""

import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, cast

from sandbox import ProgramOutcome
from sandbox.box import decode, read_json, untagged
from suites.comparison import same_output, same_value

Verdict = Literal[
    "pass",
    "wrong answer",
    "time limit",
    "memory limit",
    "output limit",
    "runtime error",
    "not run",
]

NOTE_CHARS = 200

NOT_PLAIN = "returned a value that is no plain builtin"

SLOW = -3
"""The published evaluator's code for a test that ran out of time."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What became of a program on one test."""

    verdict: Verdict
    cpu_s: float = 0.0
    wall_s: float = 0.0
    note: str = ""
    """Why it failed, for people: the last line on stderr, mostly."""


def really(outcome: ProgramOutcome, expected: str, method: bool, cpu_s: float) -> CaseResult:
    """Return the result of a run as a true process; `cpu_s` is the limit of its CPU time.

    A wrong answer is one however long it took; so a `time limit` might pass when it is run again.
    A program that ends with an exit code other than 0 failed, whatever it printed before.
    """
    verdict, note = _ended(outcome)
    if verdict == "pass":
        verdict, note = _value(outcome, expected) if method else _text(outcome.stdout, expected)
    if verdict == "pass" and outcome.cpu_s > cpu_s:
        verdict = "time limit"
    return CaseResult(verdict, outcome.cpu_s, outcome.wall_s, note)


def officially(outcome: ProgramOutcome, expected: str, late: bool) -> CaseResult:
    """Return the result of a run the published way; `late` when all time together is used up."""
    verdict, note = _ended(outcome)
    if verdict == "pass":
        verdict, note = _reported(outcome.result, expected)
    if late and verdict == "pass":
        verdict, note = "time limit", "all tests together"
    return CaseResult(verdict, outcome.cpu_s, outcome.wall_s, note)


def _ended(outcome: ProgramOutcome) -> tuple[Verdict, str]:
    """Return what the way a process ended says about its program, before any comparison."""
    last = _last_line(outcome.stderr)
    if outcome.status in ("time", "memory", "output"):
        return cast("Verdict", f"{outcome.status} limit"), ""
    if outcome.status == "processes":
        return "runtime error", "too many processes or threads"
    if outcome.status == "died":
        return "runtime error", last or "the program ended its sandbox"
    if outcome.exit_code == 0:
        return "pass", ""
    if last.startswith("MemoryError"):
        return "memory limit", last
    return "runtime error", last or _exit(outcome.exit_code)


def _text(stdout: bytes, expected: str) -> tuple[Verdict, str]:
    got = stdout.decode("utf-8", errors="replace")
    return ("pass" if same_output(got, expected) else "wrong answer"), ""


def _value(outcome: ProgramOutcome, expected: str) -> tuple[Verdict, str]:
    """Compare what a method returned; a report that is none was forged, or never written."""
    if not outcome.result:
        return "runtime error", _last_line(outcome.stderr) or "the method never returned"
    try:
        got = decode(outcome.result)
    except ValueError:
        return "wrong answer", NOT_PLAIN
    return _equal(got, expected)


def _reported(result: bytes, expected: str) -> tuple[Verdict, str]:
    """Read what the published evaluator's way came to."""
    if not result:
        return "runtime error", "the program ended the evaluator's process"
    report = _report(result)
    if "error" in report:
        slow = report.get("code") == SLOW
        return ("time limit" if slow else "runtime error"), _clipped(str(report["error"]))
    if isinstance(report.get("output"), str):
        return ("pass" if same_output(report["output"], expected) else "wrong answer"), ""
    try:
        got = untagged(report["returned"])
    except (KeyError, ValueError):
        return "wrong answer", NOT_PLAIN
    return _equal(got, expected)


def _equal(got: object, expected: str) -> tuple[Verdict, str]:
    return ("pass" if same_value(got, expected) else "wrong answer"), ""


def _report(result: bytes) -> dict[str, Any]:
    """Return a report; empty when it is no JSON object."""
    with suppress(ValueError):
        report = read_json(result)
        if isinstance(report, dict):
            return cast("dict[str, Any]", report)
    return {}


def _last_line(stderr: bytes) -> str:
    lines = stderr[-4096:].decode("utf-8", errors="replace").strip().splitlines()
    return _clipped(lines[-1]) if lines else ""


def _clipped(text: str) -> str:
    return text if len(text) <= NOTE_CHARS else text[: NOTE_CHARS - 3] + "..."


def _exit(code: int) -> str:
    """Name an exit code as a shell would tell of it."""
    with suppress(ValueError):
        return f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"exit code {code}"
