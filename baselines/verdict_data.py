"""Grades recorded by others, as (question, model) matrices, to train and evaluate routers on."""

import hashlib
import math
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import AliasPath, BaseModel, ConfigDict, Field, RootModel

from podium.harness.errors import UserError
from podium.harness.files import (
    DOCUMENT,
    RowT,
    check_row,
    check_rows,
    parse_json,
    plain_or_packed,
    read_limited,
    read_rows,
    unpack_gzip,
)
from podium.harness.learning import (
    Matrix,
    MatrixCell,
    MatrixQuestion,
    MatrixSource,
    assemble_matrix,
)
from podium.harness.records import Kind, Question

Verdicts = tuple[list[MatrixQuestion], list[MatrixCell]]


class VerdictRow(BaseModel):
    """Base class of rows in other projects' files: columns without a field are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


@dataclass(frozen=True, slots=True)
class SourceRequest:
    """What a function needs to read one source of recorded grades."""

    data: Path  # the folder of local data
    path: str = ""  # the text after the colon in `routerbench:PATH`
    gpqa: Callable[[], Sequence[Question]] | None = None
    """Reads GPQA's encrypted questions into memory; None if they are not available."""


def check_json(model: type[RowT], path: Path) -> RowT:
    """Read a JSON file, plain or .gz, and validate it as `model`; UserError if that fails."""
    try:
        content = read_limited(path, DOCUMENT)
        text = unpack_gzip(content) if path.suffix == ".gz" else content
        return check_row(model, parse_json(text), str(path))
    except FileNotFoundError:
        raise UserError(f"There is no file {path} (PODIUM_DATA can name another folder).") from None
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = error if isinstance(error, ValueError) else type(error).__name__
        raise UserError(f"{path} cannot be read as JSON: {reason}. Restore the file.") from None


def pin_files(*paths: Path, fetch: str = "") -> str:
    """Return each file's name and first 12 digits of its sha256; UserError if one is absent."""
    pins: list[str] = []
    for path in paths:
        if not path.is_file():
            way = f" Download it with `podium data fetch {fetch}`." if fetch else ""
            raise UserError(f"There is no file {path} (PODIUM_DATA can name another folder).{way}")
        pins.append(f"{path.name}@sha256:{hashlib.sha256(path.read_bytes()).hexdigest()[:12]}")
    return ", ".join(pins)


def _join(by_id: dict[str, MatrixQuestion], row: MatrixQuestion, path: Path, earlier: str) -> None:
    """Add a question to `by_id`; UserError if `by_id` has a different question with this id."""
    if by_id.setdefault(row.id, row) != row:
        raise UserError(
            f"{path}: question {row.id} differs from that of {earlier}. Use files of one release."
        )


# Grades in the package: ids, scores, dollars and tokens, without question texts.
# verdicts/PROVENANCE.toml lists their sources; tests/baselines/pack_verdicts.py builds the files.
COST = "|total_cost"
FIGURES = (("", "score"), (COST, "usd"), ("|tokens_out", "tokens_out"))
"""Pairs: suffix of a column's name, after the model's name, and the `MatrixCell` field it fills."""
ABOUT = ("id", "kind", "date", "group", "split")
CORRECT = "Correct the cell, or empty it if the value is unknown."  # end of an error message


def packed_path(name: str) -> Path:
    """Return the path of a source's compressed grades, which are part of the package."""
    return Path(__file__).with_name("verdicts") / f"{name}.csv.gz"


def packed_verdicts(name: str) -> Verdicts:
    """Return the questions (without texts) and grades of a source that is part of the package."""
    questions, cells, path = list[MatrixQuestion](), list[MatrixCell](), packed_path(name)
    for n, row in read_rows(path):
        questions.append(MatrixQuestion(text="", **{key: row[key] for key in ABOUT}))
        models = (head for head in row if head not in ABOUT and "|" not in head)
        cells += [_cell(row, row["id"], model, f"{path}, line {n}") for model in models]
    return questions, cells


def _cell(row: dict[str, Any], id: str, model: str, place: str) -> MatrixCell:
    """Return one model's score, dollars and tokens in a row; UserError if a number is invalid."""
    figures: list[float | None] = []
    for column in (model + suffix for suffix, _ in FIGURES):
        text = str(row.get(column) or "").strip()
        try:
            value = float(text) if text else math.nan
        except ValueError:
            raise UserError(f"{place}: its {column!r} is not a number. {CORRECT}") from None
        if value < 0 or math.isinf(value):
            raise UserError(f"{place}: its {column!r} is negative or infinite. {CORRECT}")
        figures.append(None if math.isnan(value) else value)
    score, usd, tokens = figures
    if score is not None and score > 1:
        raise UserError(f"{place}: the score of {model} is outside 0 to 1. {CORRECT}")
    return MatrixCell(id, model, score, usd or None, tokens)  # a cost of 0 means unknown


def _packed_matrix(
    name: str, about: MatrixSource, texts: Mapping[str, str], fetch: str, group: str = ""
) -> Matrix:
    """Return a matrix (questions by models) of recorded grades that the package holds.

    `group` selects a subset of its questions by name (empty: all). If `texts` (question id -> text)
    is empty, the matrix gets a note that `podium data fetch` downloads them.
    """
    questions, cells = packed_verdicts(name)
    if group:
        questions = [q for q in questions if q.group == group]
        ids = {q.id for q in questions}
        cells = [cell for cell in cells if cell.question in ids]
    note = f"No question texts here, so no router can learn: `podium data fetch {fetch}` gets them."
    source, notes = f"{about.source}: {pin_files(packed_path(name))}", (*about.notes, note)
    if texts:
        questions, notes = [replace(q, text=texts[q.id]) for q in questions], about.notes
    return assemble_matrix(replace(about, source=source, notes=notes), questions, cells)


# LiveCodeBench's leaderboard. Scores are means over draws (10 for most models).
LIVECODEBENCH_TEXTS = (
    "lcb_qwen_xiangww/Qwen2.5-Ins-7B-ZeroShotCoT__Scenario.codegeneration_1_0.2_eval_all.json"
)
BOARDS = ("v6", "v5", "v1")


class LiveCodeBenchProblem(VerdictRow):
    """A problem of LiveCodeBench, as stored in a fork's result file."""

    question_id: str
    question_title: str
    question_content: str
    platform: str
    contest_date: str


class _Problems(RootModel[tuple[LiveCodeBenchProblem, ...]]):
    """A JSON file with all problems of a LiveCodeBench release."""


def livecodebench_problems(data: Path) -> tuple[LiveCodeBenchProblem, ...]:
    """Return LiveCodeBench's problems from the data folder; empty if their file is absent there."""
    path = plain_or_packed(data / LIVECODEBENCH_TEXTS)
    return check_json(_Problems, path).root if path.is_file() else ()


def read_leaderboard(request: SourceRequest) -> Matrix:
    """Return the grade matrix of a LiveCodeBench leaderboard; UserError for an unknown release."""
    version = request.path or BOARDS[0]
    if version not in BOARDS:
        raise UserError(f"There is no leaderboard {version!r}; there are: {', '.join(BOARDS)}.")
    texts = {
        row.question_id: f"{row.question_title}\n\n{row.question_content}"
        for row in livecodebench_problems(request.data)
    }
    source = f"LiveCodeBench/livecodebench.github.io, release_{version} leaderboard"
    note = "Scores are the leaderboard's pass@1 of 10 draws or fewer; it recorded no costs."
    about = MatrixSource("lcb-leaderboard", source, notes=(note,), drawn=10)
    return _packed_matrix(f"lcb-leaderboard-{version}", about, texts, "lcb-qwen")


# GPQA-Diamond: grades of models on its 198 questions, by record id and without any text. Models
# with at least two complete passes are used; a run, an epoch or a rotation of the options counts as
# a draw. Left out: gpt-4o and claude-3.5-sonnet of suzgunmirac/dynamic-cheatsheet (their two passes
# have different prompts, and only 197 records), and Saturn-7B, R1-distill-70b and
# gemini-2.0-flash-thinking (one pass each, 196 or 197 records). The authors ask that no question
# appears in plain text: the encrypted archive is opened in memory.
VERDICTS = "gpqa/gpqa_diamond_verdicts_redacted.csv.gz"
EPOCHS = "gpqa/gpqa_diamond_scores_evalconfidence.csv"
COUNTED = {"klukosiute/gpqa-eval": "{}", "HaveFunWithAI/gpqa_diamond_exp": "{} (HaveFunWithAI)"}
"""Source that is used -> format of its models' names, which tells equal names of both apart."""
QUESTIONS, LEAST_PASSES = 198, 2


class _Verdict(VerdictRow):
    source: str
    model: str
    record_id: str = Field(min_length=1)
    correct: int = Field(ge=0, le=1)


class _Epoch(VerdictRow):
    item_id: str = Field(min_length=1)
    model_id: str
    score: float = Field(ge=0, le=1)


def read_gpqa(request: SourceRequest) -> Matrix:
    """Return the grade matrix of GPQA-Diamond; UserError if a file is absent or incomplete."""
    verdicts, epochs = request.data / VERDICTS, request.data / EPOCHS
    pin = pin_files(verdicts, epochs)
    cells = [
        MatrixCell(row.record_id, COUNTED[row.source].format(row.model), float(row.correct))
        for row in check_rows(_Verdict, verdicts)
        if row.source in COUNTED
    ]
    for row in check_rows(_Epoch, epochs):
        cells.append(MatrixCell(row.item_id, f"{row.model_id} (evalconfidence)", row.score))
    _refuse_partial(cells, verdicts)
    questions, reason = dict[str, Question](), "No question texts here, so no router can learn."
    if request.gpqa:
        try:
            questions, reason = {question.id: question for question in request.gpqa()}, ""
        except UserError as error:
            reason = f"No question texts, so no router can learn: {error}"
    note = (
        "Scores are means of 4, 5 or 10 draws, of three sources with prompts of their own: workers "
        "differ by prompt and date too. No costs were recorded."
    )
    about = MatrixSource(
        "gpqa-verdicts",
        f"klukosiute/gpqa-eval, HaveFunWithAI/gpqa_diamond_exp, stephlinds/evalconfidence: {pin}",
        notes=(note, reason) if reason else (note,),
        publishable=False,
    )
    blank = Question("", "", "choice")
    texts = {id: questions.get(id, blank) for id in sorted({cell.question for cell in cells})}
    rows = [MatrixQuestion(id, q.text, "choice", group=q.topic) for id, q in texts.items()]
    return assemble_matrix(about, rows, cells)


def _refuse_partial(cells: Sequence[MatrixCell], path: Path) -> None:
    passes = defaultdict[str, Counter[str]](Counter)
    for cell in cells:
        passes[cell.worker][cell.question] += 1
    for worker, counts in passes.items():
        if len(counts) != QUESTIONS or min(counts.values()) < LEAST_PASSES:
            raise UserError(
                f"{path} or the file beside it is incomplete: {worker} has {len(counts)} of "
                f"{QUESTIONS} questions, with at least {min(counts.values())} answers to each; "
                f"{LEAST_PASSES} are needed. Restore both files."
            )


# AIME 2025. The grades are Lighteval's, as stored with the replies in gtxygyzb/Saturn-code.
AIME_PROBLEMS = "aime25_problems/aime25.jsonl"


class _AimeProblem(VerdictRow):
    id: str
    problem: str


def read_aime(request: SourceRequest) -> Matrix:
    """Return AIME 2025's grade matrix of four models; UserError if the problem file is damaged."""
    problems = request.data / AIME_PROBLEMS
    rows = check_rows(_AimeProblem, problems) if problems.is_file() else ()
    texts = {row.id: row.problem for row in rows}
    note = "One draw of each of 30 questions: one question is 3.3 points, too few to rank workers."
    about = MatrixSource("aime25", "gtxygyzb/Saturn-code at 2cc9d746ed33", notes=(note,))
    return _packed_matrix("aime25", about, texts, "aime25")


# RouterBench (withmartian/routerbench): CSV with columns `<model>` and `<model>|total_cost`. The
# slices (subsets) in the data folder are RouterDC's, each with a train and a test file. Dollars are
# those of the rows; RouterDC's price table is not used, as it divides by ten million.
ROUTERBENCH_FOLDER = "routerbench_zs"
ROUTERBENCH_KINDS: dict[str, Kind] = {"mbpp": "program", "arc-challenge": "choice"}
SPLITS: Mapping[str, Literal["train", "eval"]] = {"train": "train", "test": "eval"}
"""Word in a file's name -> podium's name of the split."""


def read_routerbench(request: SourceRequest) -> Matrix:
    """Return RouterBench's grade matrix: of CSV files if there are any, else of the package."""
    paths = _routerbench_paths(request)
    questions, cells = routerbench_rows(paths) if paths else packed_verdicts("routerbench")
    group = request.path.replace("_", "-") if not paths else ""
    slices = sorted({q.group for q in questions if group in ("", q.group)})
    if not slices:
        raise UserError(
            f"There is no RouterBench file {request.path}. Give a CSV file, a folder of them, or a "
            f"slice in {request.data / ROUTERBENCH_FOLDER}."
        )
    source = "withmartian/routerbench, slices of RouterDC"
    about = MatrixSource(f"routerbench:{','.join(slices)}", source)
    if not paths:
        return _packed_matrix("routerbench", about, {}, "routerbench", group)
    about = replace(about, source=f"{source}: {pin_files(*paths)}")
    return assemble_matrix(about, _without_beginnings(questions), cells)


def _routerbench_paths(request: SourceRequest) -> list[Path]:
    path = Path(request.path)
    if path.suffix in {".pkl", ".pickle"}:
        raise UserError(
            f"{path} is a pickle, which runs code when it is opened. If you trust it, save its "
            "rows as CSV and give that file."
        )
    if request.path and path.is_file():
        return [path]
    folder = path if request.path and path.is_dir() else request.data / ROUTERBENCH_FOLDER
    prefix = f"{request.path}_" if request.path and folder != path else ""
    return sorted(path for path in folder.glob("*.csv*") if path.name.startswith(prefix))


def routerbench_rows(paths: Sequence[Path]) -> Verdicts:
    """Return questions and grades of RouterBench's files; UserError, with the line, if invalid."""
    rows = [(row, f"{path}, line {n}", path.name) for path in paths for n, row in read_rows(path)]
    if not rows:
        raise UserError(f"{paths[0]} has no rows. Give a RouterBench file with rows.")
    models = [name.removesuffix(COST) for name in rows[0][0] if name.endswith(COST)]
    if not models:
        raise UserError(f"{paths[0]} has no column that ends in {COST!r}. Give a RouterBench file.")
    often = Counter(str(row.get("sample_id")) for row, _, _ in rows)
    questions, cells = list[MatrixQuestion](), list[MatrixCell]()
    for row, place, name in rows:
        question = _routerbench_question(row, place, name)
        if often[question.id] > 1:  # several prompts share an id: a digest makes it unique
            digest = hashlib.sha256(question.text.encode()).hexdigest()[:8]
            question = replace(question, id=f"{question.id}#{digest}")
        questions.append(question)
        cells += [_cell(row, question.id, model, place) for model in models]
    return questions, cells


def _routerbench_question(row: dict[str, Any], place: str, file: str) -> MatrixQuestion:
    for name in ("sample_id", "prompt", "eval_name"):
        if not str(row.get(name) or "").strip():
            raise UserError(f"{place}: its {name!r} is missing or empty. Add it or delete the row.")
    id, text, group = str(row["sample_id"]), str(row["prompt"]).strip(), str(row["eval_name"])
    if text[:2] in {"['", '["'} and text[-2:] in {"']", '"]'}:  # Python's repr of ["..."]
        text = text[2:-2].replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"')
    declared = re.search(r"._(train|test)\.csv(\.gz)?$", file)
    split = SPLITS[declared[1]] if declared else ""
    return MatrixQuestion(id, text, ROUTERBENCH_KINDS.get(group, "text"), group=group, split=split)


def _without_beginnings(questions: Sequence[MatrixQuestion]) -> list[MatrixQuestion]:
    """Return the questions without the first lines that all prompts of a slice (subset) share."""
    common: dict[str, int] = {}
    for group in {q.group for q in questions}:
        texts = [q.text for q in questions if q.group == group]
        lowest, highest = min(texts), max(texts)  # all texts share the common prefix of these two
        pairs = enumerate(zip(lowest, highest, strict=False))
        shared = next((i for i, (a, b) in pairs if a != b), 0)
        common[group] = lowest.rfind("\n", 0, shared) + 1
    return [replace(q, text=q.text[common[q.group] :] or q.text) for q in questions]


# RouterArena's cached results. Scores are of several metrics (choices, exact match, METEOR, tests
# passed). Dollars are RouterArena's, by its own price table; its token counts were not checked
# against a provider (as its issues say). A generation that failed has no score.
ROUTERARENA_FOLDER = "routerarena_cached"
ROUTERARENA_FILES = ("claude-3-haiku-20240307.jsonl", "gemini-2.0-flash-001.jsonl")
ROUTERARENA_KINDS: dict[str, Kind] = {"mcq_accuracy": "choice", "code_accuracy": "program"}


def _within(*path: str, **checks: Any) -> Any:
    return Field(None, validation_alias=AliasPath(*path), **checks)


class _RouterArenaRow(VerdictRow):
    global_index: str
    question: str
    llm_selected: str
    success: bool = True
    metric: str = Field(validation_alias=AliasPath("evaluation_result", "metric"))
    score: float | None = _within("evaluation_result", "score", le=1)
    usd: float | None = _within("evaluation_result", "inference_cost")
    tokens: float | None = _within("token_usage", "output_tokens", ge=0)


def read_routerarena(request: SourceRequest) -> Matrix:
    """Return RouterArena's grade matrix: of two models, or of the models in `request.path`."""
    paths = _routerarena_paths(request)
    pin = pin_files(*paths, fetch="routerarena")
    questions, cells, below = dict[str, MatrixQuestion](), list[MatrixCell](), 0
    for path in paths:
        for row in check_rows(_RouterArenaRow, path):
            id, kind = row.global_index, ROUTERARENA_KINDS.get(row.metric, "text")
            question = MatrixQuestion(id, row.question, kind, group=id.rpartition("_")[0])
            _join(questions, question, path, paths[0].name)
            below += (row.score or 0) < 0
            figures = (None, None, None)
            if row.success and row.score is not None:  # a cost of 0 means unknown
                figures = (max(0.0, row.score), row.usd or None, row.tokens)
            cells.append(MatrixCell(id, row.llm_selected, *figures))
    notes = ["Scores are of several metrics, not all of them right or wrong; one draw each."]
    if below:
        notes.append(f"Scores below 0 count as 0: {below} of {len(cells)}.")
    commit = "" if request.path else " at 4714a9ad73e8"
    source = f"RouteWorks/RouterArena{commit}: {pin}"
    about = MatrixSource("routerarena", source, notes=tuple(notes))
    return assemble_matrix(about, list(questions.values()), cells)


def _routerarena_paths(request: SourceRequest) -> list[Path]:
    if not request.path:
        folder = request.data / ROUTERARENA_FOLDER
        return [plain_or_packed(folder / name) for name in ROUTERARENA_FILES]
    paths = sorted(Path(request.path).glob("*.jsonl*"))
    if not paths:
        raise UserError(
            f"{request.path} holds no .jsonl file. Give a directory of RouterArena's cached "
            "results, one file per model."
        )
    return paths


# LLMRouterBench (ynulihao/LLMRouterBench), by its README: DIR/<dataset>/<split>/<model>/<name>-
# <YYYYmmdd_HHMMSS>.json, each file one model's records of one data set. The newest file is used,
# and none marked `demo`. Missing scores and costs are unknown here; its own loader reads them as 0.
# A record without a score, or without output tokens and output, is a failed generation. A cost of 0
# means that the model has no price (small models ran on the authors' machines).


class _Record(VerdictRow):
    index: int | str
    origin_query: str | None = None
    prompt: str | None = None
    score: float | None = Field(default=None, ge=0, le=1)
    cost: float | None = Field(default=None, ge=0)
    completion_tokens: float | None = Field(default=None, ge=0)
    prediction: Any = None
    raw_output: Any = None


class _RecordFile(VerdictRow):
    dataset_name: str
    split: str
    model_name: str
    demo: bool = False
    records: tuple[_Record, ...]


def read_llmrouterbench(request: SourceRequest) -> Matrix:
    """Return LLMRouterBench's grade matrix from a folder; UserError if an id has two questions."""
    folder = Path(request.path)
    if not request.path or not folder.is_dir():
        raise UserError(
            f"There is no directory {request.path or '(none was given)'}. Write `podium route "
            "llmrouterbench:DIR` for the unpacked release, DIR/<dataset>/<split>/<model>/*.json."
        )
    files = _newest_files(folder)
    by_id, cells = dict[str, MatrixQuestion](), list[MatrixCell]()
    for path, file in files:
        for record in file.records:
            # The question without its prompt template, if it is recorded.
            text = record.origin_query or record.prompt or ""
            if not text.strip():
                raise UserError(
                    f"{path}: record {record.index} has no question. Unpack the release again."
                )
            id = f"{file.dataset_name}/{file.split}/{record.index}"
            _join(by_id, MatrixQuestion(id, text, group=file.dataset_name), path, "an earlier file")
            figures = (None, None, None)
            answered = record.completion_tokens or record.prediction or record.raw_output
            if answered and record.score is not None:
                figures = (record.score, record.cost or None, record.completion_tokens or None)
            cells.append(MatrixCell(id, file.model_name, *figures))
    failed = sum(cell.score is None for cell in cells)
    note = f"{failed} of {len(cells)} generations failed and have no score."
    source = f"ynulihao/LLMRouterBench, {len(files)} result files"
    about = MatrixSource("llmrouterbench", source, notes=(note,) if failed else ())
    return assemble_matrix(about, list(by_id.values()), cells)


def _newest_files(folder: Path) -> list[tuple[Path, _RecordFile]]:
    """Return LLMRouterBench's newest file per data set, split and model; skips `demo` files."""
    newest: dict[tuple[str, str, str], tuple[str, Path, _RecordFile]] = {}
    for path in sorted(folder.rglob("*.json")):
        file = check_json(_RecordFile, path)
        if file.demo:
            continue
        key = (file.dataset_name, file.split, file.model_name)
        stamp = re.search(r"(\d{8}_\d{6})\.json$", path.name)
        entry = (stamp[1] if stamp else "", path, file)
        if key not in newest or entry[:2] > newest[key][:2]:
            newest[key] = entry
    if not newest:
        raise UserError(
            f"{folder} holds no result file of LLMRouterBench (JSON, not marked `demo`). Give "
            "the folder of the unpacked release."
        )
    return [newest[key][1:] for key in sorted(newest)]
