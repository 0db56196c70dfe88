"""Exports runs as records for the archive Every Eval Ever 0.3: one per system and suite."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import UUID

from podium.harness.ledger.details import QueryDetail, in_full, run_queries
from podium.harness.ledger.logs import Json, open_log
from podium.harness.ledger.totals import SystemRun
from podium.harness.text import safe_name
from podium.reports import render
from podium.reports.blocks import SINGLE
from podium.reports.finished import finished_runs
from podium.reports.row import TableRow
from podium.reports.site.texts import RowTexts

SCHEMA = "0.3.0"
OURS = "podium"
HUB = re.compile(r"([\w.-]+/[\w.-]+)@[0-9a-f]{40}( .*)?")
"""A data revision on the Hugging Face Hub; the pattern's first group is the dataset's name."""
UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}
ABOUT = (
    *(
        "suite_version",
        "split",
        "prompt",
        "label",
        "epochs",
        "n_asked",
        "n_graded",
        "n_unparsed",
        "n_too_long",
    ),
    *("uses_targets", "box_image", "official_accuracy", "notes"),
)
MONEY = (
    *("usd_per_query", "usd_paid_per_query", "usd_low", "usd_high", "n_unpriced", "price_book"),
    *("price_book_date", "price_book_sha256", "auditable"),
)
WORK = (
    *("calls", "steps", "depth", "tokens_in", "tokens_out", "tokens_reasoning", "critical_path_s"),
    "conductor_tokens",
)
SYSTEM = (
    *("system", "args", "source", "deviations", "prompt_sha256", "calls_expected", "pool"),
    *("pool_sha256", "config", "seed", "knowledge_cutoff"),
)
PER_QUERY = ("usd_list", "calls", "steps", "depth", "stopped", "verdict", "epoch", "plan_sha256")


def write_eee(dirs: Sequence[Path], out: Path) -> tuple[Path, ...]:
    """Write runs in the archive's layout; UserError if one is unfinished or if `out` exists."""
    render.refuse_existing(out)
    paths: list[Path] = []
    for finished in finished_runs(dirs):  # one run at a time: all its texts are in memory
        paths += render.write_files(out, _files(*finished))
    return tuple(paths)


def _files(row: TableRow, system_run: SystemRun, texts: RowTexts) -> dict[str, render.Content]:
    identity = _model(row, system_run)
    record = _record(row, system_run, identity)
    place = "/".join(("data", safe_name(row.suite), *map(safe_name, identity["id"].split("/", 1))))
    uuid = _uuid(record)
    if not texts.shown or system_run.facts.redacted:
        return {f"{place}/{uuid}.json": render.as_json(record)}
    name = f"{place}/{uuid}_samples.jsonl"
    samples = _samples(record, texts)
    lines = "".join(json.dumps(sample, ensure_ascii=False) + "\n" for sample in samples)
    record["detailed_evaluation_results"] = {
        "format": "jsonl",
        "file_path": name,
        "hash_algorithm": "sha256",
        "checksum": hashlib.sha256(lines.encode()).hexdigest(),
        "total_rows": lines.count("\n"),
    }
    return {f"{place}/{uuid}.json": render.as_json(record), name: partial(_put, lines)}


def _put(lines: str, path: Path) -> None:
    path.write_text(lines, encoding="utf-8", newline="\n")


def _uuid(record: Mapping[str, Any]) -> UUID:
    """Return the UUID that names a record's files, made from the digest of the record's content."""
    digest = hashlib.sha256(render.as_json(record).encode()).digest()
    return UUID(bytes=digest[:16], version=4)


def _model(row: TableRow, system_run: SystemRun) -> dict[str, Any]:
    """Return the record's `model_info`: the model of a live single worker, else the system."""
    facts = system_run.facts
    worker = facts.workers.get(row.system.removeprefix(SINGLE))
    identity: dict[str, Any] = {"name": row.system, "id": f"{OURS}/{safe_name(row.system)}"}
    if row.label != "live":
        identity["id"] = f"{OURS}-{row.label}/{safe_name(row.system)}"
    elif row.system.startswith(SINGLE) and worker:
        platform, *path = worker.model.split("/")
        model = path if len(path) > 1 else [platform, *path]
        identity |= {"id": "/".join(map(safe_name, model)), "inference_platform": platform}
    return {**identity, "additional_details": {**UNKNOWN, **_details(row, SYSTEM)}}


def _details(row: object, names: Sequence[str]) -> dict[str, str]:
    values = ((name, getattr(row, name)) for name in names)
    return {name: _words(value) for name, value in values if value not in (None, "")}


def _words(value: object) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _record(row: TableRow, system_run: SystemRun, model: Mapping[str, Any]) -> dict[str, Any]:
    with open_log(system_run.paths[0]) as log:
        about: Json = log.header["eval"]
    when = str(datetime.fromisoformat(about["created"]).timestamp())
    packages: Json = about.get("packages") or {}
    same = "/".join((row.suite, model["id"], when))
    digest = hashlib.sha256("/".join(map(str, system_run.logs)).encode()).hexdigest()[:8]
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{same}-{digest}",  # one system may occur twice, with other arguments
        "evaluation_timestamp": when,
        "retrieved_timestamp": when,
        "source_metadata": {
            "source_name": f"podium run ({row.label} workers)",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": OURS,
            "version": version(OURS),
            "additional_details": {name: str(package) for name, package in packages.items()},
        },
        "model_info": dict(model),
        "evaluation_results": [*_results(row, f"{same}-{digest}")],
    }


def _results(row: TableRow, evaluation: str) -> Iterator[dict[str, Any]]:
    shared = {"evaluation_name": row.suite, "source_data": _source(row)}
    error = row.se if row.se_clustered is None else row.se_clustered
    interval = {"lower": row.ci_low, "upper": row.ci_high, "confidence_level": 0.95}
    yield {
        **shared,
        "evaluation_result_id": f"{evaluation}#accuracy",
        "metric_config": _metric("accuracy", "Accuracy", "proportion", 1.0)
        | {"lower_is_better": False},
        "score_details": {
            "score": row.accuracy,
            "details": _details(row, (*ABOUT, *WORK, *MONEY)),
            "uncertainty": {
                "confidence_interval": {**interval, "method": "wilson"},
                "num_samples": row.n_graded,
                **({} if error is None else {"standard_error": {"value": error}}),
            },
        },
    }
    if row.usd_per_query is not None:
        yield {
            **shared,
            "evaluation_result_id": f"{evaluation}#usd_per_question",
            "metric_config": _metric("cost", "US dollars per question", "usd", "Infinity")
            | {"lower_is_better": True, "metric_id": f"{OURS}.usd_per_question"},
            "score_details": {
                "score": float(row.usd_per_query),
                "details": _details(row, MONEY),
            },
        }


def _metric(kind: str, name: str, unit: str, maximum: float | str) -> dict[str, Any]:
    return {
        "metric_id": kind,
        "metric_name": name,
        "metric_kind": kind,
        "metric_unit": unit,
        "score_type": "continuous",
        "min_score": 0.0,
        "max_score": maximum,
    }


def _source(row: TableRow) -> dict[str, Any]:
    match = HUB.fullmatch(row.data_revision)
    details = {"data_revision": row.data_revision, "dates": row.dates}
    kind = {"source_type": "hf_dataset", "hf_repo": match[1]} if match else {"source_type": "other"}
    return {"dataset_name": row.suite, **kind, "additional_details": details}


def _samples(record: Mapping[str, Any], texts: RowTexts) -> Iterator[dict[str, Any]]:
    """Yield a record for each graded answer, i.e. for each question and epoch."""
    result = record["evaluation_results"][0]
    shared = {
        "schema_version": SCHEMA,
        "evaluation_id": record["evaluation_id"],
        "model_id": record["model_info"]["id"],
        "evaluation_name": result["evaluation_name"],
        "evaluation_result_id": result["evaluation_result_id"],
        "interaction_type": "single_turn",
    }
    for detail in in_full(run_queries(texts.files)):
        if detail.row.score is not None:
            yield {**shared, **_sample(detail)}


def _sample(detail: QueryDetail) -> dict[str, Any]:
    row, texts = detail.row, detail.texts
    prompt, reference = texts.input or "", [row.target] if row.target else []
    seconds = {} if row.latency_s is None else {"latency_ms": 1000 * row.latency_s}
    return {
        "sample_id": row.question,
        "sample_hash": hashlib.sha256("".join((prompt, *reference)).encode()).hexdigest(),
        "input": {
            "raw": prompt,
            "reference": reference,
            **({"choices": list(texts.choices)} if texts.choices else {}),
        },
        "output": {"raw": [texts.reply or ""]},
        "answer_attribution": [] if row.answer is None else [_attribution(row.answer)],
        "evaluation": {"score": row.score, "is_correct": row.verdict == "right"},
        "performance": seconds or None,
        "token_usage": _tokens(detail),
        "metadata": _details(row, PER_QUERY),
    }


def _attribution(answer: str) -> dict[str, Any]:
    return {
        "turn_idx": 0,
        "source": "output.raw",
        "extracted_value": answer,
        "extraction_method": "custom",
        "is_terminal": True,
    }


def _tokens(detail: QueryDetail) -> dict[str, int] | None:
    """Return the sums of tokens over all calls for an answer; None if a count is unknown."""
    row = detail.row
    counts = (row.conductor_in, row.worker_in, row.conductor_out, row.worker_out)
    conductor_in, worker_in, conductor_out, worker_out = counts
    if conductor_in is None or worker_in is None or conductor_out is None or worker_out is None:
        return None
    sent, output = conductor_in + worker_in, conductor_out + worker_out
    extra = {"reasoning_tokens": row.reasoning} if row.reasoning is not None else {}
    return {"input_tokens": sent, "output_tokens": output, "total_tokens": sent + output, **extra}
