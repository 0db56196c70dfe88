"""Whatever JSON a provider sends, the call is written down, counted, and fails as a call fails."""

import hashlib
from collections.abc import Generator
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from inspect_ai._util.json import to_json_safe
from inspect_ai.log import transcript
from inspect_ai.model import ChatMessageUser, GenerateConfig, get_model

from podium.cli import main
from podium.harness.budget import Spend
from podium.harness.cassette import open_cassette
from podium.harness.errors import PodiumError
from podium.harness.ledger.hooks import own_transcript
from podium.harness.ledger.journal import FOLDER, Head, read_chain, read_lines, usage_of
from podium.harness.ledger.logs import CallEvent, events_of
from podium.harness.ledger.recorder import recording_calls
from podium.harness.pool import Pool
from podium.harness.prices import book_from_json
from podium.harness.records import Reply, Usage
from podium.reports.audit.amounts import UNBELIEVED
from tests.harness.faulty_run import ONE_TRY, run, run_pool, usage
from tests.providers import CLIENTS_WARN, Act, Server, serve, write_pool
from tests.providers.faults import CHAT, DIALECTS, MESSAGES, RESPONSES, TOOK

pytestmark = [
    CLIENTS_WARN,
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),  # OpenAI's client, of usage
]

MODELS = {
    CHAT: "openai/gpt-4o-mini",
    RESPONSES: "openai/gpt-5-mini",
    MESSAGES: "anthropic/claude-sonnet-5",
}
ASKED = "What is 3 + 4?"
MOST = (len(ASKED) * 3 + 64 * 15) / Decimal(10**6)
"""Dollars that a call can cost, but for a chat template."""
HEAD = Head("", "exam", "served", "live", "", "")
ANY_TEXT = st.text(st.characters(codec=None), max_size=5) | st.sampled_from(
    ["\ud800", "\0", "length", "content_filter", "tool_use", "max_tokens", "12", "-3"]
)
ANY_NUMBER = st.integers() | st.floats() | st.sampled_from([10**30, -1, 1e300, 2**63, 12.0])
ANY_JSON = st.recursive(
    st.none() | st.booleans() | ANY_NUMBER | ANY_TEXT,
    lambda below: st.lists(below, max_size=2) | st.dictionaries(ANY_TEXT, below, max_size=2),
    max_leaves=4,
)
CHANGES = st.lists(st.tuples(st.lists(st.integers(0, 7), max_size=4), ANY_JSON), max_size=3)
"""Where to go, turn by turn, and what to put there."""


PRICES = {model: {"input": "3", "output": "15"} for model in MODELS.values()}
BOOK = book_from_json(
    {"name": "b", "date": "2026-01-02", "source": "", "sha256": "", "usd_per_mtok": PRICES}
)


class Sender:
    """A provider that answers with what it was last told to send."""

    def __init__(self) -> None:
        self.act = Act()
        self.server: Server | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What one call left behind."""

    reply: Reply | None
    error: PodiumError | None
    spend: Spend
    lines: list[dict[str, Any]]
    logged: list[CallEvent]
    """The call as a reader of the log has it."""

    @property
    def outcome(self) -> dict[str, Any]:
        """The one line that says how the call has ended."""
        (found,) = [line for line in self.lines if line["kind"] == "outcome"]
        return found


@pytest.fixture(scope="module")
def sender() -> Generator[Sender]:
    found = Sender()
    with serve(lambda asked: found.act) as found.server:
        yield found


def ask(sender: Sender, dialect: str, act: Act) -> Asked:
    """Put one question to a worker whose provider does something."""
    sender.act, server = act, sender.server
    assert server is not None, "the fixture has started it"
    model = get_model(
        MODELS[dialect],
        config=GenerateConfig(max_tokens=64, max_retries=0, reasoning_summary="none"),
        base_url=server.anthropic if dialect == MESSAGES else server.openai,
        api_key="test",
        max_retries=0,
        memoize=False,
    )
    spend = Spend(BOOK)
    with TemporaryDirectory() as folder:
        with own_transcript(), recording_calls(Path(folder), "serving", HEAD):
            reply = anyio.run(_ask, Pool({"sage": model}, spend=spend))
            events = orjson.loads(to_json_safe([*transcript().events]))
        (path,) = (Path(folder) / FOLDER).rglob("*.jsonl")
        lines, chain = list(read_lines(path)), read_chain(path)
    assert chain.faults == ()
    logged = [*events_of({"events": events, "error": {}})]
    failed = isinstance(reply, PodiumError)
    return Asked(None if failed else reply, reply if failed else None, spend, lines, logged)


async def _ask(pool: Pool) -> Reply | PodiumError:
    try:
        return await pool.ask("sage", [ChatMessageUser(content=ASKED)], "step 1: sage")
    except PodiumError as error:  # nothing else may escape
        return error


def changed(turns: list[tuple[list[int], Any]]) -> Any:
    """Return a change of a reply: at the end of each way stands another value, or none."""

    def change(body: Any) -> object:
        for way, value in turns:
            body = _set(body, way, value)
        return body

    return change


def _set(body: Any, way: list[int], value: Any) -> Any:
    if not way or not isinstance(body, dict | list) or not body:
        return value
    names: list[Any] = sorted(body) if isinstance(body, dict) else [*range(len(body))]
    name = names[way[0] % len(names)]
    body[name] = _set(body[name], way[1:], value)
    return body


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
@given(turns=CHANGES)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
def test_any_json_is_one_outcome_and_moves_the_meter_and_nothing_else_escapes(
    dialect: str, sender: Sender, turns: list[tuple[list[int], Any]]
) -> None:
    asked = ask(sender, dialect, Act(usage=TOOK, change=changed(turns)))
    kinds = [line["kind"] for line in asked.lines]
    assert kinds[:3] == ["head", "intent", "outcome"]
    assert kinds.count("outcome") == 1
    spent = asked.spend.gone > 0 or asked.spend.unbounded.total() or asked.spend.unpriced
    counted = usage_of(asked.outcome)
    free = counted is not None and counted.parts_total == 0
    refused = asked.outcome["http_status"] is not None
    assert spent or free or refused
    assert asked.spend.gone >= 0
    (logged,) = asked.logged
    assert logged.usage == counted, "readers of the log judge it the same way"
    if asked.reply is not None:
        asked.reply.text.encode()


def test_a_reply_without_choices_is_a_failure_that_is_paid(sender: Sender) -> None:
    asked = ask(sender, CHAT, Act(usage=TOOK, change=lambda body: {**body, "choices": []}))
    assert str(asked.error) == "sage (openai/gpt-4o-mini) gave no reply: it sent no choices"
    assert asked.outcome["error"] == "NoChoices"
    assert asked.outcome["usage"]["output"] == TOOK.output
    assert asked.spend.gone == (TOOK.input * 3 + TOOK.output * 15) / Decimal(10**6)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_half_a_character_is_read_by_all_as_the_log_keeps_it(dialect: str, sender: Sender) -> None:
    asked = ask(sender, dialect, Act(text="seven \ud800", usage=TOOK))
    assert asked.reply is not None
    assert asked.reply.text == "seven \\ud800"
    digest = hashlib.sha256(asked.reply.text.encode()).hexdigest()
    assert asked.outcome["output_sha256"] == digest


def test_a_reply_that_cannot_be_read_counts_as_the_most_it_can_have_cost(
    sender: Sender,
) -> None:
    asked = ask(sender, CHAT, Act(usage=TOOK, change=lambda body: {**body, "choices": None}))
    assert (asked.reply, asked.outcome["usage"]) == (None, None)
    assert MOST <= asked.spend.gone <= 2 * MOST


@pytest.mark.parametrize("count", [-30, 10**12, 10**30, 200_000_000], ids=str)
def test_counts_that_cannot_be_never_lower_the_meter(count: int, sender: Sender) -> None:
    def lying(body: Any) -> object:
        return {**body, "usage": {**body["usage"], "completion_tokens": count}}

    asked = ask(sender, CHAT, Act(usage=TOOK, change=lying))
    assert asked.reply is not None, "the reply is read, and only its cost is unknown"
    assert (asked.reply.usage, asked.reply.usd) == (None, None)
    assert MOST <= asked.spend.gone <= 2 * MOST
    assert "completion_tokens" in asked.outcome["raw_usage"]


def test_replies_that_cannot_be_used_are_held_against_the_limit(tmp_path: Path) -> None:
    nothing = Act(usage=Usage(90, 60), change=lambda body: {**body, "output": [], "choices": []})

    left = run_pool(
        tmp_path,
        lambda asked: nothing,
        lambda server: chat_pool(tmp_path, server),
        "single:olive",
        10,
        "--max-usd",
        "0.0005",
    )
    assert 1 <= len(left.bill.lines) == len(left.rows) <= 3
    assert {(row.error, row.billable) for row in left.rows} == {("NoChoices", "yes")}
    assert usage(left.rows).output == left.bill.usage().output
    assert left.audit.table.counts["in flight"] == left.audit.table.counts["untold"] == 0


def test_impossible_counts_are_unknown_and_told_once_for_each_worker(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    below_nothing = Act(tell=lambda took: replace(took, output=-30))
    left = run(tmp_path, lambda asked: below_nothing, limit=4)
    assert len(left.rows) == 4
    assert {(row.billable, row.usd, row.usd_low) for row in left.rows} == {("unknown", None, 0)}
    assert all(row.usd_high and row.raw_usage and "-30" in row.raw_usage for row in left.rows)
    assert left.failing == set()
    assert left.reasons("I1") == {UNBELIEVED: 4}
    said = "".join(capfd.readouterr()).replace("\n", " ")
    assert said.count("4 calls of olive came back with impossible token counts") == 1


def test_a_cassette_has_neither_what_was_no_reply_nor_counts_that_cannot_be(tmp_path: Path) -> None:
    nothing = Act(change=lambda body: {**body, "choices": []})
    below_nothing = Act(tell=lambda took: replace(took, output=-30))
    left = run_pool(
        tmp_path,
        [nothing, below_nothing, Act()],
        lambda server: chat_pool(tmp_path, server),
        "single:olive",
        limit=3,
    )
    assert main(["record", str(left.folder), "--out", str(tmp_path / "tape.jsonl")]) == 0
    rows = open_cassette(str(tmp_path / "tape.jsonl")).rows.values()
    assert sorted(row.usage is None for row in rows) == [False, True]


def chat_pool(folder: Path, server: Server) -> str:
    """Write a pool whose `olive` speaks chat completions."""
    path = Path(write_pool(folder, server, ONE_TRY))
    key = 'api_key = "test-olive"'
    path.write_text(path.read_text().replace(key, f"{key}, responses_api = false"))
    return str(path)
