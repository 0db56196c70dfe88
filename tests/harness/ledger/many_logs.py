"""Many logs with their journals, cloned from one real rehearsal run: for speed and memory.

`copies(source, folder, Size(logs=1000, samples=200))` writes as many `.eval` files as Inspect would
(zip members compressed with zstd) and one journal beside each, with a valid chain. Every copy has
ids, days and question names of its own and is another system's, so a report has a row for each.
`rehearse(folder)` makes a source: one log of 20 samples with 5 calls each, and its journal.
"""

import hashlib
import re
import statistics
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import orjson
import zstandard

from podium.cli import main
from podium.harness.files import ZSTD
from podium.harness.ledger.call import canonical
from podium.harness.ledger.journal import BEGINNING, folder_of, read_lines
from podium.harness.ledger.logs import Json, open_log
from tests.harness.ledger.log_templates import KNOWN, TAIL, Copy, Template, later

HASH = b'"hash":"' + b"0" * 64 + b'",'
PREV = b'"prev":"' + b"0" * 64 + b'"'


@dataclass(frozen=True, slots=True)
class Size:
    """How many logs are made, and how many samples are in each; a sample has 5 calls."""

    logs: int
    samples: int = 200


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of the source: its JSON, summary and journal lines as templates."""

    whole: Template
    summary: Template
    lines: tuple[Template, ...]
    calls: int
    value: float
    usage: Mapping[str, Mapping[str, int]]
    roles: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Source:
    """A log and its journal, taken apart."""

    header: Json
    start: Json
    samples: tuple[Sample, ...]
    head: Json
    totals: Json


def rehearse(folder: Path) -> Path:
    """Run `self-consistency` over rehearsal workers; return its log. Five calls a question."""
    words = ["--suite", "practice-integer", "--system", "self-consistency", "--limit", "8"]
    words += ["--pool", "rehearsal", "--time-scale", "0", "--display", "none"]
    assert main(["run", *words, "--log-dir", str(folder)]) == 0
    (log,) = folder.glob("*.eval")
    return log


def copies(source: Path, folder: Path, size: Size, processes: int = 1) -> int:
    """Write the copies of a log into a folder; return how many calls they hold."""
    folder.mkdir(parents=True, exist_ok=True)
    shares = [range(at, size.logs, processes) for at in range(processes)]
    write = partial(_share, source, folder, size)
    if processes == 1:
        return write(shares[0])
    with ProcessPoolExecutor(processes, get_context("spawn")) as workers:
        return sum(workers.map(write, shares))


def _share(source: Path, folder: Path, size: Size, logs: Sequence[int]) -> int:
    taken = take_apart(source)
    return sum(_copy(taken, folder, size, number) for number in logs)


def take_apart(path: Path) -> Source:
    """Read a log and the journal beside it."""
    with open_log(path) as log:
        start = orjson.loads(log.zip.read("_journal/start.json"))
        summaries = {one["uuid"]: one for one in orjson.loads(log.zip.read("summaries.json"))}
        task = log.header["eval"]["task"]
        (journal,) = folder_of(path.parent, task).glob("*.jsonl")
        head, lines, totals = _journal(read_lines(journal))
        samples = tuple(
            _sample(sample, summaries[sample["uuid"]], lines[sample["uuid"]])
            for sample in log.samples()
        )
        return Source(log.header, start, samples, head, totals)


def _journal(lines: Iterable[Json]) -> tuple[Json, dict[str, list[Json]], Json]:
    of: dict[str, str] = {}
    found: dict[str, list[Json]] = {}
    head: Json = {}
    totals: Json = {}
    for line in lines:
        line |= {"hash": "0" * 64, "prev": "0" * 64}
        if line["kind"] == "head":
            head = line
        elif line["kind"] == "totals":
            totals = line
        elif line["kind"] in ("answer", "grade"):
            found.setdefault(line["sample"]["uuid"], []).append(line)
        elif line["kind"] != "closed":
            if line["kind"] == "intent":
                of[line["call"]] = line["sample"]["uuid"]
            found.setdefault(of[line["call"]], []).append(line)
    return head, found, totals


def _sample(sample: Json, summary: Json, lines: Sequence[Json]) -> Sample:
    data, name = orjson.dumps(sample), str(sample["id"])
    ids = frozenset(KNOWN.findall(data))
    return Sample(
        Template(data, name, ids),
        Template(orjson.dumps(summary), name, ids),
        tuple(Template(canonical(line), name, ids) for line in lines),
        sum(line["kind"] == "intent" for line in lines),
        float(sample["scores"]["podium"]["value"]),
        sample["model_usage"],
        sample["role_usage"],
    )


def _copy(source: Source, folder: Path, size: Size, number: int) -> int:
    """Write one log and its journal; return the number of calls."""
    task = f"practice-integer copy-{number:04d}"
    made = [
        (
            source.samples[(number + at) % len(source.samples)],
            Copy(number * size.samples + at, f"practice-integer-eval-{at + 1:04d}", number % 300),
        )
        for at in range(size.samples)
    ]
    header, start = _header(source, task, made), _named(source.start, task, made)
    stamp = header["eval"]["created"].replace(":", "-").replace("+", "-")
    path = folder / f"{stamp}_{task.replace(' ', '-')}_{header['eval']['task_id']}.eval"
    with zipfile.ZipFile(path, "w") as archive:
        pack = zstandard.ZstdCompressor(level=3)
        _add(archive, "_journal/start.json", orjson.dumps(start), pack)
        for sample, copy in made:
            _add(archive, f"samples/{copy.question}_epoch_1.json", sample.whole.filled(copy), pack)
        summaries = b"[" + b",".join(one.summary.filled(copy) for one, copy in made) + b"]"
        _add(archive, "_journal/summaries/1.json", summaries, pack)
        _add(archive, "summaries.json", summaries, pack)
        _add(archive, "reductions.json", b"[]", pack)
        _add(archive, "header.json", orjson.dumps(header), pack)
    return _write_journal(source, folder, task, made)


Made = Sequence[tuple[Sample, Copy]]


def _named(start: Json, task: str, made: Made) -> Json:
    """Return a header that says of a log that it is another system's, at another time."""
    suite, system = task.split()
    text, days = orjson.dumps(start), made[0][1].days
    text = re.sub(rb"\d{4}-\d\d-\d\d(?=T\d\d:\d\d:)", lambda day: later(day[0], days), text)
    found: Json = orjson.loads(text)
    tail = made[0][1].tail.decode()
    about = found["eval"]
    for name in ("eval_id", "run_id", "task_id"):
        about[name] = about[name][:-TAIL] + tail
    names = [copy.question for _, copy in made]
    about |= {"task": task, "task_display_name": task}
    about["dataset"] |= {"name": suite, "samples": len(made), "sample_ids": names}
    about["config"]["limit"] = len(made)
    for metadata in (about["metadata"], found.get("metadata")):
        if metadata:
            metadata["podium"] |= {"system": system}
    return found


def _header(source: Source, task: str, made: Made) -> Json:
    found = _named(source.header, task, made)
    values = [sample.value for sample, _ in made]
    found["stats"] |= {
        "model_usage": _summed(sample.usage for sample, _ in made),
        "role_usage": _summed(sample.roles for sample, _ in made),
    }
    found["results"] |= {"total_samples": len(made), "completed_samples": len(made)}
    (score,) = found["results"]["scores"]
    score["scored_samples"] = len(made)
    score["metrics"]["mean"]["value"] = statistics.fmean(values)
    score["metrics"]["stderr"]["value"] = statistics.stdev(values) / len(values) ** 0.5
    return found


def _summed(usages: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for usage in usages:
        for name, tokens in usage.items():
            found.setdefault(name, Counter()).update(tokens)
    return {name: dict(tokens) for name, tokens in found.items()}


def _add(archive: zipfile.ZipFile, name: str, data: bytes, pack: zstandard.ZstdCompressor) -> None:
    """Append a member that is compressed already: `ZipFile.writestr` starts threads for each."""
    info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
    packed = pack.compress(data)
    info.compress_type, info.CRC = ZSTD, zlib.crc32(data)
    info.file_size, info.compress_size = len(data), len(packed)
    hidden: Any = archive
    info.header_offset = hidden.fp.tell()
    hidden.fp.write(info.FileHeader(zip64=False) + packed)
    archive.filelist.append(info)
    archive.NameToInfo[name] = info
    hidden.start_dir, hidden._didModify = hidden.fp.tell(), True


def _write_journal(source: Source, folder: Path, task: str, made: Made) -> int:
    """Write a journal whose chain holds; return how many calls it has."""
    place = folder_of(folder, task)
    place.mkdir(parents=True, exist_ok=True)
    days, number = made[0][1].days, made[0][1].number
    head = source.head | {"task": task, "system": task.split()[1]}
    totals = source.totals | _totals(made)
    lines = [canonical(head)]
    lines += [line.filled(copy) for sample, copy in made for line in sample.lines]
    lines.append(canonical(totals))
    day = later(b"2026-01-01", days).decode().replace("-", "")
    path = place / f"{day}T000000-1-{number:06x}.jsonl"
    path.write_bytes(b"".join(_chained(lines)))
    return totals["calls"]


def _totals(made: Made) -> dict[str, int]:
    (sums,) = _summed(sample.usage for sample, _ in made).values()
    return {"calls": sum(sample.calls for sample, _ in made), **sums}


def _chained(lines: Iterable[bytes]) -> Iterator[bytes]:
    last = BEGINNING.encode()
    for line in lines:
        before, after = line.split(HASH)
        after = after.replace(PREV, b'"prev":"' + last + b'"', 1)
        last = hashlib.sha256(before + after).hexdigest().encode()
        yield before + b'"hash":"' + last + b'",' + after + b"\n"
