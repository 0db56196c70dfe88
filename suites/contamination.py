"""Guards of the eval splits: one question in two suites, and who opened a split, when."""

import json
import re
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.errors import UserError
from harness.records import Question
from harness.suite import OFFICIAL, Split, Suite, prompt_of
from suites import aime25, base, bigcodebench, humaneval, mbpp, rlpr
from suites.practice import integer

INSTRUCTIONS = (
    base.CHOICE_INSTRUCTION,
    aime25.SUFFIX,
    aime25.PREFIX,  # Lighteval's, which MATH-500 has too
    integer.INSTRUCTION,
    humaneval.INSTRUCTION.strip(),
    bigcodebench.INSTRUCTION,
    mbpp.PROMPT.partition("{text}")[0].strip(),
)
"""What suites put before or after all their questions."""

_CONTEST = re.compile(r".*### Question:\n(.*)\n\n### Format: .*", re.S)
_FIRST_OPTION = "\n\nA) "
_TESTS = mbpp.PROMPT.partition("{text}")[2].partition("{tests}")[0]
"""What stands between an MBPP problem and its tests, which are left out with it."""

ACCESS_LOG = "openings.jsonl"


def strip_instruction(question: Question) -> str:
    """Return the question itself; of a choice without its options, of MBPP without its tests."""
    text = rlpr.without_system_message(question)
    contest = _CONTEST.fullmatch(text)
    if contest:
        return contest.group(1).strip()
    for instruction in INSTRUCTIONS:
        text = text.strip().removeprefix(instruction).removesuffix(instruction)
    if question.kind == "choice" and _FIRST_OPTION in text:
        text = text.rpartition(_FIRST_OPTION)[0]
    return text.partition(_TESTS)[0].strip()


@dataclass(frozen=True, slots=True)
class EvalAccess:
    """One look at a split."""

    opened: str
    """ISO date and time, UTC."""
    suite: str
    suite_version: str
    data_revision: str
    split: str
    n: int
    """Questions that were asked."""
    reason: str = ""
    """Why, in the words of whoever opened it."""
    prompt: str = OFFICIAL
    """How they were put; an access log that does not say is older than the choice."""


def log_eval_access(
    log_dir: Path, suite: Suite[Any], n: int, *, split: Split = "eval", reason: str = ""
) -> EvalAccess:
    """Append the opening of `n` questions, dated now, to a directory's access log; return it."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    exam = (suite.name, suite.version, suite.data_revision, split)
    opening = EvalAccess(now, *exam, n, reason, prompt_of(suite))
    log_dir.mkdir(parents=True, exist_ok=True)
    with (log_dir / ACCESS_LOG).open("a", encoding="utf-8") as access_log:
        access_log.write(json.dumps(asdict(opening), ensure_ascii=False) + "\n")
    return opening


def read_eval_accesses(log_dir: Path) -> list[EvalAccess]:
    """Return the openings of a log directory, oldest first; empty when nothing was opened."""
    access_log = log_dir / ACCESS_LOG
    if not access_log.is_file():
        return []
    openings = list[EvalAccess]()
    for number, line in enumerate(access_log.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            openings.append(EvalAccess(**json.loads(line)))
        except (ValueError, TypeError) as error:
            raise UserError(f"{access_log}, line {number} is not an opening: {error}.") from error
    return openings
