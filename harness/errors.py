"""The ways podium can fail, each named for whose failure it is.

A *model's* failure (no answer, a malformed plan, wrong code) is never an exception: it is a value.
`sandbox.SandboxError` is the one sibling outside this tree: sandbox/ imports none of ours.
"""

from collections.abc import Callable, Iterator
from typing import Any


class PodiumError(Exception):
    """Any failure that podium itself understands and can say in one sentence."""


class UserError(PodiumError):
    """The user asked for something that cannot be done; the message names the fix."""


class WorkerError(PodiumError):
    """A worker gave no reply (provider down, time-out, refusal); the sample stays unscored."""


class CassetteMiss(WorkerError):
    """A recorded worker has no reply for this request and replicate; it never guesses."""


class FrameworkError(WorkerError):
    """A framework's own code failed, not a model: no reply of it can be graded."""


class Escaped(FrameworkError):
    """A framework tried to reach something past the ledger; it was refused, nothing was sent."""


class SpendLimit(PodiumError):
    """The run reached `--max-usd`; nothing was lost and the same command resumes it."""


class QuestionLimit(SpendLimit):
    """A question reached `--max-usd-per-query`; it stays unscored, and other questions go on."""


class TooManyMasked(PodiumError):
    """Too many of the latest rewards have no value: what would be learned is noise, so stop."""


def reasons_of(check: Callable[..., object], *given: Any) -> Iterator[str]:
    """Yield why a check refuses; nothing where it does not."""
    try:
        check(*given)
    except UserError as error:
        yield str(error)
