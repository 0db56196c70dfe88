"""From a problem to a question: statement, examples, starter code and hidden tests.

The same problem can be set in two ways, as on LiveCodeBench: a program that reads standard input,
or a method of `class Solution`. The expected outputs come from the generator's own reference
function, run here; they go into the target and nowhere else.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from random import Random
from typing import Any, Literal

from suites.practice import Draft
from suites.programs import Case, ProgramTests

Shape = Literal["numbers", "number", "text", "grid", "pairs", "truth"]

TYPES: dict[Shape, str] = {
    "numbers": "List[int]",
    "number": "int",
    "text": "str",
    "grid": "List[List[int]]",
    "pairs": "List[List[int]]",
    "truth": "bool",
}
READ: dict[Shape, str] = {
    "numbers": "a line with n, the length of {name}; then a line with the n integers of {name}",
    "number": "a line with the integer {name}",
    "text": "a line with the string {name}",
    "grid": "a line with the numbers of rows and columns of {name}; then its rows, one per line",
    "pairs": "a line with n, the length of {name}; then n lines with two integers each",
}
WRITE: dict[Shape, str] = {
    "numbers": "Print the integers of the result on one line, separated by spaces.",
    "number": "Print the result.",
    "text": "Print the result.",
    "grid": "Print the rows of the result, one per line, with spaces between the numbers.",
    "pairs": "Print the pairs of the result, one per line, with a space between the two numbers.",
    "truth": "Print YES if the answer is yes, otherwise NO.",
}
PUBLIC = 2
HIDDEN = 4
TRIES = 20

STDIN_FORMAT = """\
### Format: Read the inputs from stdin solve the problem and write the answer to stdout (do not \
directly test on the sample inputs). Enclose your code within delimiters as follows. Ensure that \
when the python program runs, it reads the inputs, runs the algorithm and writes output to STDOUT.
```python
# YOUR CODE HERE
```
"""
STARTER_FORMAT = """\
### Format: You will use the following starter code to write the solution to the problem and \
enclose your code within delimiters.
```python
{starter}
```
"""
PROMPT = (
    "### Question:\n{question}\n\n{format}\n### Answer: (use the provided format with backticks)\n"
)
"""LiveCodeBench's prompt (lcb_runner/prompts/code_generation.py @28fef95), the user's part."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A task for a program, with a reference that solves it."""

    key: str
    statement: str
    """What is wanted, naming the inputs; one paragraph."""
    method: str
    inputs: tuple[tuple[str, Shape], ...]
    """Names and shapes of the arguments, in order."""
    returns: Shape
    solve: Callable[..., Any]
    draw: Callable[[Random], tuple[Any, ...]]
    """Draws the arguments of one test."""


def draft(rng: Random, problem: Problem) -> Draft | None:
    """Return the question that sets a problem in one of its two forms; None for a dull problem."""
    drawn = _drawn(rng, problem)
    if drawn is None:
        return None
    functional = rng.random() < 0.4
    tests = _method_tests(problem, drawn) if functional else _stdin_tests(problem, drawn)
    starter = _starter(problem) if functional else ""
    layout = STARTER_FORMAT.format(starter=starter) if functional else STDIN_FORMAT
    body = _method_body(problem, tests) if functional else _stdin_body(problem, tests)
    return Draft(
        key=f"{problem.key} {'method' if functional else 'stdin'}",
        text=PROMPT.format(question=body, format=layout),
        target=tests.as_json(),
        metadata={
            "public_tests": [asdict(case) for case in tests.cases[:PUBLIC]],
            "starter_code": starter,
        },
    )


def _drawn(rng: Random, problem: Problem) -> list[tuple[Any, ...]] | None:
    """Draw the tests' arguments until hidden answers differ, so that no constant passes."""
    for _ in range(TRIES):
        drawn = [problem.draw(rng) for _ in range(PUBLIC + HIDDEN)]
        answers = [json.dumps(_solved(problem, arguments)) for arguments in drawn[PUBLIC:]]
        if len(set(answers)) > 1:
            return drawn
    return None


def _stdin_tests(problem: Problem, drawn: list[tuple[Any, ...]]) -> ProgramTests:
    return ProgramTests(
        tuple(
            Case(
                _as_stdin(problem, arguments),
                _as_output(problem.returns, _solved(problem, arguments)) + "\n",
            )
            for arguments in drawn
        )
    )


def _method_tests(problem: Problem, drawn: list[tuple[Any, ...]]) -> ProgramTests:
    cases = (
        Case("\n".join(map(json.dumps, arguments)), json.dumps(_solved(problem, arguments)))
        for arguments in drawn
    )
    return ProgramTests(tuple(cases), problem.method)


def _solved(problem: Problem, arguments: tuple[Any, ...]) -> Any:
    """Run the reference on copies, so that it cannot change the arguments of the test."""
    return problem.solve(*json.loads(json.dumps(arguments)))


def _starter(problem: Problem) -> str:
    given = ", ".join(f"{name}: {TYPES[shape]}" for name, shape in problem.inputs)
    head = f"def {problem.method}(self, {given}) -> {TYPES[problem.returns]}:"
    return f"class Solution:\n    {head}\n        "


def _stdin_body(problem: Problem, tests: ProgramTests) -> str:
    given = "; then ".join(READ[shape].format(name=name) for name, shape in problem.inputs)
    samples = "\n\n".join(
        f"Sample Input {at}\n\n{case.input.strip()}\n\nSample Output {at}\n\n{case.output.strip()}"
        for at, case in enumerate(tests.cases[:PUBLIC], start=1)
    )
    reading = f"Input\n\nThe input is {given}."
    writing = f"Output\n\n{WRITE[problem.returns]}"
    return "\n\n".join((problem.statement, reading, writing, samples))


def _method_body(problem: Problem, tests: ProgramTests) -> str:
    samples: list[str] = []
    for at, case in enumerate(tests.cases[:PUBLIC], start=1):
        values = zip(problem.inputs, case.input.split("\n"), strict=True)
        given = ", ".join(f"{name} = {value}" for (name, _), value in values)
        samples.append(f"Example {at}:\n\nInput: {given}\nOutput: {case.output}")
    said = "Return true or false." if problem.returns == "truth" else "Return the result."
    return "\n\n".join((problem.statement, said, *samples))


def _as_stdin(problem: Problem, arguments: tuple[Any, ...]) -> str:
    pairs = zip(problem.inputs, arguments, strict=True)
    return "".join(f"{_as_input(shape, value)}\n" for (_, shape), value in pairs)


def _as_input(shape: Shape, value: Any) -> str:
    if shape == "numbers":
        return f"{len(value)}\n{_row(value)}"
    if shape == "grid":
        return f"{len(value)} {len(value[0])}\n" + "\n".join(map(_row, value))
    if shape == "pairs":
        return f"{len(value)}\n" + "\n".join(map(_row, value))
    return str(value)


def _as_output(shape: Shape, value: Any) -> str:
    if shape == "numbers":
        return _row(value)
    if shape in ("grid", "pairs"):
        return "\n".join(map(_row, value))
    if shape == "truth":
        return "YES" if value else "NO"
    return str(value)


def _row(values: Any) -> str:
    return " ".join(map(str, values))
