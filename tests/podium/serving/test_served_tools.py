"""Tools for systems that ask several workers: whom they reach, and whose call is the answer."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from podium.harness.ledger.served import served_requests
from tests.podium.serving.endpoint import PRICES, Endpoint, endpoint
from tests.podium.serving.reply_checks import check_books
from tests.providers import CLIENTS_WARN, MODELS, serve, write_pool
from tests.providers.dialect import Asked
from tests.providers.script import Act

pytestmark = CLIENTS_WARN
ASK = "/v1/chat/completions"
PLANNER, CHAT = "openai-api/chat/planner", "openai-api/chat/olive"
CONDUCTOR = """
[conductor]
model = "{model}"
args = {{ base_url = "{url}", api_key = "test" }}
"""
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {
    "type": "function",
    "function": {"name": "weather", "description": "Look it up.", "parameters": PARAMETERS},
}
BEGUN = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Rain in Köln?"}]
CALL = {"id": "call_7", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
CALLED = {"role": "assistant", "tool_calls": [CALL]}
ANSWERED = [{"role": "tool", "tool_call_id": "call_7", "content": "It pours."}]
PLAN = 'model_id = [{}, {}]\nsubtasks = ["Think.", "Decide."]\naccess_list = [[], ["all"]]'


def calls(arguments: str, id: str = "call_7", text: str | None = None) -> Act:
    """Call the tool, with or without words before it."""
    function = {"name": "weather", "arguments": arguments}

    def change(body: dict[str, Any]) -> dict[str, Any]:
        if "output" in body:
            body["output"] = [*(body["output"] if text else []), _item(function, id)]
            return body
        called = {"id": id, "type": "function", "function": function}
        body["choices"][0]["message"] |= {"content": text, "tool_calls": [called]}
        body["choices"][0]["finish_reason"] = "tool_calls"
        return body

    return Act(text=text or "ANSWER: 7", change=change)


def _item(function: Mapping[str, str], id: str) -> dict[str, Any]:
    return {"type": "function_call", "id": f"fc_{id}", "call_id": id, **function}


@dataclass
class Workers:
    """A provider behind three workers and a conductor: what it was asked, and what it answers."""

    plan: str = ""
    called: Sequence[Act] = ()
    """Replies to requests that offer tools, in their order; then words."""
    words: str = ""
    asked: list[Asked] = field(default_factory=list[Asked])

    def act(self, asked: Asked) -> Act:
        """Return the reply to a request."""
        self.asked.append(asked)
        if asked.model == "planner":
            return Act(text=self.plan)
        acted = sum(bool(one.body.get("tools")) for one in self.asked)
        if asked.body.get("tools") and acted <= len(self.called):
            return self.called[acted - 1]
        return Act(text=self.words or f"{asked.model} would look.")

    def offered(self, tools: bool) -> list[Asked]:
        """Return the requests to workers with tools, or without."""
        workers = (one for one in self.asked if one.model != "planner")
        return [one for one in workers if bool(one.body.get("tools")) == tools]


@contextmanager
def served(
    folder: Path, workers: Workers, *systems: str, olive: str = MODELS["olive"]
) -> Generator[Endpoint]:
    """Serve systems over the workers; every call must have its end and its price."""
    settings = "max_tokens = 1000, max_retries = 0"
    with serve(workers.act) as server:
        pool = Path(write_pool(folder, server, settings))
        conductor = CONDUCTOR.format(model=PLANNER, url=server.openai)
        pool.write_text(pool.read_text().replace(MODELS["olive"], olive) + conductor)
        prices = (f'"{model}" = {{ input = "1", output = "1" }}\n' for model in (PLANNER, CHAT))
        (folder / "book.toml").write_text(PRICES + "".join(prices))
        with endpoint(folder, *systems, pool=str(pool)) as found:
            yield found
    check_books(found.log_dir)


def message(served: Endpoint, model: str, turns: Any, **more: Any) -> dict[str, Any]:
    """Return the message of a chat completion with the tool offered."""
    said = served.post(ASK, {"model": model, "messages": turns, "tools": [TOOL], **more})
    assert said.status_code == 200, said.text
    return said.json()["choices"][0]["message"]


def texts_of(asked: Asked) -> Iterator[str]:
    """Yield a text for each turn of a request."""
    for turn in asked.body.get("messages") or asked.body.get("input") or asked.body["contents"]:
        yield json.dumps(turn, ensure_ascii=False)


def test_a_mixtures_aggregator_is_sent_the_conversation_and_its_tools_and_acts(
    tmp_path: Path,
) -> None:
    workers = Workers(called=[calls('{"city": "Köln", "days": [1]}', text="I look.")])
    with served(tmp_path, workers, "moa-lite") as found:
        first = message(found, "moa-lite", BEGUN)
        (acting,) = workers.offered(tools=True)
        advisers = workers.offered(tools=False)
        second = message(found, "moa-lite", [*BEGUN, first, *ANSWERED])
    (called,) = first["tool_calls"]
    assert (called["id"], called["function"]["name"]) == ("call_7", "weather")
    assert json.loads(called["function"]["arguments"]) == {"city": "Köln", "days": [1]}
    assert first["content"] == "I look."
    assert {f"/{one.model}" for one in advisers} == {
        name[name.index("/") :] for name in MODELS.values()
    }
    for one in advisers:
        assert "Tool of the assistant: weather(city): Look it up." in one.prompt
        assert "Say what the assistant should do next." in one.prompt
    *turns, advice = texts_of(acting)
    assert ["Be brief." in turns[0], "Rain in Köln?" in turns[1], len(turns)] == [True, True, 2]
    assert all(f"{number}. " in advice for number in (1, 2, 3))
    assert advice.count("would look.") == 3
    assert "Tool of the assistant" not in acting.prompt
    later = [one for one in workers.asked[len(advisers) + 1 :] if not one.body.get("tools")]
    assert 'Tool calls: [["weather", {"city": "Köln", "days": [1]}]]' in later[0].prompt
    assert "Tool: It pours." in later[0].prompt
    assert second.get("tool_calls") is None
    assert second["content"] == "gpt-5-mini would look."
    assert "call_7" in str(workers.offered(tools=True)[1].body), "the result goes with its call"


@pytest.mark.parametrize("last", range(3), ids=MODELS)
def test_a_plans_last_step_is_sent_the_conversation_in_its_providers_own_dialect(
    last: int, tmp_path: Path
) -> None:
    workers = Workers(plan=PLAN.format((last + 1) % 3, last))
    with served(tmp_path, workers, "conductor-prompted") as found:
        said = message(found, "conductor-prompted", [*BEGUN, CALLED, *ANSWERED])
    (acting,), (adviser,) = workers.offered(tools=True), workers.offered(tools=False)
    names = [name.partition("/")[2] for name in MODELS.values()]
    assert (adviser.model, acting.model) == (names[(last + 1) % 3], names[last])
    assert said["content"] == f"{names[last]} would look."
    body = json.dumps(acting.body, ensure_ascii=False)
    assert [text in body for text in ("Rain in Köln?", "It pours.", "Decide.")] == [True] * 3
    assert f"1. {adviser.model} would look." in acting.prompt
    assert acting.prompt.index("It pours.") < acting.prompt.index("would look.")


def test_a_plans_last_step_calls_a_tool_and_only_its_tokens_are_visible(tmp_path: Path) -> None:
    workers = Workers(plan=PLAN.format(1, 0), called=[calls('{"city": "Köln"}')])
    with served(tmp_path, workers, "conductor-prompted") as found:
        asked = {"model": "conductor-prompted", "messages": BEGUN, "tools": [TOOL]}
        body = found.post(ASK, {**asked, "temperature": 0.3, "max_tokens": 40}).json()
        (query,) = served_requests(found.log_dir)
    (choice,), usage = body["choices"], body["usage"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "weather"
    tokens = {row.step: row.usage.output for row in query.rows if row.usage}
    assert usage["completion_tokens"] == tokens.pop("step 2: olive")
    details = usage["completion_tokens_details"]
    assert details["orchestration_output_tokens"] == sum(tokens.values())
    limits = {line["step"]: line["max_tokens"] for line in found.lines("intent")}
    assert [limits["step 1: plum"], limits["step 2: olive"]] == [40, 40]


def test_sampling_that_is_asked_for_goes_before_a_mixtures_own_for_who_acts(tmp_path: Path) -> None:
    workers = Workers()
    with served(tmp_path, workers, "self-moa", olive=CHAT) as found:
        message(found, "self-moa", BEGUN, temperature=0.3, tool_choice="required")
    (acting,) = workers.offered(tools=True)
    assert (acting.body["temperature"], acting.body["tool_choice"]) == (0.3, "required")
    assert {one.body["temperature"] for one in workers.offered(tools=False)} == {0.7}


VOTES = {
    "majority": (
        [
            calls('{"city": "Bonn"}', "call_1"),
            calls('{"days": 2, "city": "Köln"}', "call_2", "I look."),
            calls('{"city": "Köln", "days": 2}', "call_3", "Let me see. \\boxed{3}"),
        ],
        {"call_2": "I look.", "call_3": "Let me see. \\boxed{3}"},
    ),
    "all": ([calls("{}", f"call_{n}") for n in range(3)], {f"call_{n}": None for n in range(3)}),
    "words": ([calls("{}"), Act(text="No."), Act(text="No.")], {None: "No."}),
}
"""What three workers reply, and the calls that may win, each with the words beside it."""


@pytest.mark.parametrize("kind", VOTES)
def test_a_vote_is_over_equal_calls_whatever_is_said_with_them(kind: str, tmp_path: Path) -> None:
    replies, winners = VOTES[kind]
    workers = Workers(called=replies)
    with served(tmp_path, workers, "self-consistency@3") as found:
        reply = message(found, "self-consistency@3", BEGUN)
    assert len(workers.offered(tools=True)) == 3
    id = next((call["id"] for call in reply.get("tool_calls") or ()), None)
    assert (id, reply["content"]) in winners.items()


def test_a_judge_picks_one_of_the_calls(tmp_path: Path) -> None:
    replies = [calls(f'{{"days": {n}}}', f"call_{n}") for n in range(5)]
    workers = Workers(called=replies, words="CHOICE: 2")
    with served(tmp_path, workers, "best-of-n") as found:
        said = message(found, "best-of-n", BEGUN)
    (judging,) = workers.offered(tools=False)
    assert 'Tool calls: [["weather", {"days": 1}]]' in judging.prompt
    chosen = judging.prompt.partition("2. Tool calls: ")[2]
    arguments = json.loads(said["tool_calls"][0]["function"]["arguments"])
    assert chosen.startswith(f'[["weather", {json.dumps(arguments)}]]')
