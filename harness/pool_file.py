"""Pools as files: harness/pools/*.toml -> `PoolSpec`.

A worker is a name, an Inspect model id *with provider*, a generation config, a role card and a
price reference. Effort, temperature and token limits are part of a worker's identity: two efforts
are two workers. The file is user input, so every mistake is answered with its line and field.
"""

import hashlib
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, Self

from inspect_ai.model import GenerateConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.errors import UserError

POOLS = Path(__file__).parent / "pools"

Label = Literal["live", "recorded", "rehearsal"]


class WorkerSpec(BaseModel):
    """One `[[workers]]` table (or the `[conductor]` table, whose name is always `conductor`)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    model: str = Field(pattern=r"^[^/\s]+/\S+$")
    """Inspect model id with provider: `openai/gpt-5`, `rehearsal/abacus`."""
    card: str = ""
    """What the worker is good at, for conductors that are shown worker cards."""
    price: str = ""
    """Key in the price book; defaults to the model id."""
    knowledge_cutoff: str = "unknown"
    """With its source, e.g. `2024-06 (model card)`."""
    config: GenerateConfig = GenerateConfig()
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Model arguments of the provider (Inspect's `-M`)."""

    @property
    def price_ref(self) -> str:
        """The key to look up in a price book."""
        return self.price or self.model

    @property
    def provider(self) -> str:
        """The Inspect provider: the model id up to its first slash."""
        return self.model.split("/", 1)[0]


class PoolSpec(BaseModel):
    """A pool file, validated."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    label: Label
    """`live` (real calls), `recorded` (real replies replayed) or `rehearsal` (our own programs)."""
    prices: str
    """Name of the price book."""
    description: str = ""
    workers: tuple[WorkerSpec, ...] = Field(min_length=1)
    conductor: WorkerSpec | None = None
    """The model that `conductor-prompted` asks for plans; its calls have a role of their own."""
    sha256: str = ""
    """Digest of the file; filled in by `read_pool`."""

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        names = [worker.name for worker in self.workers]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"worker name {min(twice)!r} is used twice")
        if "conductor" in names or "grader" in names:
            raise ValueError("`conductor` and `grader` are roles of their own, not worker names")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The workers' names in file order: the order of `Model 0, Model 1, ...`."""
        return tuple(worker.name for worker in self.workers)

    @property
    def slots(self) -> tuple[WorkerSpec, ...]:
        """The workers and, where there is one, the conductor: every model a run may call."""
        return (*self.workers, self.conductor) if self.conductor else self.workers

    def worker(self, name: str) -> WorkerSpec:
        """Return a worker (or the conductor) by name; UserError lists the known ones."""
        for worker in self.slots:
            if worker.name == name:
                return worker
        known = ", ".join(self.names)
        raise UserError(f"Pool {self.name!r} has no worker {name!r}; its workers are: {known}.")


def read_pool(name: str) -> PoolSpec:
    """Read a pool by name (harness/pools) or by path; UserError names the line and the field."""
    path = Path(name) if name.endswith(".toml") else POOLS / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(pool.stem for pool in POOLS.glob("*.toml")))
        raise UserError(f"There is no pool {name!r}; known pools: {known} (or give a .toml path).")
    content = path.read_bytes()
    try:
        text = content.decode()
        data = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"Pool file {path} is not valid TOML: {error}.") from error
    data.setdefault("name", path.stem)
    if isinstance(data.get("conductor"), dict):
        data["conductor"].setdefault("name", "conductor")
    data["sha256"] = hashlib.sha256(content).hexdigest()
    try:
        return PoolSpec.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = first["loc"]
        field = ".".join(str(part) for part in where) or "the whole file"
        line = _line_of(text, where)
        raise UserError(
            f"Pool file {path}, line {line}, field {field}: {first['msg'].rstrip('.')}."
        ) from error


def _line_of(text: str, where: tuple[int | str, ...]) -> int:
    """Return the 1-based line of the deepest part of `where` that the file contains."""
    lines = text.splitlines()
    start, end = 0, len(lines)
    if len(where) > 1 and where[0] == "workers" and isinstance(where[1], int):
        heads = [at for at, line in enumerate(lines) if line.strip() == "[[workers]]"]
        if where[1] < len(heads):
            start = heads[where[1]]
            end = heads[where[1] + 1] if where[1] + 1 < len(heads) else len(lines)
    elif where and where[0] == "conductor":
        start = next((at for at, line in enumerate(lines) if line.strip() == "[conductor]"), 0)
    for part in reversed(where):
        pattern = re.compile(rf"^\s*(\[.*\b)?{re.escape(str(part))}\b")
        for at in range(start, end):
            if pattern.match(lines[at]):
                return at + 1
    return start + 1
