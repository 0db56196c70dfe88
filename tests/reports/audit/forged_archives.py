"""Forgeries of the archive that a log is: members that stand in it twice, and what they may hold.

More rows for the table of forgeries.py. Only a sample that failed and was asked again may stand
twice, as the journal knows it.
"""

import json
from collections.abc import Callable
from pathlib import Path

from tests.reports.audit.audited_run import Json
from tests.reports.audit.forgeries import (
    Forgery,
    log_of,
    members,
    repack,
    repacked,
    reply,
    twice,
)

Member = tuple[str, bytes]


def twice_last(contents: list[Member]) -> list[Member]:
    """Put it last, so that readers take the forged copy."""
    forged, *rest = twice(contents)
    return [*rest, forged]


def failed_before(change: Callable[[Json], None]) -> Callable[[list[Member]], list[Member]]:
    """Return a change of members: before a sample stands one that failed, as if asked again."""

    def changed(contents: list[Member]) -> list[Member]:
        name, data = next(one for one in contents if "0001" in one[0])
        sample = json.loads(data)
        sample["error"] = {"message": "down", "traceback": "", "traceback_ansi": ""}
        change(sample)
        return [(name, json.dumps(sample).encode()), *contents]

    return changed


def made_up(sample: Json) -> None:
    """Make a sample one that nobody was asked, with another reply."""
    sample["uuid"] = "made-up"
    reply(sample)


def other_header(contents: list[Member]) -> list[Member]:
    """Put another header before the one that readers take."""
    found = json.loads(dict(contents)["header.json"])
    found["results"]["scores"][0]["metrics"]["mean"]["value"] = 1.0
    return [("header.json", json.dumps(found).encode()), *contents]


def named_otherwise(folder: Path) -> None:
    """Name a member in bytes that Inspect and Python read as two names."""
    path = log_of(folder)
    repack(path, [*members(path), ("_journal/caf\xe9.json", b"{}")])
    content = path.read_bytes()
    whole = "_journal/caf\xe9.json".encode()
    assert content.count(whole) == 2
    at = content.rindex(whole) - 46 + 8  # the flags, in the archive's index
    flags = int.from_bytes(content[at : at + 2], "little") & ~0x800
    path.write_bytes(content[:at] + flags.to_bytes(2, "little") + content[at + 2 :])


ARCHIVES = (
    Forgery("a member twice, the forged one last", repacked(twice_last), "fail I14 I16"),
    Forgery("a member twice, always the same", repacked(lambda all: [*all, all[-2]]), "weak I14"),
    Forgery(
        "an attempt that failed, made of one that did not",
        repacked(failed_before(lambda one: None)),
        "fail I14",
    ),
    Forgery(
        "a failed attempt that no journal has",
        repacked(failed_before(lambda one: one.update(uuid="made-up"))),
        "fail I14",
    ),
    Forgery(
        "a failed attempt with a reply that no journal has",
        repacked(failed_before(made_up)),
        "fail I14",
    ),
    Forgery("another header before the header", repacked(other_header), "fail I14"),
    Forgery("a name that is read in two ways", named_otherwise, "fail I14"),
)
