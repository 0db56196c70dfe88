"""Logs read raw say what Inspect's own objects say, call by call; damaged ones are named."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from math import isnan
from pathlib import Path
from typing import Any

import pytest
import zstandard
from inspect_ai.event import (
    Event,
    EventTreeSpan,
    ModelEvent,
    SpanBeginEvent,
    SpanEndEvent,
    event_tree,
)
from inspect_ai.log import read_eval_log, resolve_sample_attachments
from inspect_ai.solver import Generate, Solver, TaskState, solver

from podium.harness.errors import UserError
from podium.harness.files import ZSTD, inflate
from podium.harness.ledger.logs import (
    CallEvent,
    RawLog,
    events_of,
    lost_in,
    naming,
    open_log,
    solver_seconds,
    verdict,
)
from podium.harness.ledger.system_runs import entries
from podium.harness.records import PODIUM, SECONDS
from podium.harness.usage import usage_from
from tests import ROOT
from tests.harness.runs import Crew, failing_on, number, sit, steps
from tests.harness.toy_run import calls, toy_pool
from tests.providers.scripted import Heard

COMMAND = [sys.executable, "-m", "tests.harness.toy_run"]
Facts = tuple[object, ...]


def raw(path: Path) -> list[Facts]:
    """Return what our reader says of every call."""
    with open_log(path) as log:
        return sorted(facts(sample, call, lost) for sample, call, lost in calls_in(log))


def calls_in(log: RawLog) -> Iterator[tuple[dict[str, Any], CallEvent, bool]]:
    """Yield (sample, call, lost) for every call in a log."""
    for sample in log.samples():
        with naming(log.path):
            found = [(call, False) for call in events_of(sample)]
            found += [(call, True) for call in lost_in(sample)]
        for call, lost in found:
            yield sample, call, lost


def facts(sample: dict[str, object], call: CallEvent, lost: bool) -> Facts:
    latency = call.latency_s
    return (
        call.id, lost, str(sample["id"]), sample["epoch"], sample["uuid"], call.span, call.phase,
        call.step or "", call.role, call.model, call.served_model or "", repr(call.usage),
        call.cache, call.pending, call.error or "", call.stop or "", call.retries, latency,
        call.max_tokens or 0,
    )  # fmt: skip


def by_inspect(path: Path) -> list[Facts]:
    """Return the same of Inspect's objects, with the places that Inspect's own tree says."""
    found: list[Facts] = []
    for condensed in read_eval_log(str(path)).samples or []:
        sample = resolve_sample_attachments(condensed, "full")
        parts = [(sample.events, False)]
        parts += [(failure.events or [], True) for failure in sample.error_retries or []]
        for events, lost in parts:
            for phase, step, event in placed(events):
                if not event.pending or sample.error:
                    about = (event.uuid, lost, str(sample.id), sample.epoch, sample.uuid)
                    found.append((*about, event.span_id, phase, step, *of_event(event)))
    return sorted(found)


def of_event(event: ModelEvent) -> Facts:
    seconds = (event.completed - event.timestamp).total_seconds() if event.completed else None
    latency = event.working_time if seconds is None else seconds
    return (
        event.role or event.model, event.model, event.output.model,
        repr(usage_from(event.output.usage)), event.cache or "none", bool(event.pending),
        event.error or "", event.output.stop_reason if event.output.choices else "",
        event.retries or 0, latency, event.config.max_tokens or 0,
    )  # fmt: skip


def placed(events: Sequence[Event]) -> Iterable[tuple[str, str, ModelEvent]]:
    begun = {event.id for event in events if isinstance(event, SpanBeginEvent)}
    whole = [one for one in events if not isinstance(one, SpanEndEvent) or one.id in begun]

    def walk(
        nodes: Iterable[EventTreeSpan | Event], phase: str, step: str
    ) -> Iterable[tuple[str, str, ModelEvent]]:
        for node in nodes:
            if isinstance(node, EventTreeSpan):
                inner = node.name if node.type == "workflow_step" else step
                yield from walk(node.children, "score" if node.name == "scorers" else phase, inner)
            elif isinstance(node, ModelEvent):
                yield phase, step, node

    yield from walk(event_tree(whole), "solve", "")


def logs_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("**/*.eval"))


def only(folder: Path) -> Path:
    (path,) = logs_in(folder)
    return path


@pytest.fixture(scope="module")
def one_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one")
    sit(folder, "pair", steps("sage", "clerk"), epochs=2)
    return only(folder)


def test_calls_are_those_of_inspect_with_their_steps(one_log: Path) -> None:
    assert len(raw(one_log)) == 16
    assert raw(one_log) == by_inspect(one_log)


def test_failed_and_repeated_attempts_are_those_of_inspect(tmp_path: Path) -> None:
    pair = steps("sage", "clerk")
    sit(tmp_path, "pair", pair, Crew(clerk=failing_on("Say 2")))
    sit(tmp_path, "pair", pair)
    older, newer = logs_in(tmp_path)
    assert raw(older) == by_inspect(older)
    assert raw(newer) == by_inspect(newer)
    assert any(lost for _, lost, *_ in raw(newer))


def test_a_long_error_among_the_attachments_is_resolved(tmp_path: Path) -> None:
    def fail(heard: Heard) -> str:
        raise RuntimeError("the provider is down " * 20)

    sit(tmp_path, "single:sage", crew=Crew(sage=fail))
    assert raw(only(tmp_path)) == by_inspect(only(tmp_path))
    with open_log(only(tmp_path)) as log:
        errors = [call.error or "" for _, call, _ in calls_in(log)]
    assert len(errors) == 4
    assert all("provider is down" in error for error in errors)


def test_graders_are_in_the_score_phase(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", ask_grader=True)
    assert raw(only(tmp_path)) == by_inspect(only(tmp_path))
    assert {row[6] for row in raw(only(tmp_path))} == {"solve", "score"}


def test_cache_reads_are_those_of_inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    logs = tmp_path / "logs"
    twice = {"max_samples": 1}
    sit(logs, "single:sage", solver=cached(), epochs=2, settings=twice)
    assert raw(only(logs)) == by_inspect(only(logs))
    assert {row[12] for row in raw(only(logs))} == {"read", "write"}


@solver(name="cached_again")
def cached() -> Solver:
    from inspect_ai.model import CachePolicy, get_model

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        policy = CachePolicy(expiry="1h", per_epoch=False)
        state.output = await get_model(role="sage").generate(state.input_text, cache=policy)
        return state

    return solve


@pytest.mark.slow
def test_a_killed_run_is_read_as_far_as_it_came(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir, connections=2)
    slow, slower = Path(f"{log_dir}.slow"), Path(f"{log_dir}.slower")
    slow.write_text("0.1")
    slower.write_text("60")
    command = [*COMMAND, str(log_dir)]
    with subprocess.Popen(command, cwd=ROOT, start_new_session=True) as process:
        deadline = time.monotonic() + 60
        while len(calls(log_dir)) < 5 and time.monotonic() < deadline:
            time.sleep(0.05)
        slower.replace(slow)  # the next two calls do not end
        time.sleep(2)  # Inspect writes down that a call is pending a moment after it began
        os.killpg(process.pid, signal.SIGKILL)
    killed = only(log_dir)
    with open_log(killed) as log:
        assert log.header.keys() == {"version", "eval", "plan"}, "a run that ended has totals"
    assert raw(killed) == by_inspect(killed)
    slow.unlink()
    subprocess.run(command, cwd=ROOT, check=True)
    for path in logs_in(log_dir):
        assert raw(path) == by_inspect(path)
    pending = [row for path in logs_in(log_dir) for row in raw(path) if row[13]]
    assert pending, "the calls in flight at the kill"


def test_verdicts_and_times_are_those_of_inspect(tmp_path: Path) -> None:
    def speak(heard: Heard) -> str:
        return "broken" if "Say 4" in heard.last else number(heard)

    sit(tmp_path, "single:sage", crew=Crew(sage=speak))
    path = only(tmp_path)
    theirs = {str(sample.id): sample for sample in read_eval_log(str(path)).samples or []}
    for entry in entries([path]):
        sample = theirs[str(entry.sample["id"])]
        score = (sample.scores or {})[PODIUM].value
        assert isinstance(score, float)
        assert verdict(entry.sample) == (None if isnan(score) else score)
        ends = {event.id: event for event in sample.events if isinstance(event, SpanEndEvent)}
        (begin,) = [
            event
            for event in sample.events
            if isinstance(event, SpanBeginEvent) and event.name == "solvers"
        ]
        seconds = (ends[begin.id].timestamp - begin.timestamp).total_seconds()
        ours = entry.sample["metadata"][PODIUM].pop(SECONDS, None)
        assert ours is None or 0 < ours < seconds
        assert solver_seconds(entry.sample) == seconds, "as of a log that lacks our own measure"


def test_a_sample_in_several_zstd_frames_is_read_whole() -> None:
    pack = zstandard.ZstdCompressor()
    parts = [b"a" * 1000, b"b" * 70_000, b"c"]
    data = b"".join(map(pack.compress, parts))
    assert inflate(data, ZSTD, 71_001) == b"".join(parts)


def test_of_a_sample_written_twice_the_last_one_counts(one_log: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(one_log, tmp_path / "twice.eval"))
    with open_log(path) as log:
        samples = list(log.samples())
        name = next(name for name in log.zip.namelist() if name.startswith("samples/"))
    samples[0]["uuid"] = "another"
    with (
        zipfile.ZipFile(path, "a", compression=ZSTD) as archive,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        archive.writestr(name, json.dumps(samples[0]))
    with open_log(path) as log:
        found = [sample["uuid"] for sample in log.samples()]
    assert sorted(found) == sorted(sample["uuid"] for sample in samples)


def read_all(log: RawLog) -> int:
    return len(list(calls_in(log)))


def test_bytes_that_changed_are_noticed(one_log: Path, tmp_path: Path) -> None:
    path = tmp_path / "changed.eval"
    data = bytearray(one_log.read_bytes())
    with zipfile.ZipFile(one_log) as archive:
        first = next(one for one in archive.infolist() if one.filename.startswith("samples/"))
    data[first.header_offset + 30 + len(first.filename) + first.compress_size // 2] ^= 0xFF
    path.write_bytes(data)
    with (
        pytest.raises(UserError, match=r"changed\.eval is damaged.*samples/"),
        open_log(path) as log,
    ):
        read_all(log)


@pytest.mark.parametrize(
    "sample",
    [[], {"events": [{}]}, {"events": [{"event": "model"}]}, {"events": 5}, {"events": ["x"]}],
    ids=["no object", "no kind", "no model", "no list", "no event"],
)
def test_a_malformed_sample_is_named_and_not_a_traceback(tmp_path: Path, sample: object) -> None:
    path = tmp_path / "odd.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {}}))
        archive.writestr("samples/1_epoch_1.json", json.dumps(sample))
    with pytest.raises(UserError, match=r"odd\.eval is damaged or no"), open_log(path) as log:
        read_all(log)


def test_a_file_without_a_header_is_named(tmp_path: Path) -> None:
    path = tmp_path / "empty.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("notes.txt", "hello")
    with pytest.raises(UserError, match=r"empty\.eval is damaged.*no header"), open_log(path):
        pass
