"""Grade a file of replies from any source; write a file of verdicts that survives a kill.

While the file grows, verdicts (one per reply) are in order of arrival, a reply's newest last; at
the end they are sorted like the replies. `FILE.meta.json` names what the verdicts were made from,
such as the suite's version; a file of verdicts made from anything else is refused.
"""

import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Generator, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from io import RawIOBase
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, ValidationError

from podium.harness.boxes import Boxes, BoxRecord, OpenBox, open_run_box, refuse_unknown, select_box
from podium.harness.errors import UserError
from podium.harness.files import (
    SETTINGS,
    parse_json,
    read_limited,
    read_rows,
    refuse_absent,
    refuse_no_file,
    refuse_unwritable_file,
    replace_file,
)
from podium.harness.parallel import map_concurrently, progress_line
from podium.harness.records import EMPTY, Grade, Question
from podium.harness.run.catalogue import Catalogue, find_grader
from podium.harness.suite import (
    Explained,
    LeavesOut,
    ModelGraded,
    Suite,
    at_epoch,
    keep_files_private,
)

FIELDS = ("question_id", "value", "answer", "reason", "tests_passed", "tests_total", "seconds")
LINE = "line"  # Last field of a verdict: the line of the replies file that it is about
Verdict = Mapping[str, Any]  # `FIELDS`, a suite's additions, `LINE`; a null value is ungraded


class VerdictOrigin(BaseModel):
    """What a file of verdicts was made from: suite, problems, replies and sandbox."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: Literal["podium-verdicts-1"] = "podium-verdicts-1"
    suite: str
    suite_version: str
    problems: str  # sha256 of the problems file, or the suite's data revision
    replies: str  # sha256 of the replies file
    box: str | None = None
    box_facts: BoxRecord | None = None


class VerdictFile:
    """An open file of verdicts, one per graded reply; `open_verdicts` makes it."""

    def __init__(self, path: Path, writer: RawIOBase) -> None:
        """Read the verdicts that the file already has; `writer` appends new verdicts unbuffered."""
        self._path, self._writer = path, writer
        self._texts: dict[int, bytes] = {}  # the newest verdict on each line of the replies
        self.graded: set[int] = set()  # lines of replies that have a value
        self._in_order = True
        self._read()

    def add(self, verdict: Verdict) -> None:
        """Append a verdict to the file at once, so that it survives if the run is killed."""
        text = json.dumps(verdict, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        try:
            if (self._writer.write(text) or 0) < len(text):
                raise OSError(errno.ENOSPC, "no space left")
        except OSError as error:
            raise UserError(
                f"{self._path} cannot be written ({error.strerror}): free some space. Finished "
                "grades are kept, and the same command grades the rest."
            ) from error
        self._note(verdict[LINE], verdict["value"], text)

    def verdicts(self) -> Iterator[Verdict]:
        """Yield the newest verdict of each reply, in the order of the replies."""
        return (json.loads(self._texts[line]) for line in sorted(self._texts))

    def put_in_order(self) -> None:
        """Write the verdicts in the order of the replies; UserError if the disk is full."""
        if self._in_order:
            return
        try:
            replace_file(self._path, b"".join(self._texts[line] for line in sorted(self._texts)))
        except OSError as error:
            raise UserError(
                f"{self._path}.new cannot be written ({error.strerror}): {self._path} holds all "
                "verdicts, in the order of grading. Free some space, and run the same command to "
                "sort them."
            ) from error

    def _note(self, line: int, value: object, text: bytes) -> None:
        self._in_order = self._in_order and line > next(reversed(self._texts), 0)
        self._texts[line] = text
        (self.graded.discard if value is None else self.graded.add)(line)

    def _read(self) -> None:
        place = 0
        with self._path.open("rb") as reader:
            for number, text in enumerate(reader, start=1):
                if not text.endswith(b"\n"):
                    self._writer.truncate(place)
                    break
                try:
                    verdict: Any = parse_json(text)
                    self._note(int(verdict[LINE]), verdict["value"], text)
                except (ValueError, TypeError, KeyError) as error:
                    raise UserError(
                        f"{self._path}, line {number} is not a verdict that podium wrote: restore "
                        "the file, or name another --out."
                    ) from error
                place += len(text)


@contextmanager
def open_verdicts(path: Path, origin: VerdictOrigin) -> Generator[VerdictFile]:
    """Yield the file of verdicts at `path`, locked; UserError if its sources are not `origin`."""
    beside = _origin_file(path)
    with path.open("ab", buffering=0) as writer:
        _lock(path, writer)
        if os.fstat(writer.fileno()).st_size:
            _refuse_other(path, beside, origin)
        else:
            try:
                beside.write_text(origin.model_dump_json(indent=1) + "\n", encoding="utf-8")
            except OSError as error:
                text = f"{beside} cannot be written ({error.strerror}): free some space."
                raise UserError(text) from error
        yield VerdictFile(path, writer)


def _origin_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.meta.json")


def _lock(path: Path, writer: RawIOBase) -> None:
    """Lock a file of verdicts; UserError if another run has locked or just replaced the file."""
    same = False
    with suppress(BlockingIOError):
        fcntl.flock(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)
        same = os.path.samestat(os.fstat(writer.fileno()), path.stat())
    if not same:
        raise UserError(f"Another podium grade is writing {path}; wait until it ends.")


def _refuse_other(path: Path, beside: Path, origin: VerdictOrigin) -> None:
    if not beside.is_file():
        text = f"{path} was not written by podium grade ({beside.name} is missing)"
        raise UserError(f"{text}: name another --out.")
    try:
        stored = VerdictOrigin.model_validate_json(read_limited(beside, SETTINGS))
    except ValidationError as error:
        raise UserError(f"{beside} is damaged: name another --out.") from error
    for name, now in origin:
        if (old_value := getattr(stored, name)) != now:
            difference = f"{name.replace('_', ' ')} was {_said(old_value)} and is now {_said(now)}"
            raise UserError(f"{path} holds other verdicts: {difference}; name another --out.")


def _said(value: object) -> str:
    return value.short if isinstance(value, BoxRecord) else str(value)[:40]


ADDED = ("official", "fragile", "errata")  # keys of a grade's metadata that a verdict keeps


@dataclass(frozen=True, slots=True)
class GradeRequest:
    """The arguments of `podium grade`."""

    suite: str
    replies: Path
    out: Path
    problems: Path | None = None  # The benchmark's own rows; None for the suite's pinned questions
    box: str | None = None
    max_sandboxes: int | None = None
    task_args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Arguments of a suite that is an Inspect task."""


@dataclass(frozen=True, slots=True)
class Graded:
    """The result of grading a file of replies: counts, mean value and time."""

    replies: int
    unscored: int
    mean: float | None  # Mean value of all graded replies, earlier runs included
    now: int  # replies graded in this run
    seconds: float
    reason: str  # Why the first unscored reply is unscored; empty when none is
    where: str  # the box and its Python, as text

    def __str__(self) -> str:
        mean = "-" if self.mean is None else f"{self.mean:.4f}"
        now = "none of them in this run"
        if self.now and self.seconds:
            rate = f"{self.now / self.seconds:.1f} problems/s"
            now = f"{self.now} of them in this run, in {self.seconds:.1f} s ({rate})"
        return (
            f"{self.replies - self.unscored} of {self.replies} graded, mean value {mean}, "
            f"{self.unscored} unscored; {now}, {self.where}."
        )


@dataclass(frozen=True, slots=True)
class _Reply:
    line: int
    question: str
    text: str
    epoch: int  # the question was asked in the variant of this epoch; 1 if the row has none


def grade_file(request: GradeRequest, catalogue: Catalogue) -> Graded:
    """Grade a file of replies, except replies that an earlier, perhaps killed, run has graded."""
    suite: Suite[Any] = find_grader(catalogue.suites, request.suite, request.task_args)
    if not suite.publishable:
        keep_files_private()
    if not request.out.absolute().parent.is_dir():
        raise UserError(
            f"There is no directory {request.out.parent}; make it, or name another --out."
        )
    refuse_unwritable_file(request.out, "--out")
    refuse_no_file(_origin_file(request.out), "remove it, or name another --out")
    for path in filter(None, (request.replies, request.problems)):
        refuse_absent(path)
        if path.resolve() == request.out.resolve():
            raise UserError(f"--out {path} is the file to grade: name another file.")
    refuse_unknown(catalogue.boxes, request.box)
    references = [(reply.line, reply.question) for reply in _replies(request.replies)]
    ids = {name for _, name in references}
    questions = _questions(suite, request.problems, ids)
    _refuse_strangers(request.replies, references, questions, suite)
    _refuse_prose(suite, [questions[name] for name in ids])
    name = select_box(request.box, catalogue.boxes) if suite.needs_box else None
    with (
        open_run_box(catalogue.boxes, name, [suite], request.max_sandboxes) as box,
        open_verdicts(request.out, _made(request, suite, box)) as verdicts,
    ):
        started, earlier = time.monotonic(), len(verdicts.graded)
        grade = partial(_verdict, suite, questions, box)
        todo = (reply for reply in _replies(request.replies) if reply.line not in verdicts.graded)
        with (
            progress_line(f"grading {suite.name}", len(references), earlier) as line,
            closing(map_concurrently(grade, todo, box.most if box else 1)) as results,
        ):
            for verdict in results:
                verdicts.add(verdict)
                line.tick()
        verdicts.put_in_order()
        seconds = time.monotonic() - started
        return _summed(verdicts, (len(verdicts.graded) - earlier, seconds), box)


def explain_reply(request: GradeRequest, line: int, catalogue: Catalogue) -> str:
    """Explain how the reply on `line` was read; UserError if its suite extracts no answers."""
    suite: Suite[Any] = find_grader(catalogue.suites, request.suite, request.task_args)
    if not isinstance(suite, Explained):
        raise UserError(
            f"{suite.name} extracts no answers from text, so there is nothing to explain. Leave "
            "--explain out."
        )
    reply = next((reply for reply in _replies(request.replies) if reply.line == line), None)
    if reply is None:
        raise UserError(f"{request.replies} has no reply on line {line}. Give --explain another.")
    questions = _questions(suite, request.problems, {reply.question})
    _refuse_strangers(request.replies, [(line, reply.question)], questions, suite)
    question = at_epoch(suite, questions[reply.question], reply.epoch)
    reading = suite.read(question, reply.text)
    steps = (
        f"  {stage:<9} {rule:<17} {text[-60:]!r}: {end}" for stage, rule, text, end in reading.steps
    )
    value = "no answer" if reading.value is None else repr(reading.value)
    return "\n".join((f"{reply.question}: {value}, by the rule {reading.rule}", *steps))


def grade_replies(
    suite: Suite[Any],
    replies: Mapping[str, str],
    boxes: Boxes,
    problems: Path | None = None,
    box: str | None = None,
) -> dict[str, Grade]:
    """Grade replies, given by question id; return {question id: grade}, or raise grading errors."""
    questions = _questions(suite, problems, replies.keys())
    for name in replies.keys() - questions.keys():
        raise UserError(f"{suite.name} {_not_there(suite, name)}: leave its reply out.")
    _refuse_prose(suite, [questions[name] for name in replies])
    place = select_box(box, boxes) if suite.needs_box else None
    with open_run_box(boxes, place, [suite]) as ready:

        def grade(name: str) -> tuple[str, Grade]:
            return name, suite.grade(questions[name], replies[name], ready.box if ready else None)

        grades = dict(map_concurrently(grade, replies, ready.most if ready else 1))
    return {name: grades[name] for name in replies}


def _questions(suite: Suite[Any], problems: Path | None, ids: Set[str]) -> Mapping[str, Question]:
    """Return {id: question}: all of the `problems` file, or of the suite's splits that have `ids`.

    A split that cannot be loaded raises its UserError only if other splits lack some of the `ids`.
    """
    if problems:
        return {question.id: question for question in suite.read_problems(problems)}
    questions: dict[str, Question] = {}
    lacking: UserError | None = None
    for split in reversed(suite.splits):
        try:
            questions.update((question.id, question) for question in suite.load(split))
        except UserError as error:
            lacking = lacking or error
        if questions and ids <= questions.keys():
            return questions
    if lacking:
        raise lacking
    return questions


def _refuse_prose(suite: Suite[Any], items: Sequence[Question]) -> None:
    prose = [q for q in items if isinstance(suite, ModelGraded) and suite.needs_judge(q)]
    if prose:
        raise UserError(
            f"{len(prose)} of the {len(items)} questions need a model as judge, {prose[0].id!r} "
            "for one, and podium grade calls no model: leave their replies out, or use podium run."
        )


def _refuse_strangers(
    replies: Path,
    references: Sequence[tuple[int, str]],
    questions: Mapping[str, Question],
    suite: Suite[Any],
) -> None:
    unknown = [(line, name) for line, name in references if name not in questions]
    for line, name in unknown:
        raise UserError(
            f"{replies}, line {line}: {suite.name} {_not_there(suite, name)} "
            f"({len(unknown)} of {len(references)} replies are to such questions). "
            "Leave these replies out, or name their own --suite."
        )
    if not references:
        raise UserError(f"{replies} holds no replies. Name a file with one reply per row.")


def _not_there(suite: Suite[Any], question: str) -> str:
    if isinstance(suite, LeavesOut) and (reason := suite.left_out.get(question)):
        return f"does not ask {question!r}, because {reason}"
    return f"has no question {question!r}"


def _replies(path: Path) -> Generator[_Reply]:
    for line, row in read_rows(path):
        question, text, epoch = row.get("question_id"), row.get("reply"), row.get("epoch", 1)
        epoch_valid = isinstance(epoch, int) and not isinstance(epoch, bool) and epoch >= 1
        id_valid = isinstance(question, str | int) and not isinstance(question, bool)
        for refused, problem in (
            ("question_id" not in row, " has no `question_id`"),
            ("reply" not in row, " has no `reply`"),
            (not id_valid, ": its `question_id` is not a string"),
            (not isinstance(text, str), ": its `reply` is not a string"),
            (not epoch_valid, ": its `epoch` is not a whole number from 1"),
        ):
            if refused:
                raise UserError(f"{path}, line {line}{problem}. Correct or delete the row.")
        yield _Reply(line, str(question), str(text), int(epoch))


def _made(request: GradeRequest, suite: Suite[Any], box: OpenBox | None) -> VerdictOrigin:
    def sha256(path: Path) -> str:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    return VerdictOrigin(
        suite=suite.name,
        suite_version=suite.version,
        problems=sha256(request.problems) if request.problems else suite.data_revision,
        replies=sha256(request.replies),
        box=box.name if box else None,
        box_facts=box.facts[suite.name] if box else None,
    )


def _verdict(
    suite: Suite[Any], questions: Mapping[str, Question], box: OpenBox | None, reply: _Reply
) -> Verdict:
    """Return one reply's verdict as a row; if grading itself failed, the value is None, never 0."""
    question = at_epoch(suite, questions[reply.question], reply.epoch)
    started = time.monotonic()
    try:
        grade = suite.grade(question, reply.text, box.box if box else None)
    except UserError:
        raise
    except Exception as error:
        grade, reason = None, f"{type(error).__name__}: {error}"
    else:
        reason = grade.explanation
    passed, of = _tests(grade)
    return {
        "question_id": reply.question,
        "value": grade.value if grade else None,
        "answer": grade.extracted if grade and question.kind != "program" else None,
        "reason": reason,
        "tests_passed": passed,
        "tests_total": of,
        "seconds": round(time.monotonic() - started, 3) if grade else None,
        **{name: grade.metadata[name] for name in ADDED if grade and name in grade.metadata},
        LINE: reply.line,
    }


def _tests(grade: Grade | None) -> tuple[int | None, int | None]:
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
    mean = value / (total - unscored) if total > unscored else None
    box_text = f"box {box.name} ({next(iter(box.facts.values())).short})" if box else "no box"
    return Graded(total, unscored, mean, *now, reason, box_text)
