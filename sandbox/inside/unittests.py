"""The program and its unit tests in one module of one process, as BigCodeBench runs them.

As published (bigcode-project/bigcodebench @47eff25, bigcodebench/eval/__init__.py): both are
executed in a module `__test__`, then all tests of the class `TestCases` are run. The tests patch
and inspect the program, so the two cannot be kept apart, and a program that knows how can forge
what is reported here. Against those that only end early or print a verdict: the report counts the
tests that were run, and carries a token that came with the input and was put away before the
program began.
"""

import json
import os
import sys
import types
from typing import Any


def run_tests(source: str, given: bytes) -> dict[str, Any]:
    """Run the tests that the input holds: `{"token": text, "test": code}`."""
    import unittest  # slow to load, and needed only here

    order = json.loads(given)
    os.environ.update(TZ="UTC", PATH="/usr/local/bin:/usr/bin:/bin")
    module = types.ModuleType("__test__")
    module.__dict__.update(__file__="__test__.py", sys=sys, os=os, environ=os.environ)
    sys.modules["__test__"] = module
    exec(compile(f"{source}\n{order['test']}", "__test__.py", "exec"), module.__dict__)
    suite = unittest.TestLoader().loadTestsFromTestCase(module.TestCases)
    result = unittest.TestResult()
    suite.run(result)
    problems = [*result.failures, *result.errors]
    failed = {test.id().split(".")[-1]: last_line(trace) for test, trace in problems}
    return {"token": order["token"], "ran": result.testsRun, "failed": failed}


def last_line(trace: str) -> str:
    """Return the end of a traceback: the exception and its message."""
    return (trace.strip().splitlines() or [""])[-1][:300]
