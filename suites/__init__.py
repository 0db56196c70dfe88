"""Suites: questions with pinned data, and graders that are software with a version, all by name.

NAME@START..END and NAME@unseen are made when asked for. Who answers, and how models are called, is
not known here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.errors import UserError
from harness.suite import Suite
from suites.aime25 import AIME25
from suites.bigcodebench import BIGCODEBENCH
from suites.gpqa_diamond import GPQA_DIAMOND
from suites.humaneval import HUMANEVAL
from suites.livecodebench import (
    LIVECODEBENCH,
    LIVECODEBENCH_TRAIN,
    TRAIN,
    LiveCodeBench,
    named_release,
    read_window,
)
from suites.math500 import MATH500, MATH500_ALL
from suites.mbpp import MBPP
from suites.mmlu import MMLU
from suites.practice import PracticeSuite, choice, code, composed, integer
from suites.practice.unseen import UNSEEN, unseen
from suites.rlpr import RLPR, RLPR_RULES

# § The suites by name, those included that a name describes: a release, a window, what is
# § unseen.


class SuiteRegistry(Mapping[str, Suite[Any]]):
    """Suites that are listed, and `NAME@START..END` for those whose questions have dates.

    A practice suite has `NAME@unseen`. Iteration lists plain names only. A name that is understood
    but wrong (no such date) is a UserError, any other unknown name a KeyError, as in a dictionary.
    """

    def __init__(self, listed: Mapping[str, Suite[Any]]) -> None:
        """List these; every other name is made when it is asked for."""
        self._listed = dict(listed)
        self._described = dict[str, Suite[Any]]()

    def __getitem__(self, name: str) -> Suite[Any]:
        if name in self._listed:
            return self._listed[name]
        if name not in self._described:
            self._described[name] = self._made(name)
        return self._described[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def _made(self, name: str) -> Suite[Any]:
        plain, at, window = name.partition("@")
        known = self._listed.get(plain) or _livecodebench_release(plain)
        if known is None:
            raise KeyError(name)
        if not at:
            return known
        if isinstance(known, PracticeSuite):
            if window == UNSEEN:
                return unseen(known)
            raise UserError(f"{plain!r} has one other exam, '{plain}@{UNSEEN}', and no {name!r}.")
        if not isinstance(known, LiveCodeBench):
            raise UserError(f"The questions of {plain!r} have no dates, so it has no {name!r}.")
        return known.between(read_window(window))


def _livecodebench_release(name: str) -> LiveCodeBench | None:
    release = named_release(name)
    if name == TRAIN:
        return LIVECODEBENCH_TRAIN
    return LiveCodeBench(release) if release else None


# § Exams: questions, and graders that are software with a version.
# §
# § Belongs here: prompts, loaders with pinned data, generators of practice questions,
# § graders, judging
# § programs in a box. Does not belong here: anything that knows who sits the exam (baselines,
# § the
# § conductor), how models are called, or how results are printed.
# §
# § Read in this order: aime25.py (a small real suite), programs.py (judging a program),
# § livecodebench.py (the large real suite) and what it imports, checked.py (judging by
# § assertions),
# § humaneval.py, mbpp.py and bigcodebench.py, choices.py (what multiple-choice exams share),
# § gpqa_diamond.py with gpqa_rows.py and choice_order.py, mmlu.py, math500.py with
# § equality.py (when
# § two formulas are equal: latex.py, quantities.py and units.py for what needs no
# § algebra, equality_process.py for what does), rlpr.py with rlpr_rows.py, rlpr_rules.py and
# § quantities.py, practice.py (what the four generated suites share), practice_integer.py and
# § its
# § neighbours, practice_unseen.py (exams unlike what taught), named.py (suites by name),
# § openings.py
# § (who opened an eval split, and when). Where questions are from: fetch.py, hub.py and
# § row_files.py
# § with sources.toml, bare.py (a question without its instruction), cards.py with cards.toml,
# § and
# § data_checks.py and data_downloads.py for `podium data`.


SUITES: Mapping[str, Suite[Any]] = SuiteRegistry(
    {
        "aime25": AIME25,
        "gpqa-diamond": GPQA_DIAMOND,
        "math500": MATH500,
        "math500-all": MATH500_ALL,
        "livecodebench": LIVECODEBENCH,
        "humaneval": HUMANEVAL,
        "mbpp": MBPP,
        "bigcodebench": BIGCODEBENCH,
        "mmlu": MMLU,
        "rlpr": RLPR,
        "rlpr-rules": RLPR_RULES,
        "practice-integer": integer.SUITE,
        "practice-choice": choice.SUITE,
        "practice-code": code.SUITE,
        "practice-composed": composed.SUITE,
    }
)
"""Names on the command line, and through them releases and windows of dates (suites/__init__.py).
Questions are read or generated by `load`, not by this import."""
