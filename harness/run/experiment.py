"""The settings of a log directory: one pool, one seed, suites at one version, the systems so far.

A run may add systems and suites, raise a limit or epochs, and resume. Any other difference makes
another experiment, whose rows are not comparable: it is refused. Stored in `DIR/experiment.json`.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from math import inf
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, PositiveInt, TypeAdapter, ValidationError, ValidationInfo

from podium.harness.errors import UserError, first_fault
from podium.harness.files import DOCUMENT, read_limited, refuse_unwritable, replace_file
from podium.harness.ledger.journal import FOLDER
from podium.harness.ledger.logs import newest_logs, open_log
from podium.harness.ledger.manifest import covered, write_manifest
from podium.harness.ledger.runs import RunFacts, WorkerFacts, calls_of, facts_in
from podium.harness.prices import Book, book_from_json
from podium.harness.profiles import EARLIER
from podium.harness.records import FRESH, SHARED, UNANSWERED, WRONG, Draws, Overflows
from podium.harness.suite import OFFICIAL, Prompt, Split

SELECTION = "selection"
FILE = "experiment.json"
NEW = Path("/dev/null/run")
"""Stands for the directory of a new run in `doctor`: no directory can have this path."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One system on one suite in a run: each entry becomes one Inspect task."""

    suite: str
    system: str
    solver: str  # registry name: `podium/moa_lite`; `baselines/moa_lite` before 0.2
    args: Mapping[str, Any]  # plain solver arguments, stored so that a resumed run is the same
    notes: tuple[str, ...] = ()
    reference_allowed: bool = True  # False for a best single worker that was chosen in hindsight
    uses_targets: bool = False
    order: int | None = None
    """Position in the order in which entries start, from 1 (`order_entries`)."""
    part: str = ""
    """Step of a system's training, e.g. `for aime25, round 1`; empty for an evaluation."""
    learnt: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Facts on the system's training (harness/learning.py), without its questions' digests."""
    questions: tuple[str, ...] = ()
    """Ids of the questions that a shard asks, in order; empty: all questions of the run."""

    @property
    def name(self) -> str:
        """Name of the entry's Inspect task."""
        return task_name(self.suite, self.system, part=self.part)


def task_name(suite: str, system: str, purpose: str = "eval", part: str = "") -> str:
    """Return an Inspect task's name, unique in a log directory: Inspect finds older logs by it."""
    name = f"{suite} {system} {part}".rstrip()
    return name if purpose == "eval" else f"{name} ({purpose})"


def _of_each_suite(stored: object, info: ValidationInfo) -> object:
    """Return suite -> epochs; older files hold one number. ValueError if a suite has no epochs."""
    suites: Mapping[str, str] = info.data.get("suite_versions", {})
    if isinstance(stored, int):
        return dict.fromkeys(suites, stored)
    by_suite = cast(Mapping[str, object], stored)
    if isinstance(stored, Mapping) and (lacking := suites.keys() - by_suite.keys()):
        raise ValueError(f"it has none for {min(lacking)}")
    return by_suite


@dataclass(frozen=True, slots=True)
class Experiment:
    """The contents of experiment.json: the settings that all runs of a log directory share."""

    pool: str  # its name, without the path of its file
    pool_sha256: str
    recordings: Mapping[str, str]  # sha256 of each cassette that a recorded pool replays
    book_sha256: str
    seed: int
    split: Split
    box: str | None
    time_scale: float
    limit: int | None
    suite_versions: Mapping[str, str]
    data_revisions: Mapping[str, str]
    epochs: Annotated[Mapping[str, PositiveInt], BeforeValidator(_of_each_suite)]
    """Suite -> epochs per question; older files hold one number for all suites."""
    entries: tuple[Entry, ...]
    prompts: Mapping[str, Prompt] = field(default_factory=dict[str, Prompt])
    """Suite -> name of its prompt; an older file without names used the official prompts."""
    images: Mapping[str, str] = field(default_factory=dict[str, str])
    """Suite -> digest of the image for its programs, if the sandbox uses images."""
    train_calls: int | None = None
    """Maximum worker calls per system for learning; None until `--train-calls` sets it."""
    train_on: tuple[str, ...] = ()  # suites to learn from (train splits); empty: each suite's own
    overflows: Overflows = UNANSWERED
    """How an answer counts whose request was too long: `wrong`; in older files, `unanswered`."""
    headline: str = ""
    """System whose result is stated above every table, chosen before the run; empty for none."""
    equal: str = ""
    """Budget of every system for one question, such as `calls=9`; empty: no equal budget."""
    draws: Draws = FRESH
    """Whether equal calls of several systems share a sampled reply; in older files they do not."""
    gate_sha256: str = ""
    """Digest of the gate file (rules that the run must meet, declared before); empty: no file."""
    suite_limits: Mapping[str, PositiveInt] = field(default_factory=dict[str, PositiveInt])
    """Suite -> number of first questions to ask of it; a suite that is not here has `limit`."""
    run_file: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Digest (`sha256`) and `options` of the newest run file (run.toml); empty if there is none."""
    schema: Literal[1] = 1

    @property
    def pool_key(self) -> str:
        """Digests of the pool and its prices; a user's consent to spend is valid for these only."""
        return f"{self.pool_sha256} {self.book_sha256}"

    @property
    def task_limit(self) -> int | None:
        """Inspect's question limit for all tasks; None if some suites have limits of their own."""
        return None if self.suite_limits else self.limit

    def limit_of(self, suite: str) -> int | None:
        """Return how many first questions of a suite are asked; None: all questions."""
        return self.suite_limits.get(suite, self.limit)

    def joined(self, new: "Experiment") -> "Experiment":
        """Return this experiment extended by `new`; UserError if their rows are not comparable."""
        for name in IDENTITY:
            _same(name, getattr(self, name), getattr(new, name))
        if self.box and new.box:
            _same("box", self.box, new.box)
        _refuse_other_suites(self, new)
        extent = f"--limit {self.limit}" if self.limit else "all questions"
        _not_less("--limit", self.limit or inf, new.limit or inf, extent)
        _same("headline", self.headline, new.headline)
        _same("gate", *(experiment.gate_sha256[:8] or "none" for experiment in (self, new)))
        _same("equal budget", self.equal or "none", new.equal or "none")
        if self.draws == SHARED and new.draws == FRESH:
            raise UserError("its systems share draws; leave --fresh-draws out")
        for name in LEARNING:
            if getattr(self, name) and getattr(new, name):
                _same(name.replace("_", "-"), getattr(self, name), getattr(new, name))
        entries = {entry.name: entry for entry in (*self.entries, *new.entries)}
        settled = {name: getattr(self, name) or getattr(new, name) for name in ("box", *LEARNING)}
        settled["run_file"] = new.run_file or self.run_file
        by_suite = {name: {**getattr(self, name), **getattr(new, name)} for name in BY_SUITE}
        return replace(
            self, limit=new.limit, entries=tuple(entries.values()), **settled, **by_suite
        )


def _refuse_other_suites(stored: Experiment, new: Experiment) -> None:
    """Raise UserError if a stored suite has changed, or is to have fewer questions or epochs."""
    for suite in stored.suite_versions.keys() & new.suite_versions.keys():
        _same(f"version of {suite}", stored.suite_versions[suite], new.suite_versions[suite])
        _same(f"data of {suite}", stored.data_revisions[suite], new.data_revisions[suite])
        prompts = (experiment.prompts.get(suite, OFFICIAL) for experiment in (stored, new))
        _same(f"prompt of {suite}", *prompts)
        before, now = stored.epochs[suite], new.epochs[suite]
        _not_less("--epochs", before, now, f"{before} epochs of {suite}, not {now}")
        if limit := stored.suite_limits.get(suite):
            now = new.limit_of(suite) or inf
            _not_less("--suite-limit", limit, now, f"{limit} questions of {suite}")
    for suite in stored.images.keys() & new.images.keys():
        _same(f"sandbox image for {suite}", stored.images[suite], new.images[suite])


BY_SUITE = ("epochs", "prompts", "suite_versions", "data_revisions", "images", "suite_limits")
IDENTITY = ("pool", "pool_sha256", "recordings", "book_sha256", "seed", "split", "time_scale")
POOL = IDENTITY[:4]
LEARNING = ("train_calls", "train_on")
"""`LEARNING`: fields that cannot change once set, as all systems must learn from the same data."""
_FILE = TypeAdapter(Experiment)


@contextmanager
def lock_experiment(log_dir: Path) -> Generator[None]:
    """Lock a run's directory in the block; UserError if another run on this machine locked it."""
    log_dir.mkdir(parents=True, exist_ok=True)
    handle = os.open(log_dir, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"Another podium run is writing to {log_dir}. Wait until it ends."
            raise UserError(message) from None
        yield
    finally:
        os.close(handle)


def is_new(folder: Path) -> bool:
    """Return whether a directory holds no run yet; consents or reused answers may be in it."""
    return not folder.is_dir() or {path.name for path in folder.iterdir()} <= {AGREED, EARLIER}


def check_experiment(log_dir: Path, new: Experiment) -> Experiment:
    """Return a directory's experiment extended by `new`; UserError on conflict. Writes nothing."""
    if log_dir != NEW:
        refuse_unwritable(log_dir, "--log-dir")
    stored = read_experiment(log_dir)
    if stored and differs(stored, new, POOL) and is_unanswered(log_dir):
        stored = replace(stored, entries=(), **{name: getattr(new, name) for name in POOL})
    if stored is None and not is_new(log_dir):
        raise UserError(
            f"{log_dir} is not empty and holds no podium experiment; name another --log-dir."
        )
    try:
        return stored.joined(new) if stored else new
    except UserError as error:
        raise UserError(
            f"{log_dir} holds a run with other settings: {error}. Use the settings of that run, or "
            "name another --log-dir."
        ) from None


def open_experiment(log_dir: Path, new: Experiment) -> Experiment:
    """Check `new`, add it to a directory's experiment, and write and return the experiment."""
    stored = read_experiment(log_dir)
    experiment = order_entries(check_experiment(log_dir, new), stored.entries if stored else ())
    log_dir.mkdir(parents=True, exist_ok=True)
    _write(log_dir, experiment)
    return experiment


def order_entries(experiment: Experiment, stored: Iterable[Entry]) -> Experiment:
    """Return an experiment whose entries all have a position in the starting order."""
    places = {row.name: row.order for row in (*experiment.entries, *stored) if row.order}
    new = [row.name for row in experiment.entries if row.name not in places]
    new.sort(key=lambda name: hashlib.sha256(f"{experiment.seed} {name}".encode()).digest())
    start = max(places.values(), default=0) + 1
    places |= {name: place for place, name in enumerate(new, start)}
    entries = tuple(replace(row, order=places[row.name]) for row in experiment.entries)
    return replace(experiment, entries=entries)


def note_graders(
    log_dir: Path, versions: Mapping[str, str], box: str | None, images: Mapping[str, str]
) -> None:
    """Record the new graders of regraded logs in experiment.json, so that the run can resume."""
    for path in sorted(log_dir.rglob(FILE)):
        experiment = read_experiment(path.parent)
        assert experiment is not None, "rglob has just found it"
        suite_versions = {
            suite: versions.get(suite, old) for suite, old in experiment.suite_versions.items()
        }
        present = {suite: image for suite, image in images.items() if suite in suite_versions}
        graded = {"suite_versions": suite_versions, "overflows": WRONG}
        changed = replace(experiment, box=box or experiment.box, images=present, **graded)
        _write(path.parent, changed)


def _write(log_dir: Path, experiment: Experiment) -> None:
    # Fields with default values are left out, so that an older run's file stays the same.
    left_out: dict[str, Any] = {
        "entries": {
            i: {"questions"} for i, row in enumerate(experiment.entries) if not row.questions
        }
    }
    left_out |= {} if experiment.headline else {"headline": True}
    left_out |= {} if experiment.equal else {"equal": True}
    left_out |= {} if experiment.gate_sha256 else {"gate_sha256": True}
    left_out |= {} if experiment.run_file else {"run_file": True}
    left_out |= {} if experiment.draws == SHARED else {"draws": True}
    left_out |= {"overflows": True} if experiment.overflows == UNANSWERED else {}
    content = _FILE.dump_json(experiment, indent=1, exclude=left_out)
    replace_file(log_dir / FILE, content + b"\n")


def read_experiment(log_dir: Path) -> Experiment | None:
    """Return the experiment of a directory, None if it has none; UserError if it is damaged."""
    path = log_dir / FILE
    if not path.is_file():
        return None
    try:
        return _FILE.validate_json(read_limited(path, DOCUMENT))
    except ValidationError as error:
        location, fault = first_fault(error)
        raise UserError(
            f"{path} is damaged or of another version of podium (field {location}: {fault}); "
            "restore it or name another --log-dir."
        ) from error


def differs(stored: Experiment, new: Experiment, names: Iterable[str]) -> str:
    """Return the first field of `names` in which two experiments differ; empty for none."""
    return next((name for name in names if getattr(stored, name) != getattr(new, name)), "")


def _not_less(option: str, stored: float, requested: float, extent: str) -> None:
    if requested < stored:
        raise UserError(f"it has {extent}; leave {option} out or raise it")


def _same(field: str, stored: object, requested: object) -> None:
    if stored != requested:
        raise UserError(f"its {field} is {stored!r}, not {requested!r}")


ABSENT = "absent"
AGREED = "agreed.jsonl"
"""File of the user's consents to spend money, written before all others (podium/cli/consent.py)."""


def is_unanswered(log_dir: Path) -> bool:
    """Return whether all calls of a run failed; False if a call has no recorded outcome yet."""
    if any(log_dir.glob("*/experiment.json")):
        return False  # shards, and runs on train questions, have experiments of their own
    journals = [*log_dir.glob(f"**/{FOLDER}/*/*.jsonl")]
    outcomes = [record.outcome for path in journals for record in calls_of(path)]
    if any(outcome is None or outcome.get("output_sha256") for outcome in outcomes):
        return False
    return bool(journals) or not any(log_dir.glob("**/*.eval"))  # older runs have no journals


def set_aside(log_dir: Path, pool_key: str) -> Path:
    """Rename the directory of a run without replies, to keep its records; return the new path."""
    names = (log_dir.with_name(f"{log_dir.name}.unanswered-{number}") for number in count(1))
    aside = log_dir.rename(next(path for path in names if not path.exists()))
    agreed = aside / AGREED
    lines = agreed.read_text().splitlines(keepends=True) if agreed.exists() else []
    if now := [line for line in lines if json.dumps(pool_key) in line]:
        log_dir.mkdir()
        (log_dir / AGREED).write_text("".join(now))
        agreed.write_text("".join(line for line in lines if line not in now))
    return aside


def pool_changes(
    log_dir: Path, workers: Mapping[str, Mapping[str, Any]], book: Book
) -> Iterator[str]:
    """Yield a sentence for each worker setting or price that differs from a run's newest log."""
    facts = _newest_facts(log_dir)
    if facts is None:
        return
    then = book_from_json(facts.prices)
    old = {name: _flat(worker, then) for name, worker in facts.workers.items()}
    new = {name: _flat(WorkerFacts(**facts), book) for name, facts in workers.items()}
    for name in {**old, **new}:
        old_worker, new_worker = old.get(name, {}), new.get(name, {})
        if not old_worker or not new_worker:
            yield f"worker {name!r} was {'added' if new_worker else 'removed'}"
            continue
        for key in {**old_worker, **new_worker}:
            was, now = (side.get(key, ABSENT) for side in (old_worker, new_worker))
            if was != now:
                yield f"{key} of worker {name!r} was {was}, and is {now}"


def _newest_facts(log_dir: Path) -> RunFacts | None:
    for path in newest_logs([log_dir]) if any(log_dir.glob("**/*.eval")) else ():
        with open_log(path) as log:
            if facts := facts_in(log.header["eval"].get("metadata"), path):
                return facts
    return None


def _flat(worker: WorkerFacts, book: Book) -> dict[str, Any]:
    """Return a worker's fields, price included, under their names in pool files."""
    fields = worker.model_dump(exclude={"config", "args", "price"})
    for section, values in (("config", worker.config), ("args", worker.args)):
        fields |= {f"{section}.{name}": value for name, value in values.items()}
    price = book.price(worker.price)
    rates = dict(asdict(price.base)) if price else {}
    priced = {f"price.{name}": f"{rate:f}" for name, rate in rates.items() if rate is not None}
    return fields | {"price": worker.price} | priced


@contextmanager
def manifested(log_dir: Path) -> Generator[None]:
    """Write the manifest (digests of the run's files) when the block ends, even by an error."""
    try:
        yield
    finally:
        if covered(log_dir):
            write_manifest(log_dir)
