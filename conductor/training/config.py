"""A training's configuration: a TOML file, read into one class per table and checked."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_serializer,
    field_validator,
    model_validator,
)

from podium.conductor.grpo_reward import DISCOUNT, RewardConfig
from podium.conductor.parse import PlanFormat
from podium.conductor.prompt import ShownWorkers
from podium.harness.errors import UserError, shipped_file
from podium.harness.files import parse_toml, read_toml
from podium.harness.pool_config import code_refusal
from podium.harness.records import SEED
from podium.harness.run.catalogue import OWN

LOADING = (
    *("attn_implementation", "device_map", "dtype", "max_memory", "quantization_config"),
    *("revision", "use_cache"),
)
"""Allowed keys of `[grpo.model_init_kwargs]`. Others could load code, or pickled weights."""
LOOK_BACK = (1, 2, 3, 4)  # distances in tokens that the first layer's heads look back, one per head
CONFIGS = Path(__file__).parents[1] / "configs"


def refuse_look_up_sizes(layers: int, heads: int, kv_heads: int) -> None:
    """Raise UserError, with the needed sizes, if a model's sizes do not fit option `look_up`."""
    if layers < 2 or heads != len(LOOK_BACK) or kv_heads != 2:
        raise UserError(
            f"[model.from_scratch] look_up needs 2 layers or more, {len(LOOK_BACK)} heads and "
            "2 kv_heads."
        )


def read_tables(path: Path) -> dict[str, Any]:
    """Return a configuration file's tables, merged over those of its `base`, a shipped file."""
    try:
        data = read_toml(path)
    except ValueError as error:
        raise UserError(f"Config {path} is not valid TOML: {error}. Correct it.") from error
    base = data.pop("base", None)
    if base is None:
        return data
    under = CONFIGS / f"{base}.toml"
    if not under.is_file() or under == path:
        raise UserError(
            f"Config {path}: its base {base!r} is not a shipped config. List them: podium train "
            "--list."
        )
    tables = read_tables(under)
    if "model" in data:
        tables.pop("model", None)
    if "names" in data.get("suites", {}):
        tables.get("suites", {}).pop("weights", None)
    return _overlay(tables, data)


def _overlay(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        current = merged.get(key)
        both = isinstance(current, dict) and isinstance(value, dict)
        merged[key] = _overlay(cast(Any, current), cast(Any, value)) if both else value
    return merged


def set_key(data: dict[str, Any], setting: str) -> None:
    """Set `section.key=value` in `data`; the value is parsed as TOML if valid, else a string."""
    key, separator, value = setting.partition("=")
    names = key.strip().split(".")
    if not separator or not all(names):
        raise UserError(f"--set takes section.key=value, not {setting!r}.")
    for name in names[:-1]:
        table = data.setdefault(name, {})
        if not isinstance(table, dict):
            raise UserError(f"--set {setting}: {name!r} is not a table. End the key there.")
        data = cast("dict[str, Any]", table)
    try:
        data[names[-1]] = parse_toml(f"value = {value}")["value"]
    except ValueError:
        data[names[-1]] = value


class ConfigSection(BaseModel):
    """Base class of all tables of a training's configuration; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FromScratch(ConfigSection):
    """Settings of a Qwen2 model with random weights, and of a tokenizer trained on questions."""

    hidden: int = Field(default=128, gt=0)
    intermediate: int = Field(default=512, gt=0)
    layers: int = Field(default=2, gt=0)
    heads: int = Field(default=4, gt=0)
    kv_heads: int = Field(default=2, gt=0)
    vocab: int = Field(default=1024, gt=256)
    context: int = Field(default=1024, gt=0)  # maximum tokens of prompt and plan together
    initializer_range: float = Field(default=0.08, gt=0)
    """Standard deviation of random weights. Qwen2's own 0.02 suits thousands of dimensions; in 128
    dimensions attention would stay uniform too long for a short warm start."""
    tied: bool = True  # whether the output layer shares the embedding's weights
    embeddings: int | None = Field(default=None, gt=256)  # embedding rows, if more than tokens
    look_up: bool = False  # whether initial attention matches equal words (model.py)


class ProfiledPart(ConfigSection):
    """Settings of a policy that plans by workers' profiles (conductor/profile_policy.py)."""

    questions: int = Field(default=50, ge=8)  # per suite, to measure each worker alone first
    cost_weight: float = Field(default=0.4, gt=0, le=0.45)  # `CostAware.weight`
    cost_calls: float = Field(default=8.0, gt=0)
    """`CostAware.scale`, as a multiple of the pool's mean dollars per call."""
    searched: int = Field(default=1000, ge=1)  # questions for which random plans are tried
    warm_steps: int = Field(default=600, ge=0)
    """Number of supervised steps, on the best single workers and on the best plans of a random
    search."""
    warm_batch: int = Field(default=48, ge=1)
    warm_rate: float = Field(default=2e-3, gt=0)


class ModelPart(ConfigSection):
    """The source of the weights: a folder or a Hugging Face name (`path`), or random weights."""

    path: str = ""
    from_scratch: FromScratch | None = None
    profiled: ProfiledPart | None = None
    parameters: float | None = None  # in billions, for estimates; None: from the model's config
    frozen: tuple[str, ...] = ()  # parameters whose name has one of these parts are not trained


class PoolPart(ConfigSection):
    """The pool of workers, and the selection of them in each question's prompt (prompt.py)."""

    name: str
    shown: int | Literal["random"] | None = None  # None: all
    order: Literal["pool", "random"] = "pool"
    drawn: int = Field(default=0, ge=0, le=1000)
    """Number of random pools of practice workers (suites/practice/workers/drawing.py) that replace
    the pool `name`; each question gets one at random. No evaluation uses these pools."""


class SuitesPart(ConfigSection):
    """The suites whose train splits are used, and the weights by which they are sampled."""

    names: tuple[str, ...] = Field(min_length=1)
    train: int | None = Field(default=None, ge=1)  # questions per train split; None: all
    weights: dict[str, float] = Field(default_factory=dict[str, float])  # suite -> sampling weight
    box: str | None = None  # sandbox of model-written programs; None: the default


class VerdictsPart(ConfigSection):
    """Recorded grades that replace a training's pool and suites (conductor/verdict_reward.py)."""

    source: str  # a source of `podium route`
    split: str  # evaluation questions, unused in training: `date:0.3` or `share:0.5`
    split_seed: int = Field(default=0, ge=0, le=SEED)


Prior = Literal["cards", "kinds", "sentences"]


class PlanRecipe(ConfigSection):
    """How the random plans of a warm start are drawn (training_rows.py)."""

    prior: Prior = "cards"
    """How a step's worker is drawn. `cards`: by words that a worker's card shares with the
    question's kind (cluster); `kinds`: one random favourite per kind; `sentences`: as `cards`, but
    with one step per sentence of the question."""
    kinds: int = Field(default=12, ge=1)  # number of kinds (clusters) of questions
    trust: float = Field(default=0.6, ge=0, le=1)  # probability of a draw by `prior`, else uniform
    sharpness: float = Field(default=1.0, ge=1, le=64)  # exponent of the prior's weights
    names: bool = False
    """Whether the reasoning before the lists names each worker by the first word of its card, so
    that a model can learn to look workers up if their order changes."""
    later: float = Field(default=0.5, ge=0, le=1)  # probability of a later round, with [recursion]
    keep: float = Field(default=0.5, ge=0, le=1)  # probability that a later round keeps the answer


class WarmStart(ConfigSection):
    """Supervised steps before GRPO, on random plans, or on plans of a file or earlier trainings."""

    kind: Literal["none", "random-plans", "given-plans", "own-plans"] = "none"
    plans: str = ""
    """For `given-plans`: a file of JSON lines, each a `question` and the `workers` of its steps; a
    step reads all earlier ones. Questions without a plan are left out."""
    runs: tuple[str, ...] = ()
    """For `own-plans`: folders of trainings on the same questions, whose right plans are used."""
    least: float = Field(default=1.0, gt=0, le=1)
    """For `own-plans`: the minimum score (about the share of right tries) of a good enough plan."""
    steps: int = Field(default=200, ge=0)
    batch: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=3e-3, gt=0)
    options: PlanRecipe = PlanRecipe()

    @property
    def is_listed(self) -> bool:
        """Whether the plans come from a file or from earlier trainings, and are not drawn."""
        return self.kind in ("given-plans", "own-plans")

    @model_validator(mode="after")
    def _plans_are_given_own_or_drawn(self) -> "WarmStart":
        if bool(self.plans) != (self.kind == "given-plans"):
            raise ValueError('plans, a file, must be set if and only if kind = "given-plans"')
        if self.kind == "own-plans" and not self.runs:
            raise ValueError('kind = "own-plans" needs runs = ["RUN"]: folders of `podium train`')
        if bool(self.runs) != (self.kind == "own-plans"):
            raise ValueError('runs, folders of trainings, may be set only with kind = "own-plans"')
        return self

    @field_serializer("options")
    def _options_that_were_set(self, options: PlanRecipe) -> dict[str, Any]:
        return options.model_dump(exclude_unset=True)


class RecursionPart(ConfigSection):
    """Settings of later rounds: prompts that show the answer of a first plan (rounds.py)."""

    share: float = Field(default=0.5, gt=0, lt=1)  # share of rows that are later rounds
    discount: float = Field(default=DISCOUNT, gt=0, le=1)  # factor of first rounds' rewards


class Lora(ConfigSection):
    """Settings to train low-rank adapters (LoRA) instead of all weights."""

    r: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    target_modules: tuple[str, ...] | Literal["all-linear"] = "all-linear"


class ValidationPart(ConfigSection):
    """Settings of validation: the fixed held-out questions that select the best checkpoint."""

    every: int = Field(default=10, ge=1)  # steps between two validations
    questions: int = Field(default=32, ge=1)  # first questions of each suite's validation split
    patience: int | None = Field(default=None, ge=1)  # validations without improvement, then stop
    batch: int = Field(default=64, ge=1)  # plans generated in one batch


class RunPart(ConfigSection):
    """Settings of a training's seed, device, checkpoints and trackers of experiments."""

    seed: int = Field(default=0, ge=0, le=SEED)
    save_every: int = Field(default=20, ge=1)
    keep: int = Field(default=2, ge=1)  # checkpoints kept, besides the best one
    threads: int = Field(default=1, ge=1)  # torch's threads; more can be 20 times slower
    device: Literal["cpu", "gpu"] = "gpu"
    tensorboard: bool = True
    report_to: tuple[Literal["mlflow", "trackio", "wandb"], ...] = ()
    """Further experiment trackers that receive the same metrics, but no texts."""

    @field_validator("report_to")
    @classmethod
    def _each_tracker_once(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(names)) < len(names):
            raise ValueError("a tracker is listed twice: name each once")
        return names


class TrainingConfig(ConfigSection):
    """The content of a training's configuration file."""

    title: str = ""
    verdicts: VerdictsPart | None = None  # replaces [pool] and [suites]
    model: ModelPart = ModelPart()
    pool: PoolPart
    suites: SuitesPart
    form: PlanFormat = PlanFormat()
    warm_start: WarmStart = WarmStart()
    grpo: dict[str, Any] = Field(default_factory=dict[str, Any])
    lora: Lora | None = None
    recursion: RecursionPart | None = None
    reward: RewardConfig = RewardConfig()
    validation: ValidationPart = ValidationPart()
    run: RunPart = RunPart()
    name: str = ""  # the file's stem; set by `read_config`

    @property
    def discount(self) -> float | None:
        """Factor of the rewards in first rounds; None if the training has no later rounds."""
        return self.recursion.discount if self.recursion else None

    @model_validator(mode="before")
    @classmethod
    def _verdicts_have_their_own_workers(cls, data: Any) -> Any:
        tables = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
        verdicts = tables.get("verdicts")
        if not isinstance(verdicts, dict):
            return cast("Any", data)
        source = str(cast("dict[str, Any]", verdicts).get("source"))
        defaults = {"pool": {"name": "verdicts"}, "suites": {"names": [f"verdicts:{source}"]}}
        return {**defaults, **tables}


def known_configs() -> list[str]:
    """Return the names of the configurations that ship with podium."""
    return sorted(path.stem for path in CONFIGS.glob("*.toml"))


def read_config(name_or_path: str, settings: Sequence[str] = ()) -> TrainingConfig:
    """Read a configuration by name (conductor/configs) or path; `settings` override its values."""
    path = shipped_file("training config", name_or_path, CONFIGS)
    data = read_tables(path)
    suites = data.get("suites")
    names: object = cast("dict[str, Any]", suites).get("names") if isinstance(suites, dict) else ()
    refuse_own_suites(names, str(path))
    for setting in settings:
        set_key(data, setting)
    data["name"] = path.stem
    return validate_config(data, str(path))


def validate_config(data: Mapping[str, Any], place: str) -> TrainingConfig:
    """Return nested dicts as a training's configuration; UserError with their first error."""
    try:
        config = TrainingConfig.model_validate(data)
    except ValidationError as error:
        raise UserError(f"Config {place}: {_first_error(error)}.") from error
    _refuse_contradictions(config)
    return config


def refuse_own_suites(names: object, place: str) -> None:
    """Raise UserError if a file's `[suites] names` has Python code; only --set may name code."""
    for name in cast("list[object]", names) if isinstance(names, list) else ():
        if OWN in str(name):
            raise UserError(
                f"{place} names Python code, {str(name)[:80]!r}, which podium never runs from a "
                "settings file. Name the suite on the command line: --set suites.names=[...]."
            )


def _refuse_code(grpo: Mapping[str, Any]) -> None:
    if refusal := code_refusal(grpo):
        raise UserError(f"[grpo] {refusal[1]}.")
    loading: object = grpo.get("model_init_kwargs") or {}
    if not isinstance(loading, dict):
        raise UserError("[grpo] model_init_kwargs must be a table: write [grpo.model_init_kwargs].")
    for key in cast("dict[str, Any]", loading):
        if key not in LOADING:
            raise UserError(
                f"[grpo.model_init_kwargs] supports {', '.join(LOADING)}, not {key!r}. Leave it "
                "out."
            )


def _refuse_unlike_models(config: TrainingConfig) -> None:
    model = config.model
    if sum((bool(model.path), model.from_scratch is not None, model.profiled is not None)) != 1:
        raise UserError("[model] must have exactly one of path, from_scratch and profiled.")
    if model.profiled and not (config.pool.drawn and config.warm_start.kind == "none"):
        raise UserError(
            "[model.profiled] is trained on drawn pools from random weights: set [pool] drawn, and "
            'warm_start.kind = "none".'
        )


def _refuse_contradictions(config: TrainingConfig) -> None:
    _refuse_code(config.grpo)
    _refuse_unlike_models(config)
    size = config.model.from_scratch
    if size and size.look_up:
        refuse_look_up_sizes(size.layers, size.heads, size.kv_heads)
    pool = config.pool
    whole_pool = ShownWorkers(pool.shown, pool.order).whole and not pool.drawn
    if not (config.form.cards or whole_pool):
        raise UserError(
            "[form] cards=false hides the role cards, so the conductor cannot tell workers apart "
            "if the workers change. Leave out [pool] shown, order and drawn."
        )
    if pool.drawn and config.verdicts:
        raise UserError("[pool] drawn cannot be used with [verdicts]. Leave [pool] drawn out.")
    if config.recursion and config.verdicts:
        raise UserError("[recursion] cannot be used with [verdicts]. Leave [recursion] out.")
    if config.recursion and config.grpo.get("scale_rewards", "group") not in ("batch", "none"):
        raise UserError(
            "[recursion] requires [grpo] scale_rewards=batch or none: scaling within a group would "
            "cancel the discount of first rounds."
        )
    strange = set(config.suites.weights) - set(config.suites.names)
    if strange:
        raise UserError(
            f"[suites] weights has {min(strange)!r}, which is not in [suites] names. Add it there, "
            "or leave its weight out."
        )


def _first_error(error: ValidationError) -> str:
    """Return the first error as text: place and reason, or an unknown key and the nearest key."""
    mistake = error.errors()[0]
    path = [str(name) for name in mistake["loc"]]
    if mistake["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{unknown_key(path[-1], _keys(path[:-1]), '.'.join(path[:-1]))}"
    reason = mistake["msg"].removeprefix("Value error, ").rstrip(".")
    reason = reason.replace("a valid tuple", 'a list, as ["a", "b"]')
    return f"{'.'.join(path)}: {reason[0].lower()}{reason[1:]}"


def unknown_key(key: str, keys: Sequence[str], section: str) -> str:
    """Return the error text for a key that a configuration's section does not have.

    >>> unknown_key("lerning_rate", ["learning_rate", "beta"], "grpo")
    "[grpo] has no key 'lerning_rate'; the nearest is 'learning_rate'"
    """
    near = get_close_matches(key, keys, n=1, cutoff=0.0)
    place = f"[{section}]" if section else "the file"
    return f"{place} has no key {key!r}; the nearest is {near[0]!r}" if near else f"{place}: {key}"


def _keys(path: Sequence[str]) -> list[str]:
    kind: Any = TrainingConfig
    for name in path:
        annotation = kind.model_fields[name].annotation
        options = getattr(annotation, "__args__", (annotation,))
        kind = next(option for option in options if option is not type(None))
    return [field.name for field in fields(kind)] if kind is PlanFormat else list(kind.model_fields)
