"""LiveCodeBench code generation: contest problems, answered by programs, judged on hidden tests.

Questions, prompt, extraction and tests are the official ones (LiveCodeBench/LiveCodeBench @28fef95)
and so is the comparison of outputs. The grade is the `real` verdict: the program runs as a true
process. The `official` verdict, which runs it as the published evaluator does, stands beside it.

A question's target is the digest of its tests; they are read from the data file when a program is
graded, so a log stays small and can be graded again wherever that file lies.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from inspect_ai import Epochs, Task, task
from inspect_ai.scorer import grouped, mean, stderr

from harness.errors import UserError
from harness.records import Grade, Question
from harness.suite import Card, Split
from sandbox import IMAGE, Box
from suites.boxed import boxed_task
from suites.cards import card
from suites.fetch import Source, sources
from suites.livecodebench_forms import raw_rows
from suites.livecodebench_hub import pinned_index
from suites.livecodebench_question import extracted, question_of
from suites.livecodebench_releases import ALWAYS, TRAIN, Release, Window, release_of, window_of
from suites.livecodebench_rows import Index, find_tests
from suites.programs import Judgement, ProgramTests, judge
from suites.refusing import refusing
from suites.shown_tests import tried

PASS_AT = (5, 10)
"""The k of pass@k that the task reports beside pass@1, where there are as many epochs."""

ERROR_TYPE = re.compile(
    r"[A-Za-z_]{1,40}(?:Error|Exception|Interrupt|Iteration)\b|killed by SIG\w+"
)

NEWEST = release_of("v6")


@dataclass(frozen=True, slots=True)
class LiveCodeBench:
    """The suite; `data` names a folder of local data (default: see suites/fetch.py)."""

    release: Release = NEWEST
    window: Window = ALWAYS
    data: str | Path | None = None
    official: bool = True
    """Whether to judge a second time the published evaluator's way (`for_reward`: no)."""
    pinned: Mapping[str, Source] = field(default_factory=sources)
    version: str = "1-A"
    splits: tuple[Split, ...] = ("eval",)
    publishable: bool = True
    needs_box: bool = True
    image: str = IMAGE

    @property
    def name(self) -> str:
        """Release and window together: a window alone does not say which problems it has."""
        plain = TRAIN if self.splits == ("train",) else self.release.suite
        return f"{plain}@{self.window}" if self.window else plain

    @property
    def dates(self) -> str:
        """The window, or the months of the release's contests."""
        return str(self.window) if self.window else self.release.dates

    @property
    def data_revision(self) -> str:
        """The hub's revision and tag; local files are held to the same digests."""
        source = self.pinned[self.release.files[0]]
        return f"{source.hub}@{source.revision} {self.release.tag}"

    @property
    def card(self) -> Card:
        """The card of all releases, with this one's size; a window's is known when it is loaded."""
        shared = card("livecodebench")
        sizes = dict.fromkeys(self.splits, self.release.count)
        return shared if self.window else replace(shared, sizes=sizes)

    def between(self, window: Window) -> "LiveCodeBench":
        """Return the suite of those problems whose contests lie in a window."""
        return replace(self, window=window)

    def for_reward(self) -> "LiveCodeBench":
        """Return the suite that judges once: the real verdict is the value, the other is shown."""
        return replace(self, official=False)

    def load(self, split: Split = "eval") -> Sequence[Question]:
        """Return the questions in the order of the files; UserError names a missing file."""
        if split not in self.splits:
            raise UserError(f"Suite {self.name} has no {split!r} split; it has: {self.splits[0]}.")
        entries = [entry for index in self._indexes() for entry in index.entries]
        chosen = [entry for entry in entries if self.window.holds(entry.contest_date)]
        if not chosen:
            raise UserError(f"Suite {self.name} has no problem: no contest lies in its window.")
        return [question_of(entry) for entry in chosen]

    def read_problems(self, path: Path) -> Sequence[Question]:
        """Return the questions of raw rows (JSONL, .gz or CSV); UserError names a bad row."""
        return [question_of(entry) for entry in raw_rows(path).entries]

    def grade(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        """Grade by running the reply's program on all tests in a box.

        Raises SandboxError when the box fails, and UserError when the data file that has the
        question's tests is absent or another one.
        """
        if box is None:
            raise ValueError(f"{self.name} runs programs: name a sandbox with --box.")
        tests = self._tests(question)
        facts = _facts(question, tests)
        program = extracted(reply)
        if program is None:
            return Grade(0.0, None, "no program found", {**facts, "tests_passed": 0})
        started = perf_counter()
        real = judge(program, tests, box)
        seconds = perf_counter() - started
        official = judge(program, tests, box, rules="official") if self.official else None
        return Grade(
            value=float(real.passed),
            extracted=program,
            explanation=_explained(real, official),
            metadata={**facts, **_measured(real, seconds), **_beside(official)},
        )

    def try_public(self, question: Question, reply: str, box: Box | None = None) -> Grade:
        """Return the share of the statement's tests that pass; SandboxError when the box fails."""
        return tried(question, extracted(reply), box)

    def _indexes(self) -> list[Index]:
        return [pinned_index(name, self.pinned, self.data) for name in self.release.files]

    def _tests(self, question: Question) -> ProgramTests:
        """Return the tests that a question's target stands for, read from where its row lies."""
        if question.target is None:
            raise ValueError(f"{question.id} is sealed, so it cannot be graded.")
        tests = find_tests(question.target, question.id)
        if tests is None:
            self._indexes()
            tests = find_tests(question.target, question.id)
        if tests is None:
            raise UserError(
                f"The data of {self.name} has other tests for {question.id} than the question that "
                f"was asked ({question.target[:19]}): grade with the file it came from."
            )
        return tests


def _facts(question: Question, tests: ProgramTests) -> dict[str, Any]:
    known = {key: question.metadata.get(key) for key in ("platform", "difficulty", "contest_date")}
    return {**known, "errata": question.metadata.get("errata"), "tests_total": len(tests.cases)}


def _measured(real: Judgement, seconds: float) -> dict[str, Any]:
    return {
        "verdicts": list(real.verdicts),
        "tests_passed": real.verdicts.count("pass"),
        "cpu_s": round(real.cpu_s, 3),
        "seconds": round(seconds, 3),
        "fragile": real.fragile,
        "margin": real.margin,
    }


def _beside(official: Judgement | None) -> dict[str, Any]:
    if official is None:
        return {}
    return {"official": official.passed, "official_summary": _told(official)}


def _explained(real: Judgement, official: Judgement | None) -> str:
    if official is None or official.passed == real.passed:
        return _told(real)
    return f"{_told(real)}; the published evaluator's way: {_told(official)}"


def _told(judgement: Judgement) -> str:
    """Say how far a program came, and of what an error said its type only.

    The message of an exception, or what a program prints last, may hold a hidden input.
    """
    total = len(judgement.results)
    for number, result in enumerate(judgement.results, start=1):
        if result.verdict not in ("pass", "not run"):
            kind = ERROR_TYPE.match(result.note)
            return f"test {number} of {total}: {result.verdict}{f' ({kind[0]})' if kind else ''}"
    return f"all {total} tests passed"


LIVECODEBENCH = LiveCodeBench()

LIVECODEBENCH_TRAIN = LiveCodeBench(release_of("release_v1"), splits=("train",))
"""The 400 problems of V1 in the role that the conductor paper gave them: to learn from."""


@task
@refusing
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
    """LiveCodeBench code generation: a release by the hub's tag, dates YYYY-MM-DD, inclusive.

    Besides pass@1 it reports pass@5 and pass@10 where there are as many epochs, and pass@1 by
    difficulty and by platform. Programs run in the sandbox that --sandbox names (docker if none
    does), or in one of podium's (-T box=docker).
    """
    suite = LiveCodeBench(release_of(release), window_of(start_date, end_date), data)
    return with_breakdown(boxed_task(suite, box, split=split, limit=limit, epochs=epochs), epochs)


def with_breakdown(made: Task, epochs: int) -> Task:
    """Return a task that also reports pass@k, and accuracy by difficulty and by platform.

    A new task, since changing the metrics of a made one does not reach its scorer.
    """
    for sample in made.dataset:
        facts = sample.metadata or {}
        sample.metadata = {**facts, "platform": facts["question"]["platform"]}
    reducers = ["mean", *(f"pass_at_{k}" for k in PASS_AT if k <= epochs)]
    by_topic, by_platform = (grouped(mean(), key, all=False) for key in ("topic", "platform"))
    return Task(
        dataset=made.dataset,
        setup=made.setup,
        solver=made.solver,
        sandbox=made.sandbox,
        scorer=made.scorer,
        metrics=[mean(), stderr(), by_topic, by_platform],
        epochs=Epochs(epochs, reducers),
        name=made.name,
        version=made.version,
        metadata=made.metadata,
    )
