"""The suites by name, those included that a name describes: a release, a window, what is unseen."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.errors import UserError
from harness.suite import Suite
from suites.livecodebench import LIVECODEBENCH_TRAIN, LiveCodeBench
from suites.livecodebench_releases import TRAIN, named_release, read_window
from suites.practice import PracticeSuite
from suites.practice_unseen import UNSEEN, unseen


class Suites(Mapping[str, Suite[Any]]):
    """Suites that are listed, and `NAME@START..END` for those whose questions have dates.

    A practice suite has `NAME@unseen`. Iteration lists plain names only. A name that is understood
    but wrong (no such date) is a UserError, any other unknown name a KeyError, as in a dictionary.
    """

    def __init__(self, listed: Mapping[str, Suite[Any]]) -> None:
        """List these; every other name is made when it is asked for."""
        self._listed = dict(listed)
        self._described = dict[str, Suite[Any]]()

    def __getitem__(self, name: str) -> Suite[Any]:
        if name in self._listed:
            return self._listed[name]
        if name not in self._described:
            self._described[name] = self._made(name)
        return self._described[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def _made(self, name: str) -> Suite[Any]:
        plain, at, window = name.partition("@")
        known = self._listed.get(plain) or _release(plain)
        if known is None:
            raise KeyError(name)
        if not at:
            return known
        if isinstance(known, PracticeSuite):
            if window == UNSEEN:
                return unseen(known)
            raise UserError(f"{plain!r} has one other exam, '{plain}@{UNSEEN}', and no {name!r}.")
        if not isinstance(known, LiveCodeBench):
            raise UserError(f"The questions of {plain!r} have no dates, so it has no {name!r}.")
        return known.between(read_window(window))


def _release(name: str) -> LiveCodeBench | None:
    release = named_release(name)
    if name == TRAIN:
        return LIVECODEBENCH_TRAIN
    return LiveCodeBench(release) if release else None
