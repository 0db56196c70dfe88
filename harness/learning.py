"""Data of systems that learn: a `Matrix` of scores, training trials, and the trained `Artifact`."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from io import BytesIO
from pathlib import Path
from typing import Any, Literal, Protocol, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from podium.harness.context import current
from podium.harness.errors import UserError
from podium.harness.files import replace_file
from podium.harness.ledger.logs import Json, attached, naming, open_log
from podium.harness.ledger.runs import RunFacts, RunLabel
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import SystemRun
from podium.harness.records import EMPTY, Kind, Question
from podium.harness.suite import TaskRefusal

Floats = NDArray[np.float64]
MEASURED = ("scores", "usd", "tokens_out")


@dataclass(frozen=True, slots=True)
class MatrixQuestion:
    """One question of a `Matrix` of scores, without its target."""

    id: str
    text: str = field(repr=False)  # not in messages: some must not be published
    """The question's text, which a router may read; empty if it is not available."""
    kind: Kind = "text"
    date: str = ""  # ISO day on which it became public, if known
    group: str = ""  # a shared source, such as a subject: for clustered errors and folds
    split: Literal["", "train", "eval"] = ""  # as the question's source declares it


@dataclass(frozen=True, slots=True)
class Matrix:
    """Scores and costs of workers, one row per question and one column per worker."""

    name: str
    source: str  # where the data is from, with its version or digest
    label: RunLabel
    workers: tuple[str, ...]
    questions: tuple[MatrixQuestion, ...]
    scores: Floats  # (questions, workers), 0 to 1: means over a pair's draws (sampled replies)
    usd: Floats  # (questions, workers), list price of one draw
    tokens_out: Floats  # (questions, workers), of one draw
    draws: int = 1  # replies per score, the minimum if they differ; above 1, scores are means
    notes: tuple[str, ...] = ()  # limitations, a sentence each, printed below its tables
    publishable: bool = True  # False when its texts may appear in no file, message or page
    seconds: Floats | None = None  # (questions, workers), of one draw; None: its source has none
    no_answer: Floats | None = None  # (questions, workers), share of draws; None: not recorded

    def __post_init__(self) -> None:
        """Raise UserError if an array has the wrong shape, or a score is not between 0 and 1."""
        shape = (len(self.questions), len(self.workers))
        for column, values in (("score", self.scores), ("usd", self.usd), ("tok", self.tokens_out)):
            if values.shape != shape:
                raise UserError(f"{self.name}: {column} has the shape {values.shape}, not {shape}.")
        scores = self.scores[~np.isnan(self.scores)]
        if (wrong := scores[(scores < 0) | (scores > 1)]).size:
            raise UserError(f"{self.name}: scores must be between 0 and 1, not {wrong[0]:g}.")

    def rows(self, chosen: Sequence[int] | NDArray[np.intp]) -> "Matrix":
        """Return the matrix of the questions with the indices `chosen`, in that order."""
        rows = np.asarray(chosen, dtype=np.intp)
        measured = {name: values[rows] for name, values in self._measured()}
        return replace(self, questions=tuple(self.questions[int(row)] for row in rows), **measured)

    def where(self, keep: Callable[[MatrixQuestion], bool]) -> "Matrix":
        """Return the matrix of the questions for which `keep` is true."""
        return self.rows(np.flatnonzero([keep(question) for question in self.questions]))

    def with_workers(self, names: Sequence[str]) -> "Matrix":
        """Return the matrix of the workers `names`, in that order."""
        columns = [self.workers.index(name) for name in names]
        measured = {name: values[:, columns] for name, values in self._measured()}
        return replace(self, workers=tuple(names), **measured)

    def _measured(self) -> Iterator[tuple[str, Floats]]:
        every = ((name, getattr(self, name)) for name in (*MEASURED, "seconds", "no_answer"))
        return ((name, values) for name, values in every if values is not None)

    def whole(self) -> "Matrix":
        """Return the matrix of the questions on which every worker was graded."""
        return self.rows(np.flatnonzero(~np.isnan(self.scores).any(axis=1)))

    def mean_scores(self) -> Floats:
        """Return each worker's accuracy over its graded questions; NaN for a worker without any."""
        return mean_known(self.scores)

    def mean_usd(self) -> Floats:
        """Return each worker's dollars per query; NaN if any of its queries has no price."""
        if not self.questions:
            return np.full(len(self.workers), np.nan)
        return self.usd.mean(axis=0)


def one_thread() -> AbstractContextManager[Any]:
    """Return a context in which linear algebra uses one thread, so that sums are reproducible."""
    from threadpoolctl import threadpool_limits  # pyright: ignore[reportMissingTypeStubs]

    return threadpool_limits(limits=1)


def rows_sha256(matrix: Matrix) -> str:
    """Return the digest of a matrix's question ids, workers, scores and costs."""
    digest = hashlib.sha256("\n".join((*matrix.workers, "")).encode())
    for question, *row in zip(matrix.questions, matrix.scores, matrix.usd, strict=True):
        digest.update(f"{question.id} {[values.tolist() for values in row]!r}\n".encode())
    return digest.hexdigest()


def mean_known(values: Floats) -> Floats:
    """Return each column's mean over known values; NaN for a column without known values."""
    return _mean(np.nansum(values, axis=0), (~np.isnan(values)).sum(axis=0))


RouteKind = Literal["router", "anchor", "single"]


@dataclass(frozen=True, slots=True)
class RoutedSystem:
    """One system's results in a comparison of routers; arrays have a value per question, or NaN."""

    system: str
    kind: RouteKind
    scores: Floats
    usd: Floats
    tokens_out: Floats
    elsewhere: float | None  # share of questions sent to another worker than the reference
    note: str = ""


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """A router's result if a right answer is worth `willingness` dollars; None: at any price."""

    willingness: float | None
    score: float
    usd: float


@dataclass(frozen=True, slots=True)
class RouteComparison:
    """A comparison of routers, which choose a worker per question: data, method and results."""

    name: str
    source: str
    label: str
    split: str
    workers: int
    questions: tuple[str, ...]
    draws: int
    seed: int
    embedder: str
    refits: int
    reference: str
    hindsight: str  # The best single worker on the judged questions, known in hindsight only
    oracle: str
    systems: tuple[RoutedSystem, ...]
    frontiers: Mapping[str, tuple[FrontierPoint, ...]]
    notes: tuple[str, ...]
    clusters: tuple[str, ...] = ()  # each question's comparison or subject, if known


@dataclass(frozen=True, slots=True)
class MatrixCell:
    """One draw (sampled reply) of one worker on one question: its score, cost and time."""

    question: str
    worker: str
    score: float | None  # between 0 and 1; None (not 0) without a verdict
    usd: float | None = None  # list price of this draw; None is unknown
    tokens_out: float | None = None
    seconds: float | None = None
    no_answer: bool | None = None  # whether no answer was found in the reply


@dataclass(frozen=True, slots=True)
class MatrixSource:
    """Metadata of a `Matrix` of scores: its name, source, label and limitations."""

    name: str
    source: str
    label: RunLabel = "recorded"
    notes: tuple[str, ...] = ()
    publishable: bool = True
    drawn: int = 1  # draws behind each cell, if the source kept only their mean


def assemble_matrix(
    about: MatrixSource, questions: Sequence[MatrixQuestion], cells: Iterable[MatrixCell]
) -> Matrix:
    """Return the matrix made of `cells`; its workers are in the order of their first appearance."""
    rows = {question.id: n for n, question in enumerate(questions)}
    if len(rows) != len(questions):
        twice = next(question.id for n, question in enumerate(questions) if rows[question.id] != n)
        raise UserError(f"{about.name}: question {twice} appears twice. Remove one of them.")
    every = list(cells)
    if not every:
        raise UserError(f"{about.name}: it has no verdicts. Name data with graded replies.")
    workers = {name: n for n, name in enumerate(dict.fromkeys(cell.worker for cell in every))}
    pairs = np.array([(rows[cell.question], workers[cell.worker]) for cell in every])
    shape = (len(rows), len(workers))
    scores = _numbers(cell.score for cell in every)
    graded = ~np.isnan(scores)
    draws = _sums(shape, pairs, graded.astype(float))
    tried = _sums(shape, pairs, np.ones(len(every)))
    return Matrix(
        name=about.name,
        source=about.source,
        label=about.label,
        workers=tuple(workers),
        questions=tuple(questions),
        scores=_mean(_sums(shape, pairs, np.where(graded, scores, 0.0)), draws),
        usd=_mean(_sums(shape, pairs, _numbers(cell.usd for cell in every)), tried),
        tokens_out=_mean(_sums(shape, pairs, _numbers(cell.tokens_out for cell in every)), tried),
        draws=about.drawn * int(draws[draws > 0].min()) if (draws > 0).any() else 1,
        notes=about.notes,
        publishable=about.publishable,
        seconds=_mean(_sums(shape, pairs, _numbers(cell.seconds for cell in every)), tried),
        no_answer=_mean(_sums(shape, pairs, _numbers(cell.no_answer for cell in every)), tried),
    )


def _numbers(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _sums(shape: tuple[int, int], pairs: NDArray[np.intp], values: Floats) -> Floats:
    """Return the sum of values by (question, worker) pair; NaN if a value is NaN."""
    sums = np.zeros(shape)
    np.add.at(sums, (pairs[:, 0], pairs[:, 1]), values)
    return sums


def _mean(sums: Floats, counts: Floats) -> Floats:
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


SINGLE = "single:"


def matrix_of_logs(dirs: Sequence[Path]) -> Matrix:
    """Return the matrix of all single workers' logged runs below `dirs`, at list prices."""
    alone = [run for run in load_runs(dirs)[0] if run.facts.system.startswith(SINGLE)]
    if not alone:
        places = ", ".join(map(str, dirs))
        raise UserError(f"No worker answered alone in {places}: run `--system single` first.")
    _refuse_different(alone)
    questions: dict[str, MatrixQuestion] = {}
    for system_run in alone:
        questions = {question.id: question for question in _asked(system_run)} | questions
    withheld = sorted({run.facts.suite for run in alone if not run.facts.publishable})
    stay = "stay in their log and are not given to routers."
    about = MatrixSource(
        name="logs:" + ",".join(sorted({run.facts.suite for run in alone})),
        source=f"{len(alone)} system runs of single workers, pool {alone[0].facts.pool}",
        label=alone[0].facts.label,
        notes=tuple(f"The texts of {name} {stay}" for name in withheld),
        publishable=not withheld,
    )
    return assemble_matrix(about, [questions[id] for id in sorted(questions)], _cells(alone))


def _refuse_different(alone: Sequence[SystemRun]) -> None:
    labels = sorted({system_run.facts.label for system_run in alone})
    if len(labels) > 1:
        raise UserError(
            f"These logs have different labels, {' and '.join(labels)}: name one "
            "directory at a time."
        )
    versions: dict[str, str] = {}
    for facts in (system_run.facts for system_run in alone):
        version = f"{facts.suite_version} {facts.data_revision} {facts.prompt}"
        if (earlier := versions.setdefault(facts.suite, version)) != version:
            difference = f"{facts.suite}: {earlier} and {version}."
            raise UserError(
                f"These logs are of different versions of {difference} Name one directory at a "
                "time."
            )


def _cells(alone: Sequence[SystemRun]) -> Iterator[MatrixCell]:
    for system_run in alone:
        for attempt in system_run.attempts:
            usd = attempt.totals.usd
            yield MatrixCell(
                question=_id(system_run.facts, attempt.question),
                worker=system_run.facts.system.removeprefix(SINGLE),
                score=attempt.value,
                usd=None if usd is None else float(usd),
                tokens_out=attempt.totals.tokens_out,
                seconds=attempt.critical_path_s,
                no_answer=None if attempt.value is None else not attempt.parsed,
            )


def _asked(system_run: SystemRun) -> Iterator[MatrixQuestion]:
    facts = system_run.facts
    split: Literal["train", "eval"] = "train" if facts.split == "train" else "eval"
    for path in system_run.paths:
        with open_log(path) as log, naming(path):
            for sample in log.samples():
                metadata: Json = sample.get("metadata") or {}
                yield MatrixQuestion(
                    id=_id(facts, str(sample["id"])),
                    text=asked_text(sample) if facts.publishable else "",
                    kind=cast(Kind, metadata.get("kind") or "text"),
                    group=str(metadata.get("topic") or ""),
                    split=split,
                )


def _id(facts: RunFacts, question: str) -> str:
    return f"{facts.suite}/{question}"


def asked_text(sample: Json) -> str:
    """Return a logged sample's question: its input's texts, joined by newlines."""
    content: object = sample["input"]
    if isinstance(content, str):
        return attached(content, sample)
    texts = (message.get("content") for message in cast(list[Json], content))
    return "\n".join(attached(text, sample) for text in texts if isinstance(text, str))


Arrays = Mapping[str, NDArray[Any]]
_META = "podium_json"


@dataclass(frozen=True, slots=True)
class ArtifactSource:
    """What an artefact was trained on: system, data, workers and settings."""

    system: str
    rows_sha256: str  # of the rows: ids, scores and costs
    suites: tuple[str, ...]  # suites of the train splits, or the recorded matrix's name
    questions: tuple[str, ...]  # their digests: runs on the same questions are refused
    workers: tuple[str, ...]  # in pool order; a pool with other workers needs another artefact
    embedder: str = ""
    calls: int = 0  # worker calls that were spent on learning
    settings: Mapping[str, Any] | None = None  # plain hyperparameters, seed included


@dataclass(frozen=True, slots=True)
class Artifact:
    """A trained system's artefact: arrays by name, and what they were trained on."""

    about: ArtifactSource
    arrays: Arrays

    def as_bytes(self) -> bytes:
        """Return the content of the artefact's file; equal artefacts have equal bytes."""
        meta = json.dumps(asdict(self.about), sort_keys=True, ensure_ascii=False)
        members = {_META: np.array(meta), **dict(sorted(self.arrays.items()))}
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
            for name, values in members.items():
                entry = zipfile.ZipInfo(f"{name}.npy")  # always dated 1980-01-01
                entry.compress_type = zipfile.ZIP_DEFLATED
                with file.open(entry, "w") as into:
                    np.lib.format.write_array(into, np.asarray(values), allow_pickle=False)
        return buffer.getvalue()

    @property
    def sha256(self) -> str:
        """SHA-256 of the artefact's file."""
        return hashlib.sha256(self.as_bytes()).hexdigest()


_ABOUT = TypeAdapter(ArtifactSource)


def write_artifact(learned: Artifact, path: Path) -> None:
    """Write an artefact (a trained system) to a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, learned.as_bytes())


def read_artifact(name: str | None, system: str, sha256: str | None = None) -> Artifact:
    """Return `system`'s artefact in file `name`, relative to the log dir; TaskRefusal if absent."""
    if not name:
        raise TaskRefusal(
            f"{system} is not trained: let `podium run` train it, or give the file that `podium "
            f"route --save` wrote, as -S learned=FILE."
        )
    path = current().log_dir / name
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        text = f"{system} is not trained: there is no file {path}. Let `podium run` train it."
        raise TaskRefusal(text) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}. Restore it, or train again.") from None
    artifact = parse_artifact(content, path)
    if sha256 and hashlib.sha256(content).hexdigest() != sha256:
        raise UserError(f"{path} is not the file that this run started with; restore it.")
    if artifact.about.system != system:
        other = artifact.about.system
        raise UserError(f"{path} was trained for {other}, not for {system}. Name another file.")
    return artifact


def parse_artifact(content: bytes, path: Path) -> Artifact:
    """Return the artefact in a file's content; UserError if it is not an artefact."""
    try:
        with np.load(BytesIO(content), allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
        return Artifact(_ABOUT.validate_json(str(arrays.pop(_META))), arrays)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, ValidationError) as error:
        raise UserError(
            f"{path} is not an artefact of podium: {error}. Restore it, or train again."
        ) from None


def refuse_other_workers(learned: Artifact, workers: tuple[str, ...]) -> None:
    """Raise UserError if a pool lacks workers that an artefact (a trained system) needs."""
    lacking = [name for name in learned.about.workers if name not in workers]
    if lacking:
        raise UserError(
            f"{learned.about.system} was trained on workers that this pool lacks "
            f"({', '.join(lacking)}): train it on this pool."
        )


@dataclass(frozen=True, slots=True)
class TrainingBudget:
    """The questions that a system may train on, and how many worker calls it may make."""

    questions: tuple[Question, ...]  # of the train split, without targets, in a fixed order
    workers: tuple[str, ...]
    calls: int  # worker calls that may be spent: the same for every tunable system of a run
    seed: int
    suites: tuple[str, ...]
    publishable: bool = True  # False when an artefact must hold no words of these questions


@dataclass(frozen=True, slots=True)
class Round:
    """A round of training trials; its fields fix the trials, so that a resumed run repeats them."""

    solver: str  # registry name, e.g. `baselines/try_templates`.
    args: Mapping[str, Any]
    questions: int
    epochs: int
    first: int = 0  # index of the first question in `TrainingBudget.questions`
    most_calls: int | None = None
    """Maximum worker calls of one trial, to cut a round to the budget; None: counted from its plan,
    or 5 if the plan depends on replies."""


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of one training trial: a system's answer to one train question."""

    question: str
    epoch: int
    value: float | None  # None if it could not be answered or graded: nothing is learnt from it
    calls: int
    usd: float | None
    plan: str  # the workflow that was run, as JSON
    noted: Mapping[str, Any] = field(default_factory=lambda: EMPTY)  # `Answer.noted`


class Explorer(Protocol):
    """Chooses a system's training trials, and makes the artefact from their results."""

    def next_round(
        self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]
    ) -> Round | None:
        """Return the next round of trials; None if there are enough trials, or no budget left."""
        ...

    def learnt(self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]) -> Artifact:
        """Return the artefact (the trained system) that is learnt from all trials' results."""
        ...
