"""Texts of requests to `podium serve --keep-texts`, shown if they match the journal's digests."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from podium.harness.files import parse_json, regular_size
from podium.harness.ledger.call import Call
from podium.harness.ledger.hooks import facts_digest, text_digest
from podium.harness.ledger.journal import SERVING
from podium.harness.ledger.logs import UNFOUNDED, Json
from podium.harness.ledger.served import ServedQuery
from podium.harness.request import turns_digest

FOLDER = "texts"
NAMED = re.compile(rb'"query": ?"(req-[^"]*)"')
"""Pattern of the request id in a line of the texts file; no text can match it, as quotes in texts
are escaped."""


@dataclass(frozen=True, slots=True)
class CallText:
    """The (role, text) pairs of the messages that one call sent, and its reply (None: no reply)."""

    prompt: tuple[tuple[str, str], ...]
    reply: str | None


@dataclass(slots=True)
class KeptTexts:
    """The stored texts of one request that match the digests in its journal."""

    input: str | None = None
    plan: str | None = None
    answer: str | None = None
    calls: dict[str, CallText] = field(default_factory=dict[str, CallText])
    """Texts of a call, by the call's id."""
    refused: list[str] = field(default_factory=list[str])
    """A sentence for each text that is omitted, as it does not match the journal's digest."""


def texts_path(journal: Path) -> Path:
    """Return the path of the file with the texts of the requests in a server's journal."""
    system = journal.parent.name.removeprefix(SERVING)
    return journal.parents[2] / FOLDER / system / journal.name


def kept_texts(query: ServedQuery) -> KeptTexts:
    """Return the stored texts of a served request; empty if none were stored."""
    try:
        entry = _entry(query)
        return KeptTexts() if entry is None else _vouched(entry, query)
    except UNFOUNDED:
        return KeptTexts(refused=["its line in the file of stored texts is malformed"])


def kept_traces(journal: Path) -> frozenset[str]:
    """Return the ids of a journal's requests whose texts are stored."""
    return frozenset(_index(journal))


def _entry(query: ServedQuery) -> Json | None:
    if not query.journal.name:  # a journal in memory only
        return None
    place = _index(query.journal.path).get(query.trace)
    if place is None:
        return None
    with texts_path(query.journal.path).open("rb") as file:
        file.seek(place)
        data = parse_json(file.readline())
    return cast(Json, data) if isinstance(data, dict) else {}


def _index(journal: Path) -> Mapping[str, int]:
    path = texts_path(journal)
    return _places(path, regular_size(path), path.stat().st_mtime_ns) if path.is_file() else {}


@lru_cache(maxsize=8)
def _places(path: Path, size: int, changed: int) -> Mapping[str, int]:
    """Return request id -> byte offset of its line; `size` and `changed` are only cache keys."""
    places: dict[str, int] = {}
    place = 0
    with path.open("rb") as file:
        for line in file:
            if line.endswith(b"\n") and (match := NAMED.search(line)):
                places[match[1].decode()] = place
            place += len(line)
    return places


def _vouched(entry: Json, query: ServedQuery) -> KeptTexts:
    if entry.get("query") != query.trace:
        raise ValueError("another request's")
    texts, stored = KeptTexts(), [entry.get(name) for name in ("input", "plan", "answer")]
    question, plan, answer = cast(Sequence[str | None], stored)
    shape = facts_digest(query.depth, query.steps, query.stopped, plan)
    if query.input_sha256 not in (None, text_digest(question or "")):
        texts.refused.append("its question does not match the digest in the journal")
    else:
        texts.input = question
    if plan is not None and shape != query.shape_sha256:
        texts.refused.append("its plan does not match the digest in the journal")
    else:
        texts.plan = plan
    if answer is not None and text_digest(answer) != query.answer_sha256:
        texts.refused.append("its answer does not match the digest in the journal")
    else:
        texts.answer = answer
    rows = {row.call: row for row in query.rows}
    for line in cast(Sequence[Json], entry.get("calls") or ()):
        call = str(line["call"])
        if call in rows and _is_vouched(line, rows[call], query.sent[call]):
            texts.calls[call] = CallText(tuple(_turns(line)), line.get("reply"))
        else:
            texts.refused.append(f"the texts of call {call} do not match its journal")
    return texts


def _is_vouched(line: Json, row: Call, sent: str | None) -> bool:
    reply: Any = line.get("reply")
    same = reply is None or text_digest(reply) == row.output_sha256
    return same and turns_digest(_turns(line)) in (row.prompt_sha256, sent)


def _turns(line: Json) -> Iterator[tuple[str, str]]:
    yield from ((str(role), str(text)) for role, text in line["prompt"])
