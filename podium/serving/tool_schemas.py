"""The functions that a client offers, as a worker is told of them."""

import json
from collections.abc import Collection, Mapping
from typing import Any, cast

from inspect_ai.tool import ToolInfo, ToolParams
from inspect_ai.util import JSONSchema

from podium.serving.exchange import Refusal

SILENT = {"title", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly"}
"""Words of JSON Schema that ask nothing of a worker."""


def tool_info(name: str, description: str, schema: Mapping[str, Any], at: str) -> ToolInfo:
    """Return a function as a worker is told of it; Refusal names `at`, where its schema stands.

    Inspect has fields for a part of JSON Schema and drops the rest (`$ref`, `const`, `minItems`):
    what it would drop stands in the description of what it is said of, as JSON.
    """
    try:
        json.dumps(schema, allow_nan=False)  # a reply repeats it
        told = _told(schema, ToolParams.model_fields)
        parameters = ToolParams.model_validate({"additionalProperties": True, **told})
    except (ValueError, RecursionError):
        said = f"`{at}` is no JSON schema of an object: send one, with `properties`."
        raise Refusal(400, "invalid_request", said, param=at) from None
    more = told.get("description", "")
    return ToolInfo(name=name, description=f"{description} {more}".strip(), parameters=parameters)


def _told(schema: object, known: Collection[str] = JSONSchema.model_fields) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    found = dict(cast(Mapping[str, Any], schema))
    said = found.pop("description", "")
    lost = {word: one for word, one in found.items() if word not in known and word not in SILENT}
    kept = {word: _below(word, one) for word, one in found.items() if word in known}
    if lost:
        said = f"{said} (JSON Schema: {json.dumps(lost)})".lstrip()
    return {**kept, "description": said} if said else kept


def _below(word: str, found: Any) -> Any:
    """Return what stands under a word of a schema, its own schemas told as well."""
    if word in ("items", "additionalProperties"):
        return _told(found)
    if word == "properties" and isinstance(found, Mapping):
        return {name: _told(one) for name, one in cast(Mapping[str, Any], found).items()}
    if word == "anyOf" and isinstance(found, list):
        return [_told(one) for one in cast(list[object], found)]
    return found
