"""Read the tests of one raw LiveCodeBench row, the encoded private ones without unpickling.

The hub keeps private tests as base64 of zlib of a pickle that holds one string of JSON. Unpickling
what was downloaded can run anything, so the pickle is not run: its opcodes are listed, and only
those that spell a single string are read (LiveCodeBench/LiveCodeBench @28fef95,
lcb_runner/benchmarks/code_generation.py, calls pickle.loads).
"""

import base64
import hashlib
import json
import pickletools
import zlib
from collections.abc import Mapping
from typing import Any, cast

from suites.programs import Case, ProgramTests

LARGEST = 1 << 30
"""Bytes that the private tests of one problem may have unpacked: a bound for foreign rows."""

TEST_FIELDS = ("public_test_cases", "private_test_cases", "metadata")
"""The fields of a row that decide what its tests are, in the order in which they are digested."""

STRINGS = frozenset(
    ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE"),
)
AROUND = frozenset(
    ("PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"),
)
"""Opcodes of a pickled string: the string itself, and what pickle writes around it."""


def digest_of(row: Mapping[str, Any]) -> str:
    """Return what stands for a row's tests in a question's target: `sha256:` and 64 hex digits.

    Taken over the fields as they lie on the hub, so that no test has to be decoded to compare it.
    """
    digest = hashlib.sha256()
    for field in TEST_FIELDS:
        content = str(row[field]).encode("utf-8", "surrogatepass")
        digest.update(f"{field} {len(content)}\n".encode())
        digest.update(content)
    return f"sha256:{digest.hexdigest()}"


def program_tests(row: Mapping[str, Any], largest: int = LARGEST) -> ProgramTests:
    """Return a row's tests, public ones first as the official evaluator runs them.

    Raises ValueError, with a reason fit for a sentence, when they cannot be read or there are none.
    """
    cases = (*public_cases(row), *private_cases(str(row["private_test_cases"]), largest))
    if not cases:
        raise ValueError("the problem has no tests")
    return ProgramTests(cases, method_of(row))


def public_cases(row: Mapping[str, Any]) -> tuple[Case, ...]:
    """Return the tests that the statement shows."""
    return _cases(_json(str(row["public_test_cases"]), "public tests"), "public tests")


def private_cases(text: str, largest: int = LARGEST) -> tuple[Case, ...]:
    """Return the hidden tests, which are plain JSON or encoded; ValueError when unreadable."""
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        found = _json(pickled_text(_unpacked(text, largest)), "private tests")
    return _cases(found, "private tests")


def method_of(row: Mapping[str, Any]) -> str | None:
    """Return the method to call, or None for a program that reads standard input."""
    facts = _json(str(row["metadata"]), "metadata")
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
    texts: list[str] = []
    other = ""
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


def _json(text: str, what: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its {what} are no JSON ({type(error).__name__})") from error


def _cases(found: object, what: str) -> tuple[Case, ...]:
    if not isinstance(found, list):
        raise ValueError(f"its {what} are no list")
    return tuple(_case(one, what) for one in cast(list[object], found))


def _case(one: object, what: str) -> Case:
    if not isinstance(one, dict):
        raise ValueError(f"one of its {what} is no JSON object")
    test = cast(dict[str, Any], one)
    if not isinstance(test.get("input"), str) or not isinstance(test.get("output"), str):
        raise ValueError(f"one of its {what} lacks an input or an output")
    return Case(test["input"], test["output"])
