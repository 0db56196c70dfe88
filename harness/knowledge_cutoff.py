"""Contamination: when questions became public, compared with the end of a model's knowledge."""

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Literal

from inspect_ai.model import _model_info  # pyright: ignore[reportPrivateUsage]

UNKNOWN = "unknown"
Exposure = Literal["before", "among", "after", "unknown"]
"""When a model's knowledge ends: before, while (`among`) or after a suite's questions became
public."""
MONTH = re.compile(r"\d{4}-\d\d")
SNAPSHOT = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d)$")
UP_TO, DOTS = "up to ", ".."
GENERATED = "generated"
YOUNGER: Mapping[Exposure, str] = {
    "after": "the questions (its knowledge ends after they became public, so training may have "
    "included them)",
    "among": "some of the questions (its knowledge ends while they became public)",
}


def known_cutoff(model: str) -> str:
    """Return a model's knowledge cutoff in Inspect's model database, with the source named.

    Returns `unknown` if the database has no such model. The database also matches names with the
    same beginning, whose cutoff may be later; those count as unknown. Inspect's public function
    would start the provider of an unknown name, so a private one is called.
    """
    find = _model_info._get_model_info  # pyright: ignore[reportPrivateUsage]
    info = find(model, resolve_provider=False)
    name = SNAPSHOT.sub("", model.rpartition("/")[2])
    if not info or not info.knowledge_cutoff_date or _plain(name) != _plain(info.model or ""):
        return UNKNOWN
    day = info.knowledge_cutoff_date
    date = f"{day:%Y-%m}" if day.day == 1 else f"{day:%Y-%m-%d}"  # day 1: only the month is known
    return f"{date} (Inspect {version('inspect_ai')} model database)"


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def exposure(dates: str, cutoff: str) -> Exposure:
    """Return whether a knowledge cutoff is before, among or after the questions' publication.

    `dates` are written as in `Suite.dates`: a month or day, `START..END`, of which one may be
    empty, or `up to END`. Months are compared, because many cutoffs are known to the month.

    >>> exposure("2025-02", "2024-10 (model card)"), exposure("2023-05..2025-04", "2025-01")
    ('before', 'among')
    """
    start, dots, end = dates.removeprefix(UP_TO).partition(DOTS)
    earliest = "" if dates.startswith(UP_TO) else start[:7]
    latest = (end[:7] or "9999-12") if dots else start[:7]
    match = MONTH.match(cutoff)
    if not match or not MONTH.match(latest) or (earliest and not MONTH.match(earliest)):
        return "unknown"
    return "before" if match[0] < earliest else "after" if match[0] > latest else "among"


def cutoff_lines(dates: str, cutoffs: Mapping[str, str]) -> list[str]:
    """Return a line with the questions' dates and each worker's knowledge cutoff, without sources.

    Workers of unknown cutoff are listed together. Further lines list workers that may have been
    trained on questions. No lines if questions are generated, or without workers.
    """
    if not cutoffs or dates == GENERATED:
        return []
    cutoff_of = {name: text for name, text in cutoffs.items() if text != UNKNOWN}
    texts = [f"{name} {cutoff.partition(' (')[0]}" for name, cutoff in cutoff_of.items()]
    if unknown := [name for name in cutoffs if name not in cutoff_of]:
        texts.append(f"{UNKNOWN} for {', '.join(unknown)}" if cutoff_of else f"all {UNKNOWN}")
    each = ", ".join(texts)
    lines = [f"questions public: {dates or UNKNOWN}; knowledge cutoffs: {each}"]
    for kind, phrase in YOUNGER.items():
        names = [name for name, cutoff in cutoffs.items() if exposure(dates, cutoff) == kind]
        lines += [f"younger than {phrase}: {', '.join(names)}"] if names else []
    return lines
