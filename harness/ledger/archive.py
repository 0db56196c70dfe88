"""What no `.eval` file is like that Inspect has written: where two readers would see two logs.

An archive may hold a member twice, of which readers take different ones; a sample under another
sample's name; and totals that are not those of its samples. Nothing is repaired or left out here.
"""

import json
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from harness.ledger.raw_log import Json, RawLog
from harness.records import PODIUM

SAMPLES = "samples/"
INSPECTS = re.compile(
    r"header\.json|summaries\.json|reductions\.json|samples/.+_epoch_\d+\.json"
    r"|_journal/(?:start|results)\.json|_journal/(?:summaries|config_updates)/\d+\.json",
    re.DOTALL,
)
"""What Inspect calls the members of a log."""
CLOSE = 1e-9
"""Means are sums of floats, in one order or another."""


@dataclass(frozen=True, slots=True)
class Oddity:
    """One thing that is wrong with an archive; `grave` where readers differ in what they see."""

    where: str
    said: str
    grave: bool = True


class ScoredSample(Protocol):
    """One sample, as far as a log's totals are about it."""

    question: str
    epoch: int
    score: float | None


def oddities(log: RawLog) -> Iterator[Oddity]:
    """Yield what is wrong with the members of an archive, by their names."""
    often = Counter(one.filename for one in log.zip.infolist())
    stopped = log.header.get("status", "started") != "success"
    for name, count in often.items():
        if count > 1 and not (stopped and _was_tried_again(log.zip, name)):
            yield _twice(log.zip, name, count)
        if not INSPECTS.fullmatch(name):
            yield Oddity(name, "Inspect writes no such member", grave=False)


def _was_tried_again(archive: zipfile.ZipFile, name: str) -> bool:
    """Say whether all copies of a sample but the last ended in an error.

    A run that goes on copies those, and Inspect packs the log anew only if it ends well.
    """
    earlier = [one for one in archive.infolist() if one.filename == name][:-1]
    copies = [_read(archive, one) for one in earlier]
    return name.startswith(SAMPLES) and all(
        isinstance(one, dict) and cast(Json, one).get("error") for one in copies
    )


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> object:
    """Return a member's JSON; None where it cannot be had. Unlike orjson this takes a NaN."""
    try:
        return json.loads(archive.read(member))
    except Exception:  # a damaged member may fail anywhere in zip, zstd or JSON
        return None


def _twice(archive: zipfile.ZipFile, name: str, count: int) -> Oddity:
    members = [one for one in archive.infolist() if one.filename == name]
    alike = len({(one.CRC, one.file_size) for one in members}) == 1
    if alike:
        return Oddity(name, f"it stands in the archive {count} times, always the same", grave=False)
    return Oddity(name, f"it stands in the archive {count} times: readers take different ones")


def disagreements(log: RawLog, samples: Sequence[ScoredSample]) -> Iterator[Oddity]:
    """Yield where a log's names, summaries and totals are not those of its samples."""
    named = Counter(f"{SAMPLES}{one.question}_epoch_{one.epoch}.json" for one in samples)
    here = {name for name in log.zip.NameToInfo if name.startswith(SAMPLES)}
    for name in sorted(here - named.keys()):
        yield Oddity(name, "it holds another sample than its name says")
    for name, count in sorted(named.items()):
        if count > 1:
            yield Oddity(name, f"{count} members hold this sample: readers take different ones")
    yield from _summaries(log, samples)
    yield from _totals(log.header, samples)


def _summaries(log: RawLog, samples: Sequence[ScoredSample]) -> Iterator[Oddity]:
    """Compare the verdicts that a viewer lists with those of the samples."""
    if not log.zip.NameToInfo.keys() >= {"header.json", "summaries.json"}:
        return  # the run was stopped
    found: Any = _read(log.zip, log.zip.getinfo("summaries.json"))
    if not isinstance(found, list):
        yield Oddity("summaries.json", "it is no list of samples, or cannot be read")
        return
    rows = cast(Sequence[Json], found)
    listed = {(str(one["id"]), int(one["epoch"])): _value(one) for one in rows}
    for sample in samples:
        pair = (sample.question, sample.epoch)
        where = f"sample {sample.question} epoch {sample.epoch}"
        if pair not in listed:
            yield Oddity(where, "the log's summaries lack it")
        elif listed[pair] != sample.score:
            yield Oddity(where, f"its summary says {listed[pair]}, the sample {sample.score}")
    for question, epoch in sorted(listed.keys() - {(one.question, one.epoch) for one in samples}):
        yield Oddity(f"sample {question} epoch {epoch}", "summarised, and not in the log")


def _totals(header: Json, samples: Sequence[ScoredSample]) -> Iterator[Oddity]:
    """Compare the totals in a header with its samples; the mean where all of them were graded."""
    results: Json = header.get("results") or {}
    asked = results.get("total_samples")
    if header.get("status") == "success" and asked is not None and asked != len(samples):
        yield Oddity("header", f"it says {asked} samples, and {len(samples)} are here")
    found = _stated(results)
    graded = [one.score for one in samples if one.score is not None]
    if found is None or len(graded) != len(samples) or not graded:
        return
    by_question: dict[str, list[float]] = defaultdict(list)
    for one in samples:
        by_question[one.question].append(one.score or 0.0)
    means = [sum(some) / len(some) for some in by_question.values()]
    mean = sum(means) / len(means)
    if abs(mean - found) > CLOSE:
        yield Oddity("header", f"it says mean {found:.4f}, the samples {mean:.4f}")


def _stated(results: Json) -> float | None:
    scores: Sequence[Json] = results.get("scores") or ()
    for score in scores:
        metrics: Json = score.get("metrics") or {}
        if score.get("name") == PODIUM and "mean" in metrics:
            return float(metrics["mean"]["value"])
    return None


def _value(summary: Mapping[str, Any]) -> float | None:
    scores: Json = summary.get("scores") or {}
    score: Json = scores.get(PODIUM) or {}
    value = score.get("value")
    return value if isinstance(value, int | float) and value == value else None
