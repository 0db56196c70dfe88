"""The data dictionary of the exported ledger: schema.md, which people read, as programs do."""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

PAGE = "schema.md"
SOURCE = Path(__file__).with_name(PAGE)
COLUMN = re.compile(
    r"\| `(?P<column>\w+)` \| (?P<type>[^|]+) \| (?P<unit>[^|]*)\| (?P<null>[^|]*)\| "
)
UNKNOWN, NEVER = "nobody knows it; it is not 0", "never"


@cache
def dictionary_of(table: str) -> tuple[Mapping[str, str], ...]:
    """Return every column of `calls` or `queries`, in order, with unit and meaning."""
    _, _, rest = SOURCE.read_text(encoding="utf-8").partition(f"\n## {table}\n")
    lines = rest.partition("\n## ")[0].splitlines()
    return tuple(
        {
            "table": table,
            **{name: said.strip() for name, said in found.groupdict().items()},
            "null": UNKNOWN if found["null"].strip() else NEVER,
            "meaning": line[found.end() :].removesuffix(" |"),
        }
        for line in lines
        if (found := COLUMN.match(line))
    )


def described(schema: Any, table: str) -> Any:
    """Return an Arrow schema whose fields tell their unit, what NULL means, and what they mean."""
    for at, one in enumerate(dictionary_of(table)):
        told = {"description": one["meaning"], "unit": one["unit"], "null": one["null"]}
        schema = schema.set(at, schema.field(at).with_metadata(told))
    return schema
