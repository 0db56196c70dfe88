"""Grading by a model (the judge), and grading logs again: a newer log replaces the old one.

A judge is no worker: a sample's pool does not contain it, no plan can name it, and its calls do not
count as a system's cost. The newer log has the same task id, so a resumed run repeats no question.
"""

import math
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inspect_ai import (
    recompute_metrics,
    score,  # pyright: ignore[reportUnknownVariableType] - as in run/evaluate.py
)
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, EvalSample, read_eval_log, write_eval_log
from inspect_ai.model import Model, ModelOutput, model_roles
from inspect_ai.scorer import Score
from inspect_ai.scorer._model import model_scoring_prompt
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span

from podium.harness.boxes import OpenBox, open_run_box, select_box
from podium.harness.budget import Spend
from podium.harness.context import current, run_context
from podium.harness.context_length import graded_refusal, is_refused
from podium.harness.errors import PodiumError, UserError
from podium.harness.inspect_adapters import as_score, as_scorer, question_from, unscored
from podium.harness.ledger.journal import Head
from podium.harness.ledger.logs import answer_in, newest_logs, read_log
from podium.harness.ledger.recorder import TaskJournal
from podium.harness.ledger.runs import RunFacts, run_facts
from podium.harness.parallel import map_concurrently
from podium.harness.pool import ask_once, slot_model
from podium.harness.pool_config import PoolSpec, WorkerSpec
from podium.harness.records import GRADER, PODIUM, UNANSWERED, WRONG, Overflows, Question
from podium.harness.reply_cache import PaidReplies
from podium.harness.request import Request
from podium.harness.run.catalogue import Catalogue
from podium.harness.run.experiment import note_graders
from podium.harness.suite import (
    ModelGraded,
    Suite,
    at_epoch,
    keep_files_private,
    moved_versions,
    refuse_redacted,
    refuse_unjudged,
    with_prompt,
)
from podium.harness.task_suite import TaskSuite

Suites = Mapping[str, Suite[Any]]


class JudgeError(PodiumError):
    """No model is the judge, or the judge gave no verdict: the answer is ungraded, not graded 0."""


@dataclass(frozen=True, slots=True)
class JudgeCase:
    """One case for a judge: the answer to grade, and the texts of the request to the judge."""

    template: str  # as for Inspect's `model_graded_qa`: `{question}`, `{answer}`, `{criterion}`
    verdicts: str  # Pattern over the judge's reply; its one group is the verdict
    question: str
    answer: str  # may contain instructions to the judge: the template quotes it
    criterion: str


@solver
def judge_required(suite: Suite[Any], questions: Sequence[Question]) -> Solver:
    """Return a setup solver that raises UserError if questions need a judge and none is set."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if GRADER not in model_roles():
            refuse_unjudged(suite, questions, None)
        return state

    return solve


SAID = 300  # Number of last characters of a judge's reply that an error message quotes


async def judged_by_model(state: TaskState, case: JudgeCase) -> tuple[str, str, str]:
    """Ask the judges; return (majority verdict, a reply with it, judges' names), or JudgeError."""
    bound = model_roles().get(GRADER)
    if bound is None:
        raise JudgeError("no model has the role `grader`, and only a model can judge this reply")
    judges = bound if isinstance(bound, list) else [bound]
    replies = [await _asked(state, case, judge) for judge in judges]
    verdicts = [match[1] if (match := re.search(case.verdicts, text)) else None for text in replies]
    verdict, votes = Counter(verdicts).most_common(1)[0]
    if verdict is None or 2 * votes <= len(judges):
        raise JudgeError(f"the judge gave no verdict: {replies[-1][-SAID:]}")
    return verdict, replies[verdicts.index(verdict)], ", ".join(map(str, judges))


async def _asked(state: TaskState, case: JudgeCase, judge: Model) -> str:
    """Return a judge's reply, within the run's spending limit, at the price of its model id."""
    # Inspect's prompt (a private function) escapes text that would end the quoted answer.
    prompt = model_scoring_prompt(
        template=case.template,
        question=case.question,
        output=ModelOutput.from_content(model=str(state.model), content=case.answer),
        criterion=case.criterion,
        instructions="-",  # the template has them
        metadata={},
    )
    request = Request(GRADER, judge, [prompt], price_ref=str(judge))
    async with span("judge"):
        _, output = await ask_once(request, current().spend, lambda: judge.generate([prompt]))
    return output.completion


@dataclass(frozen=True, slots=True)
class Regrade:
    """The result of regrading one log: the newer log, and counts of samples."""

    log: Path
    graded: int
    still_unscored: int
    changed: int


def regrade(
    log: EvalLog, suite: Suite[Any], box: OpenBox | None, everything: bool = False
) -> Regrade | None:
    """Grade a log's unscored (or all) samples again, into a newer log; None if nothing needs it."""
    chosen = [sample for sample in log.samples or [] if everything or is_unscored(sample)]
    chosen = [sample for sample in chosen if sample.error is None and not was_judged(sample, suite)]
    if not chosen:
        return None
    refuse_redacted(log.eval.metadata, Path(log.location).name)
    if not suite.publishable:
        keep_files_private()
    if not everything:
        _refuse_another_grader(log, suite, box)
    changed = 0
    metadata = log.eval.metadata or {}
    old_facts = metadata.get(PODIUM, {})
    overflows = WRONG if everything else old_facts.get("overflows", UNANSWERED)
    for sample, new in _graded_anew(chosen, suite, box, overflows):
        old = (sample.scores or {}).get(PODIUM)
        changed += old is None or str(old.value) != str(new.value)
        sample.scores = {**(sample.scores or {}), PODIUM: new}
    facts = {**old_facts, "suite_version": suite.version}
    facts |= {"overflows": WRONG} if everything else {}
    if box:
        facts |= {"box": box.name, "box_facts": box.facts[suite.name].model_dump(mode="json")}
    log.eval.task_version, log.eval.metadata = suite.version, {**metadata, PODIUM: facts}
    path = written_newer(log)
    missing = sum(is_unscored(sample) for sample in chosen)
    return Regrade(log=path, graded=len(chosen) - missing, still_unscored=missing, changed=changed)


def question_in(sample: EvalSample, suite: Suite[Any]) -> Question:
    """Return a logged sample's question with its target, in the variant of its epoch."""
    target = sample.target if isinstance(sample.target, str) else "".join(sample.target)
    text = sample.input if isinstance(sample.input, str) else sample.input[-1].text
    question = replace(question_from(str(sample.id), text, sample.metadata), target=target)
    return at_epoch(suite, question, sample.epoch)


def was_judged(sample: EvalSample, suite: Suite[Any]) -> bool:
    """Return whether only a model can grade the sample, because its suite has no rule for it."""
    return isinstance(suite, ModelGraded) and suite.needs_judge(question_in(sample, suite))


def is_unscored(sample: EvalSample) -> bool:
    """Return whether a sample has no score, or a score without a value."""
    scores = list((sample.scores or {}).values())
    return not scores or any(
        isinstance(score.value, float) and math.isnan(score.value) for score in scores
    )


def _refuse_another_grader(log: EvalLog, suite: Suite[Any], box: OpenBox | None) -> None:
    path, stored = Path(log.location), log.eval.task_version
    if stored != suite.version:
        raise UserError(
            f"{path.name} was graded by version {stored} of {suite.name}, which is now "
            f"{suite.version}: grade the whole log again with --all."
        )
    facts = run_facts(log, path)
    if facts is None or box is None:
        return
    for kind, old, new in (
        ("box", facts.box, box.name),
        ("image", facts.box_facts and facts.box_facts.image_id, box.facts[suite.name].image_id),
    ):
        if old is not None and old != new:
            raise UserError(
                f"{path.name} was graded in {kind} {old}, not {new}. Use {kind} {old} again, or "
                "grade the whole log again with --all."
            )


def _graded_anew(
    samples: Sequence[EvalSample], suite: Suite[Any], box: OpenBox | None, overflows: Overflows
) -> Iterator[tuple[EvalSample, Score]]:
    def grade(sample: EvalSample) -> tuple[EvalSample, Score]:
        try:
            reply = answer_in(sample.model_dump(include={"output", "metadata"}))
            if overflows == WRONG and _was_refused(sample, reply):
                return sample, as_score(graded_refusal(reply))
            question = question_in(sample, suite)
            return sample, as_score(suite.grade(question, reply, box.box if box else None))
        except Exception as error:
            return sample, unscored(error)

    return map_concurrently(grade, samples, box.most if box else 1)


def _was_refused(sample: EvalSample, answer: str) -> bool:
    """Return whether a worker refused the request as too long; in older logs, only calls say so."""
    events = (event for event in sample.events if isinstance(event, ModelEvent))
    calls = [event.output for event in events if event.output.completion == answer]
    return is_refused(sample.output) or (bool(calls) and all(map(is_refused, calls)))


def _runs(log_dir: Path) -> Iterator[tuple[Path, RunFacts, bool]]:
    """Yield every podium task's newest log, its run facts, and whether scores may be missing."""
    for path in newest_logs([log_dir]):
        header = read_eval_log(str(path), header_only=True)
        scores = header.results.scores if header.results else []
        if facts := run_facts(header, path):
            yield path, facts, not scores or any(result.unscored_samples for result in scores)


def older_graders(log_dir: Path, suites: Suites) -> str:
    """List, as text, the suites in a directory's logs whose grader has another version now."""
    runs = (facts for _, facts, _ in _runs(log_dir) if facts.suite in suites)
    then = sorted({(facts.suite, facts.suite_version) for facts in runs})
    changes = [moved_versions({name: old}, {name: suites[name].version}) for name, old in then]
    return ", ".join(filter(None, changes))


def written_newer(log: EvalLog) -> Path:
    """Write a log with changed scores to the old one's folder, as the newest log of its task."""
    recompute_metrics(log)
    now, old = datetime.now(UTC), Path(log.location)
    log.eval.created = now.isoformat(timespec="seconds")
    stamp = now.strftime("%Y-%m-%dT%H-%M-%S-%f")[:-3] + "+00-00"  # Inspect's format
    path = old.with_name(f"{stamp}_{old.name.partition('_')[2]}")
    write_eval_log(log, str(path))
    return path


def regrade_dir(
    log_dir: Path, suites: Suites, box: OpenBox | None, everything: bool = False
) -> list[Regrade]:
    """Raise UserError if a suite or sandbox is missing; else regrade each task's newest log."""
    work: list[tuple[EvalLog, Suite[Any]]] = []
    for path, facts, lacking in _runs(log_dir):
        if (log := read_log(path) if everything or lacking else None) is None:
            continue
        suite = _suite_of(facts, path, suites)
        if isinstance(suite, TaskSuite):  # only Inspect can run its scorer: `inspect score`
            continue
        if suite.needs_box and box is None:
            raise UserError(f"Suite {facts.suite!r} runs programs: name a sandbox with --box.")
        work.append((log, suite))
    results = [
        regrade(log, suite, box if suite.needs_box else None, everything) for log, suite in work
    ]
    if everything:
        versions = {suite.name: suite.version for _, suite in work}
        note_graders(log_dir, versions, box.name if box else None, box.image_ids if box else {})
    return [result for result in results if result is not None]


@dataclass(slots=True)
class Remade:
    """A comparison of a log's verdicts with new verdicts of the same replies; no log is written."""

    log: Path
    task: str
    same: int = 0
    others: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    left: Counter[str] = field(default_factory=Counter[str])  # skipped samples by reason


def remade_dir(log_dir: Path, suites: Suites, box: OpenBox | None) -> Iterator[Remade]:
    """Grade the newest log of every task again and compare; programs need a sandbox (`box`)."""
    for path in newest_logs([log_dir]):
        if log := read_log(path):
            yield _remade(log, path, suites, box)


def _remade(log: EvalLog, path: Path, suites: Suites, box: OpenBox | None) -> Remade:
    result, facts = Remade(path, log.eval.task), run_facts(log, path)
    samples = [sample for sample in log.samples or [] if not (sample.error or is_unscored(sample))]
    reason = "not a run of podium" if facts is None else _not_remade(log, facts, suites, box)
    if facts is None or reason:
        result.left[reason] += len(samples)
        return result
    suite = _suite_of(facts, path, suites)
    rules = [sample for sample in samples if not was_judged(sample, suite)]
    result.left["a model judged it"] += len(samples) - len(rules)
    own_box = box if suite.needs_box else None
    for sample, new_score in _graded_anew(rules, suite, own_box, facts.overflows):
        _compare(sample, new_score, result)
    result.left = +result.left
    return result


def _not_remade(log: EvalLog, facts: RunFacts, suites: Suites, box: OpenBox | None) -> str:
    if facts.redacted:
        return "its texts were removed"
    if facts.suite not in suites:
        return f"this podium lacks suite {facts.suite!r}"
    suite, stored = suites[facts.suite], log.eval.task_version
    if stored != suite.version:
        return f"version {stored} of {suite.name} graded it, now {suite.version} (regrade --all)"
    return "it needs a box (--box)" if suite.needs_box and box is None else ""


def _compare(sample: EvalSample, score: Score, result: Remade) -> None:
    old = (sample.scores or {}).get(PODIUM)
    place = f"sample {sample.id} epoch {sample.epoch}"
    if isinstance(score.value, float) and math.isnan(score.value):
        result.left[f"it could not be graded ({(score.explanation or '').partition(':')[0]})"] += 1
    elif old is None or str(old.value) != str(score.value):
        old_value = "none" if old is None else old.value
        result.others.append(
            (place, f"the log's verdict is {old_value}, the new verdict is {score.value}")
        )
    elif old.answer != score.answer:
        result.others.append((place, "the answer in the log differs from the answer in the reply"))
    else:
        result.same += 1


@contextmanager
def box_for_logs(
    log_dir: Path, box_name: str | None, catalogue: Catalogue, limit: int | None = None
) -> Generator[OpenBox | None]:
    """Yield the sandbox in which to grade logs: `box_name`, else the one that the logs name.

    Yields None if no log needs a sandbox. Raises UserError if the logs name several.
    """
    logs = _runs(log_dir)
    runs = [facts for path, facts, _ in logs if _suite_of(facts, path, catalogue.suites).needs_box]
    used = sorted({facts.box for facts in runs if facts.box})
    if len(used) > 1 and not box_name:
        raise UserError(
            f"These logs were graded in different sandboxes, {' and '.join(used)}: name one "
            "directory at a time, or grade all again in one sandbox with --all --box NAME."
        )
    name = None
    if runs:
        ours = all(facts.label == "rehearsal" for facts in runs)
        name = select_box(box_name or next(iter(used), None), catalogue.boxes, ours=ours)
    suites = [catalogue.suites[suite] for suite in sorted({facts.suite for facts in runs})]
    with open_run_box(catalogue.boxes, name, suites, limit) as box:
        yield box


def _suite_of(facts: RunFacts, path: Path, suites: Suites) -> Suite[Any]:
    if facts.suite in suites:
        return with_prompt(suites[facts.suite], facts.prompt)
    if ".py@" in facts.suite or "/" in facts.suite:
        raise UserError(
            f"{path.name} is of the Inspect task {facts.suite}, whose scorer only Inspect runs: "
            "use `inspect score`."
        )
    raise UserError(
        f"{path.name} is of suite {facts.suite!r}, which this podium lacks. If it is your own, add "
        "--suite FILE.py@NAME; if not, install its package."
    )


def retry_ungraded(log_dir: Path, suites: Suites, spec: PoolSpec, spend: Spend) -> None:
    """Ask the pool's judge, if any, for verdicts that the newest logs lack; write newer logs."""
    if spec.grader is None:
        return
    with run_context(log_dir=log_dir, spec=spec, spend=spend):
        for path, facts, lacking in _runs(log_dir):
            log = read_log(path) if lacking and facts.suite in suites else None
            if log:
                _judge_log(log_dir, log, facts, suites[facts.suite], spec.grader)


def _judge_log(
    log_dir: Path, log: EvalLog, facts: RunFacts, suite: Suite[Any], grader: WorkerSpec
) -> None:
    head = Head(
        task=log.eval.task,
        suite=facts.suite,
        system=facts.system,
        label=facts.label,
        book=str(facts.prices.get("name", "")),
        book_sha256=str(facts.prices.get("sha256", "")),
        shown=facts.publishable,
    )
    samples = log.samples or []
    unjudged = [sample for sample in samples if sample.error is None and is_unscored(sample)]
    unjudged = [sample for sample in unjudged if was_judged(sample, suite)]
    if not unjudged or log.eval.task_version != suite.version:
        return
    with (
        closing(TaskJournal(log_dir, head, PaidReplies(log_dir))) as journal,
        run_context(journal=journal, overflows=facts.overflows),
    ):
        scored = score(
            log.model_copy(update={"samples": unjudged}),
            as_scorer(suite),
            model_roles={GRADER: slot_model(grader)},
            action="overwrite",
            display="none",
        )
    judged = {(sample.id, sample.epoch): sample for sample in scored.samples or []}
    log.samples = [judged.get((sample.id, sample.epoch), sample) for sample in samples]
    written_newer(log)
