"""An exam that shows tests without a sandbox, and trials that are plain functions, for tests."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.harness.pool import PublicTests
from podium.harness.records import Grade, Question
from tests.harness.toy_run import Toy

CODE = Question(id="code-1", text="Write a program.", kind="program")


@dataclass
class Tried:
    """What was tried, in order."""

    replies: list[str] = field(default_factory=list[str])
    questions: list[Question] = field(default_factory=list[Question])


def by_text(shares: Mapping[str, float]) -> tuple[PublicTests, Tried]:
    """Return a trial that looks the share of tests passed up by a reply's text."""
    tried = Tried()

    async def trial(question: Question, reply: str) -> Grade:
        tried.replies.append(reply)
        tried.questions.append(question)
        return Grade(shares.get(reply, 0.0), reply, f"{reply} was run")

    return trial, tried


class ShownToy(Toy):
    """The toy as an exam that shows tests; it counts how many programs run at once."""

    name = "shown"
    needs_box = True
    image = "toy-image"

    def __init__(self) -> None:
        super().__init__(splits=("eval",))
        self.running, self.most, self.trials, self.grades = 0, 0, 0, 0
        self._lock = threading.Lock()

    def try_public(self, question: Question, reply: str, box: Any) -> Grade:
        assert question.target is None
        return self._counted("trials", lambda: Grade(float(reply == "7"), reply))

    def grade(self, question: Question, reply: str, box: object | None = None) -> Grade:
        return self._counted("grades", lambda: Grade(float(reply == question.target), reply))

    def _counted(self, what: str, run: Callable[[], Grade]) -> Grade:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
            setattr(self, what, getattr(self, what) + 1)
        try:
            return run()
        finally:
            with self._lock:
                self.running -= 1
