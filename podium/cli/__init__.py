"""The command line, and the one package that knows every part of podium; nothing imports it.

Commands (commands.py) only compose: they hand suites, systems, pools and boxes to one another and
print. This file is tiny because a break (Ctrl-C) may come while the rest is imported: until a
command begins, it ends the process in one line, and there is nothing to finish.
"""

import os
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

STOPPED = b"\npodium: stopped before it began.\n"
BROKEN_OFF = 130  # what a shell expects of a command that Ctrl-C ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return 0, or 2 after one sentence when the user can fix something."""
    with ended_at_once():
        commands = import_module("podium.cli.commands")
        args = commands.build_parser().parse_args(argv)
        command = commands.load(args.command_name)
    return commands.carry_out(command, args)


@contextmanager
def ended_at_once() -> Generator[None]:
    """Let a break end the process while the block lasts, also in the middle of an import.

    An exception would go through code of others, some of which prints it and goes on.
    """
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # somebody else decides what a break does: `nohup`, or a program that calls us
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, STOPPED)
    os._exit(BROKEN_OFF)
