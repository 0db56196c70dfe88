"""The command line, the only package that knows all parts of podium; no package imports it.

Commands (commands.py) only pass suites, systems, pools and sandboxes to other packages, and print.
This file imports little, so that it handles Ctrl-C while the other modules are imported: until a
command begins, Ctrl-C ends the process with a one-line message, as there is no work to save.
"""

import os
import signal
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType

STOPPED = b"\npodium: stopped before the command began. Run it again.\n"
BROKEN_OFF = 130  # the exit code that shells expect after Ctrl-C


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code, which is 2 for an error that the user can fix."""
    with ended_at_once():
        commands = import_module("podium.cli.commands")
        args = commands.build_parser().parse_args(argv)
        command = commands.load(args.command_name)
    return commands.carry_out(command, args)


@contextmanager
def ended_at_once() -> Generator[None]:
    """Let Ctrl-C end the process during a `with` block, also in the middle of an import.

    An exception would pass through third-party code, some of which prints it and continues.
    """
    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # keeps the handler that `nohup` or a calling program has set
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, STOPPED)
    os._exit(BROKEN_OFF)
