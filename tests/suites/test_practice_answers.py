"""Practice answers by independent routes: the question's own text is read again, by other means."""

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from podium.harness.records import Question
from podium.sandbox import Limits
from podium.sandbox.cells import SubprocessBox
from podium.suites.code_grading import judge_program, read_tests
from podium.suites.practice import SPLITS
from podium.suites.practice.choice import SUITE as CHOICE
from podium.suites.practice.composed import BY_NUMBER, ELEMENTS
from podium.suites.practice.composed import SUITE as COMPOSED
from podium.suites.practice.integer import SUITE as INTEGER
from podium.suites.practice.programs import SUITE as CODE
from podium.suites.practice.unseen import paraphrases
from tests.suites.gold import THOUSANDS, gold_reply, sizes_of

PRACTICE = (INTEGER, CHOICE, CODE, COMPOSED)

OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def value_of(node: ast.expr) -> int:
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](value_of(node.left), value_of(node.right))
    assert isinstance(node, ast.Constant)
    assert isinstance(node.value, int)
    return node.value


def test_expressions_have_the_value_that_python_gives_them() -> None:
    checked = 0
    for question in replace(INTEGER, sizes=THOUSANDS).load("train"):
        said = question.text.replace("\\times", "*").replace("\\n", " ")
        found = re.match(
            r"(?:What is the value of|Compute|Work out|Evaluate the expression) "
            r"\$?([\d +*()-]+?)\$?(?:\?|\.| exactly)",
            said,
        )
        if question.topic == "arithmetic" and found:
            value = value_of(ast.parse(found[1].strip(), mode="eval").body)
            assert str(value) == question.target, question.text
            checked += 1
    assert checked > 30


def test_divisor_counts_agree_with_the_factorisation() -> None:
    checked = 0
    for question in replace(INTEGER, sizes=THOUSANDS).load("train"):
        found = re.match(r"How many positive divisors does (\d+) have", question.text)
        if found:
            assert str(divisor_count(int(found[1]))) == question.target
            checked += 1
    assert checked > 3


def first_line(question: Question) -> str:
    return question.text.split("\n")[0]


def divisor_count(n: int) -> int:
    count, d = 1, 2
    while n > 1:
        power = 0
        while n % d == 0:
            n, power = n // d, power + 1
        count, d = count * (power + 1), d + 1
    return count


def test_prime_counts_agree_with_a_sieve() -> None:
    sieve = [False, False] + [True] * 5000
    for n in range(2, 71):
        sieve[n * n :: n] = [False] * len(sieve[n * n :: n])
    checked = 0
    for question in replace(INTEGER, sizes=THOUSANDS).load("train"):
        found = re.search(
            r"(?:between|at least) (\d+) and (?:at most )?(\d+)", first_line(question)
        )
        if question.topic == "primes" and found:
            assert str(sum(sieve[int(found[1]) : int(found[2]) + 1])) == question.target
            checked += 1
    assert checked > 10


def test_facts_are_consistent() -> None:
    shells = (2, 10, 18, 36, 54, 86, 118)
    assert len({one.symbol for one in ELEMENTS}) == len(BY_NUMBER) == len(ELEMENTS)
    for element in ELEMENTS:
        assert element.period == 1 + sum(element.number > end for end in shells)
        assert (element.category == "noble gas") == (element.number in shells)
        ends = [0, *shells]
        assert (element.category == "alkali metal") == (element.number - 1 in ends[1:])
        assert (element.category == "alkaline earth metal") == (element.number - 2 in ends[1:])
        assert (element.category == "halogen") == (element.number + 1 in shells[1:])


READ_LIST = "n = int(input()); nums = list(map(int, input().split()))\n"
SOLUTIONS = {
    "the sum of all values.": READ_LIST + "total = 0\nfor x in nums: total += x\nprint(total)",
    "the largest value.": READ_LIST + "print(sorted(nums)[-1])",
    "sorted in ascending order.": READ_LIST
    + "while nums:\n    low = min(nums); nums.remove(low); print(low, end=' ')",
    "the running sums": READ_LIST + "print(*[sum(nums[: k + 1]) for k in range(n)])",
    "without repetitions": READ_LIST
    + "print(*[x for k, x in enumerate(nums) if x not in nums[:k]])",
    "Reverse the order of its words.": "w = input().split(' ')\nw.reverse()\nprint(' '.join(w))",
    "Count its vowels": "import re\nprint(len(re.findall('[aeiou]', input(), re.I)))",
    "Transpose it": "r, c = map(int, input().split())\ng = [input().split() for _ in range(r)]\n"
    "for k in range(c): print(*[row[k] for row in g])",
    "Count the primes that are strictly less": "n = int(input())\ns = set(range(2, n))\n"
    "for p in range(2, n): s -= set(range(2 * p, n, p))\nprint(len(s))",
    "Merge all that overlap or touch, and list": "n = int(input())\nfree = set()\n"
    "for _ in range(n):\n    a, b = map(int, input().split())\n"
    "    free |= set(range(2 * a, 2 * b + 1))\n"
    "for x in sorted(free):\n    if x - 1 not in free: start = x\n"
    "    if x + 1 not in free: print(start // 2, x // 2)",
}
"""A phrase of the statement, and a program written from the statement alone, by another method."""


@pytest.mark.slow
@pytest.mark.parametrize("phrase", SOLUTIONS)
def test_a_program_written_from_the_statement_passes_the_hidden_tests(phrase: str) -> None:
    questions = [q for split in SPLITS for q in replace(CODE, sizes=sizes_of(CODE)).load(split)]
    fitting = [q for q in questions if phrase in q.text and "two stages" not in q.text]
    for question in fitting:
        tests = read_tests(question.target or "")
        if tests.method is None:
            judgement = judge_program(SOLUTIONS[phrase], tests, SubprocessBox(), Limits())
            assert judgement.passed, (judgement.summary, question.text)
            return
    pytest.fail(f"no stdin question says {phrase!r}")


def test_paraphrases_cover_the_four_kinds_and_grade_like_their_suites() -> None:
    found = paraphrases()
    assert sum(map(len, found.values())) >= 40
    assert set(found) == {suite.name for suite in PRACTICE}
    for suite in PRACTICE:
        box = SubprocessBox() if suite.needs_box else None
        for question in found[suite.name]:
            assert suite.grade(question, gold_reply(question), box).value == 1.0, question.id
            assert suite.grade(question, "", box).value == 0.0


def test_no_paraphrase_is_worded_like_a_generated_question() -> None:
    def shape(question: Question) -> str:
        return re.sub(r"\d+", "#", question.text.split("### Answer")[0].lower())

    for suite in PRACTICE:
        generated = {shape(question) for split in SPLITS for question in suite.load(split)}
        assert not generated & {shape(question) for question in paraphrases()[suite.name]}
