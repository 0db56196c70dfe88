"""Model arguments of a rehearsal worker (`-M` on Inspect's command line, `args` in a pool file)."""

from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.errors import UserError
from harness.rehearsal.workers import Worker, find_worker


class Arguments(BaseModel):
    """What a pool file or the command line may set; anything else is refused by name."""

    model_config = ConfigDict(extra="forbid")

    seed: int = 0
    time_scale: float = Field(default=0.0, ge=0)
    """Seconds slept per second of modelled latency."""
    stream: str = ""
    """Workers with one stream name share their slips; defaults to the worker's name."""
    slip: float | None = Field(default=None, ge=0, le=1)
    code_slip: float | None = Field(default=None, ge=0, le=1)
    verbosity: float | None = Field(default=None, gt=0, le=20)
    digits: int | None = Field(default=None, ge=1, le=4000)
    reach: int | None = Field(default=None, ge=1, le=100_000)
    families: int | None = Field(default=None, ge=0)


@dataclass(frozen=True, slots=True)
class Settings:
    """A worker as it was set up."""

    worker: Worker
    seed: int
    stream: str
    time_scale: float

    def latency_s(self, tokens: int) -> float:
        """Return the modelled seconds until a reply of so many tokens is complete."""
        return self.worker.latency_s + tokens / self.worker.tokens_per_s


def settled(model_name: str, model_args: dict[str, Any]) -> Settings:
    """Return a worker with its arguments; UserError names a wrong one."""
    worker = find_worker(model_name)
    try:
        given = Arguments.model_validate(model_args)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        known = ", ".join(Arguments.model_fields)
        raise UserError(
            f"rehearsal/{model_name}: argument {field!r}: {first['msg']} (known: {known})."
        ) from error
    limits = given.model_dump(exclude={"seed", "time_scale", "stream"}, exclude_none=True)
    return Settings(
        worker=replace(worker, **limits),
        seed=given.seed,
        stream=given.stream or worker.name,
        time_scale=given.time_scale,
    )
