"""A process killed before its finished questions are in the log: their answers stay right."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalLog, recoverable_eval_logs
from inspect_ai.model import ModelOutput

from podium.harness.ledger.hooks import SampleDigests, text_digest
from podium.harness.ledger.logs import answer_in
from podium.harness.model_judge import regrade
from podium.harness.pool import Pool
from podium.harness.records import Answer, Question
from tests import ROOT
from tests.harness.runs import Crew, Exam, sit, steps
from tests.providers.scripted import Heard


async def second_of_two(question: Question, pool: Pool) -> Answer:
    """Ask two workers, and answer with what the second one said."""
    answer = await steps("sage", "clerk")(question, pool)
    return replace(answer, text=question.text.removeprefix("Say "))


def last(heard: Heard) -> str:
    """Kill this process at the last question, as a machine that goes down does."""
    if "Say 4" in heard.last:
        os.kill(os.getpid(), signal.SIGKILL)
    return "0"


def exam_of_a_process_that_is_killed(log_dir: Path) -> None:
    settings = {"log_buffer": 100, "max_samples": 1}
    sit(log_dir, "second-of-two", second_of_two, Crew(sage=last), settings=settings)


@pytest.mark.slow
def test_an_answer_that_was_not_the_last_reply_is_not_taken_for_it(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", __name__, str(tmp_path)], cwd=ROOT, check=False)
    assert done.returncode == -signal.SIGKILL
    [crashed] = recoverable_eval_logs(str(tmp_path))
    assert (crashed.flushed_samples, crashed.completed_samples) == (0, 3)
    *_, log = sit(tmp_path, "second-of-two", second_of_two, Crew(sage=lambda heard: "0"))
    assert log.status == "success"
    samples = [read_back(log, at) for at in range(4)]
    assert [one["output"]["completion"] for one in samples] == ["0", "0", "0", "4"]  # Inspect's own
    assert [answer_in(one) for one in samples] == ["1", "2", "3", "4"]
    digests = [SampleDigests(one) for one in samples]
    assert [one.answer for one in digests] == [text_digest(answer_in(one)) for one in samples]
    assert [one.elsewhere for one in digests] == [()] * 4
    graded = regrade(log, Exam(), None, everything=True)
    assert graded
    assert (graded.graded, graded.changed) == (4, 0)
    # What no worker said is no reply that Inspect took.
    samples[0]["output"] = ModelOutput.from_content("sage", "9").model_dump()
    assert SampleDigests(samples[0]).elsewhere == ("its output", "its last message")


def read_back(log: EvalLog, at: int) -> dict[str, Any]:
    return json.loads((log.samples or [])[at].model_dump_json())


if __name__ == "__main__":
    exam_of_a_process_that_is_killed(Path(sys.argv[1]))
