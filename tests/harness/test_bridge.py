"""A framework's calls go through the pool like all others, and nothing else of it gets out.

The frameworks here are a few lines around OpenAI's own client; tests/baselines runs the
real ones.
"""

import asyncio
import subprocess
import urllib.request
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.solver import Solver, solver
from openai import AsyncOpenAI

from podium.harness.bridge import bridge_framework, client_settings
from podium.harness.inspect_adapters import as_solver
from podium.harness.pool import Pool
from podium.harness.records import PODIUM, Usage
from podium.harness.workflow import workflow_of
from podium.reports.audit import audit
from podium.suites._registry import practice_integer
from tests.harness.runs import Crew, Exam, failing_on, number
from tests.providers import CLIENTS_WARN, ok, serve, write_pool
from tests.providers.scripted import Heard
from tests.reports.audit.audited_run import rows_below, sat

pytestmark = CLIENTS_WARN

Ask = Callable[[str, str], Awaitable[str]]
ONE = Exam(size=1)


async def chat(model: str, text: str, base_url: str | None = None) -> str:
    """Ask as frameworks do: by chat completions."""
    settings: Any = client_settings() | ({"base_url": base_url} if base_url else {})
    async with AsyncOpenAI(**settings) as client:
        done = await client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": text}], temperature=0.9
        )
    return done.choices[0].message.content or ""


async def respond(model: str, text: str) -> str:
    """Ask as OpenAI's own SDK does: by responses."""
    async with AsyncOpenAI(**client_settings()) as client:
        done = await client.responses.create(
            model=model, instructions="Be brief.", input=text, temperature=0.9
        )
    return done.output_text


def sat_once(
    folder: Path, work: Callable[[str], Awaitable[str]], crew: Crew | None = None
) -> tuple[EvalLog, EvalSample]:
    """Let a framework answer one question, its calls written down."""

    async def framework(question: str, pool: Pool) -> str:
        return await work(question)

    system = bridge_framework("toy framework", framework)
    (log,) = sat(folder, "toy", system, crew or Crew(), exam=ONE)
    assert log.samples
    return log, log.samples[0]


def said(sample: EvalSample) -> str:
    return sample.error.message if sample.error else ""


@pytest.mark.parametrize("ask", [chat, respond])
def test_calls_of_a_framework_are_on_the_ledger_as_all_others_are(ask: Ask, tmp_path: Path) -> None:
    async def work(question: str) -> str:
        draft = await ask("inspect/clerk", question)
        return await ask("inspect/sage", f"{question}\n\nIs it the number {draft}, really?")

    log, sample = sat_once(tmp_path, work)
    rows = rows_below(tmp_path)
    assert [(row.role, row.step) for row in rows] == [
        ("clerk", "step 1: clerk"),
        ("sage", "step 2: sage"),
    ]
    assert all(row.usd and row.usd > 0 and row.counted and row.journal for row in rows)
    assert {name for name, used in (sample.role_usage or {}).items() if used.total_tokens} == {
        "clerk",
        "sage",
    }
    assert (log.status, (sample.scores or {})["podium"].value) == ("success", 1.0)
    verdicts = audit(tmp_path).verdicts
    assert not [one.invariant for one in verdicts if one.status == "fail"]


def test_the_workflow_that_was_run_names_what_was_said_and_may_have_been_read(
    tmp_path: Path,
) -> None:
    long = Crew(clerk=lambda heard: "a draft that is long enough")

    async def work(question: str) -> str:
        draft = await chat("inspect/clerk", question)
        return await chat("inspect/sage", f"{question}\n\nGiven: {draft}")

    _, sample = sat_once(tmp_path, work, long)
    shape = sample.metadata[PODIUM]
    workflow = workflow_of(shape["plan"])
    assert workflow is not None
    assert [(one.worker, one.subtask, one.reads) for one in workflow.steps] == [
        ("clerk", "[question]", ()),
        ("sage", "[question]\n\nGiven: [reply 1]", (0,)),
    ]
    assert (shape["steps"], shape["depth"]) == (2, 2)


def test_a_worker_keeps_its_own_sampling_settings(tmp_path: Path) -> None:
    async def work(question: str) -> str:
        return await chat("inspect/sage", question)

    _, sample = sat_once(tmp_path, work)
    (event,) = [event for event in sample.events if isinstance(event, ModelEvent)]
    assert event.config.temperature is None
    assert event.config.extra_headers is None


def test_the_same_request_twice_is_two_draws(tmp_path: Path) -> None:
    heard: list[int] = []

    def count(request: Heard) -> str:
        heard.append(request.occurrence)
        return number(request)

    async def work(question: str) -> str:
        await chat("inspect/sage", question)
        return await chat("inspect/sage", question)

    sat_once(tmp_path, work, Crew(sage=count))
    assert heard == [0, 1]


@pytest.mark.parametrize("model", ["inspect/nobody", "inspect", "inspect/openai/gpt-5"])
def test_a_model_that_is_no_worker_is_refused_even_if_the_framework_does_not_mind(
    model: str, tmp_path: Path
) -> None:
    async def work(question: str) -> str:
        try:
            return await chat(model, question)
        except Exception:
            return question.removeprefix("Say ")

    _, sample = sat_once(tmp_path, work)
    assert "toy framework called" in said(sample)
    assert "inspect/sage, inspect/clerk" in said(sample)
    assert not sample.scores
    assert rows_below(tmp_path) == []


def test_a_call_that_is_not_bridged_leaves_nothing_at_the_provider_and_the_question_unscored(
    tmp_path: Path,
) -> None:
    with serve() as server:

        async def work(question: str) -> str:
            with suppress(Exception):
                await chat("gpt-5", question, server.openai)
            return question.removeprefix("Say ")

        log, sample = sat_once(tmp_path, work)
        assert not server.bill.lines
    address = server.url.removeprefix("http://")
    assert f"toy framework tried to reach {address} without the ledger" in said(sample)
    assert (log.status, sample.scores or {}) == ("error", {})


@pytest.mark.parametrize("threaded", [False, True], ids=["called", "in a thread"])
def test_blocking_clients_are_refused_too(threaded: bool, tmp_path: Path) -> None:
    with serve() as server:

        def reach() -> None:
            with pytest.raises(Exception, match="without the ledger"):
                urllib.request.urlopen(f"{server.url}/v1/models", timeout=5)

        async def work(question: str) -> str:
            if threaded:
                await asyncio.to_thread(reach)
            else:
                reach()
            return await chat("inspect/sage", question)

        _, sample = sat_once(tmp_path, work)
        assert not server.bill.lines
    assert "without the ledger" in said(sample)


def test_a_program_that_a_framework_starts_is_refused(tmp_path: Path) -> None:
    async def work(question: str) -> str:
        subprocess.run(["true"], check=True)
        return question

    _, sample = sat_once(tmp_path, work)
    assert "tried to start a program" in said(sample)
    assert subprocess.run(["true"], check=False).returncode == 0


def test_a_worker_that_is_down_leaves_the_question_unscored_and_nothing_more_is_asked(
    tmp_path: Path,
) -> None:
    asked: list[str] = []

    async def work(question: str) -> str:
        for _ in range(3):
            try:
                return await chat("inspect/sage", question)
            except Exception:
                asked.append("again")
        return question.removeprefix("Say ")

    _, sample = sat_once(tmp_path, work, Crew(sage=failing_on("Say 1")))
    assert "gave no reply: provider down" in said(sample)
    assert len(asked) == 3
    assert len(rows_below(tmp_path)) == 1


def test_a_framework_that_breaks_is_named_with_the_kind_of_its_error(tmp_path: Path) -> None:
    async def work(question: str) -> str:
        await chat("inspect/sage", question)
        raise KeyError(question)

    _, sample = sat_once(tmp_path, work)
    assert "toy framework failed with KeyError after 1 calls." in said(sample)


def test_an_empty_answer_is_graded_and_wrong(tmp_path: Path) -> None:
    async def work(question: str) -> str:
        return ""

    log, sample = sat_once(tmp_path, work)
    assert (log.status, (sample.scores or {})["podium"].value) == ("success", 0.0)


def test_our_own_providers_reach_theirs_and_absent_roles_come_from_the_pool_file(
    tmp_path: Path,
) -> None:
    async def framework(question: str, pool: Pool) -> str:
        return await chat(f"inspect/{pool.workers[0]}", question)

    took = Usage(input=100, output=40)
    with serve([ok("ANSWER: 7", usage=took)]) as server:
        pool = write_pool(tmp_path, server)

        @solver
        def toy() -> Solver:
            return as_solver(bridge_framework("toy framework", framework), pool)

        exam = practice_integer()
        (log,) = eval(exam, solver=toy(), limit=1, display="none", log_dir=str(tmp_path))
        assert len(server.bill.lines) == 1
    assert log.samples
    used = (log.samples[0].role_usage or {})["olive"]
    assert (used.input_tokens, used.output_tokens) == (100, 40)
