"""The batch endpoints of OpenAI and Anthropic: each row of a batch has the fate of a request.

Results come in reverse order. A row whose act ends `expired` was not run; `missing`: the batch ends
without a word about it. A batch of nothing but expired rows has no result files at OpenAI's.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.providers.anthropic_dialect import MESSAGES
from tests.providers.dialect import Dialect
from tests.providers.openai_dialects import CHAT, RESPONSES

URLS = {"/v1/chat/completions": CHAT, "/v1/responses": RESPONSES}
Row = tuple[str, str, int, Any]  # custom id, how it ended, its HTTP status and its body
Answer = Callable[[Dialect, Any, str], tuple[str, int, Any]]
"""(dialect, a row's body, key) -> how it ends, its status and its body; it is on the bill then."""
CLOSE = {"connection": "close"}  # as server.py closes them
LATE = {"code": "batch_expired", "message": "This request expired."}


@dataclass
class BatchDesk:
    """What was submitted, and how it ends."""

    answer: Answer
    held: bool = False
    """Whether no batch ends for now."""
    lost: bool = False
    """Whether nobody knows any batch."""
    polls: int = 0
    submitted: list[list[Row]] = field(default_factory=list[list[Row]])
    _files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    @property
    def routes(self) -> list[Route]:
        """The endpoints of both."""
        return [
            Route("/v1/files", self._upload, methods=["POST"]),
            Route("/v1/files/{id}/content", self._content),
            Route("/v1/batches", self._create, methods=["POST"]),
            Route("/v1/batches/{number:int}", self._status),
            Route("/v1/messages/batches", self._create_messages, methods=["POST"]),
            Route("/v1/messages/batches/{number:int}", self._messages_status),
            Route("/v1/messages/batches/{number:int}/results", self._messages_results),
        ]

    async def _upload(self, request: Request) -> Response:
        lines = (await request.body()).splitlines()
        name = f"file-{len(self._files)}"
        self._files[name] = b"\n".join(line for line in lines if line.startswith(b'{"custom_id"'))
        known = {"object": "file", "bytes": 1, "created_at": 1, "filename": "x", "status": "ok"}
        return _said({"id": name, "purpose": "batch", **known})

    async def _content(self, request: Request) -> Response:
        return Response(self._files[request.path_params["id"]], headers=CLOSE)

    def _add(self, request: Request, rows: list[tuple[str, Dialect, Any]]) -> int:
        key = request.headers.get("authorization") or request.headers["x-api-key"]
        self.submitted.append([(name, *self.answer(how, body, key)) for name, how, body in rows])
        return len(self.submitted) - 1

    async def _create(self, request: Request) -> Response:
        lines = self._files[(await request.json())["input_file_id"]].splitlines()
        rows = [json.loads(line) for line in lines]
        made = [(row["custom_id"], URLS[row["url"]], row["body"]) for row in rows]
        return self._batch(self._add(request, made))

    async def _status(self, request: Request) -> Response:
        self.polls += 1
        if self.lost:
            return _said({"error": {"message": "no such batch"}}, 404)
        return self._batch(request.path_params["number"])

    def _batch(self, number: int) -> Response:
        rows, told = self.submitted[number][::-1], dict[str, str]()
        late = any(ending == "expired" for _, ending, _, _ in rows)
        if not self.held and not all(ending == "expired" for _, ending, _, _ in rows):
            for kind, good in (("output", True), ("error", False)):
                name = told[f"{kind}_file_id"] = f"{kind}-{number}"
                lines = [self._line(row) for row in rows if row[1] != "missing"]
                self._files[name] = b"\n".join(line for fine, line in lines if fine is good)
        status = "in_progress" if self.held else "expired" if late else "completed"
        said = {"id": str(number), "object": "batch", "endpoint": "/v1/responses", "status": status}
        said |= {"completion_window": "24h", "input_file_id": "file"}
        return _said({**said, "created_at": int(time.time()), **told})

    def _line(self, row: Row) -> tuple[bool, bytes]:
        name, ending, status, body = row
        said: dict[str, Any] = {"custom_id": name, "response": None, "error": LATE}
        if ending != "expired":
            said |= {"response": {"status_code": status, "body": body}, "error": None}
        return ending != "expired" and status == 200, json.dumps(said).encode()

    async def _create_messages(self, request: Request) -> Response:
        rows = (await request.json())["requests"]
        made = [(row["custom_id"], MESSAGES, row["params"]) for row in rows]
        return self._messages(request, self._add(request, made))

    async def _messages_status(self, request: Request) -> Response:
        self.polls += 1
        return self._messages(request, request.path_params["number"])

    def _messages(self, request: Request, number: int) -> Response:
        day, rows = "2026-01-02T00:00:00Z", self.submitted[number]
        counts = {"processing": 0, "succeeded": len(rows), "errored": 0, "canceled": 0}
        said = {"id": str(number), "type": "message_batch", "created_at": day, "expires_at": day}
        said["processing_status"] = "in_progress" if self.held else "ended"
        url = f"{request.base_url}v1/messages/batches/{number}/results"
        return _said({**said, "results_url": url, "request_counts": {**counts, "expired": 0}})

    async def _messages_results(self, request: Request) -> Response:
        lines: list[str] = []
        for name, ending, status, body in self.submitted[request.path_params["number"]][::-1]:
            good = {"type": "succeeded", "message": body}
            bad = {"type": "expired"} if ending == "expired" else {"type": "errored", "error": body}
            result = good if ending == "whole" and status == 200 else bad
            lines += [json.dumps({"custom_id": name, "result": result})] * (ending != "missing")
        return Response("\n".join(lines), headers=CLOSE, media_type="application/x-jsonl")


def _said(body: Any, status: int = 200) -> Response:
    return JSONResponse(body, status, CLOSE)
