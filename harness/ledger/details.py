"""One query in full: every step with its calls, then the verdict and why.

Reads the logs of one question only. Of exams whose questions may not be published, texts are
withheld; what a text was can still be checked by its digest.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from harness.errors import UserError
from harness.ledger.answered import Answered, answered, exam_of
from harness.ledger.events import attached
from harness.ledger.merge import rows_of
from harness.ledger.plans import step_number, workflow_of
from harness.ledger.queries import answering, query_row
from harness.ledger.query_row import QueryRow
from harness.ledger.raw_log import Json, RawLog, naming, open_log
from harness.ledger.row import LedgerRow
from harness.ledger.sitting_files import Files, sittings_below
from harness.records import CONDUCTOR
from harness.workflow import Step

NOTHING: tuple[None, Json] = (None, {})
Known = dict[str, set[tuple[str, str]]]
"""Who was asked each question: suites and systems."""
WHO = 3
"""Of them an error names at most."""
FIRST = 100
"""Characters of a reply that are shown."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which queries are asked for; None is all of them."""

    question: str
    """An id, or a suite and an id: `aime25/aime25-I-1`."""
    system: str | None = None
    epoch: int | None = None

    def fits(self, suite: str, question: str) -> bool:
        """Say whether a question is meant."""
        return self.question in (question, f"{suite}/{question}")


@dataclass(frozen=True, slots=True)
class StepDetail:
    """One step of the workflow, or a call outside it."""

    name: str
    step: Step | None
    """As planned; None where the plan is not known."""
    reads: tuple[int, ...]
    """Numbers of the steps that it reads."""
    rows: tuple[LedgerRow, ...]
    """Its attempts, in time; empty for a step that was not run."""


@dataclass(frozen=True, slots=True)
class QueryDetail:
    """One query in full."""

    row: QueryRow
    conductor: tuple[StepDetail, ...]
    steps: tuple[StepDetail, ...]
    graders: tuple[LedgerRow, ...]
    discarded: tuple[LedgerRow, ...]
    """Attempts at the question that were not graded."""
    replies: Mapping[str, str]
    """First words of each reply, by event, `…` where cut; empty where texts are withheld."""


def details(folder: Path, wanted: Wanted) -> list[QueryDetail]:
    """Return the queries that fit, sorted; UserError with near matches when there is none."""
    known: Known = {}
    found: list[QueryDetail] = []
    for files in sittings_below(folder):
        found.extend(_of_sitting(files, wanted, known))
    if not found:
        raise UserError(_unknown(wanted, known))
    return sorted(found, key=lambda one: (one.row.suite, one.row.question, one.row.system))


def _of_sitting(files: Files, wanted: Wanted, known: Known) -> Iterator[QueryDetail]:
    """Yield the queries of one sitting that fit; `known` collects every question."""
    samples: dict[tuple[str, int], tuple[Answered, Json]] = {}
    here = not files.logs
    for path in reversed(files.logs):
        with open_log(path) as log:
            asked = _asked(log)
            exam = exam_of(log.header)
            suite = exam.suite
            for one in asked:
                known.setdefault(one, set()).add((suite, exam.system))
            if not any(wanted.fits(suite, one) for one in asked):
                continue
            here = True
            samples.update(_samples(log, wanted))
    if not here:
        return
    rows = [row for row in rows_of(files) if wanted.fits(row.suite, row.question)]
    groups: dict[tuple[str, int], list[LedgerRow]] = {pair: [] for pair in samples}
    for row in rows:
        groups.setdefault((row.question, row.epoch), []).append(row)
    for pair, own in sorted(groups.items()):
        found = _detail(own, *samples.get(pair, NOTHING))
        if wanted.system in (None, found.row.system) and wanted.epoch in (None, pair[1]):
            yield found


def _asked(log: RawLog) -> list[str]:
    dataset: Json = log.header["eval"].get("dataset") or {}
    return [str(one) for one in dataset.get("sample_ids") or ()]


def _samples(
    log: RawLog, wanted: Wanted
) -> Iterator[tuple[tuple[str, int], tuple[Answered, Json]]]:
    exam = exam_of(log.header)
    for sample in log.samples():
        with naming(log.path):
            fits = wanted.fits(exam.suite, str(sample["id"]))
            answer = answered(sample, exam) if fits else None
        if answer is not None:
            yield (answer.question, answer.epoch), (answer, sample)


def _detail(rows: Sequence[LedgerRow], answer: Answered | None, sample: Json) -> QueryDetail:
    solving = answering(rows, answer)
    kept = {id(row) for row in solving}
    conductor = [row for row in solving if row.role == CONDUCTOR]
    workers = [row for row in solving if row.role != CONDUCTOR]
    shown = answer is not None and answer.exam.shown
    return QueryDetail(
        row=query_row(rows, answer),
        conductor=tuple(_unplanned(conductor)),
        steps=tuple(_steps(workers, answer.plan if answer else None)),
        graders=tuple(row for row in rows if row.scope == "scoring"),
        discarded=tuple(row for row in rows if row.scope != "scoring" and id(row) not in kept),
        replies=_replies(sample) if shown else {},
    )


def _steps(rows: Sequence[LedgerRow], plan: str | None) -> Iterator[StepDetail]:
    """Yield the planned steps in order, then what no plan explains."""
    workflow = workflow_of(plan)
    planned = workflow.steps if workflow else ()
    for index, step in enumerate(planned):
        own = tuple(row for row in rows if step_number(row) == index + 1)
        reads = tuple(read + 1 for read in workflow.reads(index)) if workflow else ()
        yield StepDetail(f"step {index + 1}: {step.worker}", step, reads, own)
    yield from _unplanned([row for row in rows if not 1 <= (step_number(row) or 0) <= len(planned)])


def _unplanned(rows: Sequence[LedgerRow]) -> Iterator[StepDetail]:
    names = dict.fromkeys(row.step or row.role for row in rows)
    for name in names:
        own = tuple(row for row in rows if (row.step or row.role) == name)
        yield StepDetail(name, None, (), own)


def _replies(sample: Json) -> Mapping[str, str]:
    """Return the first words of each reply of a sample, by event."""
    found: dict[str, str] = {}
    for event in sample.get("events") or ():
        output: Json = event.get("output") or {}
        choices = output.get("choices")
        if event.get("event") == "model" and choices:
            said = _said(choices[0]["message"].get("content"), sample)
            cut = "…" if len(said) > FIRST else ""
            found[str(event.get("uuid"))] = said[:FIRST] + cut
    return found


def _said(content: object, sample: Json) -> str:
    """Return a message's text; a list of parts has texts among them."""
    if isinstance(content, str):
        return attached(content, sample)
    parts = cast(list[Json], content) if isinstance(content, list) else []
    texts = (str(part.get("text") or "") for part in parts)
    return " ".join(attached(text, sample) for text in texts if text)


def _unknown(wanted: Wanted, known: Known) -> str:
    name = wanted.question if wanted.question in known else wanted.question.rpartition("/")[2]
    near = get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    if not known:
        return f"No log here has a question {wanted.question!r}; name the directory of its run."
    if name in known:
        sat = sorted(known[name])
        who = ", ".join(f"{suite}/{name} by {system}" for suite, system in sat[:WHO])
        more = f" and {len(sat) - WHO} more" if len(sat) > WHO else ""
        return f"Nobody was asked {_wanted(wanted)}; here is {who}{more}."
    said = f"near: {', '.join(near)}" if near else f"for example {min(known)}"
    return f"There is no question {wanted.question!r} here ({said})."


def _wanted(wanted: Wanted) -> str:
    system = f" by {wanted.system}" if wanted.system else ""
    epoch = "" if wanted.epoch is None else f" in epoch {wanted.epoch}"
    return f"{wanted.question!r}{system}{epoch}"
