"""What podium keeps to itself of exams whose authors ask that no question be published.

Such a suite says `publishable = False`. Its logs, which hold questions, are readable by their owner
alone and marked; no table, message or cassette quotes them; harness/redact.py makes logs to share.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, cast

from harness.errors import UserError
from harness.records import PODIUM

WITHHELD = "its words are withheld, they may quote a question; the log has them"


def keep_files_private() -> None:
    """Let every file that this process writes from now on be its owner's alone (mode 0600).

    For the whole process, because Inspect writes logs, buffers and attachments at times and places
    of its own; a mode set afterwards would leave a moment, and each of its temporary files, open.
    """
    os.umask(0o077)


def publishable(metadata: Mapping[str, Any] | None) -> bool:
    """Return whether a log's questions may be shown, by the metadata in its header."""
    return bool(_facts(metadata).get("publishable", True))


def said(reason: str, shown: bool) -> str:
    """Return why something failed, as it may be printed of an exam that may be `shown` or not.

    A provider's words can quote what it was sent, so of an exam that may not, only the kind of
    failure is told.

    >>> said("WorkerError('sage gave no reply: ...')", False)
    'WorkerError (its words are withheld, they may quote a question; the log has them)'
    """
    return reason if shown or not reason else f"{kind_of(reason)} ({WITHHELD})"


def kind_of(reason: str) -> str:
    """Return the exception's name at the start of a reason, or a word for what has none."""
    found = re.match(r"\w*(?:Error|Exception|Miss|Limit)\b", reason)
    return found.group() if found else "failed"


def refuse_redacted(metadata: Mapping[str, Any] | None, name: str) -> None:
    """Raise UserError for a log whose texts were taken out: there is nothing to grade or replay."""
    if _facts(metadata).get("redacted"):
        raise UserError(f"{name} is redacted, so its replies are gone: take the original log.")


def _facts(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return podium's facts in a log's metadata, empty where another wrote it."""
    facts: object = (metadata or {}).get(PODIUM)
    return cast(Mapping[str, Any], facts) if isinstance(facts, Mapping) else {}
