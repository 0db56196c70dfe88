"""The warm pool: cells that are started ahead, reused while they are clean, replaced when not.

At most `most` cells are handed out at once. Cells that serve one program only (`reuse` off) are
thrown away after it, and their successors are started in the background.
"""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from sandbox.box import SandboxError
from sandbox.cells import Cell

PROGRAMS = 2000
"""Runs after which a cell is replaced all the same: nothing then lives forever."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What cells differ in: they are fixed when a cell starts."""

    image: str
    memory_bytes: int
    processes: int


class Pool:
    """Cells of several kinds, bounded in number."""

    def __init__(self, start: Callable[[Kind], Cell], most: int, reuse: bool) -> None:
        """Start cells with `start`; `reuse` them for other programs where they isolate enough."""
        self._start, self._most, self._reuse = start, most, reuse
        self._bound = most if reuse else 2 * most
        self._idle: list[tuple[Kind, Cell]] = []
        self._cells: set[Cell] = set()
        self._count = 0  # of all cells, those that are being started included
        self._held = 0  # of cells handed out, those that a caller is waiting for included
        self._closed = False
        self._changed = threading.Condition()

    def take(self, kind: Kind, *, fresh: bool = False) -> Cell:
        """Return an idle cell of a kind, or a new one; waits while too many are handed out.

        A `fresh` one has not been waiting: what ended its predecessor may have ended that one too.
        """
        cell, evicted = self._reserve(kind, fresh)
        if evicted:
            evicted.close()
        cell = cell or self._begin(kind, held=1)
        self._ahead(kind)
        return cell

    def give_back(self, kind: Kind, cell: Cell) -> None:
        """Keep a clean cell for the next program, or throw it away."""
        if self._reuse and cell.runs < PROGRAMS:
            with self._changed:
                if cell in self._cells:
                    self._held -= 1
                    self._idle.append((kind, cell))
                self._changed.notify_all()
        else:
            self.drop(cell)
            self._ahead(kind)

    def drop(self, cell: Cell) -> None:
        """Throw away a cell that was handed out and must not be used again."""
        with self._changed:
            if cell not in self._cells:
                return
            self._cells.discard(cell)
            self._count -= 1
            self._held -= 1
            self._changed.notify_all()
        cell.close()

    def close(self) -> None:
        """Throw every cell away, those in use too."""
        with self._changed:
            self._closed = True
            cells, self._cells = self._cells, set()
            self._idle.clear()
            self._changed.notify_all()
        for cell in cells:
            cell.close()

    @property
    def alive(self) -> int:
        """How many cells there are."""
        with self._changed:
            return len(self._cells)

    def _reserve(self, kind: Kind, fresh: bool) -> tuple[Cell | None, Cell | None]:
        """Wait for a place; return an idle cell, or none and the one that makes room for a new."""
        with self._changed:
            while not self._closed:
                if self._held < self._most:
                    known = next((one for one in self._idle if one[0] == kind and not fresh), None)
                    room = self._count < self._bound
                    if known or room or self._idle:
                        taken = known or (None if room else self._idle[0])
                        if taken:
                            self._idle.remove(taken)
                        self._held += 1
                        return self._handed(known, None if known or not taken else taken[1])
                self._changed.wait()
        raise SandboxError("The sandbox has been closed.")

    def _handed(
        self, known: tuple[Kind, Cell] | None, evicted: Cell | None
    ) -> tuple[Cell | None, Cell | None]:
        """Count a cell that is about to start, and forget the one it replaces."""
        if known:
            return known[1], None
        if evicted:
            self._cells.discard(evicted)
        else:
            self._count += 1
        return None, evicted

    def _begin(self, kind: Kind, held: int) -> Cell:
        """Start a cell that has been counted; count it no more when that fails."""
        try:
            cell = self._start(kind)
        except BaseException:
            with self._changed:
                self._count -= 1
                self._held -= held
                self._changed.notify_all()
            raise
        with self._changed:
            if not self._closed:
                self._cells.add(cell)
                return cell
        cell.close()
        raise SandboxError("The sandbox has been closed.")

    def _ahead(self, kind: Kind) -> None:
        """Start one more cell in the background, as long as there may be more."""
        with self._changed:
            if self._closed or self._count >= self._bound:
                return
            self._count += 1
        threading.Thread(target=self._warm, args=(kind,), daemon=True).start()

    def _warm(self, kind: Kind) -> None:
        """Start a cell and leave it idle; whoever needs one next meets the failure itself."""
        with suppress(SandboxError):
            cell = self._begin(kind, held=0)
            with self._changed:
                if cell in self._cells:
                    self._idle.append((kind, cell))
                self._changed.notify_all()
