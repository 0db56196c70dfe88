"""Every query of a run in full, in the files of a site: whole, exact, and nothing of a secret."""

import json
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from inspect_ai.model import ChatMessageUser

from harness.audit import audit
from harness.ledger.details import QuestionFilter, as_json, details
from harness.pool import Pool
from harness.records import CONDUCTOR, Answer, Grade, Question
from harness.system import planned
from harness.workflow import MALFORMED, Step, Workflow
from reports.report import report_of
from reports.site import SiteOptions, texts, write_site
from reports.site.index import SHARD
from reports.site.texts import LONGEST, row_texts, text_files, text_shard
from tests.harness.runs import BoxDown, Crew, Exam, number, sit, steps
from tests.providers.scripted import Heard
from tests.reports.site.hostile import ALL, CLASSICS, LINE, ODD, hostile_run
from tests.reports.site.site_bytes import files_with, texts_in

PLANTED = {
    name: f"canary{name}{at}x7f3a"
    for at, name in enumerate(
        (
            *("question", "option", "target", "topic", "metadata", "asked", "prompt", "reply"),
            *("subtask", "malformed", "found", "explanation", "rule", "error", "grader"),
        )
    )
}
"""A word for each place where a text of a suite may stand."""


class CanaryExam(Exam):
    """Questions that are full of canaries, and so is what their grader says."""

    def load(self, split: str = "eval") -> Sequence[Question]:
        """Return two questions."""
        return [
            Question(
                id=f"q{at}",
                text=f"Say {at} {PLANTED['question']}",
                kind="choice",
                target=PLANTED["target"],
                metadata={"choices": [PLANTED["option"]], "note": PLANTED["metadata"]},
            )
            for at in (1, 2)
        ]

    def grade(self, question: Question, reply: str, box: object = None) -> Grade:
        """Fail on the second question of a system that replies at length."""
        if "broken" in reply:
            raise BoxDown(f"the box is down: {PLANTED['grader']}")
        facts = {"rule": PLANTED["rule"], "reason": PLANTED["rule"]}
        return Grade(0.0, PLANTED["found"], PLANTED["explanation"], facts)


def canary_run(home: Path, *, publishable: bool) -> Path:
    """Let four systems sit it: one that plans, one whose provider fails, one that plans wrongly."""
    exam = CanaryExam(publishable=publishable)
    crew = Crew(
        sage=lambda heard: PLANTED["reply"],
        clerk=lambda heard: f"broken {PLANTED['reply']}",
        planner=lambda heard: PLANTED["reply"],
    )

    def failing(heard: Heard) -> str:
        raise RuntimeError(f"the provider quotes {PLANTED['error']}")

    async def conducted(question: Question, pool: Pool) -> Answer:
        asked = [ChatMessageUser(content=f"{question.text} {PLANTED['prompt']}")]
        await pool.ask(CONDUCTOR, asked, "conductor: plan")
        plan = Workflow((Step("clerk", PLANTED["subtask"]), Step("sage", PLANTED["subtask"], "all")))
        return await planned(lambda *_: plan)(question, pool)

    async def malformed(question: Question, pool: Pool) -> Answer:
        await pool.ask(CONDUCTOR, [ChatMessageUser(content=question.text)], "conductor: plan")
        return Answer("", plan=f"{MALFORMED}{PLANTED['malformed']}")

    sit(home, "single:sage", crew=crew, exam=exam)
    sit(home, "single:clerk", steps("clerk"), crew, exam=exam)
    sit(home, "conductor", conducted, crew, exam=exam)
    sit(home, "failing", crew=replace(crew, sage=failing), exam=exam)
    sit(home, "conductor-prompted", malformed, crew, exam=exam)
    return home
