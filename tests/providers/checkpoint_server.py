"""A server of one checkpoint, as vLLM's is: OpenAI's chat completions, decoded by NumPy.

It takes the name that it serves the checkpoint by and no other, and keeps a bill of its own. Its
ids are unlike those of the servers of workers: one id is one request.
"""

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inspect_ai.model import ChatMessageUser
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from podium.conductor.decode import Completion, DecodeOptions, decode
from podium.conductor.embedded import Checkpoint, open_checkpoint
from tests.providers.server import hosted

NAME = "conductor"
"""What the checkpoint is served by: vLLM's --served-model-name."""
Told = dict[str, int]
"""Usage of a reply, as OpenAI's dialect has it."""


@contextmanager
def serve_checkpoint(folder: Path) -> Generator[tuple[str, list[Told]]]:
    """Yield the base URL of a checkpoint's server, and the bill that it writes."""
    checkpoint, bill = open_checkpoint(str(folder)), list[Told]()

    async def answer(request: Request) -> Response:
        asked = json.loads(await request.body())
        headers = {"connection": "close"}  # else the client's stays open when an eval ends
        if asked["model"] != NAME:
            return JSONResponse(_unknown(asked["model"]), 404, headers)
        reply = _completion(checkpoint, asked, f"plan-{len(bill) + 1}")
        bill.append(reply["usage"])
        return JSONResponse(reply, 200, {**headers, "x-request-id": f"plan-{len(bill)}"})

    with hosted(Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])) as url:
        yield f"{url}/v1", bill


def _completion(checkpoint: Checkpoint, asked: Mapping[str, Any], id: str) -> dict[str, Any]:
    turns = [ChatMessageUser(content=one["content"]) for one in asked["messages"]]
    prompt = checkpoint.tokens(turns)
    most = asked.get("max_tokens") or asked.get("max_completion_tokens")
    regex = asked.get("structured_outputs", {}).get("regex")
    guide = checkpoint.guide(regex) if regex else None
    how = DecodeOptions(asked.get("temperature") or 0.0, 0, most, guide)
    found = decode(checkpoint.model, prompt, how)
    message = {"role": "assistant", "content": checkpoint.text(found.tokens)}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _ending(found)}
    return {
        "id": id,
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": NAME,
        "choices": [choice],
        "usage": {
            "prompt_tokens": len(prompt),
            "completion_tokens": found.written,
            "total_tokens": len(prompt) + found.written,
        },
    }


def _ending(found: Completion) -> str:
    return "stop" if found.stop == "stop" else "length"


def _unknown(name: str) -> dict[str, Any]:
    said = f"The model `{name}` does not exist."
    return {"error": {"message": said, "type": "NotFoundError", "param": "model", "code": 404}}
