"""Decide with math-verify whether two answers are equal: the program of the worker process.

Run as `python -I math_verify_worker.py CPU_S PATH...`. For each line on stdin, `{"pairs": [[target,
answer, places], ...]}`, it prints a line, `{"equal": [...]}`, or `{"gave_up": signal}` if checking
did not end. This process loads the libraries and forks a child that compares. The kernel ends the
child after CPU_S of CPU time (not of wall time, so that a busy machine changes no verdict).

To parse a string, sympy 1.14 runs it as Python code; its `parse_expr` is replaced by a function
that accepts only literals and names. An audit hook refuses other code from strings (except that
which polys/monomials.py generates), starting programs, writing files and opening sockets.
"""

import json
import logging
import os
import re
import resource
import signal
import sys
from typing import Any

GIBIBYTE = 1 << 30
WARM = ((r"\frac{1}{2}", "0.5"), (r"\cot x", r"\frac{\cos x}{\sin x}"), ("(2,4]", r"2<x\le 4"))
"""Comparisons that load sympy's lazy modules before the working process is forked."""
DIGITS = 60
ROUNDED, EXACT = 1e-6, 1e-50
"""Relative tolerances between two numbers: ROUNDED if either is a decimal, EXACT if none is."""
_LITERAL = re.compile(r"[0-9]{1,4000}|[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]{1,4})?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}")
_GENERATES = "sympy/polys/monomials.py"
_FORBIDDEN = ("os.", "socket.", "subprocess.", "shutil.", "ctypes.", "pty.", "signal.")
_READS = ("os.listdir", "os.scandir", "os.walk")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main() -> None:
    """Load the libraries, report readiness, and keep one child process comparing answers."""
    cpu_s = float(sys.argv[1])
    sys.path.extend(path for path in sys.argv[2:] if path not in sys.path)
    logging.disable(logging.CRITICAL)
    check = _checker()
    for target, answer in WARM:
        check(target, answer, 6)
    _limit()
    _say({"ready": True})
    while True:
        child = os.fork()
        if child == 0:
            _serve(check, cpu_s)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return
        _say({"gave_up": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0})


def _limit() -> None:
    """Limit memory, files and core dumps of this process and its children; discard stderr."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)  # a full stderr pipe would block
    os.close(nowhere)
    for limit, value in (
        (resource.RLIMIT_AS, 2 * GIBIBYTE),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))


def _serve(check: Any, cpu_s: float) -> None:
    """Reply to each line of stdin; SIGPROF ends this process if a line takes `cpu_s` of CPU."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    sys.addaudithook(_refuse)
    for line in sys.stdin.buffer:
        request = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        equal = [check(*pair) for pair in request["pairs"]]
        signal.setitimer(signal.ITIMER_PROF, 0)
        _say({"equal": equal})


def _say(answer: dict[str, Any]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    """Audit hook: PermissionError for code from strings, started programs, writing and sockets."""
    if event == "exec":
        refused = args[0].co_filename == "<string>" and not _running().endswith(_GENERATES)
    elif event == "compile":
        refused = args[1] == "<string>" and not _running().endswith(_GENERATES)
    elif event == "open":
        refused = isinstance(args[2], int) and bool(args[2] & _WRITING)
    else:
        refused = event.startswith(_FORBIDDEN) and event not in _READS
    if refused:
        raise PermissionError(event)


def _running() -> str:
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  # no public function
    return frame.f_code.co_filename


def _apart(target: Any, answer: Any, sympy: Any) -> bool:
    """Return whether two values are numbers that differ by more than a relative tolerance.

    The library math-verify rounds to six places, and so equates 1/20! and 1/21!.
    """
    if not (_is_number(target, sympy) and _is_number(answer, sympy)):
        return False
    allowed = ROUNDED if answer.has(sympy.Float) or target.has(sympy.Float) else EXACT
    try:
        target_parts, answer_parts = _parts(target), _parts(answer)
        gaps: list[Any] = [abs(x - y) for x, y in zip(target_parts, answer_parts, strict=True)]
        sizes: list[Any] = [abs(value) for value in (*target_parts, *answer_parts)]
        return bool(max(gaps) > allowed * max(sizes))
    except TypeError:  # not a number: 1/0
        return False


def _is_number(value: Any, sympy: Any) -> bool:
    return isinstance(value, sympy.Expr) and bool(value.is_number)


def _parts(number: Any) -> list[Any]:
    """Return a number's real and imaginary part, with 0 for a part that is only rounding error."""
    components = number.evalf(DIGITS).as_real_imag()
    return [0 if getattr(component, "_prec", 0) == 1 else component for component in components]


def _checker() -> Any:
    """Return the function that compares two answers, without math-verify's own time limits."""
    import math_verify  # pyright: ignore[reportMissingTypeStubs]
    import sympy  # pyright: ignore[reportMissingTypeStubs]
    from sympy.parsing import sympy_parser  # pyright: ignore[reportMissingTypeStubs]

    def literal(text: str, *_: Any, **__: Any) -> Any:
        if _NAME.fullmatch(text):
            return sympy.Symbol(text)
        if not _LITERAL.fullmatch(text):
            raise ValueError("neither a number nor a name")
        return sympy.Integer(int(text)) if text.isdigit() else sympy.Float(text)

    parser: Any = sympy_parser
    parser.parse_expr = literal
    config = [math_verify.LatexExtractionConfig(boxed_match_priority=0)]

    def read(text: str) -> Any:
        parse: Any = math_verify.parse
        return parse(f"${text}$", extraction_config=config, parsing_timeout=None)

    def check(gold: str, answer: str, places: int) -> bool:
        target, reply = read(gold), read(answer)
        return bool(
            target
            and reply
            and not _apart(target[0], reply[0], sympy)
            and math_verify.verify(
                target,
                reply,
                float_rounding=places,
                allow_set_relation_comp=True,
                timeout_seconds=None,
            )
        )

    return check


if __name__ == "__main__":
    main()
