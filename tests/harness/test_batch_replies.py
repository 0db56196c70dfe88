"""Results of OpenAI-shaped batches become a cassette that a run replays."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from podium.cli import main
from podium.harness.batch_replies import record_batch
from podium.harness.cassette import open_cassette
from podium.harness.errors import UserError
from podium.harness.pool_config import read_pool
from podium.suites import SUITES
from tests.harness.batch_shapes import CHAT, RESPONSES, SHAPES, BatchShape, recorded
from tests.providers import ok, serve

MODEL = "gpt-5-2025-08-07"
QUESTIONS = SUITES["practice-integer"].load("eval")[:3]
Json = dict[str, Any]


def asked(id: str, text: str, url: str = CHAT, **body: Any) -> Json:
    """Return a line of a batch's input."""
    said: Json = {"input": text}
    if url == CHAT:
        said = {"messages": [{"role": "user", "content": text}]}
    body = {"model": MODEL, **said, **body}
    return {"custom_id": id, "method": "POST", "url": url, "body": body}


def written(path: Path, rows: Sequence[Json]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def answered(folder: Path, requests: Sequence[Json]) -> tuple[Path, Path]:
    """Let a server answer the requests of a batch, as a batch's worker does; write both files."""
    results: list[Json] = []
    with serve([ok(f"ANSWER: {one.target}") for one in QUESTIONS] * 3) as server:
        for one in requests:
            answer = httpx.post(f"{server.url}{one['url']}", json=one["body"])
            response = {"status_code": answer.status_code, "body": answer.json()}
            results.append({"custom_id": one["custom_id"], "response": response, "error": None})
    results.reverse()  # no order is promised
    return written(folder / "out.jsonl", results), written(folder / "in.jsonl", requests)


def batch(url: str = CHAT, **body: Any) -> list[Json]:
    return [asked(one.id, one.text, url, **body) for one in QUESTIONS]


@pytest.mark.slow
@pytest.mark.parametrize("url", [CHAT, RESPONSES])
def test_a_recorded_batch_sits_a_suite_with_dollars(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    results, requests = answered(tmp_path, batch(url))
    tape, logs = tmp_path / "tape.jsonl", tmp_path / "logs"
    words = ["record", str(results), "--requests", str(requests), "--out", str(tape)]
    assert main(words) == 0
    pool = tape.with_suffix(".toml")
    assert "3 replies" in capsys.readouterr().out
    assert read_pool(str(pool)).label == "recorded"
    named = ["--suite", "practice-integer", "--system", f"single:{MODEL}", "--limit", "3"]
    assert main(["run", *named, "--pool", str(pool), "--log-dir", str(logs)]) == 0
    assert main(["report", str(logs)]) == 0
    line = next(row for row in capsys.readouterr().out.splitlines() if row.startswith("single:"))
    assert line.split()[1] == "100.0"
    assert "0.000" in line


def test_a_request_that_stands_there_twice_has_two_epochs(tmp_path: Path) -> None:
    twice = [asked(f"{n}", QUESTIONS[0].text) for n in range(2)]
    results, requests = answered(tmp_path, twice)
    record_batch(results, requests, tmp_path / "tape.jsonl")
    rows = open_cassette(str(tmp_path / "tape.jsonl")).rows.values()
    assert [(row.worker, row.epoch) for row in rows] == [(MODEL, 1), (MODEL, 2)]


def test_what_failed_and_what_was_not_answered_are_counted(tmp_path: Path) -> None:
    results, requests = answered(tmp_path, batch())
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    failed = {**rows[0], "response": {"status_code": 400, "body": {"error": {}}}}
    summary = record_batch(written(results, [failed, rows[1]]), requests, tmp_path / "tape.jsonl")
    assert (summary.rows, summary.errors, summary.unfinished_samples) == (1, 1, 1)


def test_the_model_of_a_path_is_a_worker_by_its_last_name(tmp_path: Path) -> None:
    results, requests = answered(tmp_path, batch(model="meta-llama/Llama 3.1:8B"))
    record_batch(results, requests, tmp_path / "tape.jsonl")
    assert open_cassette(str(tmp_path / "tape.jsonl")).workers == ("Llama-3.1-8B",)


def test_a_name_of_a_model_cannot_add_a_line_to_the_pool(tmp_path: Path) -> None:
    results, requests = answered(tmp_path, batch(model='quo\nlabel = "live'))
    record_batch(results, requests, tmp_path / "tape.jsonl")
    assert read_pool(str(tmp_path / "tape.toml")).label == "recorded"


@pytest.mark.parametrize("out", [".", "", "/"])
def test_a_cassette_without_a_name_is_refused_with_one(
    out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, requests = answered(tmp_path, batch())
    assert main(["record", str(results), "--requests", str(requests), "--out", out]) == 2
    assert "is a directory; name another --out" in capsys.readouterr().err


Rows = list[Json]


def other_id(results: Rows, requests: Rows) -> None:
    results[0]["custom_id"] = "another"


def two_results(results: Rows, requests: Rows) -> None:
    results[1]["custom_id"] = results[0]["custom_id"]


def two_requests(results: Rows, requests: Rows) -> None:
    requests[1]["custom_id"] = requests[0]["custom_id"]


def embeddings(results: Rows, requests: Rows) -> None:
    requests[0]["url"] = "/v1/embeddings"


def an_image(results: Rows, requests: Rows) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    requests[0]["body"]["messages"][0]["content"] = [image]


def no_messages(results: Rows, requests: Rows) -> None:
    requests[0]["body"]["messages"] = "hello"


def no_choices(results: Rows, requests: Rows) -> None:
    results[0]["response"]["body"] = {"choices": []}


def nameless(results: Rows, requests: Rows) -> None:
    last = next(row for row in requests if row["custom_id"] == results[0]["custom_id"])
    del last["body"]["model"], results[0]["response"]["body"]["model"]


UNREADABLE = {
    "a result of another batch": (
        other_id,
        "out.jsonl, line 1: in.jsonl does not have custom_id 'another'",
        2,
    ),
    "two results": (
        two_results,
        "line 2: in.jsonl does not have custom_id '[^']+', or an earlier result used it",
        2,
    ),
    "two requests": (two_requests, "in.jsonl, line 2: an earlier line has the same custom_id", 1),
    "embeddings": (
        embeddings,
        "in.jsonl, line 1: its url is /v1/embeddings, but podium replays only",
        2,
    ),
    "image": (an_image, "in.jsonl, line 1: .* can replay text only", 2),
    "no messages": (
        no_messages,
        "in.jsonl, line 1: its body is not a valid request for /v1/chat/completions: its messages",
        2,
    ),
    "no choices": (no_choices, "out.jsonl, line 1: response.body: choices: List should have", 2),
    "no model": (nameless, "out.jsonl, line 1: response.body: model: it is absent", 2),
}


def spoilt(folder: Path, spoil: Callable[[Rows, Rows], None]) -> tuple[Path, Path]:
    """Write a batch of three with something wrong in it."""
    files = answered(folder, batch())
    results, requests = (
        [json.loads(line) for line in path.read_text().splitlines()] for path in files
    )
    spoil(results, requests)
    return written(files[0], results), written(files[1], requests)


@pytest.mark.parametrize(("spoil", "said", "kept"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_row_that_cannot_be_read_is_left_out_and_named(
    tmp_path: Path, spoil: Callable[[Rows, Rows], None], said: str, kept: int
) -> None:
    files = spoilt(tmp_path, spoil)
    with pytest.raises(UserError, match=f"cannot be read: .*{said}.*leave --strict out"):
        record_batch(*files, tmp_path / "tape.jsonl", strict=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]
    summary = record_batch(*files, tmp_path / "tape.jsonl")
    assert summary.rows == kept
    assert re.search(said, "\n".join(summary.unreadable))
    assert "Left out: " in str(summary)


def test_a_line_that_was_cut_off_is_left_out_and_named(tmp_path: Path) -> None:
    results, requests = answered(tmp_path, batch())
    results.write_text(results.read_text()[:-40])
    summary = record_batch(results, requests, tmp_path / "tape.jsonl")
    assert summary.rows == 2
    assert "out.jsonl, line 3: it is not JSON" in summary.unreadable[0]


def test_the_first_rows_that_are_left_out_are_listed_and_all_are_counted(tmp_path: Path) -> None:
    rows = [asked(f"{n}", f"{n}?") for n in range(9)]
    results, requests = answered(tmp_path, rows)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    for line in lines[:8]:
        line["response"]["body"]["choices"][0]["message"]["content"] = 7
    said = str(record_batch(written(results, lines), requests, tmp_path / "tape.jsonl"))
    assert "Left out: 8 rows that cannot be read (--strict refuses them)." in said
    assert said.count("choices.0.message.content") == 5
    assert "- and 3 more" in said


def test_a_failed_call_that_was_sent_again_is_recorded(tmp_path: Path) -> None:
    results, requests = answered(tmp_path, batch())
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    failed = {**rows[0], "response": {"status_code": 500, "body": None}}
    summary = record_batch(written(results, [failed, *rows]), requests, tmp_path / "tape.jsonl")
    assert (summary.rows, summary.errors, summary.unreadable) == (3, 1, [])


def test_strict_goes_with_a_batch_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["record", "logs", "--out", "tape.jsonl", "--strict"]) == 2
    assert "--strict goes with --requests" in capsys.readouterr().err


def nothing_asked(results: Rows, requests: Rows) -> None:
    requests.clear()


def all_failed(results: Rows, requests: Rows) -> None:
    for row in results:
        row["error"] = {"code": "batch_expired"}


def all_unreadable(results: Rows, requests: Rows) -> None:
    for row in results:
        row["response"]["body"] = {}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(nothing_asked, "in.jsonl has no request", id="nothing asked"),
        pytest.param(all_failed, "has no reply", id="all failed"),
        pytest.param(all_unreadable, "has no reply.*line 1: response.body: choices", id="no rows"),
    ],
)
def test_a_batch_without_a_reply_is_refused_and_nothing_is_written(
    tmp_path: Path, spoil: Callable[[Rows, Rows], None], said: str
) -> None:
    files = spoilt(tmp_path, spoil)
    with pytest.raises(UserError, match=said):
        record_batch(*files, tmp_path / "tape.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_each_providers_row_is_read_for_what_a_reply_needs(
    tmp_path: Path, shape: BatchShape
) -> None:
    found = recorded(shape, tmp_path)
    assert found.outcome == shape.outcome, found.said
    assert shape.says in found.said
    if shape.outcome == "recorded":
        assert (found.text, found.stop, found.tokens) == (shape.text, shape.stop, shape.tokens)


def test_a_text_whose_finish_reason_is_a_failures_is_recorded_and_listed(tmp_path: Path) -> None:
    found = recorded(SHAPES["finish_reason: error, with a text"], tmp_path)
    assert "1 reply that a failure may have cut" in found.said
    assert "line 1: its finish_reason is 'error'" in found.said


def test_the_tokens_of_several_choices_are_unknown(tmp_path: Path) -> None:
    results, requests = answered(tmp_path, batch()[:1])
    (row,) = [json.loads(line) for line in results.read_text().splitlines()]
    row["response"]["body"]["choices"] *= 2
    record_batch(written(results, [row]), requests, tmp_path / "tape.jsonl")
    rows = open_cassette(str(tmp_path / "tape.jsonl")).rows.values()
    assert [(row.epoch, row.usage) for row in rows] == [(1, None), (2, None)]


def test_half_a_surrogate_pair_is_kept_as_in_any_other_reply(tmp_path: Path) -> None:
    files = answered(tmp_path, batch())
    rows = [[json.loads(line) for line in one.read_text().splitlines()] for one in files]
    rows[0][0]["response"]["body"]["choices"][0]["message"]["content"] = "half \ud800"
    rows[1][0]["body"]["messages"][0]["content"] = "why \ud800?"
    for path, lines in zip(files, rows, strict=True):
        written(path, lines)
    record_batch(*files, tmp_path / "tape.jsonl")
    assert "half \\\\ud800" in (tmp_path / "tape.jsonl").read_text()


def test_a_cassette_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    files = answered(tmp_path, batch())
    record_batch(*files, tmp_path / "tape.jsonl")
    with pytest.raises(UserError, match="exists already"):
        record_batch(*files, tmp_path / "tape.jsonl")
