"""Grade again from logs: no model is asked, the old log is kept, a newer one takes its place.

For samples that could not be graded (sandbox down, disk full), or for all of them after a scorer
was mended. The new log has the old one's task id, so reports take its samples, and a resumed run
finds its questions answered. Inspect's own `inspect score` has no sandbox, so it cannot do this.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inspect_ai import recompute_metrics
from inspect_ai.log import EvalLog, EvalSample, read_eval_log, write_eval_log
from inspect_ai.scorer import Score

from harness.errors import UserError
from harness.experiment import note_versions
from harness.logs import newest_logs, read_log, run_facts
from harness.records import PODIUM, Question
from harness.solver import question_from
from harness.suite import Suite
from harness.task import as_score, unscored


@dataclass(frozen=True, slots=True)
class Regrade:
    """What became of one log."""

    log: Path
    graded: int
    still_unscored: int
    changed: int
    """Verdicts that differ from the old ones."""


def regrade(
    log: EvalLog, suite: Suite[Any], box: Any | None, everything: bool = False
) -> Regrade | None:
    """Grade a log's unscored samples again (or all), and write a newer log beside it.

    Returns None when there is nothing to grade. UserError when the suite has another version than
    the log and only a part would be graded: one table row must come from one grader.
    """
    chosen = [one for one in log.samples or [] if everything or _is_unscored(one)]
    chosen = [one for one in chosen if one.error is None]
    if not chosen:
        return None
    stored = log.eval.task_version
    if not everything and stored != suite.version:
        raise UserError(
            f"{Path(log.location).name} was graded by version {stored} of {suite.name}, which is "
            f"now {suite.version}: grade the whole log again with --all."
        )
    changed = sum(_grade_again(one, suite, box) for one in chosen)
    log.eval.task_version = suite.version
    log.eval.metadata = _with_version(log.eval.metadata, suite.version)
    recompute_metrics(log)
    now = datetime.now(UTC)
    log.eval.created = now.isoformat(timespec="seconds")
    path = _newer(Path(log.location), now)
    write_eval_log(log, str(path))
    left = sum(_is_unscored(one) for one in chosen)
    return Regrade(log=path, graded=len(chosen) - left, still_unscored=left, changed=changed)


def question_in(sample: EvalSample) -> Question:
    """Return the unsealed question of a logged sample."""
    target = sample.target if isinstance(sample.target, str) else "".join(sample.target)
    text = sample.input if isinstance(sample.input, str) else sample.input[-1].text
    return replace(question_from(str(sample.id), text, sample.metadata), target=target)


def _is_unscored(sample: EvalSample) -> bool:
    scores = list((sample.scores or {}).values())
    return not scores or any(
        isinstance(score.value, float) and math.isnan(score.value) for score in scores
    )


def _grade_again(sample: EvalSample, suite: Suite[Any], box: Any | None) -> bool:
    """Replace a sample's score; return whether its verdict changed."""
    old = (sample.scores or {}).get(PODIUM)
    try:
        reply = sample.output.completion
        new: Score = as_score(suite.grade(question_in(sample), reply, box))
    except Exception as error:
        new = unscored(error)
    sample.scores = {**(sample.scores or {}), PODIUM: new}
    return old is None or str(old.value) != str(new.value)


def _may_lack_scores(path: Path) -> bool:
    """Return whether a log's header leaves open that an answer has no score."""
    header = read_eval_log(str(path), header_only=True)
    scores = header.results.scores if header.results else []
    return not scores or any(score.unscored_samples for score in scores)


def _with_version(metadata: Mapping[str, Any] | None, version: str) -> dict[str, Any]:
    facts = dict((metadata or {}).get(PODIUM, {}))
    return {**(metadata or {}), PODIUM: {**facts, "suite_version": version}}


def _newer(old: Path, now: datetime) -> Path:
    """Return a name for a newer log of the same task: Inspect's own form, with milliseconds."""
    stamp = now.strftime("%Y-%m-%dT%H-%M-%S-%f")[:-3] + "+00-00"
    return old.with_name(f"{stamp}_{old.name.partition('_')[2]}")


def regrade_dir(
    log_dir: Path, suites: Mapping[str, Suite[Any]], box: Any | None, everything: bool = False
) -> list[Regrade]:
    """Regrade the newest log of every task below a directory.

    UserError, before anything is written, for a log of an unknown suite or a missing box.
    """
    work: list[tuple[EvalLog, Suite[Any]]] = []
    for path in newest_logs([log_dir]):
        log = read_log(path) if everything or _may_lack_scores(path) else None
        facts = run_facts(log, path) if log else None
        if log is None or facts is None:
            continue
        if facts.suite not in suites:
            raise UserError(f"{path.name} is of suite {facts.suite!r}, which this podium lacks.")
        if suites[facts.suite].needs_box and box is None:
            raise UserError(f"Suite {facts.suite!r} runs programs: name a sandbox with --box.")
        work.append((log, suites[facts.suite]))
    results = [
        regrade(log, suite, box if suite.needs_box else None, everything) for log, suite in work
    ]
    if everything:
        note_versions(log_dir, {suite.name: suite.version for _, suite in work})
    return [result for result in results if result is not None]
