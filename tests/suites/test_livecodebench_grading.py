"""Grading LiveCodeBench programs: verdicts, measurements, errors, and real official tests."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from podium.harness.errors import UserError
from podium.harness.records import Question
from podium.sandbox import Box
from podium.suites.data import data_folder
from podium.suites.livecodebench import LIVECODEBENCH
from podium.suites.livecodebench_data import digest_of_tests
from tests.suites.livecodebench_rows import (
    DOUBLE,
    OFFICIAL,
    all_rows,
    case,
    encoded,
    exam,
    needs_data,
    official_tests,
    only,
    row,
)

needs_official = pytest.mark.skipif(
    not (data_folder() / OFFICIAL).is_file(), reason=f"{OFFICIAL} is absent"
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_a_right_program_gets_one_and_its_measurements(tmp_path: Path, subprocess_box: Box) -> None:
    suite = exam(tmp_path, row())
    grade = suite.grade(only(suite), DOUBLE, subprocess_box)
    assert (grade.value, grade.extracted) == (1.0, "print(2 * int(input()))")
    assert grade.explanation == "all 3 tests passed"
    facts = dict(grade.metadata)
    assert facts["verdicts"] == ["pass"] * 3
    assert (facts["tests_passed"], facts["tests_total"]) == (3, 3)
    assert facts["official"] is True
    assert (facts["platform"], facts["difficulty"]) == ("atcoder", "easy")
    assert facts["contest_date"] == "2025-02-01T00:00:00"
    assert facts["errata"] is None
    assert facts["fragile"] is False
    assert 0 < facts["cpu_s"] < facts["seconds"] + 60
    json.dumps(facts)


def test_a_wrong_program_is_told_by_its_first_failing_test_without_its_content(
    tmp_path: Path, subprocess_box: Box
) -> None:
    hidden = encoded([case("5\n", "hidden8675309\n"), case("0\n", "0\n")])
    suite = exam(tmp_path, row(private_test_cases=hidden))
    grade = suite.grade(only(suite), DOUBLE, subprocess_box)
    assert grade.value == 0.0
    assert grade.explanation.startswith("test 2 of 3: wrong answer")
    assert grade.metadata["verdicts"] == ["pass", "wrong answer", "not run"]
    assert "8675309" not in f"{grade.explanation}{grade.metadata}"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("int('x' + input())", "test 1 of 2: runtime error (ValueError)"),
        ("import sys; sys.exit(input())", "test 1 of 2: runtime error"),
        ("import os; os.kill(os.getpid(), 9)", "test 1 of 2: runtime error (killed by SIGKILL)"),
        ("class SecretError(Exception): pass\nraise SecretError(input())", "(SecretError)"),
    ],
)
def test_an_error_is_told_by_its_type_since_its_message_may_hold_the_input(
    tmp_path: Path, subprocess_box: Box, program: str, said: str
) -> None:
    hidden = encoded([case("8675309\n", "1\n"), case("1\n", "1\n")])
    suite = exam(tmp_path, row(public_test_cases="[]", private_test_cases=hidden))
    grade = suite.grade(only(suite), f"```\n{program}\n```", subprocess_box)
    assert grade.explanation.endswith(said)
    assert "8675309" not in f"{grade.explanation}{grade.metadata}"


def test_a_reply_without_a_program_is_wrong_and_nothing_runs(
    tmp_path: Path, subprocess_box: Box
) -> None:
    suite = exam(tmp_path, row())
    grade = suite.grade(only(suite), "print(2 * int(input()))", subprocess_box)
    assert (grade.value, grade.extracted, grade.explanation) == (0.0, None, "no program found")
    assert (grade.metadata["tests_passed"], grade.metadata["tests_total"]) == (0, 3)


def test_both_verdicts_stand_side_by_side_where_they_differ(
    tmp_path: Path, subprocess_box: Box
) -> None:
    suite = exam(tmp_path, row())
    program = "```python\nimport sys\nfor line in sys.stdin:\n    print(2 * int(line))\n```"
    grade = suite.grade(only(suite), program, subprocess_box)
    assert (grade.value, grade.metadata["official"]) == (1.0, False)
    assert "the published evaluator's way: test 1 of 3" in grade.explanation
    quick = replace(suite, official=False).grade(only(suite), program, subprocess_box)
    assert (quick.value, "official" in quick.metadata) == (1.0, False)


@pytest.mark.parametrize(
    "reply",
    [
        f"{DOUBLE}\nFor 3 it prints\n```\n6\n```\n",
        f"{DOUBLE}\nRun:\n```bash\npython a.py\n```\n",
        DOUBLE.replace("```", "~~~"),
        f"```python\n{DOUBLE}\n```",
    ],
    ids=["output", "usage", "tildes", "doubled"],
)
def test_a_block_that_is_no_program_costs_the_official_verdict_alone(
    reply: str, tmp_path: Path, subprocess_box: Box
) -> None:
    suite = exam(tmp_path, row())
    grade = suite.grade(only(suite), reply, subprocess_box)
    assert (grade.value, grade.metadata["official"]) == (1.0, False)
    assert grade.extracted == "print(2 * int(input()))"
    assert "the published evaluator's way: " in grade.explanation
    quick = replace(suite, official=False).grade(only(suite), reply, subprocess_box)
    assert (quick.value, "official" in quick.metadata) == (1.0, False)


def test_a_program_in_closed_reasoning_alone_is_none(tmp_path: Path, subprocess_box: Box) -> None:
    suite = exam(tmp_path, row())
    reply = f"[THINK]{DOUBLE}\n[/THINK] I cannot say."
    grade = suite.grade(only(suite), reply, subprocess_box)
    assert (grade.value, grade.extracted, grade.metadata["official"]) == (0.0, None, True)


@pytest.mark.parametrize(
    ("returned", "value", "exact"),
    [
        ("sum([0.1] * 3)", 1.0, False),
        ("0.3", 1.0, True),
        ("0.3000001", 0.0, False),
        ("'0.3'", 0.0, False),
        ("float('nan')", 0.0, False),
    ],
)
def test_floats_that_a_method_returns_may_differ_in_their_last_digits(
    returned: str, value: float, exact: bool, tmp_path: Path, subprocess_box: Box
) -> None:
    tests = [case("1", "[0.3]", "functional")]
    suite = exam(
        tmp_path,
        row(
            starter_code="class Solution:\n    def f(self, n: int) -> List[float]:\n        ",
            public_test_cases=json.dumps(tests),
            private_test_cases=encoded([]),
            metadata=json.dumps({"func_name": "f"}),
        ),
    )
    reply = f"```python\nclass Solution:\n    def f(self, n):\n        return [{returned}]\n```\n"
    reply += "```python\nprint(Solution().f(1))\n```"
    grade = suite.grade(only(suite), reply, subprocess_box)
    assert (grade.value, grade.metadata["exact"]) == (value, exact)


def test_methods_are_called_and_compared_as_values(tmp_path: Path, subprocess_box: Box) -> None:
    tests = [case("[1, 2]\n3", "[1, 2, 3]", "functional"), case("[]\n1", "[1]", "functional")]
    suite = exam(
        tmp_path,
        row(
            public_test_cases=json.dumps(tests[:1]),
            private_test_cases=encoded(tests[1:]),
            starter_code="class Solution:\n    def join(self, xs, x):\n        ",
            metadata='{"func_name": "join"}',
        ),
    )
    body = "class Solution:\n    def join(self, xs, x):\n        return xs + [x]"
    assert suite.grade(only(suite), f"```\n{body}\n```", subprocess_box).value == 1.0
    wrong = suite.grade(only(suite), f"```\n{body} * 2\n```", subprocess_box)
    assert wrong.explanation.startswith("test 1 of 2")


GOLD = {
    "1873_A": "for _ in range(int(input())):\n"
    "    word = input()\n"
    "    print('YES' if sum(a != b for a, b in zip(word, 'abc')) < 3 else 'NO')",
    "2727": "class Solution:\n"
    "    def countSeniors(self, details: List[str]) -> int:\n"
    "        return sum(int(one[11:13]) > 60 for one in details)",
    "abc301_a": "input()\ns = input()\nt, a = s.count('T'), s.count('A')\n"
    "print('T' if t > a or t == a and s[-1] == 'A' else 'A')",
}


@needs_official
@needs_data
@pytest.mark.parametrize("id", GOLD)
def test_a_solution_passes_the_official_tests_of_real_problems(
    tmp_path: Path, subprocess_box: Box, id: str
) -> None:
    kept = official_tests()[id]
    tests = [case(a, b) for a, b in zip(kept["inputs"], kept["outputs"], strict=True)]
    real = {**all_rows()[id], "public_test_cases": "[]", "private_test_cases": encoded(tests)}
    assert json.loads(real["metadata"]).get("func_name") == kept["fn_name"]
    suite = exam(tmp_path, real)
    grade = suite.grade(only(suite), f"```python\n{GOLD[id]}\n```", subprocess_box)
    assert (grade.value, grade.metadata["official"]) == (1.0, True), grade.explanation
    assert grade.metadata["tests_total"] == len(tests) > 4


def test_a_target_of_other_tests_is_refused(tmp_path: Path, subprocess_box: Box) -> None:
    suite = exam(tmp_path, row())
    foreign = replace(only(suite), target="sha256:" + "0" * 64)
    with pytest.raises(UserError, match="has other tests for abc999_a than the graded"):
        suite.grade(foreign, DOUBLE, subprocess_box)


def test_a_question_from_an_old_log_finds_its_tests_in_the_data_file(
    tmp_path: Path, subprocess_box: Box
) -> None:
    asked = row(private_test_cases=encoded([case("21\n", "42\n")]))
    question = Question("abc999_a", "as asked then", "program", target=digest_of_tests(asked))
    suite = exam(tmp_path, row("abc999_b"), asked)
    assert suite.grade(question, DOUBLE, subprocess_box).explanation == "all 2 tests passed"


def test_a_sealed_question_or_no_box_is_a_mistake_of_the_caller(
    tmp_path: Path, subprocess_box: Box
) -> None:
    suite = exam(tmp_path, row())
    with pytest.raises(ValueError, match="sealed"):
        suite.grade(only(suite).sealed(), DOUBLE, subprocess_box)
    with pytest.raises(ValueError, match="--box"):
        suite.grade(only(suite), DOUBLE)


def test_raw_rows_are_graded_by_any_livecodebench_suite(
    tmp_path: Path, subprocess_box: Box
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(row("mine", contest_id="raw")) + "\n")
    (question,) = LIVECODEBENCH.read_problems(path)
    assert LIVECODEBENCH.grade(question, DOUBLE, subprocess_box).value == 1.0
