"""Seven fake models of known strengths, behind the dialects of their providers: who is asked?"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import pytest

from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.ledger.system_runs import load_runs
from podium.harness.pool_config import read_pool
from podium.harness.records import Question, Usage
from podium.harness.rewards.splits import load_split
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.run import run
from podium.reports.audit import audit
from podium.suites import SUITES
from tests.providers import CLIENTS_WARN, Act, ok, serve
from tests.providers.dialect import Asked
from tests.providers.paper_pool import write_paper_pool

pytestmark = [
    pytest.mark.slow,
    CLIENTS_WARN,
    # The paper's dated model has an end of life; anthropic's client says so at every call.
    pytest.mark.filterwarnings("ignore:The model 'claude-sonnet-4:DeprecationWarning"),
]

VALUES, CHOICES = "practice-integer", "practice-choice"
WEAK = 0.15
TRAIN_CALLS = 280  # twenty questions of each suite for each of seven workers
QUESTIONS = 15


class Strength(NamedTuple):
    """How often a model is right, by suite."""

    values: float
    choices: float

    def on(self, suite: str) -> float:
        return self.values if suite == VALUES else self.choices


def asked_about() -> Mapping[str, tuple[str, Question]]:
    """Return all questions that a run may ask, by their texts."""
    return {
        one.text: (name, one)
        for name in (VALUES, CHOICES)
        for split in ("train", "eval")
        for one in load_split(SUITES[name], split).questions.values()
    }


def chance(*parts: str) -> float:
    """Return a number below 1 that follows from some words."""
    return int.from_bytes(hashlib.sha256("/".join(parts).encode()).digest()[:4]) / 2**32


def shares(log_dir: Path, strengths: Mapping[str, Strength]) -> dict[str, Counter[str]]:
    """Run the conductor on models of these strengths, and return who answers, by suite."""
    known = asked_about()

    def answers(asked: Asked) -> Act:
        text = next(text for text in known if text in asked.prompt)
        suite, question = known[text]
        model = asked.model.rpartition("/")[2]
        right = chance(model, text) < strengths[by_model[model]].on(suite)
        taken = Usage(input=len(asked.prompt) // 4 + 1, output=30, reasoning=20)
        return ok(f"ANSWER: {question.target}" if right else "ANSWER: none that I know.", taken)

    with serve(answers) as server:
        pool = write_paper_pool(log_dir.parent, server)
        by_model = {one.model.rpartition("/")[2]: one.name for one in read_pool(pool).workers}
        request = RunRequest(
            suites=(VALUES, CHOICES), systems=("conductor-profiled",), pool=pool, log_dir=log_dir,
            limit=QUESTIONS, train_calls=TRAIN_CALLS, display="none", max_usd=Decimal(20),
        )  # fmt: skip
        outcome = run(request, whole_catalogue(), controls())
    assert (outcome.finished, list(outcome.trouble)) == (True, [])
    assert [one for one in audit(log_dir).verdicts if one.status == "fail"] == []
    found: dict[str, Counter[str]] = {VALUES: Counter(), CHOICES: Counter()}
    for one in load_runs([log_dir])[0]:
        if one.facts.system == "conductor-profiled":
            for attempt in one.attempts:
                last = str(attempt.plan_shape).split(", ")[-1]
                found[one.facts.suite][last.partition("(")[0]] += 1
    return found


EVERYBODY = dict.fromkeys(read_pool("paper-constrained").names, Strength(WEAK, WEAK))


def test_who_answers_follows_who_was_right(tmp_path: Path) -> None:
    best = {"claude-sonnet-4.6": Strength(0.9, WEAK), "gemini-2.5-pro": Strength(WEAK, 0.9)}
    found = shares(tmp_path / "run", EVERYBODY | best)
    assert found[VALUES]["claude-sonnet-4.6"] >= 0.7 * QUESTIONS, found
    assert found[CHOICES]["gemini-2.5-pro"] >= 0.7 * QUESTIONS, found


def test_of_two_that_are_as_good_the_cheaper_answers(tmp_path: Path) -> None:
    equal = dict.fromkeys(("gpt-5", "gemma-3-27b"), Strength(0.9, 0.9))
    found = shares(tmp_path / "run", EVERYBODY | equal)
    for suite in (VALUES, CHOICES):
        assert found[suite]["gemma-3-27b"] >= 0.7 * QUESTIONS, found
        assert found[suite]["gemma-3-27b"] > found[suite]["gpt-5"]
