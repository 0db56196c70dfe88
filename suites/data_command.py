"""`podium data`: verify what lies here against sources.toml, fetch what is absent.

What is here is left as it is, right or wrong; nothing is unpacked.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

from harness.errors import UserError, no_such
from harness.files import format_bytes
from harness.suite import Split, Suite
from harness.text import columns, pluralise, say
from suites import SUITES
from suites.data import (
    DataSource,
    by_hand,
    cached_file,
    cached_rows,
    check_rows,
    data_folder,
    held_bytes,
    hub_file,
    hub_left_alone,
    hub_refusal,
    local_file,
    local_rows,
    pinned_hub_rows,
    refuse_duplicates,
    sources,
)
from suites.livecodebench import LiveCodeBench
from suites.originals import Unreachable, fetch_public
from suites.practice import PracticeSuite

DataState = Literal["ok", "absent", "wrong"]
NOBODY = "which nobody has pinned"


@dataclass(frozen=True, slots=True)
class DataFinding:
    """What became of one thing that was looked at."""

    state: DataState
    said: str

    def __str__(self) -> str:
        return f"  {self.state:<7} {self.said}"


GENERATED = DataFinding("ok", "generated; there is nothing to fetch")


@dataclass(frozen=True, slots=True)
class DataItem:
    """A suite with its sources, or a source that no suite has as its questions."""

    name: str
    sources: tuple[str, ...]
    suite: Suite[Any] | None = None


def verify_data(
    names: Sequence[str], data: str | Path | None = None, say: Callable[[str], None] = say
) -> int:
    """Say what is right, absent and wrong of these suites (or all); return 1 for a wrong one."""
    found: list[DataFinding] = []
    for item in data_items(names):
        say(item.name)
        for one in check_item(item, data):
            found.append(one)
            say(str(one))
    counts = {state: [one.state for one in found].count(state) for state in ("absent", "wrong")}
    if counts["wrong"]:
        say(f"{counts['wrong']} wrong: move what is wrong away, then podium data fetch SUITE.")
    elif counts["absent"]:
        say(f"Nothing here is wrong; {counts['absent']} absent.")
    else:
        loose = sum(NOBODY in str(one) for one in found)
        say("All is as pinned." if not loose else f"Nothing is wrong; {loose} not pinned.")
    return 1 if counts["wrong"] else 0


def data_items(names: Sequence[str]) -> list[DataItem]:
    """Return what names stand for, in order; every listed suite and lone source without a name.

    NAME:PART is a part of NAME, which stands for all its parts.
    """
    lone = [name.partition(":")[0] for name in sources() if suite_of_source(name) is None]
    return [_item(name) for name in dict.fromkeys(names or (*SUITES, *lone))]


def _item(name: str) -> DataItem:
    if name in SUITES:
        return DataItem(name, sources_of(SUITES[name]), SUITES[name])
    if parts := [one for one in sources() if name in (one, one.partition(":")[0])]:
        needed = (need for part in parts for need in sources()[part].needs)
        return DataItem(name, (*dict.fromkeys(needed), *parts))
    raise no_such("suite or source", name, (one.name for one in data_items(())), "there are: ")


def check_item(item: DataItem, data: str | Path | None = None) -> Iterable[DataFinding]:
    """Yield what is found of each source, then of the questions they make."""
    if item.suite is not None and not item.sources:
        yield GENERATED
        return
    seen = [(check_source(name, data), sources()[name].instead_of) for name in item.sources]
    found = [one for one, instead in seen if not (instead and one.state == "absent")]
    yield from {one.said: one for one in found}.values()  # two tables may read one file
    if item.suite is None:
        for name, one in zip(item.sources, found, strict=True):
            if one.state == "ok" and local_file(sources()[name], data).is_file():
                yield _count_rows(name, data)
    elif all(one.state != "wrong" for one in found):
        yield from _check_questions(item.suite, data, any(one.state == "absent" for one in found))


def _count_rows(name: str, data: str | Path | None) -> DataFinding:
    try:
        return DataFinding("ok", f"{name}: {pluralise(len(local_rows(name, data)), 'row')}")
    except UserError as error:
        return DataFinding("wrong", str(error).removesuffix("."))


def check_source(name: str, data: str | Path | None = None) -> DataFinding:
    """Return whether a source is here: its local file, else what the hub's cache has."""
    source = sources()[name]
    path = local_file(source, data)
    if path.is_file():
        return _check_file(source, path)
    if source.hub and source.hub_file:
        cached = cached_file(source.hub, source.hub_file, source.revision)
        if cached and source.hub_file == path.name:  # it is the very file
            return _check_file(source, cached)
        if cached:
            return DataFinding("ok", f"{name}: in the hub's cache, {cached}")
    elif source.hub:
        rows = cached_rows(source.hub, source.config, source.revision, source.split)
        if rows is not None:
            return _check_rows(name, source, rows)
    pins = [f"sha256 {source.sha256[:12]}"] if source.sha256 else []
    pins += [pluralise(source.rows, "row")] if source.rows is not None else []
    here = f"put {path.name} ({', '.join(pins) or 'not pinned'}) at {path}"
    fetch = f"podium data fetch {suite_of_source(name) or name}, or "
    return DataFinding("absent", f"{name}: {fetch if source.public or source.hub else ''}{here}")


def _check_file(source: DataSource, path: Path) -> DataFinding:
    try:
        if path.suffix == ".gz":  # it may be packed only here
            digest = hashlib.sha256(held_bytes(source, path)).hexdigest()
        else:
            size = path.stat().st_size
            if source.size not in (None, size):
                said = f"{path} has {size:,} bytes, not the pinned {source.size:,}"
                return DataFinding("wrong", said)
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
    except UserError as error:
        return DataFinding("wrong", str(error).removesuffix("."))
    except OSError as error:
        return DataFinding("wrong", f"{path} cannot be read: {error.strerror}")
    if not source.sha256:
        return DataFinding("ok", f"{path} (sha256 {digest[:12]}, {NOBODY})")
    if digest != source.sha256:
        said = f"its sha256 is {digest[:12]}, not {source.sha256[:12]}"
        return DataFinding("wrong", f"{path} is not the pinned file: {said}")
    return DataFinding("ok", f"{path} (sha256 {digest[:12]})")


def _check_rows(name: str, source: DataSource, rows: Sequence[dict[str, Any]]) -> DataFinding:
    where = f"{source.hub} at {(source.revision or '')[:12]}"
    try:
        check_rows(list(rows), source, where)
    except UserError as error:
        return DataFinding("wrong", f"in the hub's cache, {error}".removesuffix("."))
    return DataFinding("ok", f"{name}: in the hub's cache, {where} ({len(rows):,} rows)")


def _check_questions(
    suite: Suite[Any], data: str | Path | None, absent: bool
) -> Iterable[DataFinding]:
    """Load each split without asking the hub; what an absent source leaves out is no news."""
    with hub_left_alone():
        for split in suite.splits:
            try:
                size = count_questions(suite, split, data)
            except UserError as error:
                if not absent:
                    yield DataFinding("wrong", str(error).removesuffix("."))
            else:
                yield DataFinding("ok", f"{split}: {size:,} questions")


def count_questions(suite: Suite[Any], split: Split, data: str | Path | None) -> int:
    """Return how many questions a split has; UserError for an id twice or another number."""
    if data is not None and is_dataclass(suite) and hasattr(suite, "data"):
        suite = replace(cast(Any, suite), data=data)
    size = len(refuse_duplicates(suite.load(split), f"{suite.name}, {split},"))
    promised = suite.card.sizes.get(split, size)
    if size != promised:
        raise UserError(f"{suite.name}, {split}, has {size} questions, its card says {promised}.")
    return size


def fetch_data(
    names: Sequence[str], data: str | Path | None = None, say: Callable[[str], None] = say
) -> int:
    """Fetch what is absent of these suites and say where it is; return 1 when something is wrong.

    UserError, once all were tried, with a line for each thing that stood in the way.
    """
    wrong, refused = False, list[UserError]()
    for item in data_items(names):
        say(item.name)
        for found in _fetch_item(item, data, refused, say):
            wrong |= found.state == "wrong"
            say(str(found))
    if refused:
        raise UserError("\n".join(dict.fromkeys(map(str, refused))))
    if wrong:
        say("What is wrong is not overwritten: move it away and try again.")
    return 1 if wrong else 0


def _fetch_item(
    item: DataItem,
    data: str | Path | None,
    refused: list[UserError],
    tell: Callable[[str], None],
) -> list[DataFinding]:
    if not item.sources:
        return [GENERATED]
    found = list[DataFinding]()
    for name in item.sources:
        here = check_source(name, data)
        if here.state == "absent":
            if sources()[name].instead_of:
                continue
            try:
                download_source(name, data, tell)
                here = check_source(name, data)
            except UserError as error:
                refused.append(error)
                here = DataFinding("absent", f"{name}: could not be fetched")
        found.append(here)
    return found


def download_source(name: str, data: str | Path | None, tell: Callable[[str], None]) -> None:
    """Download one source, its size and licence said first; UserError says why it cannot be had."""
    source = sources()[name]
    path = local_file(source, data)
    if source.public:
        size = format_bytes(sum(one.size for one in source.public))
        origins = ", ".join(dict.fromkeys(one.at[:-28] for one in source.public))
        tell(f"  {name}: {size} from {origins} to {path}; licence: {source.licence}.")
        try:
            return fetch_public(source, path)
        except Unreachable:
            if source.hub is None:
                raise
    if source.hub is None:
        raise UserError(f"There is no {path}, and no hub has it: {by_hand(source, data)}.")
    tell(f"  {name}: {source.hub} from the hub into its cache; licence: {source.licence}.")
    if not source.hub_file:
        pinned_hub_rows(source, data)
        return None
    try:
        hub_file(source.hub, source.hub_file, source.revision)
    except Exception as error:
        raise hub_refusal(error, source.hub, by_hand(source, data)) from error


def list_data(names: Sequence[str], data: str | Path | None = None) -> list[dict[str, Any]]:
    """Return each source's name, size, licence, where its file goes and whether it is there.

    Nothing is read: `verify_data` does.
    """
    wanted = [name for item in data_items(names) for name in item.sources] if names else sources()
    listed = {name: sources()[name] for name in wanted}
    return [
        {
            "name": name,
            "bytes": sum(one.size for one in source.public) or source.size,
            "from": "GitHub" if source.public else "the hub" if source.hub else "nobody",
            "here": local_file(source, data).is_file(),
            "file": source.file,
            "licence": source.licence,
        }
        for name, source in listed.items()
    ]


def show_data(
    names: Sequence[str], data: str | Path | None = None, say: Callable[[str], None] = say
) -> int:
    """Say what there is to fetch, with size and licence, and what is here; return 0."""
    heads = ("name", "size", "from", "here", "file", "licence")
    rows = [
        tuple(str(one[head]) for head in heads)
        for one in (
            {**row, "size": format_bytes(row["bytes"]) if row["bytes"] else "unknown"}
            | {"here": "yes" if row["here"] else "no"}
            for row in list_data(names, data)
        )
    ]
    say(f"Files belong below {data_folder(data)}; `podium data fetch NAME` puts them there.")
    say(columns(heads, rows))
    return 0


def sources_of(suite: Suite[Any]) -> tuple[str, ...]:
    """Return the tables of a suite: NAME and NAME-..., or those of its release.

    A suite NAME-... without any reads those of NAME. None where the questions are generated.
    """
    if isinstance(suite, PracticeSuite):
        return ()
    if isinstance(suite, LiveCodeBench):
        return suite.release.files
    tables = {name: suite_of_source(name) for name in sources()}
    name = suite.name
    while name and name not in tables.values():
        name = name.rpartition("-")[0]
    return tuple(table for table, suite_name in tables.items() if name and suite_name == name)


def suite_of_source(source: str) -> str | None:
    """Return the listed suite that a table belongs to, the longest name that fits; else None."""
    fitting = [name for name in SUITES if source == name or source.startswith(f"{name}-")]
    return max(fitting, key=len, default=None)


def describe_sources(suite: Suite[Any]) -> list[str]:
    """Return a line per source for `podium suites NAME`."""
    return [describe_source(sources()[name]) for name in sources_of(suite)]


def describe_source(source: DataSource) -> str:
    """Return where a source is from and what it is held to."""
    found = [f"{one.at}, {one.path}" for one in source.public]
    if source.hub:
        part = source.hub_file or " ".join(filter(None, (source.config, source.split)))
        found.append(f"hub {source.hub} at {(source.revision or '')[:12]}, {part}")
    pinned = f" (sha256 {source.sha256[:12]})" if source.sha256 else ""
    rows = f"{source.rows:,} rows" if source.rows is not None else "rows not counted"
    return "; ".join((*found, f"file {source.file}{pinned}", rows))
