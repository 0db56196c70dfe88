"""Rehearsal of agentic tasks: workers that take a sample's expected actions, and a user program.

A sample's `metadata["task"]` has the form of the benchmark tau2: `evaluation_criteria` with
`actions` and `communicate_info`, and `user_scenario` with `instructions`. Workers read these parts,
and so see more than a model would; nothing here reads a target or a scorer.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Literal, Self

from inspect_ai.model import ChatMessage, ChatMessageAssistant
from inspect_ai.solver._task_state import sample_state
from inspect_ai.tool import ToolCall
from pydantic import BaseModel, Field, ValidationError

from podium.harness.conversation import NEXT, TURNS
from podium.harness.records import TOOL_CALLS
from podium.suites.practice.workers.workers import Worker

Requestor = Literal["assistant", "user"]
ASK = "Certainly. Please tell me your name and the numbers that I need."
DONE = "Everything is done."
TRANSFERRED = "You are transferred to a human agent."
FAREWELL = "Thank you, goodbye. ###STOP###"
"""The user's last words; `###STOP###` ends a tau2 dialogue, like those of LEAVE and GIVE_UP."""
LEAVE = "Thank you. ###TRANSFER###"
GIVE_UP = "I know nothing more. ###OUT-OF-SCOPE###"
ADVISE, ACT = "Say which step comes next.", "Do what should be done next."
MODELS = "AVAILABLE LANGUAGE MODELS:"
"""The line above the list of models in prompts of conductors and of routers."""
_LISTED = re.compile(r"^Model (\d+)", re.MULTILINE)
_REQUEST = re.compile(r"Please use `(\w+)`")
_ADVICE = re.compile(r"The next step is `(\w+)` with (\{.*\})\.$", re.MULTILINE)
_OWN_TURN = f"{TURNS['assistant']}: "
_TRANSFERRED = re.compile(r"\btransferred\b", re.IGNORECASE)
_DONE = re.compile(r"\b(?:done|finished|completed)\b", re.IGNORECASE)
_TRANSFER = "transfer_to_human_agents"
_FIRST_PERSON = {
    "you are": "I am", "you're": "I'm", "you have": "I have", "yourself": "myself",
    "yours": "mine", "your": "my", "you": "I",
}  # fmt: skip
_PERSON = re.compile(rf"\b(?:{'|'.join(_FIRST_PERSON)})\b", re.IGNORECASE)

AgentTurn = tuple[str, list[ToolCall]]
"""The text and the tool calls of one turn of an agent or user."""


class Action(BaseModel):
    """One expected tool call, by the agent or by the user."""

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])
    requestor: Requestor = "assistant"

    def tool(self, offered: Sequence[str]) -> str | None:
        """Return the offered tool that the action calls, perhaps with a prefix, or None."""
        prefixed = (name for name in offered if name.endswith(f"_{self.name}"))
        return self.name if self.name in offered else next(prefixed, None)


class _Criteria(BaseModel):
    actions: list[Action] | None = None
    communicate_info: list[str] | None = None


class _Instructions(BaseModel):
    reason_for_call: str
    known_info: str | None = None
    unknown_info: str | None = None


class _Scenario(BaseModel):
    instructions: _Instructions | str


class Episode(BaseModel):
    """What workers know of the running sample: the expected actions and the user's script."""

    evaluation_criteria: _Criteria
    user_scenario: _Scenario | None = None
    sample: str = ""
    """Sample id and epoch; slips (random errors) depend on these, the worker and the turn."""

    @classmethod
    def running(cls) -> Self | None:
        """Return the running sample's episode; None if no sample of tau2's form is running."""
        state = sample_state()
        task = state.metadata.get("task") if state else None
        if not state or not isinstance(task, dict):
            return None
        try:
            return cls.model_validate({**task, "sample": f"{state.sample_id}/{state.epoch}"})
        except ValidationError:
            return None

    @property
    def actions(self) -> list[Action]:
        """The expected tool calls of agent and user, in order."""
        return self.evaluation_criteria.actions or []

    def user_lines(self) -> list[str]:
        """Return what the user has to say, in order: the reason, then the known information."""
        if self.user_scenario is None:
            return []
        instructions = self.user_scenario.instructions
        if isinstance(instructions, str):
            lines = instructions.split("\n\n")
        else:
            known = (instructions.known_info, instructions.unknown_info)
            lines = [instructions.reason_for_call, *(line for line in known if line)]
        return [_PERSON.sub(_first_person, line.strip()) for line in lines if line.strip()]


def _first_person(match: re.Match[str]) -> str:
    words = _FIRST_PERSON[match[0].lower()]
    return words.capitalize() if match[0][0].isupper() and words[0] == "m" else words


def turn_number(messages: Sequence[ChatMessage]) -> int:
    """Return the number of turns that the assistant's side of a conversation has had so far."""
    return sum(message.role == "assistant" for message in _read_transcript(messages))


def respond_as_agent(
    worker: Worker,
    episode: Episode,
    messages: Sequence[ChatMessage],
    tools: Sequence[str],
    rng: random.Random,
) -> AgentTurn:
    """Return an agent's next turn: first a question, then each expected action, then the result.

    Progress is read from the conversation, so that several workers can share one. A slip (random
    error) skips an action, changes an argument or ends the work too early. Without `tools` the turn
    has only words. If more workers name another step in the last message, that step is taken.
    """
    messages = _read_transcript(messages)
    slip = rng.choice(("skip", "argument", "end")) if rng.random() < worker.slip else None
    if episode.user_scenario and turn_number(messages) == 0:
        return ASK, []
    tools = [] if worker.manner == "advise" else tools
    steps = _remaining(episode.actions, messages, tools, "assistant")
    if slip:
        steps = [] if slip == "end" else steps[slip == "skip" :]
    if slip == "argument" and steps:
        steps[0] = steps[0].model_copy(update={"arguments": _changed(steps[0].arguments, rng)})
    step = _most_named(steps[0] if steps else None, messages, tools)
    if step is None:
        facts = [] if slip else episode.evaluation_criteria.communicate_info or []
        return _closing(messages, facts), []
    if step.requestor == "user":
        return f"Please use `{step.name}` now, then tell me what it shows.", []
    tool = step.tool(tools)
    if tool is None:
        return f"The next step is `{step.name}` with {json.dumps(step.arguments)}.", []
    return "", [_call(worker, messages, tool, step.arguments)]


def respond_as_dispatcher(messages: Sequence[ChatMessage], rng: random.Random) -> str:
    """Return a plan over the models that a prompt lists: one acts, alone or after an adviser."""
    text = messages[-1].text if messages else ""
    models = sorted({*map(int, _LISTED.findall(text.rpartition(MODELS)[2]))}) or [0]
    chosen = [rng.choice(models) for _ in range(rng.choice((1, 2)))]
    if "subtasks" not in text:  # only a worker is asked for
        return f"model_id = {chosen[-1:]}"
    subtasks, reads = [ADVISE, ACT][-len(chosen) :], [[], [0]][: len(chosen)]
    return f"model_id = {chosen}\nsubtasks = {json.dumps(subtasks)}\naccess_list = {reads}"


def _most_named(
    own: Action | None, messages: Sequence[ChatMessage], tools: Sequence[str]
) -> Action | None:
    """Return the step that most workers name; `own`, the worker's own step, wins ties."""
    text = messages[-1].text if messages else ""
    found = ((name, _parsed(given)) for name, given in _ADVICE.findall(text))
    advised = [Action(name=name, arguments=given) for name, given in found if given is not None]
    steps = [own, *(step for step in advised if step.tool(tools)), *[None] * text.count(DONE)]
    votes = Counter(repr(step) for step in steps)
    return max(steps, key=lambda step: votes[repr(step)])


def _read_transcript(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Return the agent's turns of a conversation written out in one message; else `messages`."""
    text = next((message.text for message in messages if NEXT in message.text), None)
    if text is None:
        return messages
    turns: list[ChatMessage] = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(_OWN_TURN):
            words, _, calls = paragraph.removeprefix(_OWN_TURN).partition(TOOL_CALLS)
            made = [
                ToolCall(id="", function=call[0], arguments=call[1])
                for call in _parsed(calls) or ()
            ]
            turns.append(ChatMessageAssistant(content=words.strip(), tool_calls=made or None))
    return turns


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None  # of somebody else's making


def respond_as_user(
    worker: Worker, episode: Episode, messages: Sequence[ChatMessage], tools: Sequence[str]
) -> AgentTurn:
    """Return the user's next turn: a line of the script, or the tool call the agent asks for."""
    last = messages[-1] if messages else None
    lines = [line for line in episode.user_lines() if not _is_among(line, messages)]
    if last and last.role == "tool":
        return f"I have used it. It shows: {last.text[:400]}", []
    if turn_number(messages) and last:
        for name in _REQUEST.findall(last.text):
            steps = _remaining(episode.actions, messages, tools, "user")
            step = next((step for step in steps if step.name == name), None)
            tool = step.tool(tools) if step else None
            if step and tool:
                return "", [_call(worker, messages, tool, step.arguments)]
        if _TRANSFERRED.search(last.text):
            return LEAVE, []
        if _DONE.search(last.text):
            return FAREWELL, []
    return (lines[0] if lines else GIVE_UP), []


def _is_among(line: str, messages: Sequence[ChatMessage]) -> bool:
    return any(message.role == "assistant" and message.text == line for message in messages)


def _closing(messages: Sequence[ChatMessage], facts: Sequence[str]) -> str:
    calls = (call.function for call in _calls(messages))
    ending = TRANSFERRED if any(name.endswith(_TRANSFER) for name in calls) else DONE
    return f"{ending} Please note: {' and '.join(facts)}." if facts else ending


def _calls(messages: Sequence[ChatMessage]) -> Iterator[ToolCall]:
    for message in messages:
        if isinstance(message, ChatMessageAssistant):
            yield from message.tool_calls or []


def _remaining(
    actions: Sequence[Action],
    messages: Sequence[ChatMessage],
    tools: Sequence[str],
    side: Requestor,
) -> list[Action]:
    """Return the expected actions still to take, except those for which `side` lacks the tool.

    Without any tools all these actions are returned, to be described in words.
    """
    start = 0
    for message in messages:
        if not isinstance(message, ChatMessageAssistant):
            continue
        for call in message.tool_calls or []:
            start = _after(actions, start, call.function, call.arguments, side)
        for name in _REQUEST.findall(message.text) if side == "assistant" else ():
            start = _after(actions, start, name, None, "user")
    return [
        action
        for action in actions[start:]
        if not tools or action.requestor != side or action.tool(tools)
    ]


def _after(
    actions: Sequence[Action],
    start: int,
    name: str,
    arguments: dict[str, Any] | None,
    requestor: Requestor,
) -> int:
    """Return the index after an action that was taken, perhaps with a wrong argument."""
    named = [
        at
        for at in range(start, len(actions))
        if actions[at].requestor == requestor and actions[at].tool([name])
    ]
    exact = [at for at in named if arguments in (None, actions[at].arguments)]
    return next(iter([*exact, *named]), start - 1) + 1


def _call(
    worker: Worker, messages: Sequence[ChatMessage], tool: str, arguments: dict[str, Any]
) -> ToolCall:
    number = f"{worker.name}-{turn_number(messages)}"
    return ToolCall(id=number, function=tool, arguments=arguments)


def _changed(arguments: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Return a tool call's arguments with one of them wrong: a number plus 1, or a text cut."""
    names = [name for name, value in arguments.items() if value and not isinstance(value, dict)]
    if not names:
        return arguments
    name = rng.choice(names)
    value = arguments[name]
    wrong = value + 1 if isinstance(value, int | float) else value[:-1]
    return {**arguments, name: wrong}


def spell_calls(calls: Sequence[ToolCall]) -> str:
    """Return tool calls as text whose tokens are counted."""
    return "".join(f"{call.function} {json.dumps(call.arguments)}" for call in calls)
