"""No reply that was paid for is bought twice: a run keeps it until its sample is in its log."""

import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai.log import transcript
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from podium.harness.errors import UserError, WorkerError
from podium.harness.ledger.hooks import own_transcript
from podium.harness.ledger.journal import SampleRef, read_lines
from podium.harness.ledger.recorder import TaskJournal, recording
from podium.harness.ledger.system_runs import spent
from podium.harness.pool import Pool
from podium.harness.prices import read_book
from podium.harness.records import Question, Reply
from podium.harness.reply_cache import FOLDER, PaidReplies
from podium.harness.request import Offered
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.evaluate import Controls
from podium.harness.run.run import run
from podium.harness.workflow import Sampling
from tests import ROOT
from tests.harness import judged_run as judging
from tests.harness.judged_run import Judge, Whole
from tests.harness.toy_run import (
    PRICES,
    calls,
    choose,
    make_plans,
    toy_catalogue,
    toy_pool,
    toy_run,
)
from tests.providers.flaky import HEAD
from tests.providers.scripted import script
from tests.reports.audit.audited_run import failing, rows_below

CENT = Decimal("0.01")
FIVE_DRAWS: dict[str, Any] = {
    "systems": ("self-consistency",),
    "limit": 3,
    "selection_limit": 1,
}
"""Two calls choose the worker; then three questions of five equal calls."""


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """A run with money for nine calls: its second question has two replies of five."""
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=1)
    # A run that shares draws keeps all of them to its end: tests/harness/test_shared_draws.py.
    assert not toy_run(log_dir, **FIVE_DRAWS, fresh_draws=True, max_usd=9 * CENT).finished
    return log_dir


def kept(log_dir: Path) -> int:
    """Return how many replies are in the store of a run that is over."""
    with closing(sqlite3.connect(log_dir / FOLDER / "rank-0.sqlite")) as file:
        return int(file.execute("SELECT count(*) FROM replies").fetchone()[0])


# --- a run that goes on -------------------------------------------------------------------------


KILLED = """
import os, signal, sys
from pathlib import Path
from inspect_ai.hooks import Hooks, hooks
from tests.harness.toy_run import toy_run

@hooks("killer", "Kills this process once Inspect has its fifth reply, and before we hear of it.")
class Killer(Hooks):
    replies = 0

    async def on_model_usage(self, data):
        Killer.replies += 1
        if Killer.replies == 5:
            os.kill(os.getpid(), signal.SIGKILL)

toy_run(Path(sys.argv[1]), systems=("self-consistency",), limit=3, selection_limit=1)
"""


@pytest.mark.slow
def test_a_reply_that_inspect_has_and_no_journal_is_not_bought_again(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=1)
    killed = subprocess.run([sys.executable, "-c", KILLED, str(log_dir)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(calls(log_dir, "end")) == 5
    assert toy_run(log_dir, **FIVE_DRAWS).finished
    assert len(calls(log_dir)) == 2 + 3 * 5
    assert not failing(log_dir)


def test_a_question_that_was_cut_off_goes_on_with_the_replies_that_it_has_paid_for(
    stopped: Path, tmp_path: Path
) -> None:
    assert toy_run(stopped, **FIVE_DRAWS, max_usd=Decimal(1)).finished
    assert len(calls(stopped)) == 2 + 3 * 5, "no call was made twice"
    rows = rows_below(stopped)
    replayed = [row for row in rows if row.from_store]
    assert [(row.question, row.cache, row.billable) for row in replayed] == [
        ("eval-1", "read", "no")
    ] * 2
    assert {(row.usd, row.usd_list, row.counted) for row in replayed} == {(0, CENT, True)}
    assert sum(not row.counted for row in rows) == 2, "the calls that were paid for"
    assert sum(row.usd or 0 for row in rows) == CENT * len(calls(stopped))
    book = tmp_path / "book.toml"
    book.write_text(PRICES)
    assert spent(stopped, read_book(str(book))) == CENT * len(calls(stopped))
    assert failing(stopped) == set()


def test_the_store_is_its_owners_alone_and_has_only_what_no_log_has(stopped: Path) -> None:
    files = [*(stopped / FOLDER).iterdir()]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert kept(stopped) == 2


def test_a_run_that_finished_leaves_no_store(stopped: Path) -> None:
    toy_run(stopped, **FIVE_DRAWS)
    assert not (stopped / FOLDER).exists()


def test_what_is_in_a_log_is_let_go_of_and_what_is_in_none_is_not(stopped: Path) -> None:
    replies = PaidReplies(stopped)
    replies.keep(b"key", "[]", '["toy self-consistency", "eval-0", 1]')
    replies.keep(b"other", "[]", '["toy self-consistency", "eval-2", 1]')
    assert not toy_run(stopped, **FIVE_DRAWS, max_usd=9 * CENT).finished
    assert kept(stopped) == 2 + 1


def test_a_damaged_store_is_named_before_anything_is_asked(stopped: Path) -> None:
    before = len(calls(stopped))
    (stopped / FOLDER / "rank-0.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(UserError, match="is damaged: move it away"):
        toy_run(stopped, **FIVE_DRAWS)
    assert len(calls(stopped)) == before


# --- what is one and the same draw --------------------------------------------------------------


@dataclass(slots=True)
class Counted:
    """How often the model below was asked."""

    asked: int = 0


COUNTED = Counted()


class DrawingAPI(ModelAPI):
    """Says how often it was asked; with tools it calls one."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        COUNTED.asked += 1
        said = f"draw {COUNTED.asked}"
        output = ModelOutput.from_content(self.model_name, said)
        if tools:
            arguments = {"number": COUNTED.asked}
            output = ModelOutput.for_tool_call(self.model_name, tools[0].name, arguments)
        output.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
        return output


@modelapi(name="drawing")
def drawing() -> type[ModelAPI]:
    """Register the provider with Inspect."""
    return DrawingAPI


@contextmanager
def system_run(log_dir: Path, task: str = "task", epoch: int = 1) -> Iterator[None]:
    """Let a sample of a run be asked within; each time it is a new attempt at it."""
    journal = TaskJournal(log_dir, replace(HEAD, task=task), PaidReplies(log_dir))
    try:
        with recording(journal, "inference", SampleRef("q1", epoch, "uuid")):
            yield
    finally:
        journal.close()


def drawn(log_dir: Path, text: str = "Go.", sampling: Sampling | None = None, **more: Any) -> str:
    """Ask one worker once, in a new attempt at a sample, and return its reply."""
    settings, args = more.pop("settings", {}), more.pop("args", {})
    model = get_model("drawing/x", config=GenerateConfig(**settings), memoize=False, **args)

    async def ask() -> Reply:
        return await Pool({"sage": model}).ask(
            "sage", [ChatMessageUser(content=text)], "step", sampling
        )

    with system_run(log_dir, **more):
        return anyio.run(ask).text


def test_the_same_draw_is_paid_for_once(tmp_path: Path) -> None:
    assert drawn(tmp_path) == drawn(tmp_path)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"text": "Stop."}, id="another request"),
        pytest.param({"sampling": Sampling(temperature=0.5)}, id="a step's sampling"),
        pytest.param({"settings": {"temperature": 0.5}}, id="a worker's settings"),
        pytest.param({"settings": {"cache": True}}, id="a cache"),
        pytest.param({"args": {"tier": "fast"}}, id="a provider's arguments"),
        pytest.param({"epoch": 2}, id="another epoch"),
        pytest.param({"task": "other"}, id="another system"),
    ],
)
def test_what_differs_is_another_draw(other: dict[str, Any], tmp_path: Path) -> None:
    assert drawn(tmp_path) != drawn(tmp_path, **other)


def test_equal_requests_of_a_sample_are_draws_of_their_own_each_time(tmp_path: Path) -> None:
    model = get_model("drawing/x", memoize=False)

    async def ask_three() -> list[str]:
        pool, said = Pool({"sage": model}), list[str]()

        async def ask() -> None:
            asked = [ChatMessageUser(content="Go.")]
            said.append((await pool.ask("sage", asked, "step")).text)

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
        return sorted(said)

    found: list[list[str]] = []
    for _ in range(2):
        with system_run(tmp_path):
            found.append(anyio.run(ask_three))
    assert found[0] == found[1]
    assert len(set(found[0])) == 3


def test_a_bridged_reply_is_read_back_with_its_tool_calls(tmp_path: Path) -> None:
    model = get_model("drawing/x", memoize=False)
    offered = Offered(tools=[ToolInfo(name="add", description="Add.")], tool_choice="auto")

    async def relay() -> ModelOutput:
        asked = [ChatMessageUser(content="Go.")]
        return (await Pool({"sage": model}).relay("sage", asked, "step", offered))[0]

    found: list[ModelOutput] = []
    for _ in range(2):
        with system_run(tmp_path):
            found.append(anyio.run(relay))
    assert found[0].message.tool_calls == found[1].message.tool_calls
    assert found[0].stop_reason == found[1].stop_reason == "tool_calls"


def test_the_reply_is_in_the_store_before_its_outcome_is_written(tmp_path: Path) -> None:
    drawn(tmp_path)
    for path in tmp_path.glob("ledger/*/*.jsonl"):
        path.unlink()  # as if it had died in between
    before = COUNTED.asked
    drawn(tmp_path)
    assert COUNTED.asked == before
    (path,) = tmp_path.glob("ledger/*/*.jsonl")
    (outcome,) = [line for line in read_lines(path) if line["kind"] == "outcome"]
    assert (outcome["from_store"], outcome["cache"], outcome["usage"]["output"]) == (
        True,
        "read",
        3,
    )


def test_a_reply_that_is_read_back_is_in_the_journal_before_inspects_log_has_it(
    tmp_path: Path,
) -> None:
    drawn(tmp_path)
    shutil.rmtree(tmp_path / "ledger")
    (tmp_path / "ledger").write_text("")  # no journal can be opened: as if it had died in between
    model = get_model("drawing/x", memoize=False)

    async def ask() -> list[str]:
        with pytest.raises(WorkerError, match="ledger"):
            await Pool({"sage": model}).ask("sage", [ChatMessageUser(content="Go.")], "step")
        return [one.event for one in transcript().events]

    before = COUNTED.asked
    with own_transcript(), system_run(tmp_path):  # an earlier test may have left one to all
        assert "model" not in anyio.run(ask)
    assert COUNTED.asked == before


# --- judges -------------------------------------------------------------------------------------


class Interrupted(Whole):
    """An exam whose run is stopped when a judge has just answered."""

    async def judged(self, state: Any, question: Question) -> Any:
        await Whole.judged(self, state, question)
        raise KeyboardInterrupt


def judged(tmp_path: Path, suite: Whole) -> Path:
    """Let the pupil sit the exam, and return the log directory."""
    asked = RunRequest(
        suites=("rlpr",),
        systems=("single:pupil",),
        pool=str(judging.pool_file(tmp_path)),
        log_dir=tmp_path / "logs",
        display="none",
    )
    controls = Controls(choose=choose, make_plans=make_plans, opened=lambda *_: None)
    run(asked, replace(toy_catalogue(), suites={"rlpr": suite}), controls)
    return asked.log_dir


def test_a_judges_reply_is_paid_for_once(tmp_path: Path) -> None:
    judge, data = Judge(), judging.folder(tmp_path, [*judging.ROWS])
    script("pupil", judging.pupil)
    script("judge", judge)
    with pytest.raises(KeyboardInterrupt):
        judged(tmp_path, Interrupted(data=data))
    assert len(judge.heard) == 1
    log_dir = judged(tmp_path, Whole(data=data))
    assert len(judge.heard) == 1
    assert judging.scores(judging.log_of(log_dir))["prose"].value == 1.0
    replayed = [row for row in rows_below(log_dir) if row.from_store]
    assert [(row.scope, row.role) for row in replayed if row.scope == "scoring"] == [
        ("scoring", "grader")
    ]
    assert failing(log_dir) == set()
