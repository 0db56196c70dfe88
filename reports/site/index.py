"""What a cell of the matrix is: one system on one question, once; and where its facts lie."""

from collections.abc import Iterator
from dataclasses import dataclass

from reports.build import Pair
from reports.derived import Comparison

SHARD = 256
"""Queries of one system in a file of texts."""


@dataclass(frozen=True, slots=True)
class SiteBlock:
    """The systems of one block of a report on its questions; `place` is the same in every file."""

    first: int
    """Number of its first row among all rows of the report; the others follow."""
    pairs: tuple[Pair, ...]
    questions: tuple[str, ...]
    """Ids, sorted."""
    epochs: int
    shown: bool
    """False where no text of the suite may be published."""

    def places(self) -> dict[tuple[str, int], int]:
        """Return where each (question, epoch) pair stands: in arrays of cells and in text files."""
        return {
            (question, epoch): at * self.epochs + epoch - 1
            for at, question in enumerate(self.questions)
            for epoch in range(1, self.epochs + 1)
        }


def site_blocks(shown: Comparison) -> Iterator[SiteBlock]:
    """Yield the blocks of a report, in its order."""
    first = 0
    for pairs in shown.pairs:
        asked = {one.question for _, system_run in pairs for one in system_run.attempts}
        yield SiteBlock(
            first=first,
            pairs=pairs,
            questions=tuple(sorted(asked)),
            epochs=max(row.epochs for row, _ in pairs),
            shown=all(system_run.facts.publishable for _, system_run in pairs),
        )
        first += len(pairs)
