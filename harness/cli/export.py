"""`podium export KIND`: runs in forms that others read. A kind is one line of KINDS.

commands.py reads this file for help, so what a kind needs is imported when it is carried out.
"""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.cli.arguments import Arguments

Declare = Callable[[Arguments], None]
Carry = Callable[[argparse.Namespace], int]

KINDS: Mapping[str, tuple[Declare, Carry]] = {}
"""Name -> what declares its arguments, its docstring being its help; and what carries it out."""


def declare_kinds(add: Arguments) -> None:
    """Add every kind with what it takes."""
    action = add.actions("KIND")
    for name, (declare, _) in KINDS.items():
        declare(action(name, declare.__doc__ or name))


def export_command(args: argparse.Namespace) -> int:
    """Write one kind of files; return its exit code."""
    return KINDS[args.action][1](args)


def of_runs(add: Arguments) -> None:
    """Add what kinds take that are made of runs."""
    add("dirs DIR", "log directories, searched recursively", Path, nargs="+")
    into_folder(add)


def into_folder(add: Arguments) -> None:
    """Add the folder to write."""
    add("--out DIR", "folder to write, which is not there yet", Path, required=True)
