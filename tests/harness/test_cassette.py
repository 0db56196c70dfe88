"""A cassette replays what was really drawn, and nothing else."""

import shutil
from pathlib import Path

import pytest
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import ChatMessageUser, get_model
from inspect_ai.solver import generate

from podium.harness.cassette import cassette_digests, open_cassette, record
from podium.harness.errors import CassetteMiss, PodiumError, UserError
from podium.harness.pool import Pool, pool_models
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.request import SampleIndex, request_digest
from tests.harness.tiny_run import (
    LONG,
    QUESTIONS,
    calls,
    compare,
    draw,
    five_votes,
    live,
    model_events,
    sit,
)
from tests.providers.scripted import Heard, script


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[EvalLog, Path]:
    """A live run and the cassette made of it."""
    folder = tmp_path_factory.mktemp("recorded")
    log = sit(live(), folder / "logs", compare())
    record([Path(log.location)], folder / "tape.jsonl")
    return log, folder / "tape.jsonl"


def test_a_replay_says_and_counts_exactly_what_was_recorded(
    recorded: tuple[EvalLog, Path], tmp_path: Path
) -> None:
    log, tape = recorded
    models = pool_models(read_pool(str(tape.with_suffix(".toml"))))
    replayed = sit(models, tmp_path, compare())
    assert calls(replayed) == calls(log)
    assert len(calls(log)) == 3 * 2 * 2


def test_the_summary_counts_rows_per_worker(recorded: tuple[EvalLog, Path], tmp_path: Path) -> None:
    summary = record([Path(recorded[0].location)], tmp_path / "again.jsonl")
    assert summary.rows == 12
    assert summary.workers == {"sage": 8, "clerk": 4}
    assert (summary.errors, summary.cache_reads, summary.unfinished_samples) == (0, 0, 0)
    assert "12 replies (sage 8, clerk 4)" in str(summary)
    assert str(summary).endswith("again.toml")


def test_repeated_requests_are_rows_of_their_own(recorded: tuple[EvalLog, Path]) -> None:
    tape = open_cassette(str(recorded[1]))
    digest = request_digest([ChatMessageUser(content=QUESTIONS["q-1"])])
    texts = [
        tape.lookup("sage", digest, SampleIndex(epoch, occurrence)).text
        for epoch in (1, 2)
        for occurrence in (0, 1)
    ]
    assert texts == ["sage 14 1 0", "sage 14 1 1", "sage 14 2 0", "sage 14 2 1"]


def test_five_votes_are_five_rows(tmp_path: Path) -> None:
    log = sit(live(), tmp_path / "logs", five_votes(), epochs=1)
    assert record([Path(log.location)], tmp_path / "votes.jsonl").rows == 2 * 5
    rows = open_cassette(str(tmp_path / "votes.jsonl")).rows.values()
    assert [row.text[-1] for row in rows if row.question == "q-1"] == list("01234")


def test_the_pool_file_keeps_the_recorded_workers_identity(
    recorded: tuple[EvalLog, Path],
) -> None:
    spec = read_pool(str(recorded[1].with_suffix(".toml")))
    sage = spec.worker("sage")
    assert spec.label == "recorded"
    assert (sage.model, sage.price, sage.card) == ("recorded/sage", "acme/sage", 'wise, "slow"')
    assert (sage.knowledge_cutoff, sage.config.temperature) == ("2024-06 (card)", 0.5)
    assert spec.worker("clerk").price == "scripted/clerk"
    assert str(read_book(spec.prices).prices["acme/sage"].input) == "1.25"


def test_cassette_pool_and_prices_can_be_moved_together(
    recorded: tuple[EvalLog, Path], tmp_path: Path
) -> None:
    log, tape = recorded
    for name in ("tape.jsonl", "tape.toml", "tape.prices.toml"):
        shutil.copy(tape.with_name(name), tmp_path / name)
    text = (tmp_path / "tape.toml").read_text()
    assert str(tape.parent) not in text
    spec = read_pool(str(tmp_path / "tape.toml"))
    assert spec.prices == str(tmp_path / "tape.prices.toml")
    assert cassette_digests(spec) == cassette_digests(read_pool(str(tape.with_suffix(".toml"))))
    (tmp_path / "tape.jsonl").rename(tmp_path / "gone.jsonl")
    with pytest.raises(PodiumError, match="no cassette file"):
        pool_models(spec)
    (tmp_path / "gone.jsonl").rename(tmp_path / "tape.jsonl")
    assert calls(sit(pool_models(spec), tmp_path / "logs", compare())) == calls(log)
    assert "acme/sage" in read_book(spec.prices).prices


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A rehearsal run and the cassette made of it."""
    folder = tmp_path_factory.mktemp("rehearsed")
    models = {
        name: get_model("rehearsal/abacus", memoize=False, seed=0, time_scale=0.0)
        for name in ("sage", "clerk")
    }
    log = sit(models, folder / "logs", compare(), epochs=1)
    record([Path(log.location)], folder / "tape.jsonl")
    return Path(log.location), folder / "tape.jsonl"


def test_recorded_rehearsal_stays_rehearsal(
    rehearsed: tuple[Path, Path], tmp_path: Path, recorded: tuple[EvalLog, Path]
) -> None:
    tape = rehearsed[1]
    assert open_cassette(str(tape)).header.source_label == "rehearsal"
    assert open_cassette(str(recorded[1])).header.source_label == "live"
    spec = read_pool(str(tape.with_suffix(".toml")))
    assert (spec.label, spec.workers[0].provider) == ("rehearsal", "recorded")
    replayed = sit(pool_models(spec), tmp_path / "logs", compare(), epochs=1)
    record([Path(replayed.location)], tmp_path / "again.jsonl")
    assert open_cassette(str(tmp_path / "again.jsonl")).header.source_label == "rehearsal"


def test_rehearsal_and_real_replies_are_not_recorded_together(
    rehearsed: tuple[Path, Path], tmp_path: Path
) -> None:
    log = sit(live(), tmp_path / "logs", five_votes())
    with pytest.raises(UserError, match=r"replies of real models and .* of rehearsal") as refused:
        record([rehearsed[0], Path(log.location)], tmp_path / "both.jsonl")
    assert "\n" not in str(refused.value)
    assert not list(tmp_path.glob("*.jsonl"))


@pytest.mark.parametrize("kind", ["rehearsed", "recorded"])
def test_a_pool_that_calls_recorded_replies_by_another_label_is_refused(
    kind: str, rehearsed: tuple[Path, Path], recorded: tuple[EvalLog, Path], tmp_path: Path
) -> None:
    tape = rehearsed[1] if kind == "rehearsed" else recorded[1]
    labels = ("rehearsal", "recorded") if kind == "rehearsed" else ("recorded", "rehearsal")
    text = tape.with_suffix(".toml").read_text().replace(f'"{labels[0]}"', f'"{labels[1]}"')
    wrong = tape.with_name("wrong.toml")
    wrong.write_text(text)
    with pytest.raises(UserError, match=f"label it '{labels[0]}'"):
        pool_models(read_pool(str(wrong)))


@pytest.mark.parametrize(
    ("worker", "text", "replicate", "said"),
    [
        ("sage", "What is 2 + 2?", SampleIndex(1, 0), "no reply of sage .* none to it"),
        ("sage", QUESTIONS["q-1"], SampleIndex(1, 2), "repetition 3; it holds 4 other replies"),
        ("sage", QUESTIONS["q-1"], SampleIndex(3, 0), "epoch 3"),
        ("clerk", QUESTIONS["q-1"], SampleIndex(1, 0), "no reply of clerk"),
    ],
    ids=["other-request", "one-more-repetition", "one-more-epoch", "other-worker"],
)
def test_what_was_not_recorded_is_a_miss(
    recorded: tuple[EvalLog, Path], worker: str, text: str, replicate: SampleIndex, said: str
) -> None:
    digest = request_digest([ChatMessageUser(content=text)])
    with pytest.raises(CassetteMiss, match=said):
        open_cassette(str(recorded[1])).lookup(worker, digest, replicate)


@pytest.mark.anyio
async def test_a_miss_in_a_pool_is_raised_as_a_miss(recorded: tuple[EvalLog, Path]) -> None:
    pool = Pool(pool_models(read_pool(str(recorded[1].with_suffix(".toml")))))
    with pytest.raises(CassetteMiss, match="record a new cassette"):
        await pool.ask("sage", [ChatMessageUser(content="Something new?")], "step 1: sage")


@pytest.mark.anyio
async def test_outside_a_pool_repetitions_are_counted_in_order(
    recorded: tuple[EvalLog, Path],
) -> None:
    model = get_model("recorded/sage", cassette=str(recorded[1]), memoize=False)
    replies = [(await model.generate(QUESTIONS["q-1"])).completion for _ in range(2)]
    assert replies == ["sage 14 1 0", "sage 14 1 1"]
    with pytest.raises(CassetteMiss):
        await model.generate(QUESTIONS["q-1"])


def test_the_log_shows_where_a_replayed_reply_comes_from(
    recorded: tuple[EvalLog, Path], tmp_path: Path
) -> None:
    models = pool_models(read_pool(str(recorded[1].with_suffix(".toml"))))
    replayed = sit(models, tmp_path, compare(), epochs=1)
    _, event = model_events(replayed)[0]
    shown = (event.output.metadata or {})["recorded"]
    assert shown["prompt_recorded"] is True
    assert shown["source"] == Path(recorded[0].location).name


def refusals(recorded: tuple[EvalLog, Path], folder: Path) -> dict[str, tuple[list[Path], Path]]:
    """Return logs and outputs that must be refused."""
    log, tape = Path(recorded[0].location), recorded[1]
    foreign, truncated = folder / "foreign.eval", folder / "truncated.eval"
    foreign.write_text("not a log")
    truncated.write_bytes(log.read_bytes()[:-400])
    new = folder / "new.jsonl"
    return {
        "exists already": ([log], tape),
        r"no log .*absent\.eval": ([folder / "absent.eval"], new),
        r"foreign\.eval is damaged or no Inspect log": ([foreign], new),
        r"truncated\.eval is damaged or no Inspect log": ([truncated], new),
        "nothing to record": ([], new),
        r"name it tape\.jsonl": ([log], folder / "tape.txt"),
        "cannot name a pool": ([log], folder / "two words.jsonl"),
    }


def test_what_cannot_be_recorded_is_refused_in_one_sentence_and_nothing_is_written(
    recorded: tuple[EvalLog, Path], tmp_path: Path
) -> None:
    before = recorded[1].read_bytes()
    for said, (logs, out) in refusals(recorded, tmp_path).items():
        with pytest.raises(UserError, match=said) as refused:
            record(logs, out)
        assert "\n" not in str(refused.value)
    assert recorded[1].read_bytes() == before
    assert not list(tmp_path.glob("*.jsonl"))


def test_two_logs_that_contradict_each_other_are_both_named(tmp_path: Path) -> None:
    def otherwise(heard: Heard) -> str:
        return "otherwise " + draw(heard)

    first = sit(live(), tmp_path / "1", compare(), epochs=1)
    changed = {name: get_model(script(name, otherwise), memoize=False) for name in live()}
    second = sit(changed, tmp_path / "2", compare(), epochs=1)
    with pytest.raises(UserError) as refused:
        record([Path(first.location), Path(second.location)], tmp_path / "both.jsonl")
    assert Path(first.location).name in str(refused.value)
    assert Path(second.location).name in str(refused.value)
    assert not (tmp_path / "both.jsonl").exists()


def test_the_same_log_twice_gives_each_reply_once(
    recorded: tuple[EvalLog, Path], tmp_path: Path
) -> None:
    log = Path(recorded[0].location)
    summary = record([log, log], tmp_path / "twice.jsonl")
    assert (summary.rows, summary.repeats) == (12, 12)


def test_a_worker_that_was_not_recorded_is_refused_before_any_call(
    recorded: tuple[EvalLog, Path],
) -> None:
    with pytest.raises(PodiumError, match="no worker 'stranger'; it has: sage, clerk"):
        get_model("recorded/stranger", cassette=str(recorded[1]))
    with pytest.raises(PodiumError, match="needs a cassette"):
        get_model("recorded/sage")


def test_a_sample_that_failed_is_counted_and_left_out(tmp_path: Path) -> None:
    def fail(heard: Heard) -> str:
        if heard.last == LONG:
            raise RuntimeError("down")
        return draw(heard)

    models = {**live(), "clerk": get_model(script("clerk-2", draw), memoize=False)}
    models["sage"] = get_model(script("sage-2", fail), memoize=False)
    samples = [Sample(id=name, input=text, target="2") for name, text in QUESTIONS.items()]
    task = Task(dataset=MemoryDataset(samples), solver=compare(), fail_on_error=False)
    (log,) = eval(task, model=None, model_roles={**models}, log_dir=str(tmp_path), display="none")
    summary = record([Path(log.location)], tmp_path / "some.jsonl")
    assert (summary.rows, summary.unfinished_samples) == (3, 1)


def test_a_plain_inspect_log_can_be_recorded_and_reads_from_a_cache_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    task = Task(MemoryDataset([Sample(input="Hello?", id="q-1")]), solver=generate(cache=True))
    logs: list[Path] = []
    for run in ("1", "2"):
        model = get_model(script("plain", draw), memoize=False)
        (log,) = eval(task, model=model, log_dir=str(tmp_path / run), display="none")
        logs.append(Path(log.location))
    with pytest.raises(UserError, match="nothing to record"):
        record(logs[1:], tmp_path / "cached.jsonl")
    summary = record(logs, tmp_path / "plain.jsonl")
    assert (summary.rows, summary.cache_reads) == (1, 1)
    spec = read_pool(str(tmp_path / "plain.toml"))
    assert (spec.names, spec.prices) == (("plain",), "none")
    assert spec.worker("plain").price == "scripted/plain"
