"""Writes the Python package `podium-practice`, a taskset for the training library verifiers 0.4.

The taskset gets its rewards from a running `podium reward serve`.
"""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from podium.harness.errors import UserError, no_such
from podium.harness.files import refuse_unwritable

TEMPLATES = Path(__file__).parent / "verifiers_package"
PRACTICE = "practice-"
USUAL = ("practice-integer", "practice-choice")


def write_taskset(out: Path, suites: Sequence[str], available: Sequence[str]) -> tuple[Path, ...]:
    """Write the taskset package into the new folder `out`; return the paths of its files.

    Raises UserError if `out` exists, or if a suite is not one of podium's practice suites.
    """
    ours = [name for name in available if name.startswith(PRACTICE)]
    for name in suites:
        if name not in ours:
            raise no_such("practice suite", name, ours, "there are: ")
    if out.exists() or out.is_symlink():
        raise UserError(f"{out} exists already, and nothing is overwritten: name another --out.")
    refuse_unwritable(out, "--out")
    fields: Mapping[str, str] = {
        "version": version("podium"),
        "suites": json.dumps(list(dict.fromkeys(suites))),
        "asked": " ".join(f"--suite {name}" for name in dict.fromkeys(suites)),
    }
    out.mkdir(parents=True)
    paths: list[Path] = []
    for template in sorted(TEMPLATES.glob("*.in")):
        path = out / template.stem
        path.write_text(template.read_text(encoding="utf-8").format_map(fields), encoding="utf-8")
        paths.append(path)
    return tuple(paths)
