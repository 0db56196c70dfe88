"""LiveCodeBench's official prompt and its official way to find the program in a reply.

Both are of LiveCodeBench/LiveCodeBench @28fef95: lcb_runner/prompts/code_generation.py (the generic
chat template) and lcb_runner/utils/extraction_utils.py.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from harness.records import Question
from suites.livecodebench_rows import Entry

SYSTEM = (
    "You are an expert Python programmer. You will be given a question (problem specification) and "
    "will generate a correct Python program that matches the specification and passes all tests."
)
"""The official system message for chat models (lcb_runner/prompts/code_generation.py)."""

USER = """\
### Question:
{content}

### Format: {instruction}
```python
{starter}
```

### Answer: (use the provided format with backticks)

"""
WITH_STARTER = (
    "You will use the following starter code to write the solution to the problem and enclose your "
    "code within delimiters."
)
WITHOUT_STARTER = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly "
    "test on the sample inputs). Enclose your code within delimiters as follows. Ensure that when "
    "the python program runs, it reads the inputs, runs the algorithm and writes output to STDOUT."
)
NO_STARTER = "# YOUR CODE HERE"
"""The official user message for chat models, same file."""

ERRATA = Path(__file__).parent / "livecodebench_errata.toml"


def extracted(reply: str) -> str | None:
    """Return the program by the official rule: the text between the last two lines with a fence.

    None where there are fewer than two, or nothing between them.
    """
    lines = reply.split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    if len(fences) < 2:
        return None
    program = "\n".join(lines[fences[-2] + 1 : fences[-1]])
    return program if program.strip() else None


def question_of(entry: Entry) -> Question:
    """Return the question of a row, its tests replaced by their digest."""
    return Question(
        id=entry.question_id,
        text=f"{SYSTEM}\n\n{user_prompt(entry.question_content, entry.starter_code)}",
        kind="program",
        target=entry.digest,
        topic=entry.difficulty,
        metadata={
            "title": entry.question_title,
            "platform": entry.platform,
            "difficulty": entry.difficulty,
            "contest_date": entry.contest_date,
            "starter_code": entry.starter_code,
            "public_tests": [{"input": one, "output": other} for one, other in entry.public],
            "errata": errata(entry.question_id, entry.question_title),
        },
    )


def user_prompt(content: str, starter: str) -> str:
    """Return the official user message."""
    return USER.format(
        content=content,
        instruction=WITH_STARTER if starter else WITHOUT_STARTER,
        starter=starter or NO_STARTER,
    )


def errata(*names: str) -> str | None:
    """Return what the authors say is wrong with a problem, by id or title; None for nothing."""
    flags = _errata()
    return next((flags[name] for name in names if name in flags), None)


@cache
def _errata() -> Mapping[str, str]:
    table = tomllib.loads(ERRATA.read_text(encoding="utf-8"))
    return {name: flag for flag, names in table.items() for name in names}
