"""All that a site says, byte by byte: what is packed in its files is unpacked."""

import base64
import gzip
import json
import re
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

PUT = re.compile(rb'podium\.put\(\s*"([^"]*)"\s*,\s*"([^"]*)"\s*\)')


def unpacked(path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file, and those that are compressed or encoded in it."""
    data = path.read_bytes()
    yield data
    for _, packed in PUT.findall(data):
        yield gzip.decompress(base64.b64decode(packed))
    if path.suffix == ".png":
        yield from _chunks(data)
    if path.suffix == ".parquet":
        parquet: Any = import_module("pyarrow.parquet")  # it has no types
        table = parquet.read_table(path)
        yield repr((table.schema.metadata, table.to_pylist())).encode()


def _chunks(png: bytes) -> Iterator[bytes]:
    """Yield the chunks of a picture, with texts that are compressed (zTXt, iTXt) unpacked."""
    at = 8
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        body = png[at + 8 : at + 8 + size]
        yield body
        if kind in (b"zTXt", b"iTXt"):
            yield from (zlib.decompress(body[found:]) for found in _streams(body))
        at += size + 12


def _streams(body: bytes) -> Iterator[int]:
    """Yield where a zlib stream begins."""
    for found in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", body):
        yield found.start()


def files_with(folder: Path, secret: str) -> list[str]:
    """Return the files of a site in which something stands, in whatever case or packing."""
    wanted = secret.lower().encode()

    def holds(path: Path) -> bool:
        named = wanted in path.name.lower().encode()
        return named or any(wanted in one.lower() for one in unpacked(path))

    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return [path.relative_to(folder).as_posix() for path in files if holds(path)]


def queries_in(script: str) -> list[Any]:
    """Return the queries of a file of texts."""
    ((_, packed),) = PUT.findall(script.encode())
    return json.loads(gzip.decompress(base64.b64decode(packed)))["queries"]


def texts_in(folder: Path, row: int, number: int = 0) -> list[Any]:
    """Return the queries of one file of texts of a site."""
    return queries_in((folder / "data" / "text" / str(row) / f"{number}.js").read_text())
