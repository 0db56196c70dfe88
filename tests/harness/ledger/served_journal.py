"""Requests that a server would take, answered by the rehearsal pool, written down as it writes.

    traces = served(tmp_path, ["What is 6 times 7?"], keep_texts=True)

The journals are those of the real `TaskJournal`, `Pool` and executor; only HTTP is left out.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
from inspect_ai.event import ModelEvent
from inspect_ai.log import transcript

from podium.harness.budget import Spend
from podium.harness.ledger.answers import without_texts
from podium.harness.ledger.hooks import facts_digest, own_transcript, text_digest
from podium.harness.ledger.journal import Head, SampleRef
from podium.harness.ledger.kept_texts import texts_path
from podium.harness.ledger.recorder import TaskJournal, recording
from podium.harness.pool import Pool, pool_models
from podium.harness.pool_config import read_pool
from podium.harness.prices import Book, read_book
from podium.harness.records import Answer, Question
from podium.harness.run.experiment import manifested
from podium.harness.system import planned
from podium.harness.workflow import Step, Workflow

SYSTEM = planned(lambda _, pool: Workflow((Step("sage"), Step("abacus", "Check it.", "all"))))
DAY = f"{datetime.now(UTC):%Y%m%d}"
"""Journals are named for the day on which they begin."""


def trace_of(number: int, day: str = DAY) -> str:
    """Return the id of a request."""
    return f"req-{day}-{number:016x}"


def head_of(book: Book, system: str = "pair") -> Head:
    """Return how the journal of a served system begins."""
    return Head(f"serve {system}", "served", system, "rehearsal", book.name, book.sha256)


@dataclass
class Told:
    """How a request is to end, where its system does not say."""

    status: int = 200
    error: str | None = None
    steps: int | None = None
    """Another number than that of the answer."""
    ends: bool = True
    """False: the process dies before."""


PLAINLY = Told()


@dataclass
class Server:
    """A server of one system, as far as its journal goes."""

    log_dir: Path
    system: str = "pair"
    keep_texts: bool = False
    book: Book = field(default_factory=lambda: read_book("rehearsal"))
    journal: TaskJournal = field(init=False)

    def __post_init__(self) -> None:
        self.journal = TaskJournal(self.log_dir, head_of(self.book, self.system))
        self.journal.journal().write("book", {"prices": self.book.as_json()})

    @property
    def path(self) -> Path:
        """Where its journal lies."""
        return self.journal.journal().path

    def take(self, trace: str, text: str, told: Told = PLAINLY) -> Answer | None:
        """Answer one request, or refuse it; write down all of it."""
        sample = SampleRef(trace, 1, trace)
        asked = {"sample": asdict(sample), "model": f"podium/{self.system}", "dialect": "chat"}
        asked |= {"stream": False, "key": "alice", "resolved": f"podium/{self.system}-1"}
        self.journal.note("request", {**asked, "input_sha256": text_digest(text)})
        with own_transcript(), recording(self.journal, "serving", sample):
            answer = anyio.run(self._answer, text) if told.status == 200 else None
            events = [one for one in transcript().events if isinstance(one, ModelEvent)]
        if told.ends:
            self.journal.note("answer", {"sample": asdict(sample), **_ended(answer, told)})
        if answer and self.keep_texts:
            self._keep(trace, text, answer, events)
        return answer

    async def _answer(self, text: str) -> Answer:
        spec = read_pool("rehearsal")
        pool = Pool(pool_models(spec), spec, spend=Spend(self.book).for_question())
        return await SYSTEM(Question(id="asked", text=text, kind="text"), pool)

    def _keep(self, trace: str, text: str, answer: Answer, events: Sequence[ModelEvent]) -> None:
        path = texts_path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        said = {one.uuid: one for one in events}
        lines = [json.loads(line) for line in self.path.read_text().splitlines()]
        calls = [
            {
                "call": one["call"],
                "prompt": [[turn.role, turn.text] for turn in said[one["event"]].input],
                "reply": said[one["event"]].output.completion,
            }
            for one in lines
            if one["kind"] == "outcome" and one["event"] in said
        ]
        line = {"query": trace, "input": text, "plan": answer.plan, "answer": answer.text}
        with path.open("a") as file:
            file.write(json.dumps({**line, "calls": calls}) + "\n")

    def stop(self) -> None:
        """End in good order, as the service does: the manifest is written last."""
        with manifested(self.log_dir):
            self.journal.close()


def _ended(answer: Answer | None, told: Told) -> dict[str, Any]:
    """Return what an answer line says."""
    facts = {"depth": None, "steps": None, "stopped": None, "plan": None}
    digest = None
    if answer:
        steps = told.steps or len(answer.replies)
        facts = {"depth": answer.depth, "steps": steps, "stopped": None, "plan": answer.plan}
        digest = text_digest(answer.text)
    shape = facts_digest(*facts.values())
    plan = without_texts(answer.plan) if answer and answer.plan else None
    ending = {"status": told.status, "error": told.error, "latency_s": 0.25}
    return {**facts, "plan": plan, "answer_sha256": digest, "shape_sha256": shape, **ending}


def served(log_dir: Path, *texts: str, keep_texts: bool = False, system: str = "pair") -> list[str]:
    """Serve some requests, then stop in good order; return their ids."""
    server = Server(log_dir, system, keep_texts)
    traces = [trace_of(number) for number in range(1, len(texts) + 1)]
    for trace, text in zip(traces, texts, strict=True):
        server.take(trace, text)
    server.stop()
    return traces
