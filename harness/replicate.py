"""Which draw of a reply is wanted: the key that keeps sampling sampling.

Recorded replies, cached replies and rehearsal randomness are keyed by worker, request *and*
replicate. Keyed by the request alone, self-consistency@5 would be one call counted five times.
`Pool` numbers the requests of one sample; providers read the number from this context variable,
because nothing in a request that reaches a real provider may depend on it.
"""

import hashlib
import json
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass

from inspect_ai.model import ChatMessage

from harness.surrogates import storable


@dataclass(frozen=True, slots=True)
class Replicate:
    """The k-th time (from 0) that the same request is put to the same worker in an epoch."""

    epoch: int
    occurrence: int


CURRENT: ContextVar[Replicate | None] = ContextVar("podium_replicate", default=None)
"""Set by `Pool.ask` around one call; None when a model is called outside a pool."""


def request_digest(messages: Sequence[ChatMessage]) -> str:
    """Return the sha256 of what a worker is sent: roles and texts, in order, nothing else."""
    turns = [[message.role, storable(message.text)] for message in messages]
    return hashlib.sha256(json.dumps(turns, ensure_ascii=False).encode()).hexdigest()
