"""Decide with math-verify whether two answers are equal: the program in a process of its own.

Run as `python -I math_verify_worker.py CPU_S PATH...`. One JSON object a line: in `{"pairs":
[[target, answer, places], ...]}`, out `{"equal": [...]}`, or `{"gave_up": signal}` where checking
did not end. A first process loads the libraries and forks the one that works; the kernel ends that
one after its CPU seconds (not wall time: a busy machine changes no verdict).

sympy 1.14 evaluates text with Python wherever a string becomes an expression; that function is
replaced by one that knows literals and names. A hook refuses all other strings but those of
polys/monomials.py (made from the number of variables), programs, written files and sockets.
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
"""Comparisons that load what sympy loads late, before the working process is forked."""
DIGITS = 60
ROUNDED, EXACT = 1e-6, 1e-50
"""How far apart, relatively, two numbers may be: a decimal, and one that is written exactly."""
_LITERAL = re.compile(r"[0-9]{1,4000}|[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]{1,4})?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,40}")
_GENERATES = "sympy/polys/monomials.py"
_FORBIDDEN = ("os.", "socket.", "subprocess.", "shutil.", "ctypes.", "pty.", "signal.")
_READS = ("os.listdir", "os.scandir", "os.walk")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def main() -> None:
    """Load, say that it is ready, and keep one child at work until the pipe is closed."""
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
    """Bound memory, files and cores of this process and of its children; say no more on stderr."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)  # nobody reads it, and a full pipe would block
    os.close(nowhere)
    for what, most in (
        (resource.RLIMIT_AS, 2 * GIBIBYTE),
        (resource.RLIMIT_NOFILE, 16),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(what, (most, most))


def _serve(check: Any, cpu_s: float) -> None:
    """Answer line by line; SIGPROF ends this process when a line takes its CPU seconds."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGPROF})
    sys.addaudithook(_refuse)
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, cpu_s)
        equal = [check(*pair) for pair in asked["pairs"]]
        signal.setitimer(signal.ITIMER_PROF, 0)
        _say({"equal": equal})


def _say(answer: dict[str, Any]) -> None:
    os.write(1, json.dumps(answer).encode() + b"\n")


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    """Raise where code from a string would run, or something outside this process be touched."""
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
    frame = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]  # there is no public way
    return frame.f_code.co_filename


def _apart(target: Any, said: Any, sympy: Any) -> bool:
    """Return whether two numbers differ by more than a decimal's rounding, however small both are.

    math-verify rounds to six places, and so takes 1/20! for 1/21!.
    """
    if not (_is_number(target, sympy) and _is_number(said, sympy)):
        return False
    allowed = ROUNDED if said.has(sympy.Float) or target.has(sympy.Float) else EXACT
    try:
        parts, others = _parts(target), _parts(said)
        gaps: list[Any] = [abs(part - other) for part, other in zip(parts, others, strict=True)]
        sizes: list[Any] = [abs(part) for part in (*parts, *others)]
        return bool(max(gaps) > allowed * max(sizes))
    except TypeError:  # no number after all: 1/0
        return False


def _is_number(value: Any, sympy: Any) -> bool:
    return isinstance(value, sympy.Expr) and bool(value.is_number)


def _parts(number: Any) -> list[Any]:
    """Return the parts of a complex number, the rounding error of a zero being zero."""
    parts = number.evalf(DIGITS).as_real_imag()
    return [0 if getattr(part, "_prec", 0) == 1 else part for part in parts]


def _checker() -> Any:
    """Return the function that compares, with math-verify's own time limits (SIGALRM) off."""
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
    whole = [math_verify.LatexExtractionConfig(boxed_match_priority=0)]

    def read(text: str) -> Any:
        parse: Any = math_verify.parse
        return parse(f"${text}$", extraction_config=whole, parsing_timeout=None)

    def check(gold: str, answer: str, places: int) -> bool:
        target, said = read(gold), read(answer)
        return bool(
            target
            and said
            and not _apart(target[0], said[0], sympy)
            and math_verify.verify(
                target,
                said,
                float_rounding=places,
                allow_set_relation_comp=True,
                timeout_seconds=None,
            )
        )

    return check


if __name__ == "__main__":
    main()
