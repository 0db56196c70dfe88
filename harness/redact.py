"""Redacted logs for sharing: every text is removed, every number and digest stays.

The fields to keep are listed here, so that no new kind of event leaks a question. Tables and ledger
of a redacted log equal the original's, and readers who have the questions can recognise a text by
its sha256.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from inspect_ai.event import Event, ModelEvent, SpanBeginEvent, SpanEndEvent
from inspect_ai.log import EvalError, EvalLog, EvalSample, read_eval_log, write_eval_log
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score

from podium.harness.errors import PodiumError, UserError
from podium.harness.ledger.logs import find_logs, refuse_oversized
from podium.harness.ledger.manifest import FILE, SIGNATURE, STAMP, read_entry
from podium.harness.ledger.system_runs import fault_of
from podium.harness.records import ORDER, PODIUM, SECONDS, STATED, WAVES
from podium.harness.suite import failure_kind, publishable
from podium.harness.workflow import MALFORMED, workflow_of

SHINGLE = 6  # Consecutive words of a question that count as a leak, anywhere in a redacted log
SAMPLE = (
    *("id", "epoch", "uuid", "model_usage", "role_usage"),
    *("started_at", "completed_at", "total_time", "working_time"),
)
GONE = dict.fromkeys(("input_refs", "traceback", "traceback_ansi", "call", "metadata"))
FACTS = ("kind", "topic")
SHAPE = (
    "depth",
    "steps",
    "stopped",
    SECONDS,
    WAVES,
)  # fields of an answer's work; systems' notes are not kept, because they may quote
SHORT = re.compile(r"[A-Za-z0-9.+-]{1,8}")  # Answers that stay: a letter, a number


@dataclass(frozen=True, slots=True)
class Redacted:
    """The result of redacting one log: its copy, if one was needed, and the number of samples."""

    log: Path
    out: Path | None  # None if the log may be shared unchanged
    samples: int = 0


def redact(paths: Sequence[Path], out: Path) -> list[Redacted]:
    """Write to `out` redacted copies of the logs that must not be published, and the manifest."""
    logs = find_logs(paths)
    roots = [path for path in paths if path.is_dir()]
    places = {log: out / _below(log, roots) for log in logs}
    headers = {log: _read(log, header_only=True) for log in logs}
    private = [log for log in logs if not publishable(headers[log].eval.metadata)]
    beside = _manifests(roots, out) if private else {}
    for place in (*(places[log] for log in private), *beside.values()):
        if place.exists():
            raise UserError(f"{place} exists already: name another --out directory.")
    results = [
        _redact_one(log, places[log]) if log in private else Redacted(log, None) for log in logs
    ]
    for manifest, place in beside.items():
        shutil.copyfile(manifest, place)
    return results


def _manifests(roots: Sequence[Path], out: Path) -> dict[Path, Path]:
    """Return {manifest file of a run: path of its copy in `out`}; empty for several runs."""
    if len(roots) != 1:
        return {}
    files = (roots[0] / name for name in (FILE, SIGNATURE, STAMP))
    return {path: out / path.name for path in files if path.is_file()}


def redacted(log: EvalLog, originals: Mapping[str, str] | None = None) -> EvalLog:
    """Return a copy of a whole log without its texts; PodiumError if a text would remain."""
    metadata = (log.eval.metadata or {})[PODIUM]
    facts = {"originals": dict(originals or {}), **metadata, "redacted": True}
    copy = EvalLog(
        version=log.version,
        status=log.status,
        eval=log.eval.model_copy(update={"metadata": {PODIUM: facts}, "task_args": {}}),
        plan=log.plan,
        results=log.results,
        stats=log.stats,
        error=_error(log.error),
        samples=[_sample(sample) for sample in log.samples or []],
    )
    _refuse_leaks(log, copy)
    return copy


def digest(text: str) -> str:
    """Return the digest that replaces a text in a redacted log.

    >>> digest("four")
    'sha256:04efaf080f5a3e74e1c29d1ca6a48569382cbbcd324e8d59d2b83ef21c039f00'
    """
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _redact_one(path: Path, out: Path) -> Redacted:
    log = _read(path, header_only=False)
    copy = redacted(log, dict(read_entry(path.parent, path.name, "log").samples))
    out.parent.mkdir(parents=True, exist_ok=True)
    write_eval_log(copy, str(out))
    return Redacted(path, out, len(copy.samples or []))


def _read(path: Path, *, header_only: bool) -> EvalLog:
    refuse_oversized(path, header_only=header_only)
    try:
        return read_eval_log(str(path), header_only=header_only, resolve_attachments=True)
    except Exception as error:  # a damaged file may fail anywhere; the message may quote a question
        raise UserError(f"{path} is damaged or no Inspect log; move it away.") from error


def _below(log: Path, roots: Sequence[Path]) -> Path:
    root = next((root for root in roots if log.is_relative_to(root)), log.parent)
    return log.relative_to(root)


def _sample(sample: EvalSample) -> EvalSample:
    fields: dict[str, Any] = {name: getattr(sample, name) for name in SAMPLE}
    return EvalSample(
        **fields,
        input=digest(_text(sample.input)),
        target=_short(sample.target if isinstance(sample.target, str) else "".join(sample.target)),
        output=_output(sample.output),
        scores={name: _score(score) for name, score in (sample.scores or {}).items()},
        metadata=_metadata(sample.metadata),
        events=_events(sample.events),
        error=_error(sample.error),
        error_retries=[
            fail.model_copy(update={**_bare(fail.message), "events": _events(fail.events or [])})
            for fail in sample.error_retries or []
        ],
    )


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(message.text for message in content)


def _short(text: str) -> str:
    return text if SHORT.fullmatch(text) else digest(text)


def _error(error: EvalError | None) -> EvalError | None:
    return EvalError(**_bare(error.message)) if error else None


def _bare(message: str) -> dict[str, str]:
    return {"message": _failure(message), "traceback": "", "traceback_ansi": ""}


def _failure(message: str) -> str:
    return f"{failure_kind(message)}: {digest(message)}"


def _output(output: ModelOutput) -> ModelOutput:
    copy = ModelOutput(model=output.model)
    if output.choices:
        text = digest(output.completion)
        copy = ModelOutput.from_content(output.model, text, stop_reason=output.stop_reason)
    copy.usage, copy.time = output.usage, output.time
    if isinstance(stated := (output.metadata or {}).get(STATED), float):
        copy.metadata = {STATED: stated}
    return copy


def _score(score: Score) -> Score:
    facts: Mapping[str, Any] = score.metadata or {}
    return Score(
        value=score.value,
        answer=None if score.answer is None else _short(score.answer),
        explanation=digest(score.explanation or ""),
        metadata={
            key: value for key, value in facts.items() if isinstance(value, int | float | None)
        },
        reason=score.reason,
    )


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that a redacted sample keeps: kind, topic, choices' order, plan shape."""
    public: dict[str, Any] = {key: metadata[key] for key in FACTS if key in metadata}
    for key in ("question", "asked"):
        facts = cast(Mapping[str, Any], metadata.get(key) or {})
        if "permutation" in facts:
            public[key] = {"permutation": facts["permutation"]}
    if isinstance(shape := metadata.get(PODIUM), Mapping):
        work = cast(Mapping[str, Any], shape)
        fields = {key: work[key] for key in SHAPE if key in work}
        public[PODIUM] = {**fields, "plan": _plan(work.get("plan")), **_order(work.get("plan"))}
    return public


def _plan(plan: object) -> str | None:
    """Return a plan's replacement: its digest, or a malformed plan's fault; None without a plan."""
    fault = fault_of(str(plan)) if plan else None
    return f"{MALFORMED}{fault}" if fault else digest(str(plan)) if plan else None


def _order(plan: object) -> dict[str, str]:
    workflow = workflow_of(plan if isinstance(plan, str) else None)
    return {ORDER: workflow.without_texts().as_json()} if workflow else {}


def _events(events: Iterable[Event]) -> list[Event]:
    bare = {"metadata": None}
    return [
        _call(event) if isinstance(event, ModelEvent) else event.model_copy(update=bare)
        for event in events
        if isinstance(event, ModelEvent | SpanBeginEvent | SpanEndEvent)
    ]


def _call(event: ModelEvent) -> ModelEvent:
    changes: dict[str, Any] = {
        "input": [],
        "tools": [],
        "tool_choice": "none",
        "config": event.config.model_copy(update={"system_message": None}),
        "output": _output(event.output),
        "error": None if event.error is None else _failure(event.error),
    }
    return event.model_copy(update={**GONE, **changes})


def _refuse_leaks(log: EvalLog, copy: EvalLog) -> None:
    written = _shingles(json.dumps(copy.model_dump(mode="json")))
    for sample in log.samples or []:
        if written & _shingles(_text(sample.input)):
            raise PodiumError(
                f"Words of question {sample.id} could not be removed from the copy of "
                f"{Path(log.location).name}, so it was not written. Please report it."
            )


def _shingles(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[start : start + SHINGLE]) for start in range(len(words) - SHINGLE + 1)}
