"""How far shards are: their answers, counted without unpacking a log."""

import zipfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from podium.harness.ledger.manifest import SAMPLES
from podium.harness.parallel import ProgressLine, progress_line
from podium.harness.text import pluralise

LOOK_S = 1.0


@dataclass(slots=True)
class AnswerCount:
    """The samples in the logs of some directories; a log that was not changed is not read again."""

    folders: Sequence[Path]
    line: ProgressLine | None = None
    _known: dict[Path, tuple[int, int]] = field(default_factory=dict[Path, tuple[int, int]])

    def of(self, folder: Path) -> int:
        """Return how many samples a directory's logs have."""
        newest: dict[str, int] = {}
        for path in folder.glob("*.eval"):
            # A task that is gone on with has a log of another time, with what the older ones have.
            task = path.name.partition("_")[2]
            newest[task] = max(newest.get(task, 0), self._samples(path))
        return sum(newest.values())

    def all(self) -> int:
        """Return how many samples there are."""
        return sum(map(self.of, self.folders))

    def look(self) -> None:
        """Show what came since the last look."""
        if line := self.line:
            for _ in range(min(self.all(), line.total) - line.done):
                line.tick()

    def _samples(self, path: Path) -> int:
        size, before = path.stat().st_size, self._known.get(path, (-1, 0))
        if size != before[0]:
            try:
                with zipfile.ZipFile(path) as log:
                    found = sum(name.startswith(SAMPLES) for name in log.namelist())
            except (zipfile.BadZipFile, OSError):  # it is being written
                found = before[1]
            before = self._known[path] = (size, found)
        return before[1]


@contextmanager
def counted_line(folders: Sequence[Path], total: int, *, shown: bool) -> Generator[AnswerCount]:
    """Show one line over the answers of all shards."""
    count = AnswerCount(folders)
    title = f"answering in {pluralise(len(folders), 'shard')}"
    with progress_line(title, total, min(count.all(), total)) if shown else nullcontext() as line:
        count.line = line
        yield count
