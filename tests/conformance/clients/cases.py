"""Runs a client's cases, and prints a line of JSON for each: its name and what was wrong."""

import json
import sys
import traceback
from collections.abc import Callable

URL, MODEL = sys.argv[1], sys.argv[2]
QUESTION = "What is 12 * 13?"

Case = Callable[[], None]


def raised(kind: type[Exception], ask: Callable[[], object]) -> Exception:
    """Return what a client raises that must not be answered."""
    try:
        ask()
    except kind as error:
        return error
    raise AssertionError("it was answered")


def run(*cases: Case) -> None:
    """Run each case; its name is its function's."""
    for case in cases:
        try:
            case()
            said = ""
        except Exception as error:  # whatever a client raises is what it says
            where = traceback.extract_tb(error.__traceback__)[1]
            said = f"{type(error).__name__} in line {where.lineno}: {str(error)[:300]}"
        print(json.dumps({"case": case.__name__, "failed": said}))
