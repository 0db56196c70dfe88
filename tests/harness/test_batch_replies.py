"""Results of OpenAI-shaped batches become a cassette that a run replays."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from harness.batch_replies import CHAT, RESPONSES, record_batch
from harness.cassette import open_cassette
from harness.cli import main
from harness.errors import UserError
from harness.pool_config import read_pool
from suites import SUITES
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
    assert "name it tape.jsonl" in capsys.readouterr().err


def other_id(results: list[Json], requests: list[Json]) -> None:
    results[0]["custom_id"] = "another"


def two_results(results: list[Json], requests: list[Json]) -> None:
    results[1]["custom_id"] = results[0]["custom_id"]


def two_requests(results: list[Json], requests: list[Json]) -> None:
    requests[1]["custom_id"] = requests[0]["custom_id"]


def embeddings(results: list[Json], requests: list[Json]) -> None:
    requests[0]["url"] = "/v1/embeddings"


def an_image(results: list[Json], requests: list[Json]) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    requests[0]["body"]["messages"][0]["content"] = [image]


def no_messages(results: list[Json], requests: list[Json]) -> None:
    requests[0]["body"]["messages"] = "hello"


def no_body(results: list[Json], requests: list[Json]) -> None:
    results[0]["response"]["body"] = {"choices": []}


def nothing_asked(results: list[Json], requests: list[Json]) -> None:
    requests.clear()


def all_failed(results: list[Json], requests: list[Json]) -> None:
    for one in results:
        one["error"] = {"code": "batch_expired"}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        pytest.param(other_id, "has no such custom_id", id="a result of another batch"),
        pytest.param(two_results, "or none more", id="two results"),
        pytest.param(two_requests, "stands in an earlier line", id="two requests"),
        pytest.param(embeddings, "no other url", id="embeddings"),
        pytest.param(an_image, "can replay texts only", id="image"),
        pytest.param(no_messages, "in.jsonl, line 1: its body is not what", id="no messages"),
        pytest.param(no_body, "out.jsonl, line 1: its response's body is not", id="no completion"),
        pytest.param(nothing_asked, "in.jsonl has no request", id="nothing asked"),
        pytest.param(all_failed, "has no reply", id="all failed"),
    ],
)
def test_what_is_no_batch_is_refused_and_nothing_is_written(
    tmp_path: Path, spoil: Callable[[list[Json], list[Json]], None], said: str
) -> None:
    files = answered(tmp_path, batch())
    rows = [[json.loads(line) for line in one.read_text().splitlines()] for one in files]
    spoil(*rows)
    for path, lines in zip(files, rows, strict=True):
        written(path, lines)
    with pytest.raises(UserError, match=said):
        record_batch(*files, tmp_path / "tape.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]


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
