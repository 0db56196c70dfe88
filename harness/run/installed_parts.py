"""Suites, systems and exporters of other people's packages, by their entry points.

A package names a part under the name by which it is asked for:

    [project.entry-points."podium.systems"]
    majority = "acme_orchestras:majority"
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from podium.harness.errors import UserError

Group = Literal["podium.suites", "podium.systems", "podium.exporters"]
OURS = "podium"


class InstalledParts(Mapping[str, Any]):
    """Parts of one group by name; a package is imported when its part is first asked for."""

    def __init__(self, group: Group) -> None:
        """Read nothing yet: looking through all installed packages takes some 30 ms."""
        self._group: Group = group
        self._loaded: dict[str, Any] = {}

    @cached_property
    def _entries(self) -> Mapping[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self._group)}

    def __getitem__(self, name: str) -> Any:
        """Return a part; KeyError where there is none, UserError where it cannot be had."""
        if name not in self._loaded:
            self._loaded[name] = self._load(self._entries[name])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        """Say whether a package offers a part of this name, whether or not it can be loaded."""
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        """Yield names; nothing is imported."""
        return iter(self._entries)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._entries)

    def package(self, name: str) -> str:
        """Return which package and version a part is from; ours where none offers it.

        >>> InstalledParts("podium.systems").package("moa-lite")
        'podium'
        """
        entry = self._entries.get(name)
        return f"{entry.dist.name} {entry.dist.version}" if entry and entry.dist else OURS

    def _load(self, entry: EntryPoint) -> Any:
        noun = self._group.removeprefix("podium.").removesuffix("s")
        offers = f"{self.package(entry.name)} offers the {noun} {entry.name!r}"
        try:
            part = entry.load()
        except Exception as error:  # it is other people's code
            raise UserError(
                f"{offers}, which cannot be loaded ({type(error).__name__}: {error}): mend or "
                "uninstall that package."
            ) from error
        wanted = {"suite": "grade", "system": "solver", "exporter": "__call__"}[noun]
        if not hasattr(part, wanted):
            raise UserError(f"{offers}, and {entry.value} is no {noun}: mend that package.")
        called = entry.name if noun == "exporter" else part.name
        if called != entry.name:
            raise UserError(
                f"{offers}, which calls itself {called!r}: one name in both, in that package."
            )
        return part
