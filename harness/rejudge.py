"""Judge again what a model should have judged and did not: its provider was down, it said nothing.

The answers are kept and only the judge is asked, for unscored samples, under the run's spending
limit. What rules grade is graded again by harness/regrade.py, without any call.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inspect_ai import score  # pyright: ignore[reportUnknownVariableType] - as in eval_set.py
from inspect_ai.log import EvalLog
from inspect_ai.model import Model

from harness.ledger.asking import TaskJournal
from harness.ledger.journal import Head
from harness.logs import RunFacts, newest_logs, read_log, run_facts
from harness.place import Place, standing_at
from harness.pool import slot_model
from harness.pool_file import PoolSpec
from harness.records import GRADER
from harness.regrade import is_unscored, may_lack_scores, was_judged, written_newer
from harness.reply_cache import PaidReplies
from harness.spend import SPEND, Spend
from harness.suite import Suite
from harness.task import as_scorer


def judge_dir_again(
    log_dir: Path, suites: Mapping[str, Suite[Any]], spec: PoolSpec, spend: Spend
) -> list[Path]:
    """Ask the pool's grader for what is missing in the newest log of every task of a directory.

    Returns the newer logs that were written; none where the pool has no grader.
    """
    if spec.grader is None:
        return []
    token = SPEND.set(spend)
    try:
        found = [_judged_log(log_dir, path, suites, spec) for path in newest_logs([log_dir])]
    finally:
        SPEND.reset(token)
    return [path for path in found if path is not None]


def judge_again(log: EvalLog, suite: Suite[Any], grader: Model) -> Path | None:
    """Ask for the missing verdicts of one log; None when none is missing or the suite has changed.

    What the judge fails at again stays unscored.
    """
    samples = log.samples or []
    unscored = [one for one in samples if one.error is None and is_unscored(one)]
    left = [one for one in unscored if was_judged(one, suite)]
    if not left or log.eval.task_version != suite.version:
        return None
    scored = score(
        log.model_copy(update={"samples": left}),
        as_scorer(suite),
        model_roles={GRADER: grader},
        action="overwrite",
        display="none",
    )
    made = {(one.id, one.epoch): one for one in scored.samples or []}
    log.samples = [made.get((one.id, one.epoch), one) for one in samples]
    return written_newer(log)


def _judged_log(
    log_dir: Path, path: Path, suites: Mapping[str, Suite[Any]], spec: PoolSpec
) -> Path | None:
    log = read_log(path) if may_lack_scores(path) else None
    facts = run_facts(log, path) if log else None
    if log is None or facts is None or facts.suite not in suites or spec.grader is None:
        return None
    journal = TaskJournal(log_dir, _head(log, facts), PaidReplies(log_dir))
    try:
        with standing_at(Place(log_dir, spec, journal)):
            return judge_again(log, suites[facts.suite], slot_model(spec.grader))
    finally:
        journal.close()


def _head(log: EvalLog, facts: RunFacts) -> Head:
    return Head(
        task=log.eval.task,
        suite=facts.suite,
        system=facts.system,
        label=facts.label,
        book=str(facts.prices.get("name", "")),
        book_sha256=str(facts.prices.get("sha256", "")),
        shown=facts.publishable,
    )
