"""Who owns a container: a label that names one process of one host, so that orphans can be told.

A process is known by its PID namespace and number and by the moment it started: numbers are used
again. A podium killed with `kill -9` removes nothing; the next one finds what it left.
"""

import os
from pathlib import Path

LABEL = "podium.sandbox"
"""On every container of ours; images carry other labels, because containers inherit those."""
OWNER = "podium.sandbox.owner"


def labels() -> dict[str, str]:
    """Return the labels that every container started by this process must carry."""
    return {LABEL: "1", OWNER: f"{_place()} {_process(os.getpid())}"}


def is_orphan(container_labels: dict[str, str], *, running: bool) -> bool:
    """Say whether nobody can use a container any more, given its labels.

    Its owner is looked up only where that can be done: on this boot of this host, in our own PID
    namespace. Elsewhere (an engine that several hosts share, a host that has rebooted) the owner
    may be alive, and only a container that no longer runs is an orphan.
    """
    place, _, owner = container_labels.get(OWNER, "").rpartition(" ")
    if place != _place():
        return not running
    return owner != _process(int(owner.partition(":")[0]))


def _place() -> str:
    """Name this boot of this host and our PID namespace: in it, process numbers mean something."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _process(pid: int) -> str:
    """Name a living process `pid:start`, in clock ticks since boot; `pid:gone` where it is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return f"{pid}:gone"
    fields = stat.rpartition(")")[2].split()  # the name before may contain anything; proc(5)
    return f"{pid}:gone" if fields[0] in "ZX" else f"{pid}:{fields[19]}"
