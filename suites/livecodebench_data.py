"""Read LiveCodeBench's multi-gigabyte files: index each once, find rows by offset, never unpickle.

One pass computes a file's sha256, checks every row's tests and records each row's offset; podium's
cache folder keeps this index. A question has only the digest of its tests. Hidden tests are a
pickle in zlib in base64; unpickling can run any code, so only the opcodes of one string are read.
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
from podium.suites.data import AGAIN, DataSource, data_folder, hub_file

FIELDS = (
    *("question_id", "question_title", "question_content", "platform", "contest_date"),
    *("starter_code", "difficulty", "public_test_cases", "private_test_cases", "metadata"),
)

FORMAT = 1
LOCATIONS: dict[str, tuple[Path, int, int]] = {}
"""By digest of a row's tests: the row's file, offset and length, for every file that this process
has indexed. The keys are digests, so a lookup can never return another problem's tests."""
_ONE_PASS = Lock()
"""Held while a file is indexed: grading threads that need the same file wait for the index."""

_SPOOLS: list[TemporaryDirectory[str]] = []
"""Temporary folders with rows copied from .gz and CSV files, removed when the process ends."""
LARGEST = 1 << 30
"""Maximum bytes of a problem's private tests after decompression, because a row may be hostile."""
TEST_FIELDS = ("public_test_cases", "private_test_cases", "metadata")
"""The fields of a row that determine its tests, in the order in which the digest takes them."""
STRINGS = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")
AROUND = ("PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP")
"""STRINGS: pickle opcodes of a string. AROUND: the opcodes that pickle writes around a string."""


class IndexedProblem(BaseModel, frozen=True):
    """A problem without its hidden tests, and the place (offset, length) of its row in the file."""

    question_id: str
    question_title: str
    question_content: str
    platform: str
    contest_date: str
    """An ISO date and time without time zone, as on the hub."""
    starter_code: str
    difficulty: str
    public: tuple[tuple[str, str], ...]
    method: str | None
    tests: int
    digest: str
    offset: int
    length: int


class RowIndex(BaseModel, frozen=True):
    """The index of a data file: its path, size, modification time, sha256, and problems."""

    format: int
    path: str
    size: int
    mtime_ns: int
    sha256: str
    entries: tuple[IndexedProblem, ...]


_INDEXES: dict[tuple[str, int, int], RowIndex] = {}


def index_file(path: Path) -> RowIndex:
    """Return the index of a JSONL data file, built or cached; UserError if a row is malformed."""
    stat = path.stat()
    key = (str(path.resolve()), stat.st_size, stat.st_mtime_ns)
    with _ONE_PASS:
        index = _INDEXES.get(key) or _kept_index(key) or _keep_index(read_index(path))
        _INDEXES[key] = index
        note_locations(index, path)
    return index


def find_tests(digest: str, question_id: str) -> ProgramTests | None:
    """Return a question's tests by their digest, None if unknown; UserError if the file changed."""
    if digest not in LOCATIONS:
        return None
    path, offset, length = LOCATIONS[digest]
    changed = f"{path} changed while it was in use: it no longer has the tests of {question_id}"
    changed += ". Restore the file and run the same command again."
    try:
        with path.open("rb") as file:
            file.seek(offset)
            row = cast(dict[str, Any], json.loads(file.read(length)))
        if digest_of_tests(row) != digest:
            raise UserError(changed)
        return program_tests(row)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(changed) from error


def read_index(path: Path, origin: Path | None = None) -> RowIndex:
    """Index a JSONL data file in one pass; errors name `origin`, if given, instead of `path`."""
    digest, entries, offset, stat = hashlib.sha256(), dict[str, IndexedProblem](), 0, path.stat()
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            digest.update(line)
            if line.strip():
                entry = _indexed_problem(line, offset, f"{origin or path}, line {number}")
                if entry.question_id in entries:
                    twice = f"{origin or path} has question {entry.question_id} twice"
                    raise UserError(f"{twice}. Delete one of the rows.")
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


def _indexed_problem(line: bytes, offset: int, place: str) -> IndexedProblem:
    row: Any = None
    with suppress(ValueError):
        row = parse_json(line)
    if not isinstance(row, dict):
        raise UserError(f"{place} is not a JSON object. Correct or delete the row.")
    row = cast(dict[str, Any], row)
    refuse_untold(row, FIELDS, f"{place} is not a raw LiveCodeBench row")
    try:
        if datetime.fromisoformat(row["contest_date"]).tzinfo is not None:
            raise ValueError("its contest_date has a time zone")
        tests = program_tests(row)
        public = tuple((case.input, case.output) for case in public_cases(row))
    except ValueError as error:
        problem = f"question {row['question_id']} cannot be used: {error}"
        raise UserError(f"{place}: {problem}. Correct or delete the row.") from error
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
    """Add an index's rows to the table LOCATIONS; needs no lock, since an assignment is atomic."""
    for entry in index.entries:
        LOCATIONS[entry.digest] = path.absolute(), entry.offset, entry.length


def _index_path(name: str) -> Path:
    return cache_folder() / "livecodebench" / f"{hashlib.sha256(name.encode()).hexdigest()}.json"


def _kept_index(key: tuple[str, int, int]) -> RowIndex | None:
    """Return a data file's index from an earlier run; None without one or if the file changed."""
    with suppress(OSError, ValidationError):
        index = RowIndex.model_validate_json(_index_path(key[0]).read_bytes())
        if (index.path, index.size, index.mtime_ns, index.format) == (*key, FORMAT):
            return index
    return None


def _keep_index(index: RowIndex) -> RowIndex:
    """Store a data file's index on disk for later runs and return it; write errors are ignored."""
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
    """Return the index of a data file of sources.toml; UserError if absent or not as pinned."""
    source = sources[name]
    path = data_folder(data) / source.file
    if not path.is_file():
        name = source.hub_file or path.name
        if source.hub is None:
            raise UserError(f"There is no {path}. Put {name} there (PODIUM_DATA names the folder).")
        otherwise = f"put {name} at {path} (PODIUM_DATA can name another folder)"
        path = hub_file(source, otherwise, f"{name} of {source.hub}")
    mismatch, size = f"{path} is not the pinned file", path.stat().st_size
    if source.size is not None and size != source.size:
        raise UserError(f"{mismatch}: it has {size:,} bytes, not {source.size:,}. {AGAIN}")
    index = index_file(path)
    if index.sha256 != source.sha256:
        digests = f"its sha256 is {index.sha256[:12]}, not {source.sha256[:12]}"
        raise UserError(f"{mismatch}: {digests}. {AGAIN}")
    if len(index.entries) != source.rows:
        count = len(index.entries)
        raise UserError(f"{path} has {count} rows, not the pinned {source.rows}. {AGAIN}")
    return index


def index_raw_rows(path: Path) -> RowIndex:
    """Return the index of a user's file (JSONL, .gz or CSV), which must have the hub's columns."""
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
        raise UserError(f"{path} has no rows. Give one row per problem.")
    return index


def digest_of_tests(row: Mapping[str, Any]) -> str:
    """Return the digest of the tests in a data row, which is the target of the row's question."""
    digest = hashlib.sha256()
    for field in TEST_FIELDS:
        content = str(row[field]).encode("utf-8", "surrogatepass")
        digest.update(f"{field} {len(content)}\n".encode())
        digest.update(content)
    return f"sha256:{digest.hexdigest()}"


def program_tests(row: Mapping[str, Any], largest: int = LARGEST) -> ProgramTests:
    """Return a data row's tests, public ones first; ValueError if a test is malformed."""
    cases = (*public_cases(row), *private_cases(str(row["private_test_cases"]), largest))
    if not cases:
        raise ValueError("the problem has no tests")
    return ProgramTests(cases, method_of(row))


def public_cases(row: Mapping[str, Any]) -> tuple[ProgramCase, ...]:
    """Return the tests that the problem statement shows; raises ValueError if unreadable."""
    return _cases(_read_json(str(row["public_test_cases"]), "public tests"), "public tests")


def private_cases(text: str, largest: int = LARGEST) -> tuple[ProgramCase, ...]:
    """Return the hidden tests, from JSON or an encoded pickle; raises ValueError if unreadable."""
    try:
        content: object = json.loads(text)
    except (ValueError, RecursionError):
        content = _read_json(pickled_text(_unpacked(text, largest)), "private tests")
    return _cases(content, "private tests")


def method_of(row: Mapping[str, Any]) -> str | None:
    """Return which method a row's tests call; None if the program is to read standard input."""
    facts = _read_json(str(row["metadata"]), "metadata")
    if not isinstance(facts, dict):
        raise ValueError("its metadata is not a JSON object")
    name = cast(dict[str, Any], facts).get("func_name")
    if name is not None and not (isinstance(name, str) and name.isidentifier()):
        raise ValueError("its func_name is not a Python name")
    return name


def pickled_text(data: bytes) -> str:
    """Return the one string in a pickle without unpickling; ValueError if it has anything else.

    >>> import pickle
    >>> pickled_text(pickle.dumps("[]"))
    '[]'
    """
    texts, foreign = list[str](), ""
    try:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name in STRINGS:
                texts.append(cast(str, argument))
            elif opcode.name not in AROUND:
                foreign = opcode.name
                break
    except ValueError as error:
        raise ValueError(f"its private tests are not a pickle ({error})") from error
    if len(texts) != 1 or foreign:
        kinds = foreign or f"{len(texts)} texts"
        raise ValueError(f"its private tests are a pickle, but not of one text ({kinds})")
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


def _read_json(text: str, label: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its {label} are not JSON ({type(error).__name__})") from error


def _cases(content: object, label: str) -> tuple[ProgramCase, ...]:
    if not isinstance(content, list):
        raise ValueError(f"its {label} are not a list")
    tests = cast(list[Any], content)
    for test in tests:
        if not isinstance(test, dict):
            raise ValueError(f"one of its {label} is not a JSON object")
        case = cast(dict[str, Any], test)
        if not isinstance(case.get("input"), str) or not isinstance(case.get("output"), str):
            raise ValueError(f"one of its {label} lacks an input or an output")
    return tuple(ProgramCase(test["input"], test["output"]) for test in tests)
