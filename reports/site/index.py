"""Data of the matrix page; a cell is one system on one question in one epoch.

`data/index.js` lists blocks, rows and questions in JSON and holds the figures of every cell in
columns of numbers, some 20 bytes a cell. It contains no text of a question, a model or a log except
the reasons why a question was not graded, which are redacted for private suites.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from podium.harness.ledger.answers import REFUSED
from podium.harness.ledger.totals import QuestionResult, SystemRun
from podium.harness.suite import failure_kind, redacted_message
from podium.reports.blocks import asked_name
from podium.reports.comparison_rows import Pair
from podium.reports.derived import Comparison
from podium.reports.render import shortened
from podium.reports.site.pages import data_script

SHARD = 256
"""Number of queries (answers of one system) per text file."""
ONE_FILE, MOST = 1_000_000, 2_000_000
"""Maximum cells of a site to store in one file; maximum to store at all (in a file per block)."""
NOT_ASKED, RIGHT, WRONG, PARTLY, UNSCORED, NO_ANSWER, INVALID_PLAN, TOO_LONG = range(8)
UNREAD = "no answer found"
REASONS, LONGEST = 1000, 160
"""Maximum reasons of wrong or missing grades in full, others by kind; maximum length of one."""
OF_ONE = re.compile(r"\b(?=\w*\d)\w{8,}\b|\d+\.\d+")
"""Ids and measured times, removed from reasons because they make equal reasons differ."""
NONE = 0xFFFFFFFF
TYPES: Mapping[str, tuple[str, float]] = {
    "score": ("<f4", np.nan),
    "usd": ("<f4", np.nan),
    "seconds": ("<f4", np.nan),
    "tokens": ("<u4", NONE),
    "reason": ("<u2", 0),
    "calls": ("<u2", 0),
    "state": ("u1", NOT_ASKED),
}
"""Figure of a cell -> dtype, and value for unknown. The widest dtypes come first, so that each
array is aligned to its width."""
NAMED = ("split", "label", "prompt", "pool", "price_book", "seed")
"""Fields of rows in which two blocks of one suite may differ."""


@dataclass(frozen=True, slots=True)
class SiteBlock:
    """One block of a report: comparable rows and their questions, in the order of the cells."""

    name: str
    """Name of the block, unique within a report; part of URLs and file names."""
    first: int
    """Number, among all rows of the report, of the block's first row; its other rows follow."""
    pairs: tuple[Pair, ...]
    questions: tuple[str, ...]
    """The ids of the block's questions, sorted."""
    epochs: int
    shown: bool
    """False if no text of the suite may be published."""

    def places(self) -> dict[tuple[str, int], int]:
        """Return the index of each (question, epoch) pair in arrays of cells and in text files."""
        return {
            (question, epoch): index * self.epochs + epoch - 1
            for index, question in enumerate(self.questions)
            for epoch in range(1, self.epochs + 1)
        }

    @property
    def size(self) -> int:
        """Number of cells of the block."""
        return len(self.pairs) * len(self.questions) * self.epochs


def site_blocks(comparison: Comparison) -> Iterator[SiteBlock]:
    """Yield the blocks of a report for the site, in the report's order."""
    first_row = 0
    for name, pairs in zip(_names(comparison), comparison.pairs, strict=True):
        queries = [query for _, system_run in pairs for query in system_run.attempts]
        yield SiteBlock(
            name=name,
            first=first_row,
            pairs=pairs,
            questions=tuple(sorted({query.question for query in queries})),
            epochs=max((*(row.epochs for row, _ in pairs), *(query.epoch for query in queries))),
            shown=all(system_run.facts.publishable for _, system_run in pairs),
        )
        first_row += len(pairs)


def _names(comparison: Comparison) -> list[str]:
    """Return a name per block: its suite, and properties that differ among the suite's blocks."""
    heads = [pairs[0][0] for pairs in comparison.pairs]
    names: list[str] = []
    for head in heads:
        peers = [peer for peer in heads if peer.suite == head.suite]
        qualifiers = [
            str(getattr(head, name))
            for name in NAMED
            if len({getattr(peer, name) for peer in peers}) > 1
        ]
        name = re.sub(r"[^\w.-]+", "-", "-".join((head.suite, *qualifiers)))
        again = sum(re.fullmatch(rf"{re.escape(name)}(\.\d+)?", old) is not None for old in names)
        names.append(f"{name}.{again + 1}" if again else name)
    return names


@dataclass(frozen=True, slots=True)
class Index:
    """The data files with all cells of a site, each built on demand."""

    blocks: tuple[SiteBlock, ...]
    served: bool = False
    """Whether a server builds cells on request, so that no maximum applies."""

    @property
    def size(self) -> int:
        """Number of cells of all blocks."""
        return sum(block.size for block in self.blocks)

    @property
    def cells(self) -> str:
        """Where cells are stored: `here` (in one file), `apart` (a file per block) or `nowhere`."""
        if self.size <= ONE_FILE:
            return "here"
        return "apart" if self.served or self.size <= MOST else "nowhere"

    @property
    def files(self) -> tuple[str, ...]:
        """The names of the data files; `index` comes first."""
        apart = self.blocks if self.cells == "apart" else ()
        return ("index", *(f"index/{block.name}" for block in apart))

    def text(self, name: str) -> str | None:
        """Return the content of a data file; None for an unknown name."""
        if name == "index":
            return data_script(name, self._head())
        blocks = {f"index/{block.name}": block for block in self.blocks}
        if name not in self.files:
            return None
        reasons: dict[str, int] = {"": 0}
        columns, data = _packed([_cells(blocks[name], reasons)])
        return data_script(name, _with_head({"reasons": [*reasons], "columns": columns}, data))

    def _head(self) -> bytes:
        reasons = {"": 0}
        inline_blocks = self.blocks if self.cells == "here" else ()
        columns, data = _packed([_cells(block, reasons) for block in inline_blocks])
        folders = sorted({_folder(run) for block in self.blocks for _, run in block.pairs})
        blocks = [_about(block, folders) for block in self.blocks]
        for block, block_columns in zip(blocks, columns, strict=False):
            block["columns"] = block_columns
        head = {"runs": _names_of(folders), "reasons": [*reasons], "cells": self.cells}
        head |= {"blocks": blocks}
        return _with_head(head, data)


def index_files(blocks: Sequence[SiteBlock]) -> dict[str, str]:
    """Return the data files with the cells of these blocks, by name."""
    index = Index(tuple(blocks))
    return {f"data/{name}.js": index.text(name) or "" for name in index.files}


def _about(block: SiteBlock, folders: Sequence[Path]) -> dict[str, Any]:
    head = block.pairs[0][0]
    facts = {result.question: result for _, run in block.pairs for result in run.attempts}
    rows = [facts[question] for question in block.questions]
    references = [index for index, (row, _) in enumerate(block.pairs) if row.verdict == "reference"]
    return {
        "name": block.name,
        "title": asked_name(head),
        **{name: getattr(head, name) for name in ("suite", "split", "label", "pool")},
        "shown": block.shown,
        "questions": block.questions,
        "subjects": [row.topic or None if block.shown else None for row in rows],
        "difficulties": [row.groups.get("difficulty") if block.shown else None for row in rows],
        "epochs": block.epochs,
        "reference": block.first + references[0] if references else None,
        "rows": _rows(block, folders),
    }


def _rows(block: SiteBlock, folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Return a block's table rows for the data file, each with its column on the matrix page."""
    columns: dict[tuple[str, str], int] = {}
    counts: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    for index, (row, system_run) in enumerate(block.pairs):
        counts[row.system] += 1
        again = f"#{counts[row.system]}" if counts[row.system] > 1 else ""
        rows.append(
            {
                "row": block.first + index,
                "system": row.system,
                "name": f"{row.system}{again}",
                "column": columns.setdefault((row.system, row.args), len(columns)),
                "run": folders.index(_folder(system_run)),
                "targets": row.uses_targets,
            }
        )
    return rows


def _folder(system_run: SystemRun) -> Path:
    return system_run.paths[0].resolve().parent


def _names_of(folders: Sequence[Path]) -> list[str]:
    """Return folders relative to their common parent, because a site may be copied elsewhere."""
    shared = os.path.commonpath(folders) if len(folders) > 1 else ""
    return [os.path.relpath(folder, shared) if shared else folder.name for folder in folders]


def _state(result: QuestionResult) -> int:
    """Return a result's state, e.g. `RIGHT`, by the same rules as the counts in the comparison."""
    if result.value is None:
        return UNSCORED
    if result.plan_fault:
        return INVALID_PLAN
    if result.too_long:
        return TOO_LONG
    if not result.parsed:
        return NO_ANSWER
    return RIGHT if result.value >= 1 else WRONG if result.value <= 0 else PARTLY


def _reason(result: QuestionResult, publishable: bool) -> str:
    if result.value is not None:
        missing = REFUSED if result.too_long else "" if result.parsed else UNREAD
        return result.plan_fault or missing
    line = redacted_message(result.reason, publishable).strip().partition("\n")[0]
    return shortened(OF_ONE.sub("…", line), LONGEST)


def _cells(block: SiteBlock, reasons: dict[str, int]) -> dict[str, np.ndarray[Any, Any]]:
    """Return a block's cells as arrays; add new reasons of wrong or missing grades to `reasons`."""
    shape = (len(block.pairs), len(block.questions) * block.epochs)
    cells = {name: np.full(shape, empty, kind) for name, (kind, empty) in TYPES.items()}
    places = block.places()

    def code(result: QuestionResult) -> int:
        reason = _reason(result, block.shown)
        if reason not in reasons and len(reasons) > REASONS:
            reason = failure_kind(reason)
        return reasons.setdefault(reason, len(reasons))

    for index, (row, system_run) in enumerate(block.pairs):
        results = system_run.attempts
        columns = [places[result.question, result.epoch] for result in results]
        figures: dict[str, list[Any]] = {
            "state": [_state(result) for result in results],
            "reason": [code(result) for result in results],
            "score": [_known(result.value) for result in results],
            "usd": [_known(result.totals.usd) for result in results],
            "tokens": [_tokens(result) for result in results],
            "calls": [min(result.totals.calls, 0xFFFF) for result in results],
        }
        if row.critical_path_s is not None:  # times of replayed replies mean nothing
            figures["seconds"] = [_known(result.critical_path_s) for result in results]
        for name, values in figures.items():
            cells[name][index, columns] = values
    return cells


def _known(value: Any) -> float:
    return np.nan if value is None else float(value)


def _tokens(result: QuestionResult) -> int:
    both = (result.totals.tokens_in, result.totals.tokens_out)
    counts = [count for count in both if count is not None]
    return min(sum(counts), NONE - 1) if len(counts) == len(both) else NONE


def _packed(
    blocks: Sequence[Mapping[str, np.ndarray[Any, Any]]],
) -> tuple[list[dict[str, int]], bytes]:
    """Return the byte offset of each array of each block's cells, and the bytes of all arrays."""
    columns: list[dict[str, int]] = []
    data = bytearray()
    for cells in blocks:
        columns.append({})
        for name, values in cells.items():
            columns[-1][name] = len(data)
            data += values.tobytes()
        data += bytes(-len(data) % 8)
    return columns, bytes(data)


def _with_head(head: Mapping[str, Any], data: bytes) -> bytes:
    """Return a data file's bytes: length of the head (4 bytes), JSON padded to 8 bytes, arrays."""
    text = json.dumps(head, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    text += b" " * (-(len(text) + 4) % 8)
    return len(text).to_bytes(4, "little") + text + data
