"""What the rehearsal code writers can write, on hand-written problems run in the subprocess box."""

import contextlib
import json
import random
import time
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podium.sandbox import Program
from podium.sandbox.cells import SubprocessBox
from podium.suites.practice.workers.program_inputs import read_samples, read_starter
from podium.suites.practice.workers.program_writer import FAMILIES, source
from podium.suites.practice.workers.workers import final_answer
from tests.suites.practice_workers.asking import ask

Item = dict[str, Any]
PROBLEMS: dict[str, list[Item]] = tomllib.loads(
    Path(__file__).with_name("programs.toml").read_text(encoding="utf-8")
)
BOX = SubprocessBox()
ENDING = "Reply with one ```python block that holds the whole program."


def text_of(item: Item) -> str:
    """Return a problem as a worker is sent it."""
    starter = item.get("starter")
    shown = f"\n\nComplete this code:\n```python\n{starter}\n```" if starter else ""
    return f"{item['text']}{shown}\n\n{ENDING}"


def output(program: str, given: str) -> str:
    """Return what a program prints in the box."""
    [ran] = BOX.run(Program(program), [given.encode()])
    return ran.stdout.decode().strip()


def passes(item: Item, program: str | None) -> bool:
    """Say whether a program gives what the problem's tests want."""
    if program is None:
        return False
    starter = read_starter(item.get("starter", ""))
    if starter is None:
        return all(output(program, given) == wanted for given, wanted in item["tests"])
    call = f"print(json.dumps(Solution().{starter.name}(*json.load(sys.stdin))))"
    driver = f"import json, sys\nfrom typing import List\n{program}\n{call}\n"
    return all(
        output(driver, json.dumps(given)) == json.dumps(wanted) for given, wanted in item["tests"]
    )


@cache
def share(worker: str, heat: float = 0.0) -> float:
    """Return the share of all problems that a worker solves."""
    items = [item for items in PROBLEMS.values() for item in items]
    programs = [final_answer(ask(worker, text_of(item), heat=heat), "program") for item in items]
    return sum(map(passes, items, programs)) / len(items)


@pytest.mark.slow
def test_scribe_writes_most_programs_and_not_all() -> None:
    assert 0.6 <= share("scribe") < 1.0


@pytest.mark.slow
def test_others_know_fewer_words_than_scribe() -> None:
    assert share("scribe") > share("sage") > share("swift") > 0.0


@pytest.mark.slow
def test_slips_spoil_programs() -> None:
    assert share("scribe", 6.0) < share("scribe")


@pytest.mark.parametrize("worker", ["abacus", "scholar", "planner", "formatter"])
def test_those_without_a_vocabulary_write_nothing(worker: str) -> None:
    assert share(worker) == 0.0


def test_a_program_is_written_in_a_hundredth_of_a_second() -> None:
    texts = [text_of(item) for items in PROBLEMS.values() for item in items]
    started = time.process_time()
    for text in texts:
        ask("scribe", text)
    assert (time.process_time() - started) / len(texts) < 0.2


def test_samples_are_read_from_headed_blocks_and_from_calls() -> None:
    text = "Print it.\n\n### Sample Input 1\n```\n2\n(1)\n```\n### Sample Output 1\n```\n7\n```"
    assert read_samples(text, None) == [("2\n(1)", "7")]
    starter = read_starter("class Solution:\n    def f(self, a: List[int], k: int) -> int:")
    shown = "Example 1:\nInput: a = [1,2], k = 3\nOutput: 4\n"
    assert read_samples(shown, starter) == [([[1, 2], 3], 4)]


def test_a_sample_settles_what_the_words_leave_open() -> None:
    text = (
        "The first line contains n, the second n integers, the third a target t. "
        "Print the positions of the two numbers that add up to t."
    )
    samples = "\n\nSample Input\n3\n1 4 6\n10\n\nSample Output\n{}\n\n" + ENDING
    for shown in ("1 2", "2 3"):
        program = final_answer(ask("scribe", text + samples.format(shown)), "program")
        assert output(program or "", "4\n5 1 1 9\n14\n") == ("0 3" if shown == "1 2" else "1 4")


def test_numbers_in_a_sample_that_are_too_long_to_follow_are_left_alone() -> None:
    text = "Print the n-th Fibonacci number.\n\nSample Input\n999999999\n\nSample Output\n5\n"
    assert read_samples(text, None) == []
    started = time.process_time()
    chained = (
        "Print the Fibonacci number of the product of the n integers.\n"
        "\nSample Input\n4\n999 999 999 999\n\nSample Output\n5\n"
    )
    assert "fibonacci" in ask("scribe", chained)
    assert time.process_time() - started < 20


def test_every_operation_has_a_name_a_source_and_a_known_kind() -> None:
    kinds = {"int", "ints", "text", "words", "bool", "matrix", "pairs"}
    for family in FAMILIES:
        assert {*family.takes, family.gives} <= kinds, family.name
        compile(source(family.does, family.called), family.name, "exec")
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


@pytest.mark.parametrize("seed", range(3))
def test_operations_end_on_odd_arguments(seed: int) -> None:
    rng = random.Random(seed)
    made = {
        "int": lambda: rng.randint(-9, 9),
        "ints": lambda: [rng.randint(-9, 9) for _ in range(rng.randint(0, 4))],
        "text": lambda: "".join(rng.choices("ab1( ]", k=rng.randint(0, 5))),
        "words": lambda: rng.choices(["a", "bb", "Cab"], k=rng.randint(0, 3)),
        "matrix": lambda: [[rng.randint(0, 9)] * 2 for _ in range(rng.randint(0, 3))],
        "pairs": lambda: [[rng.randint(0, 4), rng.randint(4, 9)] for _ in range(rng.randint(0, 3))],
    }
    faults = (ArithmeticError, LookupError, ValueError, TypeError, AttributeError, StopIteration)
    ended = 0
    for family in FAMILIES:
        with contextlib.suppress(*faults):
            family.does(*(made[kind]() for kind in family.takes))
            ended += 1
    assert ended > len(FAMILIES) / 2
