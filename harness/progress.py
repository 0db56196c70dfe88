"""One progress line for a whole run; Inspect's own displays draw one per task.

The scorer ticks, because every answered question passes it. On a terminal it is a bar; elsewhere a
line at every tenth. `podium run --display rich` (or `full`, `plain`) shows Inspect's displays.
"""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from harness.escape import visible


@dataclass(slots=True)
class Line:
    """How far a run is, in (question, epoch) pairs."""

    title: str
    total: int
    bar: Progress
    done: int = 0

    def tick(self) -> None:
        """Count one answer and show it."""
        self.done += 1
        if self.bar.console.is_terminal:
            self.bar.advance(self.bar.task_ids[0])
        elif self.done * 10 // self.total > (self.done - 1) * 10 // self.total:
            self.bar.console.print(f"{self.title}: {self.done} of {self.total}", highlight=False)


LINE: ContextVar[Line | None] = ContextVar("podium_progress", default=None)


def tick() -> None:
    """Count one answer in the line that is in force; do nothing without one."""
    if line := LINE.get():
        line.tick()


@contextmanager
def progress_line(title: str, total: int, done: int = 0) -> Generator[None]:
    """Show one line while Inspect works; `done` is what earlier attempts have answered."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    bar = Progress(*columns, TimeRemainingColumn(), console=Console(file=sys.stderr))
    bar.add_task(visible(title), total=total, completed=done)
    token = LINE.set(Line(visible(title), total, bar, done))
    try:
        if bar.console.is_terminal:
            bar.start()
        yield
    finally:
        bar.stop()
        LINE.reset(token)
