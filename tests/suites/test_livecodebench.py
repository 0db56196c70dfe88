"""The LiveCodeBench suite: official prompt and extraction, grading in a box, logs without tests."""

import json
from pathlib import Path
from typing import Any

import pytest

from podium.suites.data import data_folder
from podium.suites.livecodebench import ERRATA, SYSTEM, errata, extract_fenced, user_prompt
from podium.suites.livecodebench_data import digest_of_tests
from tests.suites.livecodebench_rows import all_rows, exam, needs_data, only, row


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# --- questions --------------------------------------------------------------------------------

STDIN_PROMPT = """\
### Question:
Print twice {n}.

### Format: Read the inputs from stdin solve the problem and write the answer to stdout \
(do not directly test on the sample inputs). Enclose your code within delimiters as follows. \
Ensure that when the python program runs, it reads the inputs, runs the algorithm and writes \
output to STDOUT.
```python
# YOUR CODE HERE
```

### Answer: (use the provided format with backticks)

"""

METHOD_PROMPT = """\
### Question:
Join.

### Format: You will use the following starter code to write the solution to the problem and \
enclose your code within delimiters.
```python
class Solution:
    def join(self):
        \n```

### Answer: (use the provided format with backticks)

"""


def test_the_prompt_is_the_official_one_word_for_word() -> None:
    assert user_prompt("Print twice {n}.", "") == STDIN_PROMPT
    starter = "class Solution:\n    def join(self):\n        "
    assert user_prompt("Join.", starter) == METHOD_PROMPT


def test_a_question_is_the_system_message_then_the_prompt(tmp_path: Path) -> None:
    question = only(exam(tmp_path, row()))
    assert question.text == f"{SYSTEM}\n\n{STDIN_PROMPT}"
    assert (question.id, question.kind, question.topic) == ("abc999_a", "program", "easy")
    assert question.metadata["public_tests"] == [{"input": "4\n", "output": "8\n"}]
    assert question.metadata["contest_date"] == "2025-02-01T00:00:00"


def test_a_target_is_the_digest_of_the_tests_and_nothing_of_them(tmp_path: Path) -> None:
    question = only(exam(tmp_path, row()))
    assert question.target == digest_of_tests(row())
    assert len(question.target or "") == 71
    assert "10\\n" not in json.dumps({**question.metadata})


@needs_data
def test_the_errata_name_seventeen_problems_that_exist() -> None:
    flags = [
        errata().get(id) or errata().get(one["question_title"]) for id, one in all_rows().items()
    ]
    assert flags.count("multiple-answers") == 11
    assert flags.count("interactive") == 2
    assert flags.count("bad-tests") == 4
    assert not {"abc999_a", "Double"} & errata().keys()
    assert ERRATA.is_file()


# --- extraction -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "program"),
    [
        ("", None),
        ("print(1)", None),
        ("```python\nprint(1)", None),
        ("```", None),
        ("```\n```", None),
        ("```python\nprint(1)\n```", "print(1)"),
        ("  a ```py b\n  print(1)\n~~~\n x```", "  print(1)\n~~~"),
        ("```\none\n```\ntwo\n```\nthree\n```", "three"),
        ("```\none\n```\ntwo\n```", "two"),
        ("```python\nprint(1)\n```\nprints\n```output\n1\n```", "1"),
        ("<think>\n```\nno\n```\n</think>\n```python\nyes\n```", "yes"),
        ("```python\r\nprint(1)\r\n```\r\n", "print(1)\r"),
        ("````\none\n````", "one"),
    ],
)
def test_the_text_between_the_last_two_lines_with_a_fence_is_the_program(
    reply: str, program: str | None
) -> None:
    assert extract_fenced(reply) == program


RECORDED = {
    "lcb_submissions/o1-mini_v5_880.json.gz": 880,
    "lcb_v6_guni/output_test6__Gemma-2-9b-Ins__eval_all.json.gz": 1750,
    "lcb_v6_guni/output_test6__DSCoder-V2-Lite-Instruct__eval_all.json.gz": 1750,
    "lcb_v6_guni/output_test6__Qwen2.5-Coder-Ins-7B__eval_all.json.gz": 1750,
}


@pytest.mark.parametrize(("file", "count"), RECORDED.items(), ids=lambda it: str(it)[-24:])
def test_the_programs_of_recorded_replies_are_those_the_authors_extracted(
    file: str, count: int
) -> None:
    import gzip

    path = data_folder() / file
    if not path.is_file():
        pytest.skip(f"{file} is absent")
    with gzip.open(path, "rt") as opened:
        rows: list[dict[str, Any]] = json.load(opened)
    pairs = [
        (reply, program)
        for one in rows
        for reply, program in zip(one["output_list"], one["code_list"], strict=True)
    ]
    assert len(pairs) == count
    differ = [
        program
        for reply, program in pairs
        if (extract_fenced(reply) or "").strip() != program.strip()
        or (program.strip() and extract_fenced(reply) != program)
    ]
    assert differ == []
