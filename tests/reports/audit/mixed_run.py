"""Honest runs over a provider with bad days, begun again until they finish, and who reads them.

    mix = Mix("self-consistency@3", limit=3, fates={("olive", 0): ("too long",)})
    run_mixed(folder, mix)
    troubles(folder / "run")    # nothing: every command agrees and ends with 0

A fate is what becomes of one request of one worker about one question; those that are used up are
followed by right answers. A worker whose prompts are too long stays so.
"""

import json
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from string import ascii_letters
from typing import Any

from podium.cli import main
from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.ledger.witness import figures
from podium.harness.records import Question, Usage
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.run import run
from podium.reports.audit import audit
from tests.providers import Act, Server, failing, serve, unreported
from tests.providers.dialect import Asked

SUITE = "practice-integer"
WORKERS = ("olive", "plum", "quince")
SYSTEMS = ("single:olive", "self-consistency@3", "moa-lite")
TOO_LONG = json.dumps(
    {
        "error": {
            "message": "This model's maximum context length is 8192 tokens.",
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
    }
).encode()
LENGTH = 8000
"""Characters of a long reply, as real ones have; they are drawn, for words said again pack well."""


def half_cached(took: Usage) -> Usage:
    """Say that half of the prompt came from a cache, and that half of the reply is reasoning."""
    half = took.input // 2
    return replace(took, input=took.input - half, cache_read=half, reasoning=took.output // 2)


FATES: Mapping[str, Act] = {
    "right": Act(),
    "brief": Act(text="{answer}"),
    "cached": Act(tell=half_cached),
    "long": Act(text="{filler}{answer}"),
    "very long": Act(text="{filler}" * 5 + "{answer}"),
    "wrong": Act(text="\\boxed{-1}"),
    "nothing": Act(text=""),
    "too long": Act(status=400, content=TOO_LONG),
    "uncounted": unreported(),
    "null usage": Act(change=lambda body: {**body, "usage": None}),
    "no choices": Act(change=lambda body: {**body, "choices": []}),
    "refused": failing(400),
    "refused late": replace(failing(400), wait_s=0.1),
    "late": Act(wait_s=0.3),
    "denied": failing(401),
    "down": failing(500),
    "cut off": Act(ending="cut"),
    "dropped": Act(ending="dropped"),
}
"""`refused late` beside `late` cancels a call that is in flight."""
LAST = "refused last"
"""A fate that none is drawn with: a second after three workers were asked, whose replies are in."""
ALL = {**FATES, LAST: Act(status=400, waits_for=3, wait_s=1.0)}

BOOK = """\
date = "2026-01-02"
source = "made up for tests"

[usd_per_mtok]
"openai-api/local/olive" = { input = "0.25", output = "2", cache_read = "0.025" }
"openai-api/local/plum" = { input = "3", output = "15", cache_read = "0.3" }
"openai-api/local/quince" = { input = "1.25", output = "10", reasoning = "12", cache_read = "0.1" }
"""
WORKER = """
[[workers]]
name = "{0}"
model = "openai-api/local/{0}"
config = {{ max_tokens = 640, max_retries = 0, attempt_timeout = 20 }}
args = {{ base_url = "{1}", api_key = "test-{0}", max_retries = 0 }}
"""


@dataclass(frozen=True, slots=True)
class Mix:
    """One honest run: who is asked, and what becomes of the requests."""

    system: str
    limit: int
    fates: Mapping[tuple[str, int], Sequence[str]] = field(
        default_factory=dict[tuple[str, int], Sequence[str]]
    )
    """By worker and place of the question, from 0."""
    epochs: int = 1
    grows: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the last command asks beside, as `RunRequest` names it: epochs, questions, systems."""


def drawn(seed: int) -> Mix:
    """Return a mix drawn at random, the same for a seed."""
    luck = random.Random(seed)
    system, epochs = luck.choice(SYSTEMS), luck.choice((1, 1, 2))
    limit, often = luck.choice((2, 2, 3, 3, 4, 4, 6, 40)), luck.choice((0.02, 0.2, 0.6))
    chosen = luck.sample([*FATES], luck.randint(1, 5))
    usual = luck.choice(("brief", "right", "long", "cached"))
    fates = {
        (worker, at): [
            luck.choice(chosen) if luck.random() < often else usual
            for _ in range(luck.randint(1, 6))
        ]
        for worker in WORKERS
        for at in range(limit)
    }
    more: list[dict[str, Any]] = [
        *({}, {}, {"epochs": epochs + 1}, {"limit": limit + 2}),
        {"systems": (system, "self-moa")},
    ]
    return Mix(system, limit, fates, epochs, luck.choice(more))


def run_mixed(folder: Path, mix: Mix, sittings: int = 5) -> Path:
    """Run a mix until it finishes, or so many times, then again as it grows."""
    home, parts = folder / "run", whole_catalogue()
    days = _BadDays(mix, parts.suites[SUITE].load("eval"))
    first = RunRequest((SUITE,), (mix.system,), str(folder / "pool.toml"), home, mix.limit)
    first = replace(first, epochs=mix.epochs, selection_limit=1, display="none")
    with serve(days) as server:
        write_books(folder, server)
        for request in (first, *([replace(first, **mix.grows)] if mix.grows else [])):
            for _ in range(sittings):
                if copy_context().run(run, request, parts, controls()).finished:
                    break
    return home


def write_books(folder: Path, server: Server) -> None:
    """Write the pool of three workers of one provider, and its prices."""
    folder.mkdir(exist_ok=True)
    (folder / "book.toml").write_text(BOOK)
    tables = [WORKER.format(name, server.openai) for name in WORKERS]
    head = 'label = "live"\nprices = "book.toml"\n'
    (folder / "pool.toml").write_text(head + "".join(tables))


class _BadDays:
    """Deals out the fates of requests by who is asked and about what."""

    def __init__(self, mix: Mix, questions: Sequence[Question]) -> None:
        self._places = [(one.text, f"\\boxed{{{one.target}}}") for one in questions]
        self._luck = random.Random(0)
        self._rest = {where: list(fates) for where, fates in mix.fates.items()}

    def __call__(self, asked: Asked) -> Act:
        at = next((at for at, (text, _) in enumerate(self._places) if text in asked.prompt), -1)
        rest = self._rest.get((asked.model, at), [])
        fate = rest[0] if rest else "right"
        if rest and fate != "too long":
            rest.pop(0)
        act = ALL[fate]
        said = act.text if "{answer}" in act.text or fate in ("wrong", "nothing") else "{answer}"
        while "{filler}" in said:
            drawn = "".join(self._luck.choices(ascii_letters + " ", k=LENGTH))
            said = said.replace("{filler}", drawn, 1)
        return replace(act, text=said.replace("{answer}", self._places[at][1]))


def called(*words: str) -> int:
    """Call podium in this process, and return how it ended; what it prints is dropped."""
    return printed(*words)[0]


def printed(*words: str) -> tuple[int, str]:
    """Call podium in this process; return how it ended and all that it printed."""
    said = StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = copy_context().run(main, [*words])
    return code, said.getvalue()


def troubles(home: Path) -> list[str]:
    """Return what is wrong with an honest run by each command that reads it."""
    return [*_troubles(home)]


def _troubles(home: Path) -> Iterator[str]:
    aside = home.with_name("read")
    commands = (
        ("audit", str(home)),
        ("manifest", "verify", str(home)),
        ("report", str(home)),
        ("audit", str(home)),  # which makes the table again
        ("reprice", str(home), "--book", str(home.with_name("book.toml")), "--out", str(aside)),
        ("ledger", "export", str(home), "--out", str(aside / "ledger"), "--format", "jsonl"),
        ("export", "latex", str(home), "--out", str(aside / "latex")),
    )
    for words in commands:
        code, said = printed(*words)
        if code:
            yield f"{' '.join(words[:2])}: {said[-1500:]}"
    if not (home / "report" / "table.json").is_file():
        return
    yield from (f"witness: {line}" for line, same in figures(home) if not same)
    weak = [one for one in audit(home).verdicts if one.status == "weak"]
    if (called("audit", str(home), "--strict") != 0) != bool(weak):
        yield "audit --strict: it differs from what is weak"


def weaknesses(home: Path) -> list[str]:
    """Return what a strict audit holds against a run."""
    return [
        f"{one.invariant}: {reason}"
        for one in audit(home).verdicts
        if one.status == "weak"
        for reason, _ in one.reasons
    ]


def verified(home: Path) -> subprocess.CompletedProcess[str]:
    """Run the witness that lies in a run's directory by itself, without any code of ours."""
    return subprocess.run(
        [sys.executable, "-I", home / "verify.py", home],
        capture_output=True,
        text=True,
        check=False,
    )
