"""Grade replies that were made anywhere: rows of (question_id, reply) in, rows of verdicts out.

`podium grade` asks no model and needs no log. The grader is the one that scores a run, so a reply
gets the same verdict here and there. Everything that can be refused is refused before any grading.
"""

import hashlib
import time
from collections.abc import Generator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from harness.at_once import as_done
from harness.boxes import OpenBox, chosen_box, opened, refuse_unknown
from harness.compose import Catalogue
from harness.errors import UserError
from harness.progress import progress_line, tick
from harness.records import EMPTY, Grade, Question
from harness.rows import read_rows
from harness.suite import Judged, LeavesOut, Suite, at_epoch
from harness.verdicts import LINE, Made, Verdict, VerdictFile, opened_verdicts

ADDED = ("official", "fragile", "errata")
"""What a suite's grade may say beside its value, kept as it is."""


@dataclass(frozen=True, slots=True)
class GradeRequest:
    """What `podium grade` was asked for."""

    suite: str
    replies: Path
    out: Path
    problems: Path | None = None
    """The benchmark's own rows; None for the suite's pinned questions."""
    box: str | None = None
    max_sandboxes: int | None = None


@dataclass(frozen=True, slots=True)
class Graded:
    """What became of a file of replies."""

    replies: int
    unscored: int
    mean: float | None
    """Mean value of what is graded, earlier runs included."""
    now: int
    """Replies graded by this run."""
    seconds: float
    reason: str
    """Why the first unscored reply is unscored; empty when none is."""
    where: str
    """The box, in words."""

    def __str__(self) -> str:
        mean = "-" if self.mean is None else f"{self.mean:.4f}"
        now = "none of them now"
        if self.now and self.seconds:
            rate = f"{self.now / self.seconds:.1f} problems/s"
            now = f"{self.now} of them now, in {self.seconds:.1f} s ({rate})"
        return (
            f"{self.replies - self.unscored} of {self.replies} graded, mean value {mean}, "
            f"{self.unscored} unscored; {now}, {self.where}."
        )


@dataclass(frozen=True, slots=True)
class _Reply:
    line: int
    question: str
    text: str
    epoch: int
    """Which epoch's form of the question was asked; 1 unless the row says."""


def grade_file(request: GradeRequest, catalogue: Catalogue) -> Graded:
    """Grade a file of replies, or what an earlier run has left of it.

    UserError, before anything is graded, for whatever is wrong with the files, the suite or the
    box. KeyboardInterrupt leaves a file that the same request finishes.
    """
    if request.suite not in catalogue.suites:
        known = ", ".join(sorted(catalogue.suites))
        raise UserError(f"There is no suite {request.suite!r}; known suites: {known}.")
    suite = catalogue.suites[request.suite]
    if not request.out.absolute().parent.is_dir():
        raise UserError(f"There is no directory {request.out.parent}; make it, or name another.")
    for path in filter(None, (request.replies, request.problems)):
        if not path.is_file():
            raise UserError(f"There is no file {path}.")
        if path.resolve() == request.out.resolve():
            raise UserError(f"--out {path} is what is to be graded: name another file.")
    refuse_unknown(catalogue.boxes, request.box)
    named = {reply.question for reply in _replies(request.replies)}
    questions = _questions(suite, request.problems, named)
    total = _checked(request.replies, questions, suite)
    _refuse_prose(suite, [questions[name] for name in named])
    name = chosen_box(request.box, catalogue.boxes) if suite.needs_box else None
    with (
        opened(catalogue.boxes, name, [suite], request.max_sandboxes) as box,
        opened_verdicts(request.out, _made(request, suite, box)) as verdicts,
    ):
        started, before = time.monotonic(), verdicts.graded
        with progress_line(f"grading {suite.name}", total, before):
            _grade_rest(_Grader(suite, questions, box), request.replies, verdicts)
        seconds = time.monotonic() - started
        return _summed(verdicts, (verdicts.graded - before, seconds), box)


def _questions(suite: Suite[Any], problems: Path | None, named: Set[str]) -> Mapping[str, Question]:
    """Return the questions that replies name: of a file, or of the suite's splits, exam first.

    A split that cannot be loaded is no trouble where no reply is to a question of it.
    """
    if problems:
        return {question.id: question for question in suite.read_problems(problems)}
    known: dict[str, Question] = {}
    lacking: UserError | None = None
    for split in reversed(suite.splits):
        try:
            known.update((question.id, question) for question in suite.load(split))
        except UserError as error:
            lacking = lacking or error
        if known and named <= known.keys():
            return known
    if lacking:
        raise lacking
    return known


def _refuse_prose(suite: Suite[Any], asked: Sequence[Question]) -> None:
    """Raise UserError for replies that only a model can judge: here none is asked."""
    prose = [one for one in asked if isinstance(suite, Judged) and suite.needs_judge(one)]
    if prose:
        raise UserError(
            f"Only a model can judge {len(prose)} of the {len(asked)} questions, {prose[0].id!r} "
            "say, and podium grade asks none: leave their replies out, or sit them by podium run."
        )


def _checked(replies: Path, questions: Mapping[str, Question], suite: Suite[Any]) -> int:
    """Return how many replies there are; UserError unless each is one to a known question."""
    total, unknown = 0, 0
    first: _Reply | None = None
    for reply in _replies(replies):
        total += 1
        if reply.question not in questions:
            unknown += 1
            first = first or reply
    if first:
        raise UserError(
            f"{replies}, line {first.line}: {_not_asked(suite, first.question)} "
            f"({unknown} of {total} replies are to questions that are not there)."
        )
    if not total:
        raise UserError(f"{replies} holds no replies.")
    return total


def _not_asked(suite: Suite[Any], question: str) -> str:
    why = suite.left_out.get(question) if isinstance(suite, LeavesOut) else None
    if why:
        return f"{suite.name} does not ask {question!r}, because {why}"
    return f"{suite.name} has no question {question!r}"


def _replies(path: Path) -> Generator[_Reply]:
    for line, row in read_rows(path):
        for field in ("question_id", "reply"):
            if field not in row:
                raise UserError(f"{path}, line {line} has no `{field}`.")
        question, text = row["question_id"], row["reply"]
        if isinstance(question, bool) or not isinstance(question, str | int):
            raise UserError(f"{path}, line {line}: its `question_id` is not a string.")
        if not isinstance(text, str):
            raise UserError(f"{path}, line {line}: its `reply` is not a string.")
        yield _Reply(line, str(question), text, _epoch(row, f"{path}, line {line}"))


def _epoch(row: Mapping[str, Any], where: str) -> int:
    epoch = row.get("epoch", 1)
    if isinstance(epoch, bool) or not isinstance(epoch, int) or epoch < 1:
        raise UserError(f"{where}: its `epoch` is not a whole number from 1.")
    return epoch


def _made(request: GradeRequest, suite: Suite[Any], box: OpenBox | None) -> Made:
    return Made(
        suite=suite.name,
        suite_version=suite.version,
        problems=_sha256(request.problems) if request.problems else suite.data_revision,
        replies=_sha256(request.replies),
        box=box.name if box else None,
        box_facts=box.facts[suite.name] if box else None,
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class _Grader:
    suite: Suite[Any]
    questions: Mapping[str, Question]
    box: OpenBox | None


def _grade_rest(grader: _Grader, replies: Path, verdicts: VerdictFile) -> None:
    """Grade what has no value yet, as many at once as the box takes, and write it down."""
    left = (reply for reply in _replies(replies) if not verdicts.has(reply.line))
    most = grader.box.most if grader.box else 1
    with closing(as_done(partial(_verdict, grader), left, most)) as made:
        for verdict in made:
            verdicts.add(verdict)
            tick()
    verdicts.put_in_order()


def _verdict(grader: _Grader, reply: _Reply) -> Verdict:
    """Grade one reply; what podium could not grade has no value, and is never a 0."""
    question = at_epoch(grader.suite, grader.questions[reply.question], reply.epoch)
    box = grader.box.box if grader.box else None
    started = time.monotonic()
    try:
        grade = grader.suite.grade(question, reply.text, box)
    except UserError:
        raise
    except Exception as error:
        grade, said = None, f"{type(error).__name__}: {error}"
    else:
        said = grade.explanation
    passed, of = _tests(grade)
    return {
        "question_id": reply.question,
        "value": grade.value if grade else None,
        "answer": grade.extracted if grade and question.kind != "program" else None,
        "reason": said,
        "tests_passed": passed,
        "tests_total": of,
        "seconds": round(time.monotonic() - started, 3) if grade else None,
        **{name: grade.metadata[name] for name in ADDED if grade and name in grade.metadata},
        LINE: reply.line,
    }


def _tests(grade: Grade | None) -> tuple[int | None, int | None]:
    """Return how many tests a program passed, of how many; None where there are no tests."""
    facts = grade.metadata if grade else EMPTY
    if "tests_total" in facts:
        return facts["tests_passed"], facts["tests_total"]
    verdicts = cast(list[str] | None, facts.get("verdicts"))
    return (verdicts.count("pass"), len(verdicts)) if verdicts else (None, None)


def _summed(verdicts: VerdictFile, now: tuple[int, float], box: OpenBox | None) -> Graded:
    total, unscored, value, reason = 0, 0, 0.0, ""
    for verdict in verdicts.verdicts():
        total += 1
        if verdict["value"] is None:
            unscored += 1
            reason = reason or str(verdict["reason"])
        else:
            value += verdict["value"]
    facts = next(iter(box.facts.values())) if box else None
    return Graded(
        replies=total,
        unscored=unscored,
        mean=value / (total - unscored) if total > unscored else None,
        now=now[0],
        seconds=now[1],
        reason=reason,
        where=f"box {box.name} ({facts.short})" if box and facts else "no box",
    )
