"""Starts shards as SLURM jobs with submitit; as local processes if the partition is `local`."""

import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from podium.harness.errors import UserError

HERE = "local"
MINUTES = 24 * 60
LOOK_S = 2.0


def refuse_no_slurm(partition: str | None) -> None:
    """Raise UserError if submitit is missing, or if SLURM does not answer on this machine."""
    if find_spec("submitit") is None:
        raise UserError("--launcher slurm needs submitit: pip install '.[slurm]'.")
    if partition != HERE and not slurm_answers():
        raise UserError(
            "--launcher slurm found no working sbatch: start the run where jobs are submitted, or "
            "use --address local for processes of this machine."
        )


def slurm_answers() -> bool:
    """Return whether this machine has `sbatch` and SLURM's controller answers."""
    command = ["sinfo", "-h"]
    return bool(
        shutil.which("sbatch") and not subprocess.run(command, capture_output=True).returncode
    )


class SlurmLauncher:
    """Runs shards as SLURM jobs of one core each, on nodes that share the run's directory."""

    def __init__(self, folder: Path, partition: str | None) -> None:
        """Take a SLURM partition, and a folder on all nodes for submitit's scripts and logs."""
        refuse_no_slurm(partition)
        self._cluster = cluster = HERE if partition == HERE else "slurm"
        self._executor: Any = import_module("submitit").AutoExecutor(folder, cluster=cluster)
        self._executor.update_parameters(timeout_min=MINUTES, cpus_per_task=1, name="podium-shard")
        if partition and partition != HERE:
            self._executor.update_parameters(slurm_partition=partition)
        self._running: dict[Path, Any] = {}
        self._gone = Counter[Path]()
        self._looked = 0.0

    def launch(self, folder: Path) -> None:
        """Submit a job that runs the shard of the directory `folder`."""
        # The shard ends when its stdin, an idle pipe, is closed: with the job, however that ends.
        # The submitted function is in the standard library, so that nodes import no other podium.
        command = [sys.executable, "-m", "podium", "shard", str(folder.absolute()), "--attached"]
        self._gone[folder] = 0
        self._running[folder] = self._executor.submit(
            subprocess.call, command, stdin=subprocess.PIPE
        )

    def ended(self) -> Mapping[Path, int | None]:
        """Return shard -> exit code of jobs ended since the last call; None: the job was lost."""
        self._look()
        over = [
            path for path, job in self._running.items() if _has_result(job) or self._gone[path] > 1
        ]
        return {folder: _status(folder, self._running.pop(folder)) for folder in over}

    def _look(self) -> None:
        """Count each job's consecutive absences from the queue: its result may arrive later."""
        if not self._running or time.monotonic() - self._looked < LOOK_S:
            return
        self._looked = time.monotonic()
        queued = self._queued()
        for folder, job in self._running.items():
            self._gone[folder] = 0 if job.job_id in queued else self._gone[folder] + 1

    def _queued(self) -> set[str]:
        if self._cluster == HERE:
            return {job.job_id for job in self._running.values() if not job.done()}
        # submitit would query SLURM's accounting (sacct), which not every cluster has.
        queue = subprocess.run(
            ["squeue", "--me", "-h", "-o", "%i"], stdout=subprocess.PIPE, check=False
        )
        jobs = (job.job_id for job in self._running.values())
        return set(queue.stdout.decode().split()) if queue.returncode == 0 else {*jobs}

    def close(self) -> None:
        """Cancel the jobs of all shards."""
        for job in self._running.values():
            job.cancel(check=False)
        self._running.clear()


def _has_result(job: Any) -> bool:
    return job.paths.result_pickle.exists()


def _status(folder: Path, job: Any) -> int | None:
    with Path(f"{folder}.log").open("a") as log:
        log.write(job.stderr() or "")
    status = None if not _has_result(job) or job.exception() is not None else job.result()
    return None if status is None or status < 0 else status
