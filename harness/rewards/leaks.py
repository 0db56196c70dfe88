"""Whether a plan's subtasks already hold the answer: then a worker was told, and asked nothing.

The executor shows no target to anyone, so a leak is the policy's own answer, or what it learnt by
heart. The share of such plans is reported beside the reward, which does not change. It is an upper
bound where targets are short: a step called "step 7" holds 7. Not here: what is done about it.
"""

import json
import re
from dataclasses import replace

from harness.extract import extract_choice
from harness.records import Question
from harness.rewards.exams import normal_text
from harness.rewards.items import Work

_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


def described(work: Work, question: Question, *, publishable: bool) -> Work:
    """Return what may be said of a workflow: whether it leaks, and its words where they may be."""
    subtasks = [str(step["subtask"]) for step in json.loads(work.plan or "[]")]
    found = leaks(question, subtasks)
    return replace(work, leaked=found, plan=work.plan if publishable else "")


def leaks(question: Question, subtasks: list[str]) -> bool | None:
    """Return whether the target of an unsealed question is in a subtask and not in the question.

    Texts are compared as `normal_text` has them; a choice is leaked by a subtask that the reader of
    replies finds its letter in. None for programs, whose target is no answer, and without a target.

    >>> seven = Question("q", "What is 3 + 4?", "integer", target="7")
    >>> leaks(seven, ["Add them."]), leaks(seven, ["Say that it is 7."])
    (False, True)
    """
    target = question.target
    if question.kind == "program" or not target:
        return None
    if question.kind == "choice":
        return any(extract_choice(subtask) == target for subtask in subtasks)
    wanted = _words(target)
    if not wanted.strip() or wanted in _words(question.text):
        return False
    return any(wanted in _words(subtask) for subtask in subtasks)


def _words(text: str) -> str:
    return f" {normal_text(_THOUSANDS.sub('', text))} "
