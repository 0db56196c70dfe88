"""RouterBench (withmartian/routerbench): 11 models, a score and the dollars of each reply.

Read are its rows as CSV, `<model>` beside `<model>|total_cost`; the pickles it is published as run
code when they are opened, and are refused. The slices in the data folder were cut by RouterDC,
which also declared a train and a test file of each.

Not taken over: RouterBench's price table, which divides by ten million (reference: baselines, 8);
the dollars here are those of its rows. Every prompt of a slice begins with the same instruction
and examples; a router is given what differs.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from baselines.matrices.reading import Given, Source, pinned
from harness.errors import UserError
from harness.files import read_rows
from harness.learning.matrix import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)
from harness.records import Kind

FOLDER = "routerbench_zs"
COST = "|total_cost"
KINDS: dict[str, Kind] = {"mbpp": "program", "arc-challenge": "choice"}
_SPLIT = re.compile(r"(?P<slice>.+)_(?P<split>train|test)\.csv(\.gz)?")
Declared = Literal["", "train", "eval"]
_FIRST = ("sample_id", "prompt", "eval_name")


@dataclass(frozen=True, slots=True)
class _Read:
    """The rows of some files."""

    asked: list[MatrixQuestion]
    cells: list[MatrixCell]


def read(given: Given) -> Matrix:
    """Return the matrix of a CSV file, of a folder of them, or of a slice of the data folder.

    UserError for a pickle, when there is no such file, and for rows that are none of RouterBench's.
    """
    paths = _paths(given)
    read = _rows(paths)
    slices = sorted({one.group for one in read.asked})
    about = MatrixSource(
        "routerbench:" + ",".join(slices),
        f"withmartian/routerbench, slices of RouterDC: {pinned(*paths)}",
    )
    return assemble_matrix(about, _without_beginnings(read.asked), read.cells)


def _paths(given: Given) -> list[Path]:
    own = Path(given.path)
    if own.suffix in {".pkl", ".pickle"}:
        raise UserError(
            f"{own} is a pickle, which runs code when it is opened: save its rows as CSV where you "
            "trust it, and name that file."
        )
    if given.path and own.is_file():
        return [own]
    folder = own if given.path and own.is_dir() else given.data / FOLDER
    wanted = f"{given.path}_" if given.path and folder != own else ""
    found = sorted(path for path in folder.glob("*.csv*") if path.name.startswith(wanted))
    if not found:
        raise UserError(
            f"There is no RouterBench file {given.path or folder}: name a CSV file, a folder of "
            f"them, or a slice in {given.data / FOLDER}."
        )
    return found


def _rows(paths: Sequence[Path]) -> _Read:
    rows: list[tuple[dict[str, Any], Declared, str]] = [
        (row, _declared(path), f"{path}, line {n}") for path in paths for n, row in read_rows(path)
    ]
    if not rows:
        raise UserError(f"{paths[0]} has no rows.")
    models = [name.removesuffix(COST) for name in rows[0][0] if name.endswith(COST)]
    if not models:
        raise UserError(f"{paths[0]} has no column that ends in {COST!r}: it is no RouterBench.")
    often = Counter(str(row.get("sample_id")) for row, _, _ in rows)
    found = _Read([], [])
    for row, split, where in rows:
        asked = _asked(row, split, where)
        if often[asked.id] > 1:  # other prompts under one id: a digest tells them apart
            asked = replace(asked, id=f"{asked.id}#{_digest(asked.text)}")
        found.asked.append(asked)
        found.cells.extend(_cell(row, asked.id, model, where) for model in models)
    return found


def _declared(path: Path) -> Declared:
    match = _SPLIT.fullmatch(path.name)
    if match is None:
        return ""
    return "train" if match["split"] == "train" else "eval"


def _asked(row: dict[str, Any], split: Declared, where: str) -> MatrixQuestion:
    lacking = [name for name in _FIRST if not str(row.get(name) or "").strip()]
    if lacking:
        raise UserError(f"{where}: its {lacking[0]!r} is absent or empty.")
    group = str(row["eval_name"])
    return MatrixQuestion(
        id=str(row["sample_id"]),
        text=_plain(str(row["prompt"])),
        kind=KINDS.get(group, "text"),
        group=group,
        split=split,
    )


def _cell(row: dict[str, Any], id: str, model: str, where: str) -> MatrixCell:
    score = _number(row, model, where)
    if score is not None and not 0 <= score <= 1:
        raise UserError(f"{where}: the score of {model} lies outside 0 to 1.")
    usd = _number(row, model + COST, where)
    return MatrixCell(id, model, score, usd=usd or None)  # nobody answers for nothing: 0 is unknown


def _number(row: dict[str, Any], column: str, where: str) -> float | None:
    """Return a figure, None where the cell is empty; UserError for what is no number."""
    text = str(row.get(column) or "").strip()
    try:
        value = float(text) if text else math.nan
    except ValueError:
        raise UserError(f"{where}: its {column!r} is no number.") from None
    if value < 0 or math.isinf(value):
        raise UserError(f"{where}: its {column!r} is no such number.")
    return None if math.isnan(value) else value


def _plain(prompt: str) -> str:
    """Return a prompt as text: the files hold lists of one text as Python prints them."""
    inner = prompt.strip()
    if inner[:2] in {"['", '["'} and inner[-2:] in {"']", '"]'}:
        inner = inner[2:-2].replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"')
    return inner


def _without_beginnings(asked: Sequence[MatrixQuestion]) -> list[MatrixQuestion]:
    """Return the questions without the lines that all prompts of their slice begin with."""
    common = {
        group: _shared_lines([one.text for one in asked if one.group == group])
        for group in {one.group for one in asked}
    }
    return [replace(one, text=one.text[common[one.group] :] or one.text) for one in asked]


def _shared_lines(texts: Sequence[str]) -> int:
    """Return how many characters of whole lines all texts begin with."""
    first, last = min(texts), max(texts)  # whatever these two share, all between them share
    shared = next(
        (at for at, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), 0
    )
    return first.rfind("\n", 0, shared) + 1


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


ROUTERBENCH = Source(
    "routerbench",
    "RouterBench rows as CSV: 11 models with scores and dollars; the slices arc_challenge (1,484 "
    "questions) and mbpp (427) with a declared split",
    read,
    path="[SLICE or PATH]",
)
