"""What host and judge say to each other: sandbox/inside/judge.py reads and writes the other side.

A stream (cells.py) takes these frames one by one as they are answered; a command that runs once
(suites/inspect_box.py) is given all of them together.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import Any

from sandbox.box import Limits, Outcome, Program
from sandbox.seccomp import PROGRAM, RULES, filter_bytes

INSIDE = ("processes", "modes", "official", "unittests", "runners", "zygote", "runs", "judge")
"""Modules of sandbox/inside/ in an order in which each finds what it imports."""

FACTS = b'{"facts": 0}\n'
"""Asks for the version of Python inside and the packages that programs can import."""

PARTS = ("stdout", "stderr", "result")
"""What follows the header of an answer, in this order; the header has their sizes."""


@cache
def boot(mode: str, *more: str) -> bytes:
    """Return the first bytes of a stream: the mode, the filter and the judge's modules as text.

    Args:
        mode: One of the modes of sandbox/inside/modes.py.
        more: Further modules of sandbox/inside/, loaded after the judge's.
    """
    folder = resources.files("sandbox.inside")
    modules = {name: (folder / f"{name}.py").read_text("utf-8") for name in (*INSIDE, *more)}
    refused = b"" if mode == "plain" else filter_bytes({**RULES, **PROGRAM})
    order = json.dumps({"mode": mode, "refused": refused.hex(), "sources": modules}).encode()
    return b"%10d" % len(order) + order


def load_frame(program: Program) -> bytes:
    """Return the frame that gives the judge a program."""
    source = program.source.encode("utf-8", errors="replace")  # lone surrogates become `?`
    order = {"program": len(source), "runner": program.runner, "entry": program.entry}
    return line(order) + source


def run_header(size: int, limits: Limits) -> bytes:
    """Return the line that comes before an input of `size` bytes."""
    return line({"run": size, **asdict(limits)})


def outcome(header: Mapping[str, Any], parts: Sequence[bytes]) -> Outcome:
    """Return what an answer says: its header, and the parts that followed it."""
    stdout, stderr, result = parts
    return Outcome(
        header["status"],
        header["exit_code"],
        stdout,
        stderr,
        result,
        header["cpu_s"],
        header["wall_s"],
    )


def line(order: Mapping[str, Any]) -> bytes:
    """Return an order as one line of JSON."""
    return json.dumps(order).encode() + b"\n"
