"""Answer a question about numbers: place known facts, understand the words, work it out."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from harness.rehearsal.chat import Chat
from harness.rehearsal.evaluate import evaluate
from harness.rehearsal.facts import COMMON, spellings
from harness.rehearsal.lookups import open_lookup
from harness.rehearsal.placing import placed
from harness.rehearsal.reciting import Knows, statements
from harness.rehearsal.scratch import OutOfReach, Scratch
from harness.rehearsal.trees import Node
from harness.rehearsal.understanding import read
from harness.rehearsal.workers import Facts, Worker


@dataclass(frozen=True, slots=True)
class Attempt:
    """What a worker came to by its own work."""

    answer: str | None
    why: str = ""
    """Why there is no answer, in the worker's words."""


def knowing(worker: Worker) -> Knows:
    """Return which names a worker knows facts about."""
    return _knowing(worker.facts)


@cache
def _knowing(facts: Facts) -> Knows:
    if facts == "all":
        return lambda name: True
    common = COMMON if facts == "common" else frozenset[str]()
    return lambda name: spellings().get(name, name) in common


def with_facts(worker: Worker, chat: Chat, text: str) -> str:
    """Return a text with numbers for the phrases that earlier replies, or the worker, know."""
    text = placed(text, chat.earlier)
    if worker.facts == "none":
        return text
    return placed(text, ["\n".join(statements(text, knowing(worker)))])


def calculate(worker: Worker, chat: Chat, paper: Scratch) -> Attempt:
    """Work the question (or a subtask that is a calculation of its own) out on paper."""
    problem = None
    opened = open_lookup(with_facts(worker, chat, chat.question))
    if opened is not None:
        part = _first_part(worker, opened, paper)
        if part is not None:
            return part
    for text in (chat.subtask, chat.question):
        problem = read_problem(worker, with_facts(worker, chat, text)) if text else None
        if problem is not None:
            break
    if problem is None:
        return Attempt(None, "I do not see a calculation that I know how to do here")
    try:
        value = evaluate(problem, paper)
    except OutOfReach as limit:
        return Attempt(None, str(limit))
    return Attempt(str(value))


def _first_part(worker: Worker, opened: tuple[str, str], paper: Scratch) -> Attempt | None:
    """Work out the number of what has to be looked up, and state it for whoever knows facts."""
    problem = read_problem(worker, opened[1])
    if problem is None:
        return None
    try:
        return Attempt(None, f"the value of {opened[0]} is {evaluate(problem, paper)}")
    except OutOfReach as limit:
        return Attempt(None, str(limit))


def read_problem(worker: Worker, text: str) -> Node | None:
    """Return the calculation in a text, None when there is none this worker can see."""
    return _read(text, worker.stories)


@lru_cache(maxsize=4096)
def _read(text: str, stories: bool) -> Node | None:
    """Read a text once: a calculation is immutable, and workers read the same question again."""
    return read(text, stories)


def agreed(values: Sequence[str | None]) -> str | None:
    """Return the value that occurs most often, the earliest among equals.

    >>> agreed(["41", None, "42", "42"])
    '42'
    """
    said = [value for value in values if value is not None]
    return max(said, key=said.count) if said else None
