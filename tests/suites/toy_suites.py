"""Toy exams that ask in another way: differently in each epoch, or in the words of a paper."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from inspect_ai.log import EvalSample, list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.solver import TaskState

from podium.harness.context import current
from podium.harness.ledger.recorder import record_call
from podium.harness.records import GRADER, Grade, Question
from podium.harness.request import Request
from podium.harness.suite import OFFICIAL, Prompt, Split
from tests.harness.toy_run import Toy


class VariedToy(Toy):
    """Four epochs unless told otherwise; the answer is 42 in odd ones and 7 in even ones."""

    name = "varied"
    epochs = 4

    def at_epoch(self, question: Question, epoch: int) -> Question:
        if epoch == 1:
            return question
        target = "42" if epoch % 2 else "7"
        return replace(question, text=f"{question.text} (epoch {epoch})", target=target)


class PromptedToy(Toy):
    """A toy that knows a paper's words, and says in a grade in which words it asked."""

    prompts: tuple[Prompt, ...] = (OFFICIAL, "paper")

    def __init__(self, prompt: Prompt = OFFICIAL) -> None:
        super().__init__()
        self.prompt = prompt

    def prompted(self, prompt: Prompt) -> "PromptedToy":
        return PromptedToy(prompt)

    def load(self, split: Split = "eval") -> Sequence[Question]:
        put = "?" if self.prompt == OFFICIAL else ", as the paper asks?"
        return [replace(one, text=one.text.replace("?", put)) for one in super().load(split)]

    def grade(self, question: Question, reply: str, box: object | None = None) -> Grade:
        return replace(super().grade(question, reply, box), explanation=f"asked: {self.prompt}")


class JudgedToy(Toy):
    """A toy that no rule can grade."""

    name = "judged"

    def needs_judge(self, question: Question) -> bool:
        return True

    async def judged(self, state: TaskState, question: Question) -> Grade:
        judge = get_model(role=GRADER)
        prompt = ChatMessageUser(content=f"Judge {question.id} : {state.output.completion}")
        request = Request(GRADER, judge, [prompt], price_ref=str(judge))
        async with record_call(request, current().spend) as call:
            said = call.output = await judge.generate([prompt])
        return Grade(float(said.completion == "7"), said.completion)


def samples(log_dir: Path) -> list[EvalSample]:
    """Return the samples of all logs of a directory by question and epoch, as last written."""
    logs = sorted(list_eval_logs(str(log_dir), recursive=False), key=lambda log: log.name)
    found = [sample for log in logs for sample in read_eval_log(log).samples or []]
    newest = {(str(one.id), one.epoch): one for one in found}
    return [newest[pair] for pair in sorted(newest)]


def asked(sample: EvalSample) -> str:
    """Return what the model was really sent."""
    (event,) = [event for event in sample.events if event.event == "model"]
    return event.input[-1].text
