"""The provider's own books: every request that came in, and what it will bill for it."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podium.harness.records import Usage


@dataclass(frozen=True, slots=True)
class Line:
    """One HTTP request, retries included."""

    number: int
    at: float
    """Seconds since 1970."""
    dialect: str
    """`openai-chat`, `openai-responses`, `anthropic` or `google`."""
    model: str
    """As asked for."""
    served: str
    request_id: str
    """In the reply's headers."""
    response_id: str
    """In the reply's body."""
    status: int
    ending: str
    billed: bool
    usage: Usage
    """What it took, whatever the reply said."""
    service: str | None
    """The service tier that was asked for."""
    streamed: bool
    key: str
    """The API key that was used: a test word."""
    prompt: str = ""
    """All of the request's texts."""


@dataclass(slots=True)
class Bill:
    """All lines, in order of arrival."""

    lines: list[Line] = field(default_factory=list[Line])

    @property
    def billed(self) -> Sequence[Line]:
        """The lines that cost something."""
        return [line for line in self.lines if line.billed]

    @property
    def statuses(self) -> list[int]:
        """The HTTP status of every request, in order of arrival."""
        return [line.status for line in self.lines]

    def usage(self, model: str | None = None) -> Usage:
        """Return all billed tokens, of one model or of all."""
        found = [line.usage for line in self.billed if model in (None, line.model)]
        return sum(found, Usage(reasoning=0, total_reported=0))

    def write_csv(self, path: Path) -> Path:
        """Write what is billed as an invoice by request, in podium's own columns."""
        columns = "request_id,model,time,input_tokens,cached_tokens,output_tokens,api_key"
        rows = [columns, *(_row(line) for line in self.billed)]
        path.write_text("".join(f"{row}\n" for row in rows))
        return path

    def as_json(self) -> list[dict[str, Any]]:
        """Return the lines as plain JSON values."""
        return [asdict(line) for line in self.lines]

    def write(self, path: Path) -> Path:
        """Write the lines, one JSON object each."""
        path.write_text("".join(json.dumps(line) + "\n" for line in self.as_json()))
        return path


def _row(line: Line) -> str:
    """Google's replies carry an id in their body, and Inspect keeps no headers of them."""
    id = line.response_id if line.dialect == "google" else line.request_id
    time = datetime.fromtimestamp(line.at, UTC).isoformat(timespec="seconds")
    took = line.usage
    counts = f"{took.input_total},{took.cache_read},{took.output}"
    return f"{id},{line.model},{time},{counts},{line.key}"
