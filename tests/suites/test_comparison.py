"""Comparing by the official rule, and reading values that a hostile program may have written."""

import json
import time
from typing import Any

import pytest

from podium.sandbox.box import decode
from podium.suites.code_grading import same_output, same_value


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        ("3\n", "3", True),
        ("  3 \n", "3", True),
        ("1.0", "1.00", True),
        ("1  2", "1 2", True),
        ("1e2", "100", True),
        ("3\r\n4\r\n", "3\n4", True),
        ("a\nnan", "a \nnan\n", True),
        ("a  b", "a b", False),
        ("1 2", "1\n2", False),
        ("1 2 3", "1 2", False),
        ("Yes", "YES", False),
        ("0.3000001", "0.3", False),
        ("1\n\n2", "1\n2", False),
        ("50000000000000000", "50000000000000001", False),
        ("", "0", False),
        ("", "\n", True),
        ("sNaN", "1", False),
        ("1 x", "1.0 x", False),
        ("nan 1", "nan  1", False),
        ("1e9999999999999999999", "1", False),
    ],
)
def test_outputs_are_compared_by_the_official_rule(got: str, expected: str, same: bool) -> None:
    assert same_output(got, expected) is same


def test_large_outputs_are_compared_in_a_moment() -> None:
    text = "123456 789\n" * 700_000
    started = time.process_time()
    assert same_output(text, text[:-1] + " \n")
    assert not same_output(text, text + "1\n")
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("got", "expected", "same"),
    [
        ([1, 2], "[1, 2]", True),
        ((1, 2), "[1, 2]", True),
        ([(1, 2)], "[[1, 2]]", False),
        (True, "1", True),
        (2, "2.0", True),
        (0.1 + 0.2, "0.3", False),
        ("1", "1", False),
        (None, "null", True),
        ({"a": [1]}, '{"a": [1]}', True),
        ({1: 2}, '{"1": 2}', False),
        ({1, 2}, "[1, 2]", False),
        (float("nan"), "NaN", False),
    ],
)
def test_values_are_compared_by_the_official_rule(got: Any, expected: str, same: bool) -> None:
    assert same_value(got, expected) is same


def test_integers_longer_than_python_converts_are_compared() -> None:
    assert decode(b'{"returned": -%s}' % (b"9" * 5000)) == 1 - 10**5000
    assert same_value(10**4999, "1" + "0" * 4999)
    assert not same_value(10**4999, "1" + "0" * 4998 + "1")


def test_an_expected_value_that_is_no_json_is_the_problems_fault() -> None:
    with pytest.raises(ValueError, match="Expecting value"):
        same_value(1, "one")


@pytest.mark.parametrize(
    ("tagged", "value"),
    [
        ("null", None),
        ('"\\ud800"', "\ud800"),
        ("1e400", float("inf")),
        ('{"list": [1, {"tuple": [true, 2.5]}]}', [1, (True, 2.5)]),
        ('{"set": [1, {"frozenset": ["a"]}]}', {1, frozenset("a")}),
        ('{"dict": [[{"tuple": [1]}, "one"], ["a", {"dict": []}]]}', {(1,): "one", "a": {}}),
        ('{"bytes": "AP8="}', b"\x00\xff"),
        ('{"complex": [1.0, -2.0]}', 1 - 2j),
    ],
)
def test_tagged_values_come_back_as_they_were(tagged: str, value: object) -> None:
    found = decode(f'{{"returned": {tagged}}}'.encode())
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    "returned",
    [
        "[1]",
        "{}",
        '{"list": [1], "tuple": [1]}',
        '{"object": [1]}',
        '{"other": "deque"}',
        '{"list": 1}',
        '{"set": [{"list": []}]}',
        '{"dict": [[1]]}',
        '{"dict": [1]}',
        '{"bytes": "!"}',
        '{"bytes": 1}',
        '{"complex": [1, 2, 3]}',
        f'{{"complex": [{"9" * 400}, 0]}}',
        "9" * 50_001,
        '{"list": [' * 100_000,
        '{"list": [' * 5000 + "]}" * 5000,
        "[" * 100_000,
        "1} {",
    ],
    ids=lambda text: text[:30],
)
def test_whatever_else_a_program_reports_is_a_value_error(returned: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(f'{{"returned": {returned}}}'.encode())


@pytest.mark.parametrize("report", [b"", b"\xff", b"\x00", b"[1]", b'"returned"', b"{}", b"null"])
def test_a_report_without_a_returned_value_is_a_value_error(report: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(report)


def test_numbers_chosen_to_collide_do_not_keep_the_reader_busy() -> None:
    same_hash = [number * (2**61 - 1) for number in range(1, 100_000)]
    assert len({hash(one) for one in same_hash}) == 1
    started = time.process_time()
    for tagged in ({"set": same_hash}, {"dict": [[one, 1] for one in same_hash]}):
        with pytest.raises(ValueError, match="more than 1000 keys"):
            decode(json.dumps({"returned": tagged}).encode())
    assert time.process_time() - started < 10
