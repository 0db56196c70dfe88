"""A run that is divided into shards, from request to outcome: read it from top to bottom."""

import shutil
import time
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from inspect_ai.log import read_eval_log
from pydantic import TypeAdapter

from podium.harness.errors import UserError
from podium.harness.ledger.journal import FOLDER as LEDGER
from podium.harness.ledger.journal import mend
from podium.harness.ledger.logs import newest_logs
from podium.harness.ledger.manifest import SAMPLES
from podium.harness.ledger.system_runs import load_runs
from podium.harness.parallel import ProgressLine, cores, progress_line
from podium.harness.records import SHARED
from podium.harness.run import entries
from podium.harness.run.catalogue import OWN, Catalogue, RunRequest, with_own
from podium.harness.run.estimate import cost_of_one
from podium.harness.run.evaluate import Controls, Job, RunOutcome
from podium.harness.run.experiment import (
    BY_SUITE,
    Experiment,
    lock_experiment,
    manifested,
    open_experiment,
    read_experiment,
)
from podium.harness.run.run import keep_until_logged, make_plans, run
from podium.harness.run.run_request import RequestReader
from podium.harness.shards.figures import write_figures
from podium.harness.shards.launcher import LOST, Launcher, LocalLauncher
from podium.harness.shards.lease import RunLimits, assigned
from podium.harness.shards.lease_client import is_leased, open_lease, settle
from podium.harness.shards.lease_server import ALL, LOOPBACK, LeaseKeeper, LeaseServer, lease_server
from podium.harness.shards.plan import (
    ENDED,
    FOLDER,
    PlannedRow,
    Shard,
    ShardOutcome,
    ShardPlan,
    cut,
    cut_by_question,
    parent_of,
    read_outcome,
    read_plan,
    shard_dir,
    write_outcome,
    write_plan,
)
from podium.harness.shards.ray_launcher import (
    RayLauncher,
    RayLeaseServer,
    ray_cluster,
    refuse_no_ray,
)
from podium.harness.shards.slurm_launcher import HERE, SlurmLauncher, refuse_no_slurm
from podium.harness.shutdown import graceful_shutdown
from podium.harness.text import pluralise

LauncherName = Literal["local", "slurm", "ray"]
TICK_S = 0.2
JOBS = f"{FOLDER}/jobs"
"""Folder in a run's directory where submitit writes the scripts and logs of SLURM's jobs."""
MOST_LOSSES = 3
"""A shard fails after so many lost processes in a row without a new answer."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """The number of a run's shards, and the launcher that starts their processes."""

    shards: int
    launcher: LauncherName = "local"
    address: str | None = None
    """With SLURM a partition, with Ray the cluster's address; None: the default."""
    own: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """The user's own suites and systems, as FILE.py@NAME."""


def run_sharded(reader: RequestReader, sharding: Sharding) -> RunOutcome:
    """Do a requested run in shards, resumable if it stops; UserError, before calls, if refused."""
    request = reader.request
    _refuse_unfit(request, sharding)
    log_dir = request.log_dir
    with ExitStack() as stack:
        stack.enter_context(graceful_shutdown(request.grace_s))
        for reason in reader.all_reasons(stack):
            raise UserError(reason)
        stack.enter_context(lock_experiment(log_dir))
        _refuse_gone(log_dir)
        keeper, launcher_of = _place(sharding, log_dir, stack)
        stack.enter_context(manifested(log_dir))
        mend(log_dir)
        job = replace(reader.job, experiment=open_experiment(log_dir, reader.job.experiment))
        write_plan(log_dir, _with_request(job, sharding))
        settle(log_dir, job.book, RunLimits(request.max_usd, request.rpm))
        job = _taught(job)
        limits, host = RunLimits(_left(job), request.rpm), _host(sharding)
        leases = stack.enter_context(lease_server(log_dir, limits, host, keeper))
        launcher = stack.enter_context(closing(launcher_of()))
        shards = _cut(job, sharding, wave=1)
        outcome = _ask(job, shards, (launcher, leases))
        if outcome.finished and (chosen := entries.deferred_entries(job, outcome)):
            job = entries.with_new(job, chosen)
            outcome = _ask(job, _cut(job, sharding, wave=2), (launcher, leases))
        return outcome


def _refuse_unfit(request: RunRequest, sharding: Sharding) -> None:
    if sharding.shards < 1:
        raise UserError(f"--shards must be at least 1, not {sharding.shards}.")
    if sharding.launcher not in get_args(LauncherName):
        names = ", ".join(get_args(LauncherName))
        raise UserError(f"--launcher must be one of {names}, not {sharding.launcher!r}.")
    if sharding.launcher != "local":
        {"slurm": refuse_no_slurm, "ray": refuse_no_ray}[sharding.launcher](sharding.address)
    elif sharding.address is not None:
        raise UserError(
            "--address needs --launcher slurm or ray: add one of them, or leave --address out."
        )
    if request.display not in ("line", "none"):
        raise UserError(
            f"--display {request.display} shows one process, and a run with --shards has several: "
            "leave it out."
        )
    stored = read_experiment(request.log_dir)
    if stored and stored.entries and read_plan(request.log_dir) is None:
        raise UserError(
            f"{request.log_dir} holds a run that is not cut into shards: leave --shards out, or "
            "name another --log-dir."
        )


def _refuse_gone(log_dir: Path) -> None:
    """Raise UserError if the directory of a planned shard is missing: it may have held answers."""
    plan = read_plan(log_dir)
    for shard in plan.shards if plan else ():
        folder = shard_dir(log_dir, shard.name)
        if read_experiment(folder) is None:
            raise UserError(
                f"{folder} is missing, and with it the replies of its shard: restore it, or name "
                "another --log-dir."
            )


def _with_request(job: Job, sharding: Sharding) -> ShardPlan:
    """Return the run's shard plan, with the request's settings for the shards' processes."""
    plan, request = read_plan(job.request.log_dir) or ShardPlan({}, {}), job.request
    pool = Path(request.pool)
    at_once = (request.max_sandboxes or cores()) // _processes(sharding)
    settings: dict[str, Any] = {}
    if request.max_usd_per_query is not None:  # leases enforce the run's own limit
        settings["max_usd_per_query"] = str(request.max_usd_per_query)
    settings |= {"run_file": dict(request.run_file)} if request.run_file else {}
    settings |= {"grace_s": request.grace_s, "batch": request.batch}
    settings["pool"] = str(pool.absolute()) if pool.is_file() else request.pool
    settings["max_sandboxes"] = max(at_once, 1)
    suites, systems = (tuple(map(_absolute, names)) for names in sharding.own)
    return replace(
        plan,
        request=settings,
        own_suites=tuple(dict.fromkeys((*plan.own_suites, *suites))),
        own_systems=tuple(dict.fromkeys((*plan.own_systems, *systems))),
    )


def _absolute(name: str) -> str:
    file, _, attribute = name.rpartition("@")
    return f"{Path(file).absolute()}@{attribute}"


def own_parts(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names that stand for a user's own suites or systems (FILE.py@NAME)."""
    return tuple(name for name in names if OWN in name)


def _taught(job: Job) -> Job:
    """Choose workers, train systems, make the oracle's plans, outside of shards; return the job."""
    request, assigned_usd = job.request, assigned(job.request.log_dir)
    if request.max_usd is not None and assigned_usd:
        job = replace(job, request=replace(request, max_usd=request.max_usd - assigned_usd))
    with keep_until_logged(request.log_dir) as replies, job.paced():
        job = entries.with_entries(job)
        make_plans(job)
        replies.clear()
    return replace(job, request=request)


def _processes(sharding: Sharding) -> int:
    """Return how many shards' processes to run in parallel on this machine."""
    return min(sharding.shards, cores()) if sharding.launcher == "local" else 1


def _place(sharding: Sharding, log_dir: Path, stack: ExitStack) -> "Place":
    """Return two functions: one makes the lease server's keeper, one the launcher of shards."""
    if sharding.launcher == "ray":
        ray = stack.enter_context(ray_cluster(sharding.address))
        return partial(RayLeaseServer, ray, log_dir), partial(RayLauncher, ray)
    if sharding.launcher == "slurm":
        return LeaseServer, partial(SlurmLauncher, log_dir / JOBS, sharding.address)
    return LeaseServer, partial(LocalLauncher, _processes(sharding))


Place = tuple[Callable[[Sequence[str]], LeaseKeeper], Callable[[], Launcher]]


def _cut(job: Job, sharding: Sharding, wave: int) -> ShardPlan:
    """Return the run's plan, with shards (and their directories) for all questions without one."""
    log_dir, suites = job.request.log_dir, job.catalogue.suites
    names = job.experiment.suite_versions
    questions = {name: tuple(q.id for q in job.questions(suites[name])) for name in names}
    plan = replace(read_plan(log_dir) or ShardPlan({}, {}), questions=questions)
    for shard in plan.shards:
        _raise_epochs(job.experiment, plan, log_dir, shard)
    rows = [*_unplanned(job, plan)]
    cuts = cut_by_question if job.experiment.draws == SHARED else cut
    new = cuts(rows, sharding.shards, first=len(plan.shards) + 1, wave=wave) if rows else []
    plan = replace(plan, shards=(*plan.shards, *new))
    for shard in new:
        _make(job.experiment, plan, log_dir, shard)
    write_plan(log_dir, plan)  # last, so that all its directories exist
    return plan


def _unplanned(job: Job, plan: ShardPlan) -> Iterator[PlannedRow]:
    for row in job.experiment.entries:
        ids, start = plan.questions.get(row.suite, ()), plan.planned(row.name)
        if start < len(ids):
            cost = cost_of_one(job, row, ids[start:])
            epochs = job.experiment.epochs[row.suite]
            yield PlannedRow(row.name, row.suite, start, len(ids), (cost or 1) * epochs, epochs)


def _experiment(experiment: Experiment, plan: ShardPlan, shard: Shard) -> Experiment:
    """Return the part of a run's experiment (settings and entries) that one shard runs."""
    rows = {row.name: row for row in experiment.entries}
    questions = {span.entry: plan.ids(span) for span in shard.parts}
    suites = {span.suite for span in shard.parts}
    by_suite = {
        name: {suite: item for suite, item in getattr(experiment, name).items() if suite in suites}
        for name in BY_SUITE
    }
    cut_rows = tuple(replace(rows[name], questions=ids) for name, ids in questions.items())
    return replace(experiment, entries=cut_rows, limit=None, **by_suite)


def _make(experiment: Experiment, plan: ShardPlan, log_dir: Path, shard: Shard) -> None:
    """Make a shard's directory, with the files (learned artefacts, plans) that its systems need."""
    folder = shard_dir(log_dir, shard.name)
    if any(folder.glob("*.eval")) or (folder / LEDGER).exists():
        raise UserError(
            f"{folder} is not a shard of the plan, but holds replies: restore shards.json."
        )
    shutil.rmtree(folder, ignore_errors=True)  # left by a plan that was never written
    subset = _experiment(experiment, plan, shard)
    open_experiment(folder, subset)
    files = {row.args[name] for row in subset.entries for name in FILES if name in row.args}
    for file in files:
        if (log_dir / file).is_file():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(log_dir / file, folder / file)


FILES = ("learned", "plans")
"""Arguments of systems whose value is the path of a file below the log directory."""


def _raise_epochs(experiment: Experiment, plan: ShardPlan, log_dir: Path, shard: Shard) -> None:
    folder = shard_dir(log_dir, shard.name)
    stored, target = read_experiment(folder), _experiment(experiment, plan, shard)
    if stored and stored.epochs != target.epochs:
        (folder / ENDED).unlink(missing_ok=True)
        open_experiment(folder, replace(stored, epochs=target.epochs))


def _host(sharding: Sharding) -> str:
    """Return the address that the lease server binds: loopback, or all interfaces for nodes."""
    return LOOPBACK if sharding.launcher == "local" or sharding.address == HERE else ALL


Processes = tuple[Launcher, LeaseKeeper]


def _left(job: Job) -> Decimal | None:
    """Return the dollars that all shards may spend: --max-usd minus training; None: no limit."""
    limit = job.request.max_usd
    return None if limit is None else max(limit - job.meter().gone, Decimal(0))


def _ask(job: Job, plan: ShardPlan, processes: Processes) -> RunOutcome:
    """Run all unfinished shards of a plan, and return the outcome of the whole run."""
    log_dir = job.request.log_dir
    folders = {shard_dir(log_dir, shard.name): shard for shard in plan.shards}
    unfinished = [folder for folder in folders if not _is_over(folder)]
    _note_openings(job, [folders[folder] for folder in unfinished])
    spans = [span for shard in plan.shards for span in shard.parts]
    epochs = {span.entry: job.experiment.epochs[span.suite] for span in spans}
    total = sum((span.last - span.first) * epochs[span.entry] for span in spans)
    with counted_line([*folders], total, visible=job.request.display == "line") as count:
        failed = _wait(unfinished, processes, count)
    return _outcome([*folders], failed)


def _note_openings(job: Job, shards: Sequence[Shard]) -> None:
    suites = {span.suite for shard in shards if shard.wave == 1 for span in shard.parts}
    for name in sorted(suites) if job.experiment.split == "eval" else ():
        suite = job.catalogue.suites[name]
        job.controls.opened(job.request.log_dir, suite, len(job.questions(suite)))


def _is_over(folder: Path) -> bool:
    """Return whether a shard has no question left to ask or grade."""
    outcome = read_outcome(folder)
    return outcome is not None and outcome.finished and not outcome.unscored


LOOK_S = 1.0


@dataclass(slots=True)
class AnswerCount:
    """Counts the samples (answers) in the logs of some directories; rereads only changed logs."""

    folders: Sequence[Path]
    line: ProgressLine | None = None
    _known: dict[Path, tuple[int, int]] = field(default_factory=dict[Path, tuple[int, int]])

    def of(self, folder: Path) -> int:
        """Return the number of samples in the newest logs of a directory."""
        newest: dict[str, int] = {}
        for path in folder.glob("*.eval"):
            # A resumed task has a newer log, which includes the samples of its older ones.
            task = path.name.partition("_")[2]
            newest[task] = max(newest.get(task, 0), self._samples(path))
        return sum(newest.values())

    def all(self) -> int:
        """Return the number of samples in all directories."""
        return sum(map(self.of, self.folders))

    def look(self) -> None:
        """Advance the progress line by the samples that are new since the last call."""
        if line := self.line:
            for _ in range(min(self.all(), line.total) - line.done):
                line.tick()

    def _samples(self, path: Path) -> int:
        size, cached = path.stat().st_size, self._known.get(path, (-1, 0))
        if size != cached[0]:
            try:
                with zipfile.ZipFile(path) as log:
                    count = sum(name.startswith(SAMPLES) for name in log.namelist())
            except (zipfile.BadZipFile, OSError):  # it is being written
                count = cached[1]
            cached = self._known[path] = (size, count)
        return cached[1]


@contextmanager
def counted_line(folders: Sequence[Path], total: int, *, visible: bool) -> Generator[AnswerCount]:
    """Show one progress line for all shards' answers in the block; yield its counter."""
    count = AnswerCount(folders)
    title = f"answering in {pluralise(len(folders), 'shard')}"
    with progress_line(title, total, min(count.all(), total)) if visible else nullcontext() as line:
        count.line = line
        yield count


def _wait(folders: Sequence[Path], processes: Processes, count: AnswerCount) -> dict[Path, str]:
    """Run shards until all have ended, restart lost ones; return shard -> reason of its failure."""
    launcher, leases = processes
    running, failed = {*folders}, dict[Path, str]()
    losses: dict[Path, tuple[int, int]] = {}  # answers so far; losses since the last new answer
    for folder in folders:
        launcher.launch(folder)
    while running:
        time.sleep(TICK_S)
        leases.tend()
        try:
            over = launcher.ended()
        except UserError as gone:
            return failed | dict.fromkeys(running, str(gone))
        for folder, status in over.items():
            answers = count.of(folder)
            earlier, times = losses.get(folder, (answers, 0))
            losses[folder] = (answers, times + 1 if answers == earlier else 1)
            if status in (None, LOST) and losses[folder][1] < MOST_LOSSES:
                launcher.launch(folder)
                continue
            running.discard(folder)
            if status not in (0, 1) or read_outcome(folder) is None:
                failed[folder] = _last_words(folder, status)
        count.look()
    return failed


def _last_words(folder: Path, status: int | None) -> str:
    log = Path(f"{folder}.log")
    lines = log.read_text(errors="replace").split("\n") if log.is_file() else []
    last_line = next((line for line in reversed(lines) if line.strip()), "it printed nothing")
    ending = "was lost" if status in (None, LOST) else f"ended with {status}"
    return f"shard {folder.name} {ending}: {last_line.removeprefix('podium: ')} ({log})"


def _outcome(folders: Sequence[Path], failed: dict[Path, str]) -> RunOutcome:
    """Join the outcomes of shards into one outcome, with the headers of the newest logs."""
    trouble, finished = [*failed.values()], not failed
    logs: list[Path] = []
    for folder in folders:
        outcome = read_outcome(folder)
        if outcome is None or not outcome.finished:
            finished = False
            trouble += outcome.trouble if outcome else ()
        logs += newest_logs([folder], recursive=False) if any(folder.glob("*.eval")) else ()
    headers = [read_eval_log(str(path), header_only=True) for path in logs]
    return RunOutcome(finished, headers, tuple(dict.fromkeys(trouble)))


_REQUEST = TypeAdapter(RunRequest)


def shard_request(folder: Path) -> RunRequest:
    """Return the run request for a shard's directory; UserError if it is not a shard's."""
    parent = parent_of(folder)
    plan, experiment = (read_plan(parent), read_experiment(folder)) if parent else (None, None)
    if plan is None or experiment is None:
        raise UserError(
            f"{folder} is not a shard of a run. Name a folder such as RUN/shards/0001, which "
            "`podium run --shards N` makes."
        )
    fixed = {"suites": tuple(experiment.suite_versions), "systems": (), "log_dir": folder}
    return _REQUEST.validate_python({**plan.request, **fixed, "display": "none", "settled": True})


def shard_catalogue(folder: Path, catalogue: Catalogue) -> Catalogue:
    """Return the catalogue, extended by the user's own suites and systems in a shard's run."""
    parent = parent_of(folder)
    if plan := read_plan(parent) if parent else None:
        request = replace(shard_request(folder), suites=plan.own_suites, systems=plan.own_systems)
        return with_own(request, catalogue)[1]
    return catalogue


def run_shard(folder: Path, catalogue: Catalogue, controls: Controls) -> RunOutcome:
    """Run the unanswered questions of a shard, and write its outcome; UserError as for a run."""
    request = shard_request(folder)
    _await_predecessor(folder)
    (folder / ENDED).unlink(missing_ok=True)
    outcome = run(request, catalogue, controls, open_lease if is_leased(folder) else None)
    shard_outcome = ShardOutcome(outcome.finished, outcome.unscored, outcome.trouble)
    write_outcome(folder, shard_outcome)
    if any(folder.glob("*.eval")):
        write_figures(folder, load_runs([folder], deep=True)[0])
    return outcome


PATIENCE_S = 30.0


def _await_predecessor(folder: Path) -> None:
    """Wait at most `PATIENCE_S` for an earlier process of the shard, whose launcher was killed."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            with lock_experiment(folder):
                return
        except UserError:
            time.sleep(0.2)
