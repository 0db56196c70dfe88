"""What a scripted provider does with a request: answer, fail, stall, or say something untrue.

An `Act` is one request's fate. What it took (`usage`) goes on the bill; what the reply says of it
(`tell`) may differ, which is what the tests of the ledger are about.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from podium.harness.records import Usage
from tests.providers.dialect import Asked

ANSWER = "ANSWER: 7"

Ending = Literal["whole", "stalled", "cut", "dropped", "dripped", "expired", "missing"]
"""`stalled`: nothing is sent until the client leaves. `cut`: headers and half of the body.
`dropped`: the connection is closed before a single byte is sent. `dripped`: a few bytes at a time.
The last two are of rows of a batch (batches.py).
"""

Change = Callable[[dict[str, Any]], object]

Tell = Callable[[Usage], Usage | None]
"""From what a request took to what its reply says it took; None: the reply has no usage."""


def truly(usage: Usage) -> Usage:
    """Say what it took."""
    return usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """What happens to one request."""

    text: str = ANSWER
    status: int = 200
    retry_after: float | None = None
    """Seconds, sent as the header that clients obey."""
    usage: Usage | None = None
    """What it takes; None: by the length of the texts."""
    tell: Tell = truly
    ending: Ending = "whole"
    stall_s: float = 30.0
    wait_s: float = 0.0
    """Seconds before anything is sent: requests that come together are in flight together."""
    waits_for: int = 0
    """Requests, this one among them, that must have come before its waiting begins."""
    served: str | None = None
    """Model that answers; None: the one that was asked for."""
    echoes: bool = False
    """An error quotes the key that came with the request, in its body and in a header."""
    request_id: str | None = None
    """Given twice, two requests look like one; None: one of its own."""
    change: Change | None = None
    """What becomes of the reply's JSON before it is sent."""
    content: bytes | None = None
    """Sent in place of the reply, as it is."""
    headers: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    """Sent beside the others or in their place; None: not sent."""
    gateway: str | None = None
    """Header in which a gateway adds an id of its own, `gw-1` and so on."""
    billed: bool | None = None
    """None: what was answered with 200 is billed, also where the client did not see the end."""

    @property
    def on_the_bill(self) -> bool:
        """Say whether the provider bills the request."""
        return self.status == 200 if self.billed is None else self.billed


Script = Sequence[Act] | Mapping[str, Sequence[Act]] | Callable[[Asked], Act]
"""Acts in order of arrival; or by the model asked for, `*` for all others; or by a text that the
prompt holds, a question say, after the model: `MODEL: TEXT`. Then plain answers. Or a function that
reads what is asked."""


def ok(text: str = ANSWER, usage: Usage | None = None) -> Act:
    """Answer, and say truly what it took."""
    return Act(text=text, usage=usage)


def taking(output: int, *, input: int = 20, wait_s: float = 0.0) -> Act:
    """Answer, having written so many tokens, and say so; what they may be is the test's concern."""
    return Act(usage=Usage(input=input, output=output), wait_s=wait_s)


def rate_limited(retry_after: float | None = 0.01) -> Act:
    """Answer 429."""
    return Act(status=429, retry_after=retry_after)


def failing(status: int = 500) -> Act:
    """Answer with a server's error: 500, or 529 for an overloaded one."""
    return Act(status=status)


def stalling(stall_s: float = 30.0) -> Act:
    """Send nothing until the client leaves; the work was done, and is billed."""
    return Act(ending="stalled", stall_s=stall_s)


def cutting() -> Act:
    """Close the connection in the middle of the body; the work was done, and is billed."""
    return Act(ending="cut")


def dropping() -> Act:
    """Close the connection without an answer; the work was done, and is billed."""
    return Act(ending="dropped")


def unreported() -> Act:
    """Answer without a word about tokens."""
    return Act(tell=lambda usage: None)


def wrong_total(by: int = 7) -> Act:
    """Answer with a total that is not the sum of the parts (Anthropic reports none)."""
    return Act(tell=lambda usage: replace(usage, total_reported=usage.parts_total + by))


def too_much_reasoning() -> Act:
    """Answer with more reasoning than output."""
    return Act(tell=lambda usage: replace(usage, reasoning=usage.output + 5))


def too_much_cached() -> Act:
    """Answer with more cached tokens than the prompt has."""
    more = 5
    return Act(tell=lambda usage: replace(usage, input=-more, cache_read=usage.input_total + more))


class Fates:
    """Deals out a script, request by request."""

    def __init__(self, script: Script) -> None:
        self._read = script if callable(script) else None
        listed = () if callable(script) else script
        by_model = listed if isinstance(listed, Mapping) else {"*": listed}
        self._left = {model: list(acts) for model, acts in by_model.items()}

    def next(self, asked: Asked) -> Act:
        """Return what happens to the next request."""
        if self._read is not None:
            return self._read(asked)
        acts = self._left.get(asked.model, self._left.get("*", []))
        begun = f"{asked.model}: "
        for name, found in self._left.items():
            if name.startswith(begun) and name.removeprefix(begun) in asked.prompt:
                acts = found
        return acts.pop(0) if acts else Act()
