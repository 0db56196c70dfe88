"""What a server may get wrong is seen: each change of a true answer turns a check red."""

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from podium.serving.exchange import DialectName
from tests.podium.serving.endpoint import before_provider
from tests.podium.serving.reply_checks import (
    DIALECTS,
    PATHS,
    Received,
    body_of,
    check_books,
    check_refusal,
    check_streamed,
    check_whole,
)
from tests.providers import CLIENTS_WARN, Act

pytestmark = CLIENTS_WARN
SYSTEM = "moa-lite"
SEEN = (AssertionError, ValueError, TypeError)
"""What a check raises: ValueError for what a dialect's own types refuse."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class TrueAnswers:
    """What a server answers when nothing is wrong with it."""

    log_dir: Path
    whole: dict[DialectName, Received]
    streamed: dict[DialectName, Received]
    refused: dict[DialectName, Received]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Generator[TrueAnswers]:
    folder = tmp_path_factory.mktemp("mutations")
    with before_provider(folder, lambda asked: Act(wait_s=0.15), SYSTEM) as (served, _):

        def ask(dialect: DialectName, model: str = SYSTEM, **more: Any) -> Received:
            body = body_of(dialect, "Say 7", f"podium/{model}", **more)
            return Received.of(dialect, served.post(PATHS[dialect], body))

        yield TrueAnswers(
            served.log_dir,
            {one: ask(one) for one in DIALECTS},
            {one: ask(one, stream=True) for one in DIALECTS},
            {one: ask(one, "none") for one in DIALECTS},
        )


@pytest.mark.slow
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_true_answer_passes(dialect: DialectName, answers: TrueAnswers) -> None:
    check_whole(answers.whole[dialect], answers.log_dir)
    check_streamed(answers.streamed[dialect], answers.log_dir)
    check_refusal(answers.refused[dialect], 404)
    check_books(answers.log_dir)


def without_orchestration(usage: Json) -> Json:
    """Leave out what orchestration wrote, wherever the dialect has it."""
    kept = {name: one for name, one in usage.items() if name != "orchestration_output_tokens"}
    return {
        name: without_orchestration(one) if isinstance(one, dict) else one
        for name, one in kept.items()
    }


USAGES: dict[str, Callable[[Json], Json | None]] = {
    "usage dropped": lambda usage: None,
    "orchestration dropped": without_orchestration,
    "cost dropped": lambda usage: {name: one for name, one in usage.items() if name != "cost"},
    "cost doubled": lambda usage: {**usage, "cost": 2 * usage["cost"]},
    "a token more in all": lambda usage: {**usage, "total_tokens": usage["total_tokens"] + 1},
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", USAGES)
def test_a_wrong_usage_is_seen(name: str, dialect: DialectName, answers: TrueAnswers) -> None:
    whole = answers.whole[dialect]
    body = json.loads(whole.text)
    told = {**body, "usage": USAGES[name](body["usage"])}
    with pytest.raises(SEEN):
        check_whole(replace(whole, text=json.dumps(told)), answers.log_dir)
    blocks = answers.streamed[dialect].text.split("\n\n")
    told = "\n\n".join(changed_usage(block, USAGES[name]) for block in blocks)
    assert told != answers.streamed[dialect].text
    with pytest.raises(SEEN):
        check_streamed(replace(answers.streamed[dialect], text=told), answers.log_dir)


def changed_usage(block: str, change: Callable[[Json], Json | None]) -> str:
    """Return an event whose usage, where it has the whole one, is another."""
    head, mark, data = block.partition("data: ")
    if '"cost"' not in data:
        return block
    body = json.loads(data)
    holder = body.get("response", body)
    if not holder.get("usage"):
        return block  # where a message begins, nothing is known yet
    holder["usage"] = change(holder["usage"])
    return f"{head}{mark}{json.dumps(body)}"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("header", ["x-request-id", "x-podium-calls", "x-litellm-response-cost"])
def test_a_lost_header_is_seen(header: str, dialect: DialectName, answers: TrueAnswers) -> None:
    whole = answers.whole[dialect]
    kept = {name: one for name, one in whole.headers.items() if name != header}
    with pytest.raises(AssertionError):
        check_whole(replace(whole, headers=kept), answers.log_dir)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_without_an_id_or_with_another_dialects_object_is_seen(
    dialect: DialectName, answers: TrueAnswers
) -> None:
    refused = answers.refused[dialect]
    with pytest.raises(AssertionError):
        check_refusal(replace(refused, headers={}), 404)
    other: DialectName = "chat" if dialect == "messages" else "messages"
    with pytest.raises((AssertionError, KeyError)):
        check_refusal(replace(refused, dialect=other), 404)


def comments_for_beats(dialect: DialectName, text: str) -> str:
    """Return a stream whose beats are comments, which no idle timer counts."""
    beats = {"chat": '"podium": {', "responses": '"podium": {', "messages": '"type": "ping"'}
    blocks = text.split("\n\n")
    return "\n\n".join(": beat" if is_beat(one, beats[dialect]) else one for one in blocks)


def is_beat(block: str, sign: str) -> bool:
    return sign in block or sign.replace(" ", "") in block


def cut(dialect: DialectName, text: str) -> str:
    """Return a stream without its last event."""
    return "\n\n".join(text.rstrip().split("\n\n")[:-1]) + "\n\n"


def with_an_event_lost(dialect: DialectName, text: str) -> str:
    """Return a stream without the event in which its text begins."""
    blocks = text.split("\n\n")
    sign = {"chat": "ANSWER", "responses": "output_text.delta", "messages": "block_delta"}[dialect]
    lost = next(at for at, one in enumerate(blocks) if sign in one)
    return "\n\n".join(blocks[:lost] + blocks[lost + 1 :])


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("change", [comments_for_beats, cut, with_an_event_lost])
def test_a_broken_stream_is_seen(
    change: Callable[[DialectName, str], str], dialect: DialectName, answers: TrueAnswers
) -> None:
    streamed = answers.streamed[dialect]
    told = change(dialect, streamed.text)
    assert told != streamed.text
    with pytest.raises(SEEN):
        check_streamed(replace(streamed, text=told), answers.log_dir)


def test_a_lost_sequence_number_is_seen(answers: TrueAnswers) -> None:
    streamed = answers.streamed["responses"]
    for told in (
        streamed.text.replace('"sequence_number": 2', '"number": 2'),
        streamed.text.replace('"sequence_number": 2', '"sequence_number": 3'),
    ):
        assert told != streamed.text
        with pytest.raises(SEEN):
            check_streamed(replace(streamed, text=told), answers.log_dir)


def test_a_call_without_an_outcome_is_seen(answers: TrueAnswers, tmp_path: Path) -> None:
    for path in answers.log_dir.glob("ledger/*/*.jsonl"):
        kept = [one for one in path.read_text().splitlines() if '"outcome"' not in one]
        copied = tmp_path / path.relative_to(answers.log_dir)
        copied.parent.mkdir(parents=True)
        copied.write_text("\n".join(kept) + "\n")
    with pytest.raises(AssertionError, match="without an outcome"):
        check_books(tmp_path)
