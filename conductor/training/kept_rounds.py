"""First rounds of a recursive training, kept in its folder: a resumed one goes on from the same.

    first_rounds.json    by row: what was planned and what it came to; which rows have none, and why

So a row whose first plan met an outage stays a first round, also when the worker is back. Texts of
suites that must not be published are in no file: such a training cannot be resumed. Not here: how
first plans are made (first_rounds.py).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from conductor.plan_reward import First
from conductor.training.folder import newest_checkpoint, write_json
from harness.errors import UserError

FILE = "first_rounds.json"


@dataclass(frozen=True, slots=True)
class Kept:
    """One first round."""

    said: str
    """The policy's whole text."""
    first: First


@dataclass(frozen=True, slots=True)
class FirstRounds:
    """What first plans came to, by what first_rounds.py calls their rows."""

    kept: Mapping[str, Kept] = field(default_factory=dict[str, Kept])
    unread: tuple[str, ...] = ()
    """Rows for which the model wrote no plan."""
    failed: tuple[str, ...] = ()
    """Rows whose plan a worker failed."""
    why: str = ""
    """What the first failure was."""

    @property
    def asked(self) -> int:
        """How many first plans were wanted."""
        return len(self.kept) + len(self.unread) + len(self.failed)

    @property
    def account(self) -> str:
        """One sentence about how many rows have a later round."""
        said = f"First plans: {len(self.kept)} of {self.asked} have a later round"
        if self.unread:
            said += f"; {len(self.unread)} could not be read"
        if self.failed:
            said += f"; {len(self.failed)} met a worker's failure and stay first rounds"
        return f"{said}."


_ROUNDS = TypeAdapter(FirstRounds)


def as_text(found: FirstRounds, folder: Path | None) -> str:
    """Return first rounds as JSON, written to a training's folder where there is one."""
    plain = {id: _plain(kept) for id, kept in found.kept.items()}
    said = _ROUNDS.dump_python(replace(found, kept=plain), mode="json")
    if folder is not None:
        write_json(folder / FILE, said)
    return json.dumps(said)


def from_text(said: str) -> FirstRounds:
    """Return first rounds from JSON; UserError where it is something else."""
    try:
        return _ROUNDS.validate_json(said)
    except ValidationError as error:
        raise UserError(
            f"{FILE} is damaged, and later rounds would be others: put it back, or begin anew with "
            "--out."
        ) from error


def kept_text(folder: Path) -> str | None:
    """Return a folder's first rounds as JSON, None where none were made yet.

    UserError where steps were made from first rounds that are not there.
    """
    if (folder / FILE).is_file():
        return (folder / FILE).read_text()
    if newest_checkpoint(folder):
        raise UserError(
            f"{folder} has checkpoints but no {FILE}, so its later rounds would be others (a suite "
            "that must not be published leaves none): begin anew with --out."
        )
    return None


def _plain(kept: Kept) -> Kept:
    """Return a round whose facts are plain JSON values."""
    answer = replace(kept.first.answer, noted=dict(kept.first.answer.noted))
    return Kept(kept.said, First(kept.first.workflow, answer))
