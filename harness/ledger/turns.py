"""Splits a sample of an Inspect task into turns: each turn's calls, answer and tool results.

A turn begins with a ModelEvent of the podium system itself, which has no tokens, and ends before
the next such event. If agents of one sample call the system concurrently, their turns mix.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, cast

from podium.harness.ledger.call import Call, plain
from podium.harness.ledger.logs import NOTHING, SYSTEMS, Json

Told = Callable[[Json], str]
"""A function that returns the text of a message or of a tool's result, tool calls included."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """A tool call in a turn, by the system or by another model of the task, and its result."""

    function: str
    arguments: Mapping[str, Any]
    answer: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Turn:
    """One answer of a system within a sample, and the tool calls and replies that followed it."""

    events: tuple[str, ...]
    """UUIDs of the events of the calls that were made for the answer."""
    acted: str | None
    """UUID of the last event whose output equals the answer; None if there is none."""
    reply: str
    tools: tuple[ToolAnswer, ...]
    others: tuple[tuple[str, str], ...]
    """Replies of the task's other models after this answer: role and text of each."""


def turns_in(sample: Json, to_text: Told) -> Iterator[Turn]:
    """Yield the turns of a raw log's sample; none if the sample called no system as a model."""
    turn: list[Json] = []
    for event in cast(Iterable[Json], sample.get("events") or ()):
        if event["event"] == "model" and str(event.get("model")).startswith(SYSTEMS):
            yield from _turn(turn, to_text)
            turn = [event]
        elif turn and event["event"] in ("model", "tool"):
            turn.append(event)
    yield from _turn(turn, to_text)


def _turn(events: Sequence[Json], to_text: Told) -> Iterator[Turn]:
    if not events:
        return
    message, later = _message(events[0]), events[1:]
    end = events[0].get("completed") or ""
    model_calls = [event for event in later if event["event"] == "model"]
    within = [event for event in model_calls if not end or str(event.get("timestamp")) <= end]
    told = _told_by(message) if message else None
    same = [event for event in within if told and _told_by(_message(event)) == told]
    yield Turn(
        events=tuple(str(event.get("uuid")) for event in within),
        acted=str(same[-1].get("uuid")) if same else None,
        reply=to_text(message) if message else "",
        tools=tuple(_tool(event, to_text) for event in later if event["event"] == "tool"),
        others=tuple(
            (str(event.get("role") or ""), to_text(_message(event)))
            for event in model_calls
            if event not in within and _message(event)
        ),
    )


def _message(event: Json) -> Json:
    choices: Sequence[Json] = (event.get("output") or NOTHING).get("choices") or ()
    return choices[0].get("message") or NOTHING if choices else NOTHING


def _told_by(message: Json) -> object:
    calls: Sequence[Json] = message.get("tool_calls") or ()
    requests = [(call.get("function"), call.get("arguments")) for call in calls]
    return message.get("content"), requests


def _tool(event: Json, to_text: Told) -> ToolAnswer:
    error, result = event.get("error"), event.get("result")
    content = (error or NOTHING).get("message") if error else result
    return ToolAnswer(
        function=str(event.get("function")),
        arguments=event.get("arguments") or {},
        answer=to_text({"content": content if isinstance(content, str | list) else str(content)}),
        failed=error is not None,
    )


def turns_json(turns: Sequence[Turn], calls: Sequence[Call], *, public: bool) -> list[Json]:
    """Return turns as plain JSON: calls as indices, dollars as sums from the first turn on.

    Texts are omitted unless `public`. From the turn with the first unpriced call on, dollars are
    None.
    """
    rows: list[Json] = []
    sums: dict[str, Decimal | None] = dict.fromkeys(("usd_list", "usd"), Decimal(0))
    for turn in turns:
        places = [index for index, call in enumerate(calls) if call.event in turn.events]
        acted = [index for index in places if calls[index].event == turn.acted]
        for name, so_far in sums.items():
            spent = [getattr(calls[index], name) for index in places]
            has_price = so_far is not None and None not in spent
            sums[name] = sum(spent, so_far) if has_price and so_far is not None else None
        rows.append(
            {
                "calls": places,
                "acted": acted[-1] if acted else None,
                "reply": turn.reply if public else None,
                "tools": [_tool_json(tool, public=public) for tool in turn.tools],
                "others": [
                    {"role": role, "text": text if public else None} for role, text in turn.others
                ],
                **{name: plain(so_far) for name, so_far in sums.items()},
            }
        )
    return rows


def _tool_json(tool: ToolAnswer, *, public: bool) -> Json:
    texts = {"arguments": dict(tool.arguments), "answer": tool.answer}
    hidden = texts if public else dict.fromkeys(texts)
    return {"function": tool.function, "failed": tool.failed, **hidden}
