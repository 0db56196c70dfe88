"""LiveCodeBench code generation: contest problems, answered by programs, judged on hidden tests.

Questions, prompt, tests and comparison are the official ones (LiveCodeBench @28fef95:
lcb_runner/prompts/code_generation.py, the generic chat template). The grade follows podium's `real`
rules (code_grading.py); the metadata has the verdict by `official` rules, on the program that
utils/extraction_utils.py extracts. A later release also adds problems with earlier dates, so a
suite's name has release and dates: `livecodebench-v5@2024-08-01..2025-02-01`.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cache
from itertools import combinations
from pathlib import Path
from time import perf_counter
from typing import Any

from inspect_ai import Epochs, Task, task
from inspect_ai.scorer import grouped, mean, stderr

from podium.harness.errors import UserError
from podium.harness.records import Grade, Question
from podium.harness.suite import Card, Split
from podium.sandbox import IMAGE, Box
from podium.suites.base import card, refuse_unknown_split, required_box, unsealed, user_errors
from podium.suites.code_grading import (
    ProgramResult,
    ProgramTests,
    grade_on_shown_tests,
    judge_program,
    program_of,
)
from podium.suites.data import DataSource, sources
from podium.suites.livecodebench_data import (
    IndexedProblem,
    RowIndex,
    find_tests,
    index_raw_rows,
    pinned_index,
)

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
"""USER with WITH_STARTER, or with WITHOUT_STARTER and NO_STARTER, is the official user message."""

ERRATA = Path(__file__).parent / "livecodebench_errata.toml"
COUNTS = (400, 111, 101, 101, 167, 175)
"""Number of problems that v1 ... v6 added, one file each of code_generation_lite on the hub."""
LAST = len(COUNTS)
UNTIL = ("2024-03", "2024-05", "2024-07", "2024-09", "2025-01", "2025-04")
"""Last contest month of release_v1 ... release_v6, as the official README gives them."""
NEWEST_DATES = "2025-01..2025-04"
PASS_AT = (5, 10)
ERROR_TYPE = re.compile(
    r"[A-Za-z_]{1,40}(?:Error|Exception|Interrupt|Iteration)\b|killed by SIG\w+"
)


def extract_fenced(reply: str) -> str | None:
    """Return the program between a reply's last two fences, as the official code does, or None."""
    lines = reply.split("\n")
    fences = [number for number, line in enumerate(lines) if "```" in line]
    if len(fences) < 2:
        return None
    program = "\n".join(lines[fences[-2] + 1 : fences[-1]])
    return program if program.strip() else None


def livecodebench_question(entry: IndexedProblem) -> Question:
    """Return the question of a problem in a data file's index; its target is its tests' digest."""
    facts = {name: getattr(entry, name) for name in ("platform", "difficulty", "contest_date")}
    return Question(
        id=entry.question_id,
        text=f"{SYSTEM}\n\n{user_prompt(entry.question_content, entry.starter_code)}",
        kind="program",
        target=entry.digest,
        topic=entry.difficulty,
        metadata={
            "title": entry.question_title,
            **facts,
            "starter_code": entry.starter_code,
            "public_tests": [{"input": text, "output": output} for text, output in entry.public],
            "errata": errata().get(entry.question_id) or errata().get(entry.question_title),
        },
    )


def user_prompt(content: str, starter: str) -> str:
    """Return the official user message for a problem's text and its starter code, if any."""
    instruction = WITH_STARTER if starter else WITHOUT_STARTER
    return USER.format(content=content, instruction=instruction, starter=starter or NO_STARTER)


@cache
def errata() -> Mapping[str, str]:
    """Return the kind of fault that the authors found in a problem, by problem id or title."""
    table = tomllib.loads(ERRATA.read_text(encoding="utf-8"))
    return {name: flag for flag, names in table.items() for name in names}


BASE_NAME = "livecodebench"
TRAIN = f"{BASE_NAME}-train"


@dataclass(frozen=True, slots=True)
class Release:
    """A release of LiveCodeBench, a range of hub files: `release_v5` is 1 to 5, `v4_v5` 4 and 5."""

    tag: str
    first: int
    last: int

    @property
    def suite(self) -> str:
        """The suite's command-line name; `livecodebench` alone means tag `v6`."""
        if self.tag.startswith("release_"):
            return f"{BASE_NAME}-v{self.last}"
        return BASE_NAME if self.first == LAST else f"{BASE_NAME}-new-{self.tag}"

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the tables in sources.toml that pin the release's files."""
        return tuple(f"{BASE_NAME}-{number}" for number in range(self.first, self.last + 1))

    @property
    def count(self) -> int:
        """The release's published number of problems."""
        return sum(COUNTS[self.first - 1 : self.last])

    @property
    def dates(self) -> str:
        """Contest months; only the last is published, unless the release is v6 or includes v1."""
        if self.first == LAST:
            return NEWEST_DATES
        until = UNTIL[self.last - 1]
        return f"2023-05..{until}" if self.first == 1 else f"up to {until}"


@dataclass(frozen=True, slots=True)
class Window:
    """A range of contest dates; both ends are at 00:00 of their day, as in the official code."""

    start: str = ""
    end: str = ""

    def __bool__(self) -> bool:
        return bool(self.start or self.end)

    def __str__(self) -> str:
        return f"{self.start}..{self.end}"

    def holds(self, contest_date: str) -> bool:
        """Return whether a contest date, an ISO date and time without zone, is in the window.

        >>> [Window("2025-01-01", "2025-02-01").holds(f"2025-02-01T{at}") for at in ("00", "18")]
        [True, False]
        """
        moment = datetime.fromisoformat(contest_date)
        is_after = not self.start or datetime.fromisoformat(self.start) <= moment
        return is_after and (not self.end or moment <= datetime.fromisoformat(self.end))


_NUMBERS = range(1, LAST + 1)
RELEASES = (
    *(Release(f"release_v{number}", 1, number) for number in _NUMBERS),
    *(Release(f"v{number}", number, number) for number in _NUMBERS),
    *(Release(f"v{a}_v{b}", a, b) for a, b in combinations(_NUMBERS, 2)),
)


def release_of(tag: str) -> Release:
    """Return the LiveCodeBench release with a hub tag; UserError, which lists tags, if unknown."""
    canonical = f"release_v{LAST}" if tag == "release_latest" else tag
    for release in RELEASES:
        if release.tag == canonical:
            return release
    raise UserError(
        f"LiveCodeBench has no release {tag!r}. It has release_v1 ... release_v6 (all problems so "
        "far), v1 ... v6 (new problems only), and ranges such as v4_v5."
    )


def named_release(name: str) -> Release | None:
    """Return the release that a suite name without dates means; None if no release has the name.

    >>> [named_release(name).tag for name in ("livecodebench", "livecodebench-v5")]
    ['v6', 'release_v5']
    """
    return next((release for release in RELEASES if release.suite == name), None)


def window_of(start: str | None, end: str | None) -> Window:
    """Return a window of contest dates; UserError if a date is invalid or the end before start."""
    for day in filter(None, (start, end)):
        date = None
        with suppress(ValueError):
            date = re.fullmatch(r"\d{4}-\d\d-\d\d", day) and datetime.fromisoformat(day)
        if not date:
            raise UserError(f"{day!r} is not a date. Write a window as 2024-08-01..2025-02-01.")
    if start and end and end < start:
        raise UserError(f"The window {start}..{end} ends before it starts. Exchange the dates.")
    return Window(start or "", end or "")


def read_window(text: str) -> Window:
    """Return the window of dates in START..END, one of them maybe empty; UserError if invalid."""
    start, dots, end = text.partition("..")
    if not dots or not (start or end):
        raise UserError(f"{text!r} is not a window. Write it as 2024-08-01..2025-02-01.")
    return window_of(start, end)


@dataclass(frozen=True, slots=True)
class LiveCodeBench:
    """The LiveCodeBench suite; `data` is a folder of local data (default: see suites/data.py)."""

    release: Release = Release("v6", LAST, LAST)
    window: Window = Window()
    data: str | Path | None = None
    official: bool = True
    """Whether to judge a second time, by the published evaluator's rules; see `for_reward`."""
    pinned: Mapping[str, DataSource] = field(default_factory=sources)
    version: str = "4-A"
    splits: tuple[Split, ...] = ("eval",)
    publishable: bool = True
    needs_box: bool = True
    image: str = IMAGE

    @property
    def name(self) -> str:
        """The release's name with the window of dates, if any: both determine the problems."""
        plain = TRAIN if self.splits == ("train",) else self.release.suite
        return f"{plain}@{self.window}" if self.window else plain

    @property
    def dates(self) -> str:
        """The window of contest dates; without one, the months of the release's contests."""
        return str(self.window) if self.window else self.release.dates

    @property
    def data_revision(self) -> str:
        """The data's revision on the hub and the release's tag; local files must be the same."""
        source = self.pinned[self.release.files[0]]
        return f"{source.hub}@{source.revision} {self.release.tag}"

    @property
    def card(self) -> Card:
        """The description of LiveCodeBench, with the release's size unless dates limit it."""
        shared = card("livecodebench")
        sizes = dict.fromkeys(self.splits, self.release.count)
        return shared if self.window else replace(shared, sizes=sizes)

    def for_reward(self) -> "LiveCodeBench":
        """Return the suite for training rewards: without the published evaluator's verdict."""
        return replace(self, official=False)

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the questions in the order of the files; UserError if a file is missing."""
        refuse_unknown_split(self.name, split, self.splits)
        entries = [entry for index in self._indexes() for entry in index.entries]
        chosen = [entry for entry in entries if self.window.holds(entry.contest_date)]
        if not chosen:
            raise UserError(
                f"Suite {self.name} has no questions, because no contest is in its window. "
                f"Choose other dates; the release has {self.release.dates}."
            )
        return [livecodebench_question(entry) for entry in chosen]

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of a file (JSONL, .gz or CSV); UserError if a row is malformed."""
        return [livecodebench_question(entry) for entry in index_raw_rows(path).entries]

    def grade(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        """Grade by running the reply's program on all tests in the sandbox `box`."""
        box, tests = required_box(box, self.name), self._tests(question)
        columns = ("platform", "difficulty", "contest_date", "errata")
        facts = {key: question.metadata.get(key) for key in columns}
        facts["tests_total"] = len(tests.cases)
        program, started = program_of(reply, tests.method), perf_counter()
        explanation, passed = "no program found", False
        if program is None:
            facts["tests_passed"] = 0
        else:
            real = judge_program(program, tests, box)
            explanation, passed = _progress(real), real.passed
            facts |= _real_facts(real) | {"seconds": round(perf_counter() - started, 3)}
        if self.official:
            official = _judge_officially(reply, tests, box)
            facts |= official
            if official["official"] != passed:
                summary = official["official_summary"]
                explanation += f"; the published evaluator's way: {summary}"
        return Grade(float(passed), program, explanation, facts)

    def try_public(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        """Grade by the share of public tests that the program passes, run in the sandbox `box`."""
        return grade_on_shown_tests(question, reply, box)

    def _indexes(self) -> list[RowIndex]:
        return [pinned_index(name, self.pinned, self.data) for name in self.release.files]

    def _tests(self, question: Question) -> ProgramTests:
        target = unsealed(question)
        if tests := find_tests(target, question.id):
            return tests
        self._indexes()
        if tests := find_tests(target, question.id):
            return tests
        raise UserError(
            f"The data of {self.name} has other tests for {question.id} than the graded question "
            f"(digest {target[:19]}). Use the data file that the question was read from."
        )


def _real_facts(real: ProgramResult) -> dict[str, Any]:
    return {
        "verdicts": list(real.verdicts),
        "tests_passed": real.verdicts.count("pass"),
        "exact": real.exact,
        "cpu_s": round(real.cpu_s, 3),
        "fragile": real.fragile,
        "margin": real.margin,
    }


def _judge_officially(reply: str, tests: ProgramTests, box: Box) -> dict[str, Any]:
    """Judge a reply by LiveCodeBench's own code: its extraction of the program, its rules."""
    program = extract_fenced(reply)
    if program is None:
        return {"official": False, "official_summary": "no program found"}
    result = judge_program(program, tests, box, rules="official")
    return {"official": result.passed, "official_summary": _progress(result)}


def _progress(result: ProgramResult) -> str:
    """Return a program's result in words, e.g. the first failed test; only types of errors stay."""
    return result.summary(lambda note: kind[0] if (kind := ERROR_TYPE.match(note)) else "")


LIVECODEBENCH = LiveCodeBench()
LIVECODEBENCH_TRAIN = LiveCodeBench(release_of("release_v1"), splits=("train",))
"""The 400 problems of V1 as training data, as in the conductor paper."""


@task
@user_errors
def livecodebench(
    release: str = "v6",
    start_date: str | None = None,
    end_date: str | None = None,
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    box: str | None = None,
    data: str | None = None,
) -> Task:
    """LiveCodeBench code generation: a release by the hub's tag, dates YYYY-MM-DD, each at 00:00.

    Besides pass@1 it reports pass@5 and pass@10 if there are as many epochs, and pass@1 by
    difficulty and by platform. Programs run in the sandbox of --sandbox (default docker), or in one
    of podium's (-T box=docker).
    """
    from podium.suites.inspect_box import boxed_task  # imports all sandboxes; only for Inspect

    suite = LiveCodeBench(release_of(release), window_of(start_date, end_date), data)
    return with_breakdown(boxed_task(suite, box, split=split, limit=limit, epochs=epochs), epochs)


def with_breakdown(plain_task: Task, epochs: int) -> Task:
    """Return a task that also reports pass@k, and accuracy by difficulty and by platform."""
    for sample in plain_task.dataset:
        facts = sample.metadata or {}
        sample.metadata = {**facts, "platform": facts["question"]["platform"]}
    reducers = ["mean", *(f"pass_at_{k}" for k in PASS_AT if k <= epochs)]
    by_topic, by_platform = (grouped(mean(), key, all=False) for key in ("topic", "platform"))
    attributes = ("dataset", "setup", "solver", "sandbox", "scorer", "name", "version", "metadata")
    return Task(
        **{name: getattr(plain_task, name) for name in attributes},
        metrics=[mean(), stderr(), by_topic, by_platform],
        epochs=Epochs(epochs, reducers),
    )
