"""The registry of benchmark suites by name: each has questions from pinned data and a grader.

Suites NAME@START..END (a window of dates) and NAME@unseen (practice questions in other wordings)
are made on demand. Two functions protect the eval splits: `strip_instruction` returns the bare text
by which a question that is in two suites is found, and `log_eval_access` logs each read.
"""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from podium.harness.errors import UserError
from podium.harness.records import BARE, Question
from podium.harness.suite import Split, Suite, prompt_of
from podium.suites import aime25, bigcodebench, humaneval, mbpp
from podium.suites.aime25 import AIME25
from podium.suites.base import CHOICE_INSTRUCTION
from podium.suites.bigcodebench import BIGCODEBENCH
from podium.suites.gpqa_diamond import GpqaDiamond
from podium.suites.humaneval import HumanEval
from podium.suites.livecodebench import (
    LIVECODEBENCH,
    LIVECODEBENCH_TRAIN,
    TRAIN,
    LiveCodeBench,
    named_release,
    read_window,
)
from podium.suites.math500 import MATH500, MATH500_ALL
from podium.suites.mbpp import MBPP
from podium.suites.mmlu import Mmlu
from podium.suites.practice import PracticeSuite, choice, composed, deep, integer, programs
from podium.suites.practice.unseen import UNSEEN, unseen
from podium.suites.rlpr import RLPR, RLPR_RULES, without_system_message

INSTRUCTIONS = (
    CHOICE_INSTRUCTION,
    aime25.SUFFIX,  # also used by practice suites
    aime25.PREFIX,  # Lighteval's instruction, also used by MATH-500
    humaneval.INSTRUCTION.strip(),
    bigcodebench.INSTRUCTION,
    mbpp.PROMPT.partition("{text}")[0].strip(),
)

_CONTEST = re.compile(r".*### Question:\n(.*)\n\n### Format: .*", re.S)
_FIRST_OPTION = "\n\nA) "
_TESTS = mbpp.PROMPT.partition("{text}")[2].partition("{tests}")[0]
"""The text between an MBPP problem and its tests; `strip_instruction` removes it and the tests."""

ACCESS_LOG = "openings.jsonl"


class SuiteRegistry(Mapping[str, Suite[Any]]):
    """Maps names to suites; a name may end in `@START..END` (dates) or `@unseen` (other wordings).

    Iteration yields only registered names, without `@`. A lookup raises KeyError if the name is
    unknown, and UserError if the text after `@` is wrong for the suite, such as an invalid date.
    """

    def __init__(self, *listed: Suite[Any]) -> None:
        """Register suites; a lookup makes LiveCodeBench's other releases and names with `@`."""
        self._listed = {suite.name: suite for suite in listed}
        self._described = dict[str, Suite[Any]]()

    def __getitem__(self, name: str) -> Suite[Any]:
        suites = self._listed if name in self._listed else self._described
        if name not in suites:
            suites[name] = self._made(name)
        return suites[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def _made(self, name: str) -> Suite[Any]:
        plain, separator, window = name.partition("@")
        suite = LIVECODEBENCH_TRAIN if plain == TRAIN else self._listed.get(plain)
        if suite is None:
            release = named_release(plain)
            if release is None:
                raise KeyError(name)
            suite = LiveCodeBench(release)
        if not separator:
            return suite
        if isinstance(suite, PracticeSuite):
            if window == UNSEEN:
                return unseen(suite)
            raise UserError(f"There is no suite {name!r}. Use {plain!r} or '{plain}@{UNSEEN}'.")
        if not isinstance(suite, LiveCodeBench):
            raise UserError(
                f"There is no suite {name!r}: the questions of {plain!r} have no dates. "
                f"Use {plain!r}."
            )
        return replace(suite, window=read_window(window))


SUITES: Mapping[str, Suite[Any]] = SuiteRegistry(
    *(AIME25, GpqaDiamond(), MATH500, MATH500_ALL, LIVECODEBENCH, HumanEval(), MBPP, BIGCODEBENCH),
    *(Mmlu(), RLPR, RLPR_RULES, integer.SUITE, choice.SUITE, programs.SUITE, composed.SUITE),
    deep.SUITE,
)
"""All suites by command-line name, including LiveCodeBench's releases and windows of dates. The
import of this module reads no questions; a suite's `load` reads or generates them."""


def strip_instruction(question: Question) -> str:
    """Return a question's text without instruction, answer options and (for MBPP) tests."""
    if bare := question.metadata.get(BARE):
        return str(bare).strip()
    text = without_system_message(question)
    contest = _CONTEST.fullmatch(text)
    if contest:
        return contest.group(1).strip()
    for instruction in INSTRUCTIONS:
        text = text.strip().removeprefix(instruction).removesuffix(instruction)
    if question.kind == "choice" and _FIRST_OPTION in text:
        text = text.rpartition(_FIRST_OPTION)[0]
    return text.partition(_TESTS)[0].strip()


def log_eval_access(
    log_dir: Path, suite: Suite[Any], n: int, *, split: Split = "eval", reason: str = ""
) -> None:
    """Log in `log_dir`/openings.jsonl that `n` questions of a suite's split are read now, and why.

    Older rows of the log lack the field `prompt`, the name of the suite's prompt.
    """
    row = {
        "opened": datetime.now(UTC).isoformat(timespec="seconds"),
        "suite": suite.name,
        "suite_version": suite.version,
        "data_revision": suite.data_revision,
        "split": split,
        "n": n,
        "reason": reason,
        "prompt": prompt_of(suite),
    }
    log_dir.mkdir(parents=True, exist_ok=True)
    with (log_dir / ACCESS_LOG).open("a", encoding="utf-8") as access_log:
        access_log.write(json.dumps(row, ensure_ascii=False) + "\n")


class SuitesRoom(ModuleType):
    """Makes this package a mapping: `podium.suites["math500"]`, the older way, still works."""

    def __getitem__(self, name: str) -> Suite[Any]:
        """Return the suite with this name; KeyError if no suite has it."""
        return SUITES[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all suites."""
        return iter(SUITES)

    def __len__(self) -> int:
        """Return the number of suites."""
        return len(SUITES)

    def __contains__(self, name: object) -> bool:
        """Return whether a suite has this name."""
        return name in SUITES


get, items, keys, values = SUITES.get, SUITES.items, SUITES.keys, SUITES.values
sys.modules[__name__].__class__ = SuitesRoom
