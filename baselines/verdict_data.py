"""Recorded verdicts of others as matrices: what routers learn from and are judged on."""

import hashlib
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import UserError
from harness.files import DOCUMENT, parse_json, read_limited, read_rows, unpack_gzip
from harness.learning.matrix import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
    matrix_of_logs,
)
from harness.records import Kind, Question

# § What importers share: a folder of data, rows that are checked, digests of files.
# §
# § Bytes of others come in here: every row is checked against the columns that an importer
# § reads, and a
# § message names the file, the line and the field, never a value.


RowT = TypeVar("RowT", bound=BaseModel)


class VerdictRow(BaseModel):
    """A row of somebody's file: other columns are passed over, those named must be there."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """What the user and the command line hand to an importer."""

    data: Path
    """The folder of local data."""
    path: str = ""
    """What stands behind the colon: `routerbench:PATH`."""
    gpqa: Callable[[], Sequence[Question]] | None = None
    """How GPQA's questions are opened, in memory; None where they cannot be."""


@dataclass(frozen=True, slots=True)
class VerdictSource:
    """A source of recorded verdicts that `podium route` knows by name."""

    name: str
    holds: str
    """Workers, questions, what is known of costs; for `podium route --list`."""
    read: Callable[[SourceRequest], Matrix]
    path: str = ""
    """What stands behind the colon, e.g. `DIR`; `[SLICE]` where it may be left out."""
    exam: str = ""
    """The suite that asks the same questions; empty where there is none, or several."""


def check_rows(model: type[RowT], path: Path) -> Iterator[RowT]:
    """Yield the rows of a JSONL or CSV file (also .gz); UserError says what is wrong where."""
    for line, row in read_rows(path):
        yield check_row(model, row, f"{path}, line {line}")


def check_row(model: type[RowT], row: object, where: str) -> RowT:
    """Return a row as `model`; UserError names the first field that is absent or no such thing."""
    try:
        return model.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "it"
        raise UserError(f"{where}: {field}: {first['msg']}.") from None


def check_json(model: type[RowT], path: Path) -> RowT:
    """Return a JSON file (also .gz) as `model`; UserError when it is absent, damaged or another."""
    try:
        content = read_limited(path, DOCUMENT)
        text = unpack_gzip(content) if path.suffix == ".gz" else content
        return check_row(model, parse_json(text), str(path))
    except FileNotFoundError:
        raise UserError(f"There is no file {path} (PODIUM_DATA names another folder).") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise UserError(f"{path} cannot be read as JSON: {type(error).__name__}.") from None


def pin_files(*paths: Path) -> str:
    """Return the names of some files with the heads of their digests.

    Raises UserError when one is absent.
    """
    found: list[str] = []
    for path in paths:
        if not path.is_file():
            raise UserError(f"There is no file {path} (PODIUM_DATA names another folder).")
        found.append(f"{path.name}@sha256:{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}")
    return ", ".join(found)


# § LiveCodeBench's leaderboard: pass@1 of 16 models on each of the 1,055 questions of release
# § v6.
# §
# § Scores are means over the leaderboard's draws (10 for most models), rounded by it to
# § tenths; it
# § keeps no replies, tokens or costs. Texts and contest dates are those of the problems, by
# § id.


SCORES = "lcb_leaderboard_matrix/performances_generation_v6_16models_1055q.json.gz"
LIVECODEBENCH_PROBLEMS = "lcb_problems/lcb_v6_1055_problems_assembled.jsonl.gz"
LEADERBOARD_NOTE = "Scores are the leaderboard's pass@1 of 10 draws or fewer; it recorded no costs."


class _Performance(VerdictRow):
    question_id: str
    model: str
    score: float = Field(alias="pass@1", ge=0, le=100)


class _Board(VerdictRow):
    performances: tuple[_Performance, ...]


class _LiveCodeBenchProblem(VerdictRow):
    question_id: str
    question_title: str
    question_content: str
    platform: str
    contest_date: str


def read_leaderboard(given: SourceRequest) -> Matrix:
    """Return the leaderboard's matrix; UserError when it or the problems are absent or damaged."""
    scores, problems = given.data / SCORES, given.data / LIVECODEBENCH_PROBLEMS
    pin = pin_files(scores, problems)
    board = check_json(_Board, scores)
    asked = [_livecodebench_question(row) for row in check_rows(_LiveCodeBenchProblem, problems)]
    _refuse_unknown(board, asked, problems)
    cells = [MatrixCell(one.question_id, one.model, one.score / 100) for one in board.performances]
    about = MatrixSource(
        "lcb-leaderboard",
        f"LiveCodeBench/livecodebench.github.io, release_v6 leaderboard: {pin}",
        notes=(LEADERBOARD_NOTE,),
        drawn=10,
    )
    return assemble_matrix(about, asked, cells)


def _livecodebench_question(row: _LiveCodeBenchProblem) -> MatrixQuestion:
    return MatrixQuestion(
        id=row.question_id,
        text=f"{row.question_title}\n\n{row.question_content}",
        kind="program",
        date=row.contest_date[:10],
        group=row.platform,
    )


def _refuse_unknown(board: _Board, asked: list[MatrixQuestion], problems: Path) -> None:
    known = {one.id for one in asked}
    for one in board.performances:
        if one.question_id not in known:
            raise UserError(f"{problems} has no problem {one.question_id} of the leaderboard.")


LEADERBOARD = VerdictSource(
    "lcb-leaderboard",
    "LiveCodeBench v6: 16 models x 1,055 questions, pass@1 of up to 10 draws, contest dates; "
    "no costs",
    read_leaderboard,
    exam="livecodebench",
)


# § GPQA-Diamond: who was right on which of the 198 questions, by record id and without any
# § text.
# §
# § What counts is declared here. Counted: workers of the sources in `COUNTED`, each with at
# § least two
# § full passes over the 198 records, averaged; a rotation of the answers is a draw, as is a
# § run or an
# § epoch. Left out: gpt-4o and claude-3.5-sonnet of suzgunmirac/dynamic-cheatsheet (two
# § prompts are no
# § two draws, and they name 197 records), and Saturn-7B, R1-distill-70b and gemini-2.0-flash-
# § thinking
# § (one pass each, 196 or 197 records).
# §
# § The authors ask that no question appears in plain text: the texts come through a callable
# § that
# § opens the encrypted archive in memory, and the matrix says that it must not be published.


VERDICTS = "gpqa/gpqa_diamond_verdicts_redacted.csv.gz"
EPOCHS = "gpqa/gpqa_diamond_scores_evalconfidence.csv"
COUNTED = {
    "klukosiute/gpqa-eval": "{}",
    "HaveFunWithAI/gpqa_diamond_exp": "{} (HaveFunWithAI)",
}
"""Sources that count, and how their workers are called here: several ran models of one name."""
QUESTIONS = 198
LEAST_PASSES = 2
GPQA_NOTE = (
    "Scores are means of 4, 5 or 10 draws, of three sources with prompts of their own: workers "
    "differ by prompt and date too. No costs were recorded."
)


class _Verdict(VerdictRow):
    source: str
    model: str
    record_id: str = Field(min_length=1)
    correct: int = Field(ge=0, le=1)


class _Epoch(VerdictRow):
    item_id: str = Field(min_length=1)
    model_id: str
    score: float = Field(ge=0, le=1)


def read_gpqa(given: SourceRequest) -> Matrix:
    """Return the matrix of the declared workers; UserError when a file is absent or not whole."""
    verdicts, epochs = given.data / VERDICTS, given.data / EPOCHS
    pin = pin_files(verdicts, epochs)
    cells = [*_gpqa_cells(verdicts), *_epoch_cells(epochs)]
    _refuse_partial(cells, verdicts)
    questions, reason = _gpqa_questions(given)
    about = MatrixSource(
        "gpqa-verdicts",
        f"klukosiute/gpqa-eval, HaveFunWithAI/gpqa_diamond_exp, stephlinds/evalconfidence: {pin}",
        notes=(GPQA_NOTE, reason) if reason else (GPQA_NOTE,),
        publishable=False,
    )
    return assemble_matrix(about, _gpqa_asked(cells, questions), cells)


def _gpqa_cells(path: Path) -> Iterator[MatrixCell]:
    for row in check_rows(_Verdict, path):
        if row.source in COUNTED:
            yield MatrixCell(
                row.record_id, COUNTED[row.source].format(row.model), float(row.correct)
            )


def _epoch_cells(path: Path) -> Iterator[MatrixCell]:
    for row in check_rows(_Epoch, path):
        yield MatrixCell(row.item_id, f"{row.model_id} (evalconfidence)", row.score)


def _refuse_partial(cells: Sequence[MatrixCell], path: Path) -> None:
    """Raise UserError when a declared worker has not passed all questions often enough."""
    passes = Counter((cell.worker, cell.question) for cell in cells)
    for worker in dict.fromkeys(cell.worker for cell in cells):
        counts = [n for (name, _), n in passes.items() if name == worker]
        if len(counts) != QUESTIONS or min(counts) < LEAST_PASSES:
            raise UserError(
                f"{path} or the file beside it is not whole: {worker} has {len(counts)} records, "
                f"at the least {min(counts)} times; {QUESTIONS} records are due, each "
                f"{LEAST_PASSES} times or more."
            )


def _gpqa_questions(given: SourceRequest) -> tuple[dict[str, Question], str]:
    """Return the questions by record id, or none and why."""
    if given.gpqa is None:
        return {}, "No question texts here, so no router can learn."
    try:
        return {question.id: question for question in given.gpqa()}, ""
    except UserError as error:
        return {}, f"No question texts, so no router can learn: {error}"


def _gpqa_asked(
    cells: Sequence[MatrixCell], questions: dict[str, Question]
) -> list[MatrixQuestion]:
    return [
        MatrixQuestion(
            id=id,
            text=questions[id].text if id in questions else "",
            kind="choice",
            group=questions[id].topic if id in questions else "",
        )
        for id in sorted({cell.question for cell in cells})
    ]


GPQA = VerdictSource(
    "gpqa-verdicts",
    "GPQA-Diamond: 17 models x 198 questions, 4 to 10 draws, texts opened in memory only; no costs",
    read_gpqa,
    exam="gpqa-diamond",
)


# § AIME 2025: four real models on 30 problems, one draw each, with their output tokens.
# §
# § The verdicts are Lighteval's, as recorded beside the replies (gtxygyzb/Saturn-code);
# § nobody paid
# § for the calls, so there are no dollars. Thirty questions with one draw decide nothing.


AIME_REPLIES = "saturn_lighteval/aime25_4models.jsonl.gz"
AIME_PROBLEMS = "aime25_problems/aime25.jsonl"
AIME_NOTE = "One draw of each of 30 questions: one question is 3.3 points, and nothing is decided."


class _AimeReply(VerdictRow):
    model: str
    problem_id: str
    metric: float = Field(ge=0, le=1)
    out_tokens: int = Field(ge=0)


class _AimeProblem(VerdictRow):
    id: str
    problem: str


def read_aime(given: SourceRequest) -> Matrix:
    """Return the matrix of the four models; UserError when a file is absent or damaged."""
    replies, problems = given.data / AIME_REPLIES, given.data / AIME_PROBLEMS
    pin = pin_files(replies, problems)
    asked = [
        MatrixQuestion(id=row.id, text=row.problem, kind="integer", group=row.id.rpartition("-")[0])
        for row in check_rows(_AimeProblem, problems)
    ]
    known = {one.id for one in asked}
    cells: list[MatrixCell] = []
    for row in check_rows(_AimeReply, replies):
        if row.problem_id not in known:
            raise UserError(f"{problems} has no problem {row.problem_id}, which {replies} names.")
        tokens = float(row.out_tokens)
        cells.append(MatrixCell(row.problem_id, row.model, row.metric, tokens_out=tokens))
    about = MatrixSource(
        "aime25", f"gtxygyzb/Saturn-code at 2cc9d746ed33: {pin}", notes=(AIME_NOTE,)
    )
    return assemble_matrix(about, asked, cells)


AIME25 = VerdictSource(
    "aime25",
    "AIME 2025: 4 small models x 30 questions, 1 draw, output tokens; no dollars",
    read_aime,
    exam="aime25",
)


# § RouterBench (withmartian/routerbench): 11 models, a score and the dollars of each reply.
# §
# § Read are its rows as CSV, `<model>` beside `<model>|total_cost`; the pickles it is
# § published as run
# § code when they are opened, and are refused. The slices in the data folder were cut by
# § RouterDC,
# § which also declared a train and a test file of each.
# §
# § Not taken over: RouterBench's price table, which divides by ten million (reference:
# § baselines, 8);
# § the dollars here are those of its rows. Every prompt of a slice begins with the same
# § instruction
# § and examples; a router is given what differs.


ROUTERBENCH_FOLDER = "routerbench_zs"
COST = "|total_cost"
ROUTERBENCH_KINDS: dict[str, Kind] = {"mbpp": "program", "arc-challenge": "choice"}
_SPLIT = re.compile(r"(?P<slice>.+)_(?P<split>train|test)\.csv(\.gz)?")
Declared = Literal["", "train", "eval"]
_FIRST = ("sample_id", "prompt", "eval_name")


@dataclass(frozen=True, slots=True)
class _RouterBenchRows:
    """The rows of some files."""

    asked: list[MatrixQuestion]
    cells: list[MatrixCell]


def read_routerbench(given: SourceRequest) -> Matrix:
    """Return the matrix of a CSV file, of a folder of them, or of a slice of the data folder.

    UserError for a pickle, when there is no such file, and for rows that are none of RouterBench's.
    """
    paths = _routerbench_paths(given)
    read = _routerbench_rows(paths)
    slices = sorted({one.group for one in read.asked})
    about = MatrixSource(
        "routerbench:" + ",".join(slices),
        f"withmartian/routerbench, slices of RouterDC: {pin_files(*paths)}",
    )
    return assemble_matrix(about, _without_beginnings(read.asked), read.cells)


def _routerbench_paths(given: SourceRequest) -> list[Path]:
    own = Path(given.path)
    if own.suffix in {".pkl", ".pickle"}:
        raise UserError(
            f"{own} is a pickle, which runs code when it is opened: save its rows as CSV where you "
            "trust it, and name that file."
        )
    if given.path and own.is_file():
        return [own]
    folder = own if given.path and own.is_dir() else given.data / ROUTERBENCH_FOLDER
    wanted = f"{given.path}_" if given.path and folder != own else ""
    found = sorted(path for path in folder.glob("*.csv*") if path.name.startswith(wanted))
    if not found:
        raise UserError(
            f"There is no RouterBench file {given.path or folder}: name a CSV file, a folder of "
            f"them, or a slice in {given.data / ROUTERBENCH_FOLDER}."
        )
    return found


def _routerbench_rows(paths: Sequence[Path]) -> _RouterBenchRows:
    rows: list[tuple[dict[str, Any], Declared, str]] = [
        (row, _declared(path), f"{path}, line {n}") for path in paths for n, row in read_rows(path)
    ]
    if not rows:
        raise UserError(f"{paths[0]} has no rows.")
    models = [name.removesuffix(COST) for name in rows[0][0] if name.endswith(COST)]
    if not models:
        raise UserError(f"{paths[0]} has no column that ends in {COST!r}: it is no RouterBench.")
    often = Counter(str(row.get("sample_id")) for row, _, _ in rows)
    found = _RouterBenchRows([], [])
    for row, split, where in rows:
        asked = _routerbench_question(row, split, where)
        if often[asked.id] > 1:  # other prompts under one id: a digest tells them apart
            asked = replace(asked, id=f"{asked.id}#{_digest(asked.text)}")
        found.asked.append(asked)
        found.cells.extend(_routerbench_cell(row, asked.id, model, where) for model in models)
    return found


def _declared(path: Path) -> Declared:
    match = _SPLIT.fullmatch(path.name)
    if match is None:
        return ""
    return "train" if match["split"] == "train" else "eval"


def _routerbench_question(row: dict[str, Any], split: Declared, where: str) -> MatrixQuestion:
    lacking = [name for name in _FIRST if not str(row.get(name) or "").strip()]
    if lacking:
        raise UserError(f"{where}: its {lacking[0]!r} is absent or empty.")
    group = str(row["eval_name"])
    return MatrixQuestion(
        id=str(row["sample_id"]),
        text=_prompt_text(str(row["prompt"])),
        kind=ROUTERBENCH_KINDS.get(group, "text"),
        group=group,
        split=split,
    )


def _routerbench_cell(row: dict[str, Any], id: str, model: str, where: str) -> MatrixCell:
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


def _prompt_text(prompt: str) -> str:
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


ROUTERBENCH = VerdictSource(
    "routerbench",
    "RouterBench rows as CSV: 11 models with scores and dollars; the slices arc_challenge (1,484 "
    "questions) and mbpp (427) with a declared split",
    read_routerbench,
    path="[SLICE or PATH]",
)


# § RouterArena's cached results: two models on 809 mixed questions, with tokens and dollars.
# §
# § Scores are of several metrics (choices, exact match, METEOR, tests passed); a few lie
# § below 0 and
# § count as 0, which a note says. Dollars are RouterArena's, at the price table beside its
# § results;
# § its token counts were not checked against a provider (its own threads say so).


ROUTERARENA_FOLDER = "routerarena_cached"
ROUTERARENA_FILES = ("claude-3-haiku-20240307.jsonl.gz", "gemini-2.0-flash-001.jsonl.gz")
ROUTERARENA_KINDS: dict[str, Kind] = {"mcq_accuracy": "choice", "code_accuracy": "program"}
ROUTERARENA_NOTE = "Scores are of several metrics, not all of them right or wrong; one draw each."


class _Tokens(VerdictRow):
    output_tokens: int = Field(ge=0)


class _Result(VerdictRow):
    score: float | None = Field(default=None, le=1)
    metric: str
    inference_cost: float | None = None


class _RouterArenaRow(VerdictRow):
    global_index: str
    question: str
    llm_selected: str
    success: bool = True
    token_usage: _Tokens | None = None
    evaluation_result: _Result


def read_routerarena(given: SourceRequest) -> Matrix:
    """Return the matrix of the two models; UserError when a file is absent or damaged."""
    paths = [given.data / ROUTERARENA_FOLDER / name for name in ROUTERARENA_FILES]
    pin = pin_files(*paths)
    asked: dict[str, MatrixQuestion] = {}
    cells: list[MatrixCell] = []
    below = 0
    for path in paths:
        for row in check_rows(_RouterArenaRow, path):
            _join(asked, row, path)
            below += (row.evaluation_result.score or 0) < 0
            cells.append(_routerarena_cell(row))
    notes = [ROUTERARENA_NOTE]
    if below:
        notes.append(f"Scores below 0 count as 0: {below} of {len(cells)}.")
    about = MatrixSource(
        "routerarena", f"RouteWorks/RouterArena at 4714a9ad73e8: {pin}", notes=tuple(notes)
    )
    return assemble_matrix(about, list(asked.values()), cells)


def _join(asked: dict[str, MatrixQuestion], row: _RouterArenaRow, path: Path) -> None:
    one = MatrixQuestion(
        id=row.global_index,
        text=row.question,
        kind=ROUTERARENA_KINDS.get(row.evaluation_result.metric, "text"),
        group=row.global_index.rpartition("_")[0],
    )
    if asked.setdefault(one.id, one) != one:
        raise UserError(f"{path}: question {one.id} is another one in {ROUTERARENA_FILES[0]}.")


def _routerarena_cell(row: _RouterArenaRow) -> MatrixCell:
    """Return a draw; a generation that failed has no score, and what it cost is unknown."""
    result = row.evaluation_result
    if not row.success or result.score is None:
        return MatrixCell(row.global_index, row.llm_selected, None)
    tokens = row.token_usage
    return MatrixCell(
        row.global_index,
        row.llm_selected,
        max(0.0, result.score),
        usd=result.inference_cost or None,  # nobody answers for nothing: 0 is unknown
        tokens_out=None if tokens is None else float(tokens.output_tokens),
    )


ROUTERARENA = VerdictSource(
    "routerarena",
    "RouterArena: 2 models x 809 mixed questions, 1 draw, tokens and dollars",
    read_routerarena,
)


# § LLMRouterBench (ynulihao/LLMRouterBench): result files of many models on many data sets.
# §
# § Its layout, from its README: DIR/<dataset>/<split>/<model>/<name>-<YYYYmmdd_HHMMSS>.json,
# § each file
# § one model's records of one data set; of several the newest counts, and none marked `demo`.
# § Nothing
# § of it lies in our data folder: the release is on its authors' pages.
# §
# § Where its own loader takes 0, this says unknown. A record without a score, or without any
# § output
# § token and any output, is a generation that failed: no score, no dollars. A cost of 0 is a
# § model
# § that nobody priced (its small models ran on the authors' machines).


_STAMP = re.compile(r"(\d{8}_\d{6})\.json$")
_NewestFiles = dict[tuple[str, str, str], tuple[str, Path, "_File"]]


class _Record(VerdictRow):
    index: int | str
    origin_query: str | None = None
    prompt: str | None = None
    score: float | None = Field(default=None, ge=0, le=1)
    cost: float | None = Field(default=None, ge=0)
    completion_tokens: float | None = Field(default=None, ge=0)
    prediction: Any = None
    raw_output: Any = None

    @property
    def text(self) -> str:
        """What was asked, without the template around it where both are there."""
        return self.origin_query or self.prompt or ""

    @property
    def failed(self) -> bool:
        """Whether nothing came back, or nobody graded it."""
        silent = not (self.completion_tokens or self.prediction or self.raw_output)
        return self.score is None or silent


class _File(VerdictRow):
    dataset_name: str
    split: str
    model_name: str
    demo: bool = False
    records: tuple[_Record, ...]


def read_llmrouterbench(given: SourceRequest) -> Matrix:
    """Return the matrix of a directory of result files.

    UserError when there are none, for a damaged one, and when two files of a data set disagree on
    what a question is.
    """
    folder = Path(given.path)
    if not given.path or not folder.is_dir():
        raise UserError(
            f"There is no directory {given.path or 'named'}: `podium route llmrouterbench:DIR` "
            "reads the unpacked release, DIR/<dataset>/<split>/<model>/*.json."
        )
    files = _newest(folder)
    asked: dict[str, MatrixQuestion] = {}
    cells: list[MatrixCell] = []
    for _, path, file in files.values():
        for record in file.records:
            one = _llmrouterbench_question(file, record, path)
            if asked.setdefault(one.id, one) != one:
                raise UserError(f"{path}: question {one.id} is another one in an earlier file.")
            cells.append(_llmrouterbench_cell(one.id, file.model_name, record))
    failed = sum(cell.score is None for cell in cells)
    notes = [f"{failed} of {len(cells)} generations failed and have no score."] if failed else []
    source = f"ynulihao/LLMRouterBench, {len(files)} result files"
    return assemble_matrix(
        MatrixSource("llmrouterbench", source, notes=tuple(notes)), list(asked.values()), cells
    )


def _newest(folder: Path) -> _NewestFiles:
    """Return, per data set, split and model, the newest file that is no demonstration."""
    found: _NewestFiles = {}
    for path, file in _files(folder):
        key = (file.dataset_name, file.split, file.model_name)
        stamp = _STAMP.search(path.name)
        entry = (stamp[1] if stamp else "", path, file)
        if key not in found or entry[:2] > found[key][:2]:
            found[key] = entry
    if not found:
        raise UserError(f"{folder} holds no result file of LLMRouterBench (JSON, no demo).")
    return dict(sorted(found.items()))


def _files(folder: Path) -> Iterator[tuple[Path, _File]]:
    for path in sorted(folder.rglob("*.json")):
        file = check_json(_File, path)
        if not file.demo:
            yield path, file


def _llmrouterbench_question(file: _File, record: _Record, path: Path) -> MatrixQuestion:
    if not record.text.strip():
        raise UserError(f"{path}: record {record.index} has no question.")
    return MatrixQuestion(
        id=f"{file.dataset_name}/{file.split}/{record.index}",
        text=record.text,
        group=file.dataset_name,
    )


def _llmrouterbench_cell(id: str, model: str, record: _Record) -> MatrixCell:
    if record.failed:
        return MatrixCell(id, model, None)
    return MatrixCell(
        id,
        model,
        record.score,
        usd=record.cost or None,
        tokens_out=record.completion_tokens or None,
    )


LLMROUTERBENCH = VerdictSource(
    "llmrouterbench",
    "LLMRouterBench result files (not in the data folder): scores, tokens, dollars as found",
    read_llmrouterbench,
    path="DIR",
)


# § Recorded verdicts of others as matrices: what routers learn from and are judged on, today.
# §
# § One small file a source, a registry by name. Reading order: `reading.py` (what importers
# § share),
# § then any importer. Not here: averaging draws into a `Matrix` (harness/learning/matrix.py),
# § splits and judging (baselines/judging/), routers (baselines/routing/).


__all__ = ["SOURCES", "SourceRequest", "VerdictSource", "read_matrix"]


def _read_logs(given: SourceRequest) -> Matrix:
    if not given.path:
        raise UserError("Name the directory that `podium run` wrote: `podium route logs:DIR`.")
    return matrix_of_logs([Path(given.path)])


LOGS = VerdictSource(
    "logs",
    "our own logs: every worker that sat an exam alone, with list prices and tokens",
    _read_logs,
    path="DIR",
)
SOURCES: Mapping[str, VerdictSource] = {
    source.name: source
    for source in (LEADERBOARD, GPQA, AIME25, ROUTERBENCH, ROUTERARENA, LLMROUTERBENCH, LOGS)
}


def read_matrix(named: str, given: SourceRequest) -> Matrix:
    """Return the matrix of `NAME` or `NAME:PATH`.

    UserError for a name that is not known, a path where none belongs, and all an importer refuses.
    """
    name, colon, path = named.partition(":")
    if name not in SOURCES:
        raise UserError(f"There is no source {name!r}; there are: {', '.join(SOURCES)}.")
    source = SOURCES[name]
    if colon and not source.path:
        raise UserError(f"Source {name} takes no path: `podium route {name}`.")
    return source.read(replace(given, path=path))
