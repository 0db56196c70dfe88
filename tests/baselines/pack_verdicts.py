"""Make baselines/verdicts, the figures that come with the package, of files in the data folder.

podium data fetch lcb-leaderboard lcb-qwen recorded-aime25 routerbench
python -m tests.baselines.pack_verdicts DATA
"""

import csv
import gzip
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import Field

from podium.baselines.verdict_data import (
    ABOUT,
    FIGURES,
    ROUTERBENCH_FOLDER,
    VerdictRow,
    check_json,
    check_rows,
    livecodebench_problems,
    packed_path,
    routerbench_rows,
)
from podium.harness.errors import UserError
from podium.harness.files import plain_or_packed
from podium.harness.learning import MatrixCell, MatrixQuestion

Verdicts = tuple[list[MatrixQuestion], list[MatrixCell]]
BOARDS = {"v6": "v6_16models_1055q", "v5": "v5_19models_880q", "v1": "v1_45models_400q"}
REPLIES = "saturn_lighteval/aime25_4models.jsonl"


class _Performance(VerdictRow):
    question_id: str
    model: str
    score: float = Field(alias="pass@1", ge=0, le=100)


class _Board(VerdictRow):
    performances: tuple[_Performance, ...]


class _AimeReply(VerdictRow):
    model: str
    problem_id: str
    metric: float = Field(ge=0, le=1)
    out_tokens: int = Field(ge=0)


def leaderboard(data: Path, version: str) -> Verdicts:
    """Return a leaderboard's verdicts, and its questions in the order of the problems."""
    folder = data / "lcb_leaderboard_matrix"
    path = plain_or_packed(folder / f"performances_generation_{BOARDS[version]}.json")
    rows = check_json(_Board, path).performances
    cells = [MatrixCell(one.question_id, one.model, one.score / 100) for one in rows]
    known = {cell.question for cell in cells}
    asked = [
        MatrixQuestion(
            one.question_id, "", "program", date=one.contest_date[:10], group=one.platform
        )
        for one in livecodebench_problems(data)
        if one.question_id in known
    ]
    if len(asked) < len(known):
        raise UserError(f"{path} names problems that are not here: `podium data fetch lcb-qwen`.")
    return asked, cells


def aime(data: Path) -> Verdicts:
    """Return what Lighteval recorded of four models."""
    rows = list(check_rows(_AimeReply, plain_or_packed(data / REPLIES)))
    cells = [
        MatrixCell(one.problem_id, one.model, one.metric, tokens_out=float(one.out_tokens))
        for one in rows
    ]
    ids = [f"aime25-{paper}-{number}" for paper in ("I", "II") for number in range(1, 16)]
    return [MatrixQuestion(id, "", "integer", group=id.rpartition("-")[0]) for id in ids], cells


def routerbench(data: Path) -> Verdicts:
    """Return the verdicts and prices of RouterBench's slices."""
    return routerbench_rows(sorted((data / ROUTERBENCH_FOLDER).glob("*.csv*")))


PACKED: Mapping[str, Callable[[Path], Verdicts]] = {
    "lcb-leaderboard-v6": lambda data: leaderboard(data, "v6"),
    "lcb-leaderboard-v5": lambda data: leaderboard(data, "v5"),
    "lcb-leaderboard-v1": lambda data: leaderboard(data, "v1"),
    "aime25": aime,
    "routerbench": routerbench,
}


def pack_verdicts(asked: Sequence[MatrixQuestion], cells: Sequence[MatrixCell]) -> bytes:
    """Return the figures alone as CSV: a row a question, and a column a model and figure."""
    models = dict.fromkeys(cell.worker for cell in cells)
    known = {
        what: {(cell.question, cell.worker): getattr(cell, name) for cell in cells}
        for what, name in FIGURES
        if any(getattr(cell, name) is not None for cell in cells)
    }
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*ABOUT, *(model + what for model in models for what in known)])
    for one in asked:
        found = (figures.get((one.id, model)) for model in models for figures in known.values())
        row = ("" if one is None else repr(one).removesuffix(".0") for one in found)
        writer.writerow([*(getattr(one, name) for name in ABOUT), *row])
    return out.getvalue().encode()


def main() -> None:
    """Write every file of baselines/verdicts."""
    for name, read in PACKED.items():
        content = pack_verdicts(*read(Path(sys.argv[1])))
        packed_path(name).write_bytes(gzip.compress(content, 9, mtime=0))


if __name__ == "__main__":
    main()
