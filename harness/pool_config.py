"""Pools as files: harness/pools/*.toml -> `PoolSpec`.

A worker is a name, an Inspect model id *with provider*, a generation config, a role card and a
price reference. Effort, temperature and token limits are part of a worker's identity: two efforts
are two workers. The file is user input, so every mistake is answered with its line and field.
"""

import hashlib
import re
from pathlib import Path
from typing import Any, Literal, Self

from inspect_ai.model import GenerateConfig
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.api_keys import NAMED, note_keys
from harness.errors import UserError
from harness.files import SETTINGS, parse_toml, read_limited
from harness.records import CONDUCTOR, GRADER

POOLS = Path(__file__).parent / "pools"

Label = Literal["live", "recorded", "rehearsal"]
"""Where a pool's replies come from. `rehearsal` stays `rehearsal` when it is recorded."""

REPLAYING = "recorded"
REHEARSING = "rehearsal"
"""The two providers that call nobody; all others are `live`."""

UNPRICEABLE = "not-auditable"
"""Begins the price reference of a worker whose dollars nothing tells: no book has such a key."""

ROLES = (CONDUCTOR, GRADER)
"""Tables of a pool file whose models are no workers; each is named as its table is."""


class _Misplaced(ValueError):
    """A mistake that only the whole file shows, with the field it is in."""

    def __init__(self, said: str, where: tuple[int | str, ...]) -> None:
        super().__init__(said)
        self.where = where


class WorkerSpec(BaseModel):
    """One `[[workers]]` table, or the `[conductor]` or `[grader]` table, each with its own name."""

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
    not_auditable: str = ""
    """Why nothing that the provider reports gives the dollars of a call, for systems behind an
    endpoint: e.g. other models are called behind the name, and their tokens are not reported. Such
    calls have no price. Empty where tokens and a price are enough, orchestration tokens included.
    """

    @model_validator(mode="after")
    def _has_no_price_if_none_can_be_told(self) -> Self:
        if self.not_auditable and self.price:
            raise _Misplaced("a worker that is not_auditable has no price", ("price",))
        return self

    @model_validator(mode="after")
    def _has_no_key_where_inspect_writes_it_down(self) -> Self:
        for name in self.config.extra_headers or ():
            if NAMED.search(name):
                raise _Misplaced(
                    f"{name} is a key, and Inspect writes config into every log: name it in "
                    "args.default_headers, or set the provider's environment variable",
                    ("config", "extra_headers"),
                )
        return self

    @property
    def price_ref(self) -> str:
        """The key to look up in a price book; one that no book has where nothing tells a price."""
        return f"{UNPRICEABLE}/{self.model}" if self.not_auditable else self.price or self.model

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
    """Name of the price book, or the path of one."""
    description: str = ""
    workers: tuple[WorkerSpec, ...] = Field(min_length=1)
    conductor: WorkerSpec | None = None
    """The model that `conductor-prompted` asks for plans; its calls have a role of their own."""
    grader: WorkerSpec | None = None
    """The model that judges what no rule can grade: never a worker, and no system's cost."""
    sha256: str = ""
    """Digest of the file; filled in by `read_pool`."""

    @model_validator(mode="after")
    def _names_are_distinct(self) -> Self:
        names = self.names
        for index, name in enumerate(names):
            where = ("workers", index, "name")
            if name in names[:index]:
                raise _Misplaced(f"worker name {name!r} is used twice", where)
            if name in ROLES:
                said = "`conductor` and `grader` are roles of their own, not worker names"
                raise _Misplaced(said, where)
        for role, slot in self._roles():
            if slot.name != role:
                said = f"a {role} is always named {role!r}, not {slot.name!r}"
                raise _Misplaced(said, (role, "name"))
        return self

    @model_validator(mode="after")
    def _label_is_true(self) -> Self:
        for index, worker in enumerate(self.workers):
            self._refuse_provider(worker, ("workers", index, "model"))
        for role, slot in self._roles():
            self._refuse_provider(slot, (role, "model"))
        return self

    def _refuse_provider(self, slot: WorkerSpec, where: tuple[int | str, ...]) -> None:
        wanted = {
            "rehearsal": "`rehearsal/` workers, or `recorded/` replies of theirs",
            "recorded": "`recorded/` workers",
            "live": "workers of real providers",
        }[self.label]
        fits = {
            "rehearsal": slot.provider in (REHEARSING, REPLAYING),
            "recorded": slot.provider == REPLAYING,
            "live": slot.provider not in (REHEARSING, REPLAYING),
        }[self.label]
        if not fits:
            said = f"a pool labelled {self.label!r} has {wanted} only, not {slot.model!r}"
            raise _Misplaced(said, where)

    @property
    def names(self) -> tuple[str, ...]:
        """The workers' names in file order: the order of `Model 0, Model 1, ...`."""
        return tuple(worker.name for worker in self.workers)

    @property
    def replayed(self) -> bool:
        """True when replies come from a cassette, whoever gave them first."""
        return any(worker.provider == "recorded" for worker in self.workers)

    @property
    def slots(self) -> tuple[WorkerSpec, ...]:
        """The workers and, where there are, conductor and grader: every model a run may call."""
        return (*self.workers, *(slot for _, slot in self._roles()))

    def _roles(self) -> list[tuple[str, WorkerSpec]]:
        found = zip(ROLES, (self.conductor, self.grader), strict=True)
        return [(role, slot) for role, slot in found if slot is not None]

    def worker(self, name: str) -> WorkerSpec:
        """Return a slot by name, a worker most of the time; UserError lists the known workers."""
        for worker in self.slots:
            if worker.name == name:
                return worker
        known = ", ".join(self.names)
        raise UserError(f"Pool {self.name!r} has no worker {name!r}; its workers are: {known}.")


def read_pool(name: str) -> PoolSpec:
    """Read a pool by name (harness/pools) or by path; UserError names the line and the field.

    Relative paths in the file start where the file is, so that a folder can be moved as a whole.
    """
    path = Path(name) if name.endswith(".toml") else POOLS / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(pool.stem for pool in POOLS.glob("*.toml")))
        raise UserError(f"There is no pool {name!r}; known pools: {known} (or give a .toml path).")
    content = read_limited(path, SETTINGS)
    try:
        data = parse_toml(content)
    except ValueError as error:
        raise UserError(f"Pool file {path} is not valid TOML: {error}.") from error
    data.setdefault("name", path.stem)
    for role in ROLES:
        if isinstance(data.get(role), dict):
            data[role].setdefault("name", role)
    data["sha256"] = hashlib.sha256(content).hexdigest()
    try:
        spec = PoolSpec.model_validate(data)
    except ValidationError as error:
        raise UserError(f"Pool file {path}, {_first(error, content.decode())}.") from error
    for slot in spec.slots:
        note_keys(slot.name, {**slot.args, "config": slot.config.model_dump(exclude_none=True)})
    return _with_paths(spec, path.resolve().parent)


def _first(error: ValidationError, text: str) -> str:
    """Return the first mistake: its line, its field, what is wrong."""
    first = error.errors()[0]
    raised = first.get("ctx", {}).get("error")
    where = raised.where if isinstance(raised, _Misplaced) else first["loc"]
    field = ".".join(str(part) for part in where) or "the whole file"
    said = first["msg"].removeprefix("Value error, ").rstrip(".")
    return f"line {_line_of(text, where)}, field {field}: {said}"


def _with_paths(spec: PoolSpec, folder: Path) -> PoolSpec:
    """Return a pool whose relative paths start at its folder; names stay names."""

    def beside(slot: WorkerSpec) -> WorkerSpec:
        cassette = slot.args.get("cassette")
        if slot.provider != REPLAYING or not isinstance(cassette, str):
            return slot
        found = _beside(cassette, folder, ".jsonl")
        return slot.model_copy(update={"args": {**slot.args, "cassette": found}})

    changes = {
        "prices": _beside(spec.prices, folder, ".toml"),
        "workers": tuple(beside(worker) for worker in spec.workers),
        "conductor": beside(spec.conductor) if spec.conductor else None,
        "grader": beside(spec.grader) if spec.grader else None,
    }
    return spec.model_copy(update=changes)


def _beside(value: str, folder: Path, suffix: str) -> str:
    return str(folder / Path(value).expanduser()) if value.endswith(suffix) else value


def _line_of(text: str, where: tuple[int | str, ...]) -> int:
    """Return the 1-based line of the deepest part of `where` that the file contains."""
    lines = text.splitlines()
    start, end = 0, len(lines)
    if len(where) > 1 and where[0] == "workers" and isinstance(where[1], int):
        heads = [at for at, line in enumerate(lines) if line.strip() == "[[workers]]"]
        if where[1] < len(heads):
            start = heads[where[1]]
            end = heads[where[1] + 1] if where[1] + 1 < len(heads) else len(lines)
    elif where and where[0] in ROLES:
        head = f"[{where[0]}]"
        start = next((at for at, line in enumerate(lines) if line.strip() == head), 0)
    for part in reversed(where):
        pattern = re.compile(rf"^\s*(\[.*\b)?{re.escape(str(part))}\b")
        for at in range(start, end):
            if pattern.match(lines[at]):
                return at + 1
    return start + 1


def with_conductor(spec: PoolSpec, seat: WorkerSpec | None) -> PoolSpec:
    """Return a pool with another conductor; None leaves it as it is."""
    return spec if seat is None else spec.model_copy(update={"conductor": seat})


def refuse_other_conductor(seat: WorkerSpec, role: object) -> None:
    """Raise UserError when somebody else was named for the role, who would be billed as the seat.

    `role` is Inspect's model of the role, as it prints itself.
    """
    if str(role) != seat.model:
        raise UserError(
            f"This system brings its own {CONDUCTOR}, {seat.model}: leave out --model-role "
            f"{CONDUCTOR}={role}."
        )
