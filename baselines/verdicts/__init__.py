"""Figures that come with the package: ids, scores, dollars and tokens, and nobody's text.

Whence they are stands in PROVENANCE.toml; tests/baselines/pack_verdicts.py makes them.
"""

from pathlib import Path

from harness.files import read_rows
from harness.learning import MatrixCell, MatrixQuestion

COST, TOKENS = "|total_cost", "|tokens_out"
FIGURES = (("", "score"), (COST, "usd"), (TOKENS, "tokens_out"))
"""What stands behind a model's name in the head of a column, and the field of a cell."""
ABOUT = ("id", "kind", "date", "group", "split")


def packed_path(name: str) -> Path:
    """Return where the figures of a source are."""
    return Path(__file__).parent / f"{name}.csv.gz"


def packed_verdicts(name: str) -> tuple[list[MatrixQuestion], list[MatrixCell]]:
    """Return the questions, without texts, and the verdicts of a source."""
    asked, cells = list[MatrixQuestion](), list[MatrixCell]()
    for _, row in read_rows(packed_path(name)):
        one = MatrixQuestion(text="", **{key: row[key] for key in ABOUT})
        asked.append(one)
        for model in row:
            if model not in ABOUT and "|" not in model:
                found = (row.get(model + what) for what, _ in FIGURES)
                figures = [float(figure) if figure else None for figure in found]
                cells.append(MatrixCell(one.id, model, *figures))
    return asked, cells
