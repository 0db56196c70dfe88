"""Every query in full, in files of `SHARD` queries that a page loads when it is asked for one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.audit import Audit, InvariantVerdict
from harness.ledger.runs import RunFiles
from reports.report import Report


@dataclass(frozen=True, slots=True)
class RowTexts:
    """What the texts of one row of a report are made of."""

    row: int
    """Its place among the rows of the report."""
    files: RunFiles
    places: Mapping[tuple[str, int], int]
    """Of each (question, epoch) pair, as `SiteBlock.places` has them."""
    shown: bool
    """False where no text of the suite may be published."""
    verdicts: tuple[InvariantVerdict, ...]
    """Of the audit of its directory, with the faults of this system run alone."""


def row_texts(
    dirs: Sequence[Path], report: Report, audits: Mapping[Path, Audit]
) -> tuple[RowTexts, ...]:
    """Return what the texts of each row are made of; `audits` are of the directories, by each."""
    raise NotImplementedError


def text_shard(one: RowTexts, number: int, most: int | None = None) -> str:
    """Return the script of one file, `data/text/<row>/<number>.js`: `podium.put(name, base64)`.

    Texts longer than `most` characters are cut; None: none is, as `podium view` serves them. A
    number beyond the last file's raises IndexError.
    """
    raise NotImplementedError
