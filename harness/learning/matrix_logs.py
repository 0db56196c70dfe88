"""The matrix of our own logs: what every worker that sat an exam alone scored, used and would cost.

The sittings of `single:<worker>` in a run's directory, those of choosing the best single worker
included: those are of a train split, and say so. Questions are those of the log; of suites that
must not be published their texts stay in it. Not here: recorded verdicts of others
(baselines/matrices/), learning.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, cast

from harness.errors import UserError
from harness.learning.matrix import Asked, Matrix
from harness.learning.matrix_cells import About, Cell, assembled
from harness.ledger.raw_log import Json, naming, open_log
from harness.logs import RunFacts
from harness.records import Kind
from harness.sittings import Sitting, read_sittings

SINGLE = "single:"


def matrix_of_logs(dirs: Sequence[Path]) -> Matrix:
    """Return the matrix of all single workers below some directories.

    A question's id is `suite/id`. An epoch is a draw; an attempt without a verdict is none. Dollars
    are list prices. UserError when nobody sat alone, for logs of different labels, and for logs of
    one suite in different versions, data, prompts or splits of the same name.
    """
    sittings, _ = read_sittings(dirs)
    alone = [sitting for sitting in sittings if sitting.facts.system.startswith(SINGLE)]
    if not alone:
        places = ", ".join(map(str, dirs))
        raise UserError(f"No worker sat alone in {places}: run `--system single` first.")
    _refuse_different(alone)
    asked: dict[str, Asked] = {}
    for sitting in alone:
        asked |= {one.id: one for one in _asked(sitting) if one.id not in asked}
    withheld = sorted({one.facts.suite for one in alone if not one.facts.publishable})
    about = About(
        name="logs:" + ",".join(sorted({sitting.facts.suite for sitting in alone})),
        source=f"{len(alone)} sittings of single workers, pool {alone[0].facts.pool}",
        label=alone[0].facts.label,
        notes=tuple(
            f"The texts of {name} stay in their log: no router reads them." for name in withheld
        ),
        publishable=not withheld,
    )
    return assembled(about, [asked[id] for id in sorted(asked)], _cells(alone))


def _refuse_different(alone: Sequence[Sitting]) -> None:
    labels = sorted({sitting.facts.label for sitting in alone})
    if len(labels) > 1:
        raise UserError(f"These logs are {' and '.join(labels)}: name one directory at a time.")
    exams: dict[str, tuple[str, ...]] = {}
    for sitting in alone:
        facts = sitting.facts
        exam = (facts.suite_version, facts.data_revision, facts.prompt)
        if exams.setdefault(facts.suite, exam) != exam:
            raise UserError(
                f"These logs are of different versions of {facts.suite}: "
                f"{' '.join(exams[facts.suite])} and {' '.join(exam)}."
            )


def _cells(alone: Sequence[Sitting]) -> Iterator[Cell]:
    for sitting in alone:
        for attempt in sitting.attempts:
            usd = attempt.totals.usd
            yield Cell(
                question=_id(sitting.facts, attempt.question),
                worker=sitting.facts.system.removeprefix(SINGLE),
                score=attempt.value,
                usd=None if usd is None else float(usd),
                tokens_out=attempt.totals.tokens_out,
            )


def _asked(sitting: Sitting) -> Iterator[Asked]:
    """Yield the questions of a sitting, with their texts where they may be had."""
    facts = sitting.facts
    split: Literal["train", "eval"] = "train" if facts.split == "train" else "eval"
    for path in sitting.paths:
        with open_log(path) as log, naming(path):
            for sample in log.samples():
                metadata: Json = sample.get("metadata") or {}
                yield Asked(
                    id=_id(facts, str(sample["id"])),
                    text=_text(sample) if facts.publishable else "",
                    kind=cast(Kind, metadata.get("kind") or "text"),
                    group=str(metadata.get("topic") or ""),
                    split=split,
                )


def _id(facts: RunFacts, question: str) -> str:
    return f"{facts.suite}/{question}"


def _text(sample: Json) -> str:
    """Return what was asked: plain text, or the text of its messages."""
    asked: object = sample["input"]
    if isinstance(asked, str):
        return asked
    messages = cast(list[Json], asked)
    return "\n".join(one["content"] for one in messages if isinstance(one.get("content"), str))
