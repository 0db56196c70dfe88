"""Get LiveCodeBench's files as pinned in sources.toml: a local one, else the hub's.

`datasets` 4 and later refuse the hub's loading script, so the files themselves are fetched.
"""

from collections.abc import Mapping
from pathlib import Path

from harness.errors import UserError
from suites.fetch import Source, data_folder
from suites.hub import hub_file, refusal
from suites.livecodebench_rows import Index, indexed


def pinned_index(name: str, sources: Mapping[str, Source], data: str | Path | None = None) -> Index:
    """Return the index of a pinned file; UserError when it is absent, cut off or another file."""
    source = sources[name]
    path = data_folder(data) / source.file
    if not path.is_file():
        path = _downloaded(source, path)
    size = path.stat().st_size
    if source.size is not None and size != source.size:
        raise UserError(
            f"{path} is not the pinned file: it has {size:,} bytes, not {source.size:,}; "
            "fetch it again."
        )
    index = indexed(path)
    if index.sha256 != source.sha256:
        raise UserError(
            f"{path} is not the pinned file: its sha256 is {index.sha256[:12]}, "
            f"not {source.sha256[:12]}; fetch it again."
        )
    if len(index.entries) != source.rows:
        raise UserError(f"{path} has {len(index.entries)} rows, not the pinned {source.rows}.")
    return index


def _downloaded(source: Source, wanted: Path) -> Path:
    """Return the hub's file in its cache, fetched once; UserError says what to put where."""
    name = source.hub_file or Path(source.file).name
    if source.hub is None:
        raise UserError(f"There is no {wanted}: put {name} there (PODIUM_DATA names the folder).")
    try:
        return hub_file(source.hub, name, source.revision)
    except Exception as error:
        otherwise = f"put {name} at {wanted} (PODIUM_DATA names another folder)"
        raise refusal(error, f"{name} of {source.hub}", otherwise) from error
