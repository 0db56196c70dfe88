"""Reads pool files (harness/pools/*.toml) into a `PoolSpec`; errors state line and field.

Reasoning effort, temperature and token limits identify a worker: two efforts are two workers.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast

from inspect_ai.model import GenerateConfig
from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from podium.harness.api_keys import NAMED, note_keys
from podium.harness.errors import UserError, did_you_mean, no_such, shipped_file
from podium.harness.files import SETTINGS, parse_toml, read_limited
from podium.harness.knowledge_cutoff import UNKNOWN, known_cutoff
from podium.harness.prices.book import BadEntry, Book, price_from, read_book, with_own_prices
from podium.harness.prices.cost import Price
from podium.harness.records import CONDUCTOR, GRADER

POOLS = Path(__file__).parent / "pools"
Label = Literal["live", "recorded", "rehearsal"]  # the source of replies: see `PoolSpec.label`
ONLY: Mapping[Label, str] = {
    "rehearsal": "`rehearsal/` workers, or their `recorded/` replies",
    "recorded": "`recorded/` workers",
    "live": "workers of real providers",
}
REPLAYING, REHEARSING = "recorded", "rehearsal"  # the providers that make no real call
UNPRICEABLE = "not-auditable"  # prefix of a price reference that no book has
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"  # of a pool, a worker, a variant
ROLES = (CONDUCTOR, GRADER)  # names of models that are not workers, and of their tables


class _Misplaced(ValueError):
    """An error of a check that compares several fields; `where` is the path of the wrong field."""

    def __init__(self, message: str, place: tuple[int | str, ...]) -> None:
        super().__init__(message)
        self.where = place


class WorkerSpec(BaseModel):
    """A `[[workers]]` table of a pool file, or another model's, e.g. `[conductor]`, `[grader]`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=NAME)
    model: str = Field(pattern=r"^[^/\s]+/\S+$")
    """Inspect model id with provider: `openai/gpt-5`, `rehearsal/abacus`."""
    card: str = ""
    """A description of the worker's strengths, for conductors that read worker cards."""
    price: str | dict[str, Any] = ""
    """Key in the price book (default: the model id), or a table like a price book's entry."""
    knowledge_cutoff: str = UNKNOWN
    """Date at which the model's knowledge ends, with its source, e.g. `2024-06 (model card)`."""
    config: GenerateConfig = GenerateConfig()
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    """Model arguments of the provider (Inspect's `-M`)."""
    not_auditable: str = ""
    """Reason why the cost of a call is unknown, e.g. the endpoint calls other models and does not
    report their tokens. Empty if reported tokens and a price give the cost."""
    variants: dict[Annotated[str, Field(pattern=NAME)], GenerateConfig] = Field(
        default_factory=dict[str, GenerateConfig]
    )
    """Name of a variant -> settings that replace those in `config`: `single:NAME@VARIANT` uses
    them."""

    @field_validator("price", mode="before")
    @classmethod
    def _is_a_key_or_a_table(cls, price: object) -> object:
        if not isinstance(price, str | dict):
            raise ValueError(
                "it is a key of the price book, or USD per million tokens such as "
                "{ input = 1.25, output = 10.0 }"
            )
        return _exact(cast(object, price))

    @model_validator(mode="after")
    def _has_no_price_no_key_and_no_code_out_of_place(self) -> Self:
        if refusal := code_refusal(self.args):
            raise _Misplaced(f"args.{refusal[1]}", ("args", *refusal[0]))
        if self.not_auditable and self.price:
            message = "a worker with not_auditable must not have a price: leave one of them out"
            raise _Misplaced(message, ("price",))
        try:
            self.own_price("")
        except BadEntry as error:
            raise _Misplaced(str(error), ("price",)) from error
        configs = (self.config, *self.variants.values())
        for name in (name for config in configs for name in config.extra_headers or ()):
            if NAMED.search(name):
                raise _Misplaced(
                    f"{name} is a key, and Inspect writes config into every log: name it in "
                    "args.default_headers, or set the provider's environment variable",
                    ("config", "extra_headers"),
                )
        return self

    @field_validator("variants", mode="before")
    @classmethod
    def _have_known_settings(cls, variants: Any) -> Any:
        fields = GenerateConfig.model_fields
        tables = cast("dict[str, Any]", variants).values() if isinstance(variants, dict) else ()
        settings = [cast("dict[str, Any]", table) for table in tables if isinstance(table, dict)]
        for key in (key for table in settings for key in table if key not in fields):
            raise ValueError(f"{did_you_mean(key, fields)}There is no setting {key!r}: correct it")
        return cast(Any, variants)

    @model_validator(mode="after")
    def _has_distinct_variants(self) -> Self:
        configs = {"the worker itself": self.config}
        for name in self.variants:
            config = self.variant(name).config
            for owner in (owner for owner, settings in configs.items() if settings == config):
                message = f"variant {name!r} equals {owner}: change a setting, or leave it out"
                raise _Misplaced(message, ("variants", name))
            configs[f"variant {name!r}"] = config
        return self

    def variant(self, name: str) -> "WorkerSpec":
        """Return a variant (a worker with changed settings) as a worker named WORKER@VARIANT."""
        config = self.config.merge(self.variants[name])
        changes: dict[str, Any] = {"name": f"{self.name}@{name}", "config": config, "variants": {}}
        return self.model_copy(update=changes)

    @property
    def price_ref(self) -> str:
        """The worker's key in a price book; if `not_auditable`, a key that no book has."""
        if self.not_auditable:
            return f"{UNPRICEABLE}/{self.model}"
        return self.price if self.price and isinstance(self.price, str) else self.model

    def own_price(self, pool: str) -> Price | None:
        """Return the price that the pool's file states for the worker; None if it states none."""
        if isinstance(self.price, str):
            return None
        source = {"source": f"pool file {pool!r}"}
        return price_from(self.model, {**source, **self.price}, evidence="")

    @property
    def cutoff(self) -> str:
        """The model's knowledge cutoff, with its source: the pool file, else Inspect's database."""
        stated = self.knowledge_cutoff
        return known_cutoff(self.model) if stated == UNKNOWN else stated

    @property
    def provider(self) -> str:
        """The Inspect provider: the model id up to its first slash."""
        return self.model.split("/", 1)[0]


def provider_of(model: str) -> str:
    """Return a model's provider, by the name that rate limits (calls per minute) use.

    >>> provider_of("openai/gpt-5"), provider_of("openai-api/deepseek/chat")
    ('openai', 'openai-api/deepseek')
    """
    provider, _, path = model.partition("/")
    return f"{provider}/{path.partition('/')[0]}" if provider == "openai-api" else provider


class PoolSpec(BaseModel):
    """A validated pool file: its workers, its other models and its prices."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(pattern=NAME)
    label: Label
    """`live` (real calls), `recorded` (real replies replayed) or `rehearsal` (our own programs)."""
    prices: str = ""
    """Name or path of the price book; may be left out if every worker states its own price."""
    description: str = ""
    setup: str = ""
    """How to start the servers of the workers: shown if one of them does not answer."""
    tokens_per_second: float | None = Field(default=None, gt=0)
    """Output tokens per second of all workers together, to estimate a run's duration."""
    workers: tuple[WorkerSpec, ...] = Field(min_length=1)
    conductor: WorkerSpec | None = None
    """The model that `conductor-prompted` asks for plans; its calls have a separate role."""
    grader: WorkerSpec | None = None
    """The model that judges answers which no rule can grade; it is no worker, and no system pays
    for it."""
    environment: dict[str, WorkerSpec] = Field(
        default_factory=dict[str, WorkerSpec], validation_alias=AliasChoices("roles", "environment")
    )
    """Models that an Inspect task's code calls by role, e.g. `[roles.user]`; no system pays for
    these calls."""
    aliases: dict[str, str] = Field(default_factory=dict[str, str])
    """Other names under which `podium serve` offers systems: `mini = "router-knn"`."""
    sha256: str = ""
    """Digest of the pool file; filled in by `read_pool`."""
    path: str = ""
    """Path of the pool file, for messages; filled in by `read_pool`."""

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        for message, place in (*self._mistakes(), *self._mispriced()):
            raise _Misplaced(message, place)
        for role in (role for role, slot in self.roles() if slot.variants):
            raise _Misplaced("only workers have variants: leave them out", (role, "variants"))
        return self

    def _mistakes(self) -> Iterator[tuple[str, tuple[int | str, ...]]]:
        message = "{!r} is a role of a task's models: rename the worker"
        reserved = {name: message.format(name) for name in self.environment}
        message = "`conductor` and `grader` are roles of their own: rename the worker"
        reserved |= dict.fromkeys(ROLES, message)
        for index, name in enumerate(self.names):
            if name in self.names[:index]:
                yield f"worker name {name!r} is used twice: rename one", ("workers", index, "name")
            if name in reserved:
                yield reserved[name], ("workers", index, "name")
        for role, slot in self.roles():
            if slot.name != role:
                message = f"a {role} is always named {role!r}, not {slot.name!r}: leave `name` out"
                yield message, (role, "name")
        places = [("workers", index, "model") for index in range(len(self.workers))]
        slots = (*self.workers, *(slot for _, slot in self.roles()))
        for slot, place in zip(
            slots, [*places, *((role, "model") for role, _ in self.roles())], strict=True
        ):
            ours = slot.provider in (REHEARSING, REPLAYING)
            fits = {"rehearsal": ours, "recorded": slot.provider == REPLAYING, "live": not ours}
            if not fits[self.label]:
                only = f"{ONLY[self.label]} only, not {slot.model!r}: change the model or the label"
                yield f"a pool labelled {self.label!r} has {only}", place

    def _mispriced(self) -> Iterator[tuple[str, tuple[int | str, ...]]]:
        if not self.prices and any(isinstance(slot.price, str) for slot in self.slots):
            yield "name a price book, or give every worker a price of its own", ("prices",)
        stated: dict[str, object] = {}
        for slot in self.slots:
            price = slot.own_price(self.name)
            if price and stated.setdefault(slot.model, price) != price:
                message = f"two prices for {slot.model}: put them into a price book, under two keys"
                yield message, ("workers", self.slots.index(slot), "price")

    def book(self) -> Book:
        """Return this pool's price book: `prices`, with the prices that the pool file states."""
        prices = {slot.model: slot.own_price(self.name) for slot in self.slots}
        stated = {model: price for model, price in prices.items() if price}
        return with_own_prices(read_book(self.prices or "none"), self.name, stated)

    @property
    def names(self) -> tuple[str, ...]:
        """The workers' names in file order, the order of `Model 0, Model 1, ...` in prompts."""
        return tuple(worker.name for worker in self.workers)

    @property
    def replayed(self) -> bool:
        """True if the replies are read from a cassette, a file of recorded replies."""
        return any(worker.provider == REPLAYING for worker in self.workers)

    @property
    def variants(self) -> tuple[WorkerSpec, ...]:
        """The variants of all workers, each as a separate worker."""
        return tuple(worker.variant(name) for worker in self.workers for name in worker.variants)

    @property
    def slots(self) -> tuple[WorkerSpec, ...]:
        """Every model that a run may call: workers, their variants and models of other roles."""
        return (*self.workers, *self.variants, *(slot for _, slot in self.roles()))

    @property
    def batched(self) -> list[WorkerSpec]:
        """The models that are called through their provider's batch API."""
        return [slot for slot in self.slots if slot.config.batch]

    @property
    def price_keys(self) -> set[str]:
        """The price book keys that calls of this pool may have; a judge's key is its model id."""
        return {key for slot in self.slots for key in (slot.model, slot.price_ref)}

    def roles(self) -> list[tuple[str, WorkerSpec]]:
        """Return (name, model) of the conductor, the grader and a task's own models, if any."""
        pairs = zip(ROLES, (self.conductor, self.grader), strict=True)
        roles = [(role, slot) for role, slot in pairs if slot is not None]
        return [*roles, *self.environment.items()]

    def worker(self, name: str) -> WorkerSpec:
        """Return a worker, variant or other model by name; UserError lists the pool's workers."""
        for worker in self.slots:
            if worker.name == name:
                return worker
        base, _, variant = name.partition("@")
        if base in self.names:
            variants = self.worker(base).variants
            raise no_such("variant", variant, variants, f"worker {base!r} has: ")
        near, names = did_you_mean(name, self.names), ", ".join(self.names)
        raise UserError(
            f"{near}Pool {self.name!r} has no worker {name!r}; its workers are: {names}."
        )


def read_pool(name: str) -> PoolSpec:
    """Read a pool by name (harness/pools) or by path; UserError states the wrong line and field."""
    path = shipped_file("pool", name, POOLS)
    return parse_pool(read_limited(path, SETTINGS), path)


def parse_pool(content: bytes, path: Path) -> PoolSpec:
    """Return the pool that a file's bytes define; UserError states the wrong line and field."""
    try:
        data = parse_toml(content)
    except ValueError as error:
        raise UserError(f"Pool file {path} is not valid TOML: {error}. Correct it.") from error
    data.setdefault("name", path.stem)
    try:
        spec = _validated({**data, "path": str(path)}, content)
    except ValidationError as error:
        raise UserError(f"Pool file {path}, {_first(error, content.decode())}.") from error
    for slot in spec.slots:
        note_keys(slot.name, {**slot.args, "config": slot.config.model_dump(exclude_none=True)})
    return _with_paths(spec, path.resolve().parent)


def pool_of(text: str) -> PoolSpec:
    """Return the pool that a TOML text in podium's code defines, without a file."""
    return _validated(parse_toml(text), text.encode())


def _validated(data: dict[str, Any], content: bytes) -> PoolSpec:
    for role in ROLES:
        if isinstance(data.get(role), dict):
            data[role].setdefault("name", role)
    roles: object = data.get("roles")
    tables = cast("dict[str, object]", roles) if isinstance(roles, dict) else {}
    for role, table in tables.items():
        if isinstance(table, dict):
            cast("dict[str, object]", table).setdefault("name", role)
    return PoolSpec.model_validate({**data, "sha256": hashlib.sha256(content).hexdigest()})


def _exact(value: object) -> object:
    """Return a price table in the format of price books: every float becomes a text."""
    if isinstance(value, dict):
        table = cast(dict[str, object], value)
        return {name: _exact(field) for name, field in table.items()}
    if isinstance(value, list):
        return [_exact(row) for row in cast(list[object], value)]
    return format(Decimal(str(value)), "f") if isinstance(value, float) else value


def _first(error: ValidationError, text: str) -> str:
    detail = error.errors()[0]
    raised = detail.get("ctx", {}).get("error")
    place = detail["loc"] + (raised.where if isinstance(raised, _Misplaced) else ())
    field = ".".join(str(key) for key in place) or "the whole file"
    message = detail["msg"].removeprefix("Value error, ").rstrip(".")
    return f"line {_line_of(text, place)}, field {field}: {message}"


def _with_paths(spec: PoolSpec, folder: Path) -> PoolSpec:
    """Return a pool whose paths relative to `folder` are absolute; names without a path stay."""

    def path(value: str, suffix: str) -> str:
        return str(folder / Path(value).expanduser()) if value.endswith(suffix) else value

    def beside(slot: WorkerSpec) -> WorkerSpec:
        cassette = slot.args.get("cassette")
        if slot.provider != REPLAYING or not isinstance(cassette, str):
            return slot
        args = {**slot.args, "cassette": path(cassette, ".jsonl")}
        return slot.model_copy(update={"args": args})

    changes: dict[str, Any] = {role: beside(slot) for role, slot in spec.roles() if role in ROLES}
    changes["environment"] = {role: beside(slot) for role, slot in spec.environment.items()}
    changes["workers"] = tuple(map(beside, spec.workers))
    return spec.model_copy(update={**changes, "prices": path(spec.prices, ".toml")})


def _line_of(text: str, place: tuple[int | str, ...]) -> int:
    """Return the line number, from 1, of a field at `place`, or of its table."""
    lines = text.splitlines()
    start, end = 0, len(lines)
    if len(place) > 1 and place[0] == "workers" and isinstance(place[1], int):
        heads = [index for index, line in enumerate(lines) if line.strip() == "[[workers]]"]
        if place[1] < len(heads):
            start, end = [*heads, end][place[1] : place[1] + 2]
    elif place and place[0] in ROLES:
        head = f"[{place[0]}]"
        start = next((index for index, line in enumerate(lines) if line.strip() == head), 0)
    for key in reversed(place):
        pattern = re.compile(rf"^\s*(\[.*\b)?{re.escape(str(key))}\b")
        for index in range(start, end):
            if pattern.match(lines[index]):
                return index + 1
    return start + 1


def with_conductor(spec: PoolSpec, conductor: WorkerSpec | None) -> PoolSpec:
    """Return a pool with another conductor; with `conductor` None, the same pool."""
    return spec.model_copy(update={"conductor": conductor}) if conductor else spec


def refuse_other_conductor(override: WorkerSpec, role: object) -> None:
    """Raise UserError if the role `conductor` has another model than the system's own conductor."""
    if str(role) != override.model:
        raise UserError(
            f"This system brings its own {CONDUCTOR}, {override.model}: leave out --model-role "
            f"{CONDUCTOR}={role}."
        )


def in_batches(spec: PoolSpec) -> PoolSpec:
    """Return a pool whose workers use the batch API, with their own batch settings, if any."""

    def batched(slot: WorkerSpec) -> WorkerSpec:
        config = GenerateConfig(batch=True).merge(slot.config)
        return slot.model_copy(update={"config": config})

    return spec.model_copy(update={"workers": tuple(map(batched, spec.workers))})


RUNS_CODE = re.compile(
    r".*remote_code.*|code_revision|auto_map|custom_generate|weights_only|allow_pickle"
    r"|allow_all_kernels|use_kernels|kernel_config"  # a kernel is a compiled module
    r"|.*plugins?|.*_cls|.*module(_path)?|middleware|.*logits_processors?|.*executor_backend"
)
"""Names of settings that let transformers, TRL, vLLM or SGLang run code, in lower case with `_`."""
IN_TEXT = re.compile(r"trust.?remote.?code|custom_generate|allow_all_kernels|weights_only", re.I)
"""Names of settings that run code, in a text that a library reads as JSON or as options."""
ATTENTION = "attn_implementation"  # `sdpa`, or OWNER/NAME: code from the hub

Place = tuple[str | int, ...]


def code_settings(settings: object, place: Place = ()) -> Iterator[Place]:
    """Yield the place of each setting, at any depth, that would let a library run code.

    >>> [*code_settings({"init": {"trust-remote-code": True}, "top_k": 5})]
    [('init', 'trust-remote-code')]
    """
    if isinstance(settings, Mapping):
        for key, value in cast(Mapping[Any, Any], settings).items():
            inner = (*place, str(key))
            runs_code = RUNS_CODE.fullmatch(re.sub(r"\W", "_", str(key).lower().strip("- ")))
            yield from (inner,) if runs_code else code_settings(value, inner)
    elif isinstance(settings, Sequence) and not isinstance(settings, str):
        for number, value in enumerate(cast(Sequence[Any], settings)):
            yield from code_settings(value, (*place, number))
    elif isinstance(settings, str):
        is_kernel = ATTENTION in place and "/" in settings
        if is_kernel or IN_TEXT.search(settings):
            yield place


def code_refusal(settings: object) -> tuple[Place, str] | None:
    """Return (place, error message) of the first setting that would run code; None without any."""
    for place in code_settings(settings):
        name = ".".join(map(str, place))
        return place, f"{name} would run code that comes with a model: leave it out"
    return None
