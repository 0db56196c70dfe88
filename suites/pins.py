"""Which tables of sources.toml a suite reads, and what each is pinned to, in words."""

from typing import Any

from harness.suite import Suite
from suites import SUITES
from suites.fetch import Source, sources
from suites.livecodebench import LiveCodeBench
from suites.practice import PracticeSuite


def sources_of(suite: Suite[Any]) -> tuple[str, ...]:
    """Return the tables of a suite: NAME and NAME-..., or those of its release.

    A suite NAME-... without any reads those of NAME. None where the questions are generated.
    """
    if isinstance(suite, PracticeSuite):
        return ()
    if isinstance(suite, LiveCodeBench):
        return suite.release.files
    tables = {name: owner(name) for name in sources()}
    name = suite.name
    while name and name not in tables.values():
        name = name.rpartition("-")[0]
    return tuple(table for table, suite_name in tables.items() if name and suite_name == name)


def owner(source: str) -> str | None:
    """Return the listed suite that a table belongs to, the longest name that fits; else None."""
    fitting = [name for name in SUITES if source == name or source.startswith(f"{name}-")]
    return max(fitting, key=len, default=None)


def pins_of(suite: Suite[Any]) -> list[str]:
    """Return a line per source for `podium suites NAME`."""
    return [described(sources()[name]) for name in sources_of(suite)]


def described(source: Source) -> str:
    """Return where a source is from and what it is held to."""
    file = f"file {source.file}"
    if source.sha256:
        file += f" (sha256 {source.sha256[:12]})"
    rows = f"{source.rows:,} rows" if source.rows is not None else "rows not counted"
    return "; ".join((*_origins(source), file, rows))


def _origins(source: Source) -> list[str]:
    found = [source.url] if source.url else []
    if source.hub:
        part = source.hub_file or " ".join(filter(None, (source.config, source.split)))
        found.append(f"hub {source.hub} at {(source.revision or '')[:12]}, {part}")
    return found
