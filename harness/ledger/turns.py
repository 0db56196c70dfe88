"""A sample of a task turn by turn: what was asked in each, who acted, which tools answered.

A turn begins with the event of the system's own model, which has no tokens; what follows until the
next one is the turn's. Where agents of one sample ask side by side, turns mix.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from podium.harness.ledger.call import Call, plain
from podium.harness.ledger.logs import NOTHING, SYSTEMS, Json

Told = Callable[[Json], str]
"""Returns the text of a message or of a tool's answer, calls of tools included."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A tool that was called in a turn, by the system or by another model of the task."""

    function: str
    arguments: Mapping[str, Any]
    answer: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of a system within a sample, and what the task did with it."""

    events: tuple[str, ...]
    """Of the calls that were made for it."""
    acted: str | None
    """The event whose output is the turn's, the last one of several that are the same."""
    reply: str
    tools: tuple[ToolAnswer, ...]
    others: tuple[tuple[str, str], ...]
    """What other models of the task said behind it: role and text."""


def turns_in(sample: Json, told: Told) -> Iterator[Turn]:
    """Yield the turns of a sample of a raw log; none of one that a system answered at once."""
    turn: list[Json] = []
    for event in cast(Iterable[Json], sample.get("events") or ()):
        if event["event"] == "model" and str(event.get("model")).startswith(SYSTEMS):
            yield from _turn(turn, told)
            turn = [event]
        elif turn and event["event"] in ("model", "tool"):
            turn.append(event)
    yield from _turn(turn, told)


def _turn(events: Sequence[Json], told: Told) -> Iterator[Turn]:
    if not events:
        return
    own, after = _message(events[0]), events[1:]
    ended = events[0].get("completed") or ""
    asked = [one for one in after if one["event"] == "model"]
    within = [one for one in asked if not ended or str(one.get("timestamp")) <= ended]
    same = [one for one in within if _told_by(_message(one)) == _told_by(own)]
    yield Turn(
        events=tuple(str(one.get("uuid")) for one in within),
        acted=str(same[-1].get("uuid")) if same else None,
        reply=told(own) if own else "",
        tools=tuple(_tool(one, told) for one in after if one["event"] == "tool"),
        others=tuple(
            (str(one.get("role") or ""), told(_message(one)))
            for one in asked
            if one not in within and _message(one)
        ),
    )


def _message(event: Json) -> Json:
    said: Sequence[Json] = (event.get("output") or NOTHING).get("choices") or ()
    return said[0].get("message") or NOTHING if said else NOTHING


def _told_by(message: Json) -> object:
    calls: Sequence[Json] = message.get("tool_calls") or ()
    called = [(one.get("function"), one.get("arguments")) for one in calls]
    return message.get("content"), called


def _tool(event: Json, told: Told) -> ToolAnswer:
    error, result = event.get("error"), event.get("result")
    said = (error or NOTHING).get("message") if error else result
    return ToolAnswer(
        function=str(event.get("function")),
        arguments=event.get("arguments") or {},
        answer=told({"content": said if isinstance(said, str | list) else str(said)}),
        failed=error is not None,
    )


def turns_json(turns: Sequence[Turn], calls: Sequence[Call], *, shown: bool) -> list[Json]:
    """Return turns as plain JSON: calls by their places, dollars as they add up turn by turn.

    Without what was said where texts are withheld. Dollars are None from a call without a price on.
    """
    made: list[Json] = []
    sums: dict[str, Decimal | None] = dict.fromkeys(("usd_list", "usd"), Decimal(0))
    for turn in turns:
        places = [at for at, one in enumerate(calls) if one.event in turn.events]
        acted = [at for at in places if calls[at].event == turn.acted]
        for name, so_far in sums.items():
            spent = [getattr(calls[at], name) for at in places]
            known = so_far is not None and None not in spent
            sums[name] = sum(spent, so_far) if known and so_far is not None else None
        made.append(
            {
                "calls": places,
                "acted": acted[-1] if acted else None,
                "reply": turn.reply if shown else None,
                "tools": [_tool_json(one, shown=shown) for one in turn.tools],
                "others": [
                    {"role": role, "text": text if shown else None} for role, text in turn.others
                ],
                **{name: plain(so_far) for name, so_far in sums.items()},
            }
        )
    return made


def _tool_json(tool: ToolAnswer, *, shown: bool) -> Json:
    said = {"arguments": dict(tool.arguments), "answer": tool.answer}
    hidden = said if shown else dict.fromkeys(said)
    return {"function": tool.function, "failed": tool.failed, **hidden}
