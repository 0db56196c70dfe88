"""Asking rehearsal workers directly, for tests: questions from a hand-written file, no provider."""

import random
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser

from podium.suites.practice.workers.provider import respond
from podium.suites.practice.workers.workers import AnswerKind, final_answer, find_worker

Item = dict[str, Any]
QUESTIONS: dict[str, list[Item]] = tomllib.loads(
    Path(__file__).with_name("questions.toml").read_text(encoding="utf-8")
)
ENDINGS = {
    "integer": "Put your final answer, an integer from 0 to 999, in \\boxed{}.",
    "composed": "Put your final answer in \\boxed{}.",
    "choice": 'The last line of your reply should be of the form "Answer: X".',
    "program": "Reply with one ```python block.",
}
ASKED: dict[str, AnswerKind] = {
    "integer": "number",
    "composed": "number",
    "choice": "choice",
    "program": "program",
}


def ask(worker: str, *turns: str, heat: float = 0.0, draw: int = 0) -> str:
    """Put a chat (user and assistant in turn) to a worker, without slips unless there is heat."""
    chat: list[ChatMessage] = [
        ChatMessageAssistant(content=turn) if at % 2 else ChatMessageUser(content=turn)
        for at, turn in enumerate(turns)
    ]
    return respond(find_worker(worker), chat, random.Random(f"{worker}/{turns}/{draw}"), heat)


def prompt(kind: str, item: Item) -> str:
    """Return a question as a worker is sent it."""
    return f"{item['text']}\n\n{ENDINGS[kind]}"


def is_right(kind: str, item: Item, reply: str) -> bool:
    """Grade a reply to a hand-written question; programs are run on their tests."""
    answer = final_answer(reply, ASKED[kind])
    if kind != "program" or answer is None:
        return answer is not None and answer == item.get("target")
    return all(_output(answer, given) == wanted for given, wanted in item["tests"])


def _output(program: str, given: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-I", "-c", program],
        input=given, capture_output=True, text=True, timeout=10, check=False,
    )  # fmt: skip
    return ran.stdout.strip()


def accuracy(worker: str, kind: str, *, heat: float = 0.0, draws: int = 1) -> float:
    """Return a worker's accuracy on one kind of hand-written question."""
    verdicts = [
        is_right(kind, item, ask(worker, prompt(kind, item), heat=heat, draw=draw))
        for item in QUESTIONS[kind]
        for draw in range(draws)
    ]
    return sum(verdicts) / len(verdicts)
