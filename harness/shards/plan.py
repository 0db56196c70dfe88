"""The plan of a run that is divided into shards: `LOG_DIR/shards.json`, and shards' directories.

A shard is an ordinary run directory, `LOG_DIR/shards/0007`, that asks some questions of some
entries, each question with all its epochs. Every planned query is in exactly one shard.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from podium.harness.errors import UserError, first_fault
from podium.harness.files import DOCUMENT, read_limited, replace_file

FILE, FOLDER = "shards.json", "shards"
FIGURES = "figures.parquet"
"""File beside a shard's manifest with the results of the shard, to spare reading its logs."""
ENDED = "outcome.json"
MOST_QUERIES = 2000
"""Maximum queries (question, system and epoch) of a shard, unless one question has more."""


@dataclass(frozen=True, slots=True)
class ShardPart:
    """Some questions of one entry (a system on a suite): numbers `first` to `last` - 1, from 0."""

    entry: str  # name of the Inspect task
    suite: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Shard:
    """A shard: the questions that one process asks, in a run directory of its own."""

    name: str  # of its folder: `0007`
    wave: int  # 2 for entries that depend on results of wave 1
    parts: tuple[ShardPart, ...]


@dataclass(frozen=True, slots=True)
class ShardPlan:
    """All shards of a run, and the fields of its request that every shard needs."""

    request: Mapping[str, Any]
    """Fields of `RunRequest` that no experiment stores: the pool file's path, the sandbox, ..."""
    questions: Mapping[str, tuple[str, ...]]
    """Suite -> the ids of its questions, in the order of the run."""
    shards: tuple[Shard, ...] = ()
    own_suites: tuple[str, ...] = ()
    """The user's own suites, as FILE.py@NAME."""
    own_systems: tuple[str, ...] = ()
    schema: Literal[1] = 1

    def ids(self, span: ShardPart) -> tuple[str, ...]:
        """Return the ids of the questions in a part of a shard."""
        return self.questions[span.suite][span.first : span.last]

    def planned(self, entry: str) -> int:
        """Return how many of an entry's questions, from the first one, are already in shards."""
        spans = (span for shard in self.shards for span in shard.parts if span.entry == entry)
        return max((span.last for span in spans), default=0)


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """The questions of one entry (a system on a suite) that are to be divided among shards."""

    entry: str
    suite: str
    first: int
    last: int
    cost: float = 1.0
    """Cost of one question with all its epochs, above 0, in any unit that all rows share."""
    epochs: int = field(default=1)


def cut(rows: Sequence[PlannedRow], shards: int, *, first: int = 1, wave: int = 1) -> list[Shard]:
    """Divide the rows' questions into shards of about equal cost, numbered from `first`."""
    sizes = [row.last - row.first for row in rows]
    costs = chain.from_iterable([row.cost] * size for row, size in zip(rows, sizes, strict=True))
    sums, total = list(accumulate(costs)), sum(sizes)
    shards = min(shards, total)
    cuts = [0]
    for number in range(1, shards):
        index = bisect_left(sums, sums[-1] * number / shards) + 1
        cuts.append(min(max(index, cuts[-1] + 1), total - shards + number))
    starts = list(accumulate(sizes, initial=0))
    pieces = (
        piece
        for begin, end in zip(cuts, [*cuts[1:], total], strict=True)
        for piece in _bounded(list(_parts(rows, starts, begin, end)), rows)
    )
    numbered = enumerate(pieces, first)
    return [Shard(f"{number:04d}", wave, tuple(piece)) for number, piece in numbered if piece]


def cut_by_question(
    rows: Sequence[PlannedRow], shards: int, *, first: int = 1, wave: int = 1
) -> list[Shard]:
    """Divide as `cut` does, but keep a question's entries together, because they share replies."""
    together: dict[str, list[PlannedRow]] = {}
    for row in rows:
        together.setdefault(f"{row.suite} {row.first} {row.last}", []).append(row)
    blocks = [
        replace(
            group[0],
            entry=name,
            cost=sum(row.cost for row in group),
            epochs=sum(row.epochs for row in group),
        )
        for name, group in together.items()
    ]
    return [
        replace(
            shard,
            parts=tuple(
                replace(span, entry=row.entry)
                for span in shard.parts
                for row in together[span.entry]
            ),
        )
        for shard in cut(blocks, shards, first=first, wave=wave)
    ]


def _parts(
    rows: Sequence[PlannedRow], starts: Sequence[int], begin: int, end: int
) -> Iterator[ShardPart]:
    """Yield the shard's parts for questions `begin` to `end` - 1, counted over all rows."""
    for row, start in zip(rows, starts, strict=False):
        low, high = max(begin, start) - start, min(end - start, row.last - row.first)
        if low < high:
            yield ShardPart(row.entry, row.suite, row.first + low, row.first + high)


def _bounded(spans: Sequence[ShardPart], rows: Sequence[PlannedRow]) -> Iterator[list[ShardPart]]:
    """Yield a shard's parts, or those of several shards if one would exceed `MOST_QUERIES`."""
    epochs = {row.entry: row.epochs for row in rows}
    piece, room = list[ShardPart](), MOST_QUERIES
    for span in spans:
        start = span.first
        while start < span.last:
            fits = min(room // epochs[span.entry], span.last - start)
            if fits < 1 and piece:
                yield piece
                piece, room = [], MOST_QUERIES
                continue
            fits = max(fits, 1)
            piece.append(ShardPart(span.entry, span.suite, start, start + fits))
            start, room = start + fits, room - fits * epochs[span.entry]
    yield piece


@dataclass(frozen=True, slots=True)
class ShardOutcome:
    """The outcome of a shard's last process, stored in `outcome.json` beside the shard's logs."""

    finished: bool
    unscored: int = 0
    trouble: tuple[str, ...] = ()


_FILE, _OUTCOME = TypeAdapter(ShardPlan), TypeAdapter(ShardOutcome)


def read_plan(log_dir: Path) -> ShardPlan | None:
    """Return the shard plan in a run's directory; None if there is none, UserError if damaged."""
    path = log_dir / FILE
    if not path.is_file():
        return None
    try:
        return _FILE.validate_json(read_limited(path, DOCUMENT))
    except ValidationError as error:
        location, fault = first_fault(error)
        raise UserError(
            f"{path} is damaged or of another version of podium (field {location}: {fault}); "
            "restore it or name another --log-dir."
        ) from error


def write_plan(log_dir: Path, plan: ShardPlan) -> None:
    """Write a run's shard plan to its directory, atomically."""
    replace_file(log_dir / FILE, _FILE.dump_json(plan, indent=1) + b"\n")


def shard_dir(log_dir: Path, name: str) -> Path:
    """Return the directory of the shard `name` in a run's directory."""
    return log_dir / FOLDER / name


def shard_dirs(log_dir: Path) -> list[Path]:
    """Return the directories of a run's shards, in order; empty for a run without shards."""
    there = (log_dir / FILE).is_file()
    return (
        sorted(path.parent for path in log_dir.glob(f"{FOLDER}/*/experiment.json")) if there else []
    )


def read_outcome(folder: Path) -> ShardOutcome | None:
    """Return the outcome of a shard's last process; None if the process wrote none."""
    try:
        return _OUTCOME.validate_json((folder / ENDED).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def write_outcome(folder: Path, outcome: ShardOutcome) -> None:
    """Write the outcome of a shard's process to the shard's directory."""
    replace_file(folder / ENDED, _OUTCOME.dump_json(outcome) + b"\n")


def refuse_sharded(log_dir: Path) -> None:
    """Raise UserError if a directory holds a run that is divided into shards."""
    if (log_dir / FILE).is_file():
        raise UserError(
            f"{log_dir} holds a run that is cut into shards: add --shards, or name another "
            "--log-dir."
        )


def parent_of(folder: Path) -> Path | None:
    """Return the directory of the run to which the shard in `folder` belongs; None if no shard."""
    parent = folder.parent.parent
    return parent if folder.parent.name == FOLDER and (parent / FILE).is_file() else None


def outside_shards(log_dir: Path, paths: Iterable[Path]) -> list[Path]:
    """Return the files of `paths` that are in none of the shards in a run's directory."""
    inside = log_dir / FOLDER if (log_dir / FILE).is_file() else None
    return [path for path in paths if inside is None or not path.is_relative_to(inside)]
