"""LiveCodeBench's files of gigabytes: indexed once, rows by offset, tests without unpickling.

One pass takes a file's sha256, checks every row's tests and notes where each row lies; that is kept
in podium's cache folder. A question carries only the digest of its tests. Hidden tests are base64
of zlib of a pickle; unpickling can run anything, so only opcodes that spell one string are read.
"""

import base64
import hashlib
import json
import os
import pickletools
import zlib
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from podium.harness.errors import UserError
from podium.harness.files import cache_folder, parse_json, read_rows, refuse_absent
from podium.suites.code_checks import refuse_untold
from podium.suites.code_grading import ProgramCase, ProgramTests
from podium.suites.data import DataSource, data_folder, hub_file

FIELDS = (
    *("question_id", "question_title", "question_content", "platform", "contest_date"),
    *("starter_code", "difficulty", "public_test_cases", "private_test_cases", "metadata"),
)

FORMAT = 1
LOCATIONS: dict[str, tuple[Path, int, int]] = {}
"""File, offset and length of the row whose tests have a digest, for every file that this process
has indexed; by digest, so an entry of one file can never serve another's tests."""
_ONE_PASS = Lock()
"""Grading threads that need the same file wait for one pass instead of each making its own."""

_SPOOLS: list[TemporaryDirectory[str]] = []
"""Kept until the process ends, when each removes itself."""
LARGEST = 1 << 30
"""Bytes that the private tests of one problem may have unpacked: a bound for foreign rows."""
TEST_FIELDS = ("public_test_cases", "private_test_cases", "metadata")
"""The fields of a row that decide what its tests are, in the order in which they are digested."""
STRINGS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")
AROUND = ("PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP")
"""Opcodes of a pickled string: the string itself, and what pickle writes around it."""


class IndexedProblem(BaseModel, frozen=True):
    """One problem without its hidden tests, and where its row lies."""

    question_id: str
    question_title: str
    question_content: str
    platform: str
    contest_date: str
    """A naive ISO date and time, as on the hub."""
    starter_code: str
    difficulty: str
    public: tuple[tuple[str, str], ...]
    method: str | None
    tests: int
    digest: str
    offset: int
    length: int


class RowIndex(BaseModel, frozen=True):
    """What one pass over a file found."""

    format: int
    path: str
    size: int
    mtime_ns: int
    sha256: str
    entries: tuple[IndexedProblem, ...]


_INDEXES: dict[tuple[str, int, int], RowIndex] = {}


def index_file(path: Path) -> RowIndex:
    """Return the index of a JSONL file; UserError names the first line that is no good row."""
    stat = path.stat()
    key = (str(path.resolve()), stat.st_size, stat.st_mtime_ns)
    with _ONE_PASS:
        index = _INDEXES.get(key) or _kept_index(key) or _keep_index(read_index(path))
        _INDEXES[key] = index
        note_locations(index, path)
    return index


def find_tests(digest: str, question_id: str) -> ProgramTests | None:
    """Return the tests with this digest, or None; UserError for a file changed since indexed."""
    if digest not in LOCATIONS:
        return None
    path, offset, length = LOCATIONS[digest]
    changed = f"{path} changed while it was in use: the tests of {question_id} are not there."
    try:
        with path.open("rb") as file:
            file.seek(offset)
            row = cast(dict[str, Any], json.loads(file.read(length)))
        if digest_of_tests(row) != digest:
            raise UserError(changed)
        return program_tests(row)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(changed) from error


def read_index(path: Path, shown: Path | None = None) -> RowIndex:
    """Read a whole file once, a line at a time; `shown` is the name that messages give it."""
    digest, entries, offset, stat = hashlib.sha256(), dict[str, IndexedProblem](), 0, path.stat()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            digest.update(line)
            if line.strip():
                entry = _indexed_problem(line, offset, f"{shown or path}, line {number}")
                if entry.question_id in entries:
                    raise UserError(f"{shown or path} has question {entry.question_id} twice.")
                entries[entry.question_id] = entry
            offset += len(line)
    return RowIndex(
        format=FORMAT,
        path=str(path.resolve()),
        size=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        sha256=digest.hexdigest(),
        entries=tuple(entries.values()),
    )


def _indexed_problem(line: bytes, offset: int, where: str) -> IndexedProblem:
    row: Any = None
    with suppress(ValueError):
        row = parse_json(line)
    if not isinstance(row, dict):
        raise UserError(f"{where} is no JSON object.")
    row = cast(dict[str, Any], row)
    refuse_untold(row, FIELDS, f"{where} is no raw LiveCodeBench row")
    try:
        if datetime.fromisoformat(row["contest_date"]).tzinfo is not None:
            raise ValueError("its contest_date has a time zone")
        tests = program_tests(row)
        public = tuple((case.input, case.output) for case in public_cases(row))
    except ValueError as error:
        name = row["question_id"]
        raise UserError(f"{where}: question {name} cannot be used: {error}.") from error
    return IndexedProblem(
        **{field: row[field] for field in FIELDS if field in IndexedProblem.model_fields},
        public=public,
        method=tests.method,
        tests=len(tests.cases),
        digest=digest_of_tests(row),
        offset=offset,
        length=len(line),
    )


def note_locations(index: RowIndex, path: Path) -> None:
    """Make the tests of an index findable; a dictionary takes each by itself, so needs no lock."""
    for entry in index.entries:
        LOCATIONS[entry.digest] = path.absolute(), entry.offset, entry.length


def _index_path(name: str) -> Path:
    return cache_folder() / "livecodebench" / f"{hashlib.sha256(name.encode()).hexdigest()}.json"


def _kept_index(key: tuple[str, int, int]) -> RowIndex | None:
    """Return what an earlier run found, unless the file is another one by now."""
    with suppress(OSError, ValidationError):
        index = RowIndex.model_validate_json(_index_path(key[0]).read_bytes())
        if (index.path, index.size, index.mtime_ns, index.format) == (*key, FORMAT):
            return index
    return None


def _keep_index(index: RowIndex) -> RowIndex:
    """Keep an index for later runs; where that cannot be written, they pay for a pass again."""
    path = _index_path(index.path)
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_text(index.model_dump_json(), encoding="utf-8")
        new.replace(path)
    return index


def pinned_index(
    name: str, sources: Mapping[str, DataSource], data: str | Path | None = None
) -> RowIndex:
    """Return the index of a pinned file; UserError when it is absent, cut off or another file."""
    source = sources[name]
    path = data_folder(data) / source.file
    if not path.is_file():
        name = source.hub_file or path.name
        if source.hub is None:
            raise UserError(f"There is no {path}: put {name} there (PODIUM_DATA names the folder).")
        otherwise = f"put {name} at {path} (PODIUM_DATA names another folder)"
        path = hub_file(source, otherwise, f"{name} of {source.hub}")
    other, size = f"{path} is not the pinned file", path.stat().st_size
    if source.size is not None and size != source.size:
        raise UserError(f"{other}: it has {size:,} bytes, not {source.size:,}; fetch it again.")
    index = index_file(path)
    if index.sha256 != source.sha256:
        found = f"its sha256 is {index.sha256[:12]}, not {source.sha256[:12]}"
        raise UserError(f"{other}: {found}; fetch it again.")
    if len(index.entries) != source.rows:
        raise UserError(f"{path} has {len(index.entries)} rows, not the pinned {source.rows}.")
    return index


def index_raw_rows(path: Path) -> RowIndex:
    """Return the index of raw rows: JSONL, plain or .gz, or CSV with the hub's columns."""
    refuse_absent(path)
    if path.suffix in (".gz", ".csv"):
        _SPOOLS.append(TemporaryDirectory(prefix="podium-rows-"))
        plain = Path(_SPOOLS[-1].name) / "rows.jsonl"
        with plain.open("wb") as file:
            file.writelines(json.dumps(row).encode() + b"\n" for _, row in read_rows(path))
        index = read_index(plain, path)
        note_locations(index, plain)
    else:
        index = index_file(path)
    if not index.entries:
        raise UserError(f"{path} has no rows.")
    return index


def digest_of_tests(row: Mapping[str, Any]) -> str:
    """Return what stands for a row's tests in a question's target, of fields as on the hub."""
    digest = hashlib.sha256()
    for field in TEST_FIELDS:
        content = str(row[field]).encode("utf-8", "surrogatepass")
        digest.update(f"{field} {len(content)}\n".encode())
        digest.update(content)
    return f"sha256:{digest.hexdigest()}"


def program_tests(row: Mapping[str, Any], largest: int = LARGEST) -> ProgramTests:
    """Return a row's tests, public ones first; ValueError, fit for a sentence, without any."""
    cases = (*public_cases(row), *private_cases(str(row["private_test_cases"]), largest))
    if not cases:
        raise ValueError("the problem has no tests")
    return ProgramTests(cases, method_of(row))


def public_cases(row: Mapping[str, Any]) -> tuple[ProgramCase, ...]:
    """Return the tests that the statement shows."""
    return _cases(_read_json(str(row["public_test_cases"]), "public tests"), "public tests")


def private_cases(text: str, largest: int = LARGEST) -> tuple[ProgramCase, ...]:
    """Return the hidden tests, which are plain JSON or encoded; ValueError when unreadable."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        found = _read_json(pickled_text(_unpacked(text, largest)), "private tests")
    return _cases(found, "private tests")


def method_of(row: Mapping[str, Any]) -> str | None:
    """Return the method to call, or None for a program that reads standard input."""
    facts = _read_json(str(row["metadata"]), "metadata")
    if not isinstance(facts, dict):
        raise ValueError("its metadata is no JSON object")
    name = cast(dict[str, Any], facts).get("func_name")
    if name is not None and not (isinstance(name, str) and name.isidentifier()):
        raise ValueError("its func_name is no name")
    return name


def pickled_text(data: bytes) -> str:
    """Return the string that a pickle consists of, without running it; ValueError for any other.

    >>> import pickle
    >>> pickled_text(pickle.dumps("[]"))
    '[]'
    """
    texts, other = list[str](), ""
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in STRINGS:
                texts.append(cast(str, argument))
            elif opcode.name not in AROUND:
                other = opcode.name
                break
    except ValueError as error:
        raise ValueError(f"its private tests are no pickle ({error})") from error
    if len(texts) != 1 or other:
        found = other or f"{len(texts)} texts"
        raise ValueError(f"its private tests are a pickle of other things than one text ({found})")
    return texts[0]


def _unpacked(text: str, largest: int) -> bytes:
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(text.encode()), largest + 1)
    except (ValueError, zlib.error) as error:
        raise ValueError(f"its private tests cannot be decoded ({error})") from error
    if len(data) > largest:
        raise ValueError(f"its private tests unpack to more than {largest >> 20} MiB")
    if not unpacker.eof:
        raise ValueError("its private tests are cut off")
    return data


def _read_json(text: str, what: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its {what} are no JSON ({type(error).__name__})") from error


def _cases(found: object, what: str) -> tuple[ProgramCase, ...]:
    if not isinstance(found, list):
        raise ValueError(f"its {what} are no list")
    tests = cast(list[Any], found)
    for test in tests:
        if not isinstance(test, dict):
            raise ValueError(f"one of its {what} is no JSON object")
        given = cast(dict[str, Any], test)
        if not isinstance(given.get("input"), str) or not isinstance(given.get("output"), str):
            raise ValueError(f"one of its {what} lacks an input or an output")
    return tuple(ProgramCase(test["input"], test["output"]) for test in tests)
