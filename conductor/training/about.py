"""What a checkpoint carries beside its weights: podium.json, and a model card with provenance."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from conductor.adaptive import opening
from conductor.checkpoint import About, cards_digest, taught_digests, write_about
from conductor.training.folder import PLANS, code_revision, describe
from conductor.training.job import Training
from conductor.training.studied import as_study
from conductor.training.wording import said_in_training, wording
from harness.text import escape_markdown

CARD = """\
---
library_name: transformers
tags: [podium, conductor, grpo]
---
# A conductor trained by podium

It writes workflows for the pool `{pool}`; it answers no question itself. How it is asked and read
is in `podium.json`. {label}

| | |
|---|---|
| made of | {model} |
| steps of GRPO | {steps} |
| seed | {seed} |
| reward | `{reward}`: {worth} |
| pool | `{pool}`, sha256 `{pool_sha}` |
| workers | {workers} |
| price book | `{prices}`, sha256 `{prices_sha}` |
| code | {code} |

## Data

| suite | version | data revision | train questions | sha256 of their ids |
|---|---|---|---|---|
{data}

{left_out} of the suites' train questions were left out because an exam asks them.

## Validation

{validation}

## What it asks its workers

{said}

## Configuration

```json
{config}
```

Versions: {versions}.
"""

HELD = """It knows workers by their cards. Seated on any pool its
decoder writes nothing but plans of the workers shown; in training it wrote what it liked."""
WORTH = {
    "paper": "1 right, 0.5 wrong, 0 unreadable (arXiv 2512.04388, section 3.1)",
    "plain": "1 right, 0 otherwise",
    "cost-aware": "as published, less a share for cost where the answer is right (podium's own)",
}
OPTIMISTIC = """

A run's `best` is the checkpoint with the highest of all validations that were made, so that figure
is a maximum and optimistic, and the more so the more often a run was validated. Quote what picked
nothing: the suites' `eval` split, or what a study's split keeps for judging."""


def describe_checkpoint(
    training: Training, folder: Path, step: int, validation: Mapping[str, Any] | None
) -> None:
    """Write podium.json and README.md into a checkpoint's folder."""
    said = about(training, step)
    if training.study:
        said = as_study(said, training.study, training.config.form, folder)
    write_about(said, folder)
    (folder / "README.md").write_text(escape_markdown(card(training, step, validation)))


def about(training: Training, step: int) -> About:
    """Return what a checkpoint says about itself."""
    config, spec = training.config, training.spec
    cards = [worker.card for worker in spec.workers]
    bare = training.parts.bare
    asked = [one for exam in training.exams.values() for one in exam.questions.values()]
    return About(
        form=config.form,
        pool=spec.name,
        workers=spec.names,
        cards_sha256=cards_digest(cards) if config.form.cards else "",
        openings=tuple(sorted({opening(card) for card in cards})) if config.form.cards else (),
        suites=tuple(training.exams),
        data={name: exam.suite.data_revision for name, exam in training.exams.items()},
        graders={name: exam.suite.version for name, exam in training.exams.items()},
        taught=taught_digests(asked, bare),
        seed=config.run.seed,
        reward=config.reward.name,
        code=code_revision(),
        prices=training.book.name,
        steps=step,
        rounds=1 if config.recursion else 0,
        summary=config.title,
        drawn=config.pool.shown is not None or config.pool.order == "random",
    )


def card(training: Training, step: int, validation: Mapping[str, Any] | None) -> str:
    """Return the model card: provenance only, no question's text."""
    said = describe(training)
    config = training.config
    rows = [
        f"| {name} | {one['version']} | {one['data_revision']} | {one['train_questions']} | "
        f"`{one['train_ids_sha256'][:16]}` |"
        for name, one in said["data"].items()
    ]
    label = "" if training.spec.label != "rehearsal" else "Its workers are rehearsal programs."
    label = " ".join(filter(None, (label, HELD if config.form.cards else "")))
    return CARD.format(
        pool=training.spec.name,
        label=label,
        model=config.model.path or "random weights (Qwen2 architecture)",
        steps=step,
        seed=config.run.seed,
        reward=config.reward.name,
        worth=WORTH[config.reward.name],
        pool_sha=training.spec.sha256[:16],
        workers=", ".join(training.spec.names),
        prices=training.book.name,
        prices_sha=training.book.sha256[:16],
        code=said["code_revision"] or "not a checkout",
        data="\n".join(rows),
        left_out=training.left_out,
        validation=_validation(training, validation),
        said=_said(training),
        config=json.dumps(said["config"], indent=1, default=str),
        versions=", ".join(f"{name} {version}" for name, version in said["versions"].items()),
    )


def _validation(training: Training, found: Mapping[str, Any] | None) -> str:
    if not found:
        return "Not made at this step."
    grade = "unknown" if found["correct"] is None else f"{found['correct']:.3f}"
    return (
        f"Greedy, {found['questions']} held-out questions, {training.spec.label} workers: right "
        f"{grade}, worker calls {found['calls']:.2f} a question, plans read {found['parsed']:.3f}."
        f"{OPTIMISTIC}"
    )


def _said(training: Training) -> str:
    if not training.publishable:
        return "Not kept: its questions may not be published."
    return said_text(training.request.out)


def said_text(run: Path) -> str:
    """Return how far the subtasks of the plans that a run has sampled so far are its own."""
    if not (run / PLANS).is_file():
        return "Nothing was sampled yet."
    found = wording(said_in_training(run))
    told = "" if found.leaked is None else f" {found.leaked:.1%} of the plans hold the answer."
    return (
        f"Of {found.distinct} different subtasks in {found.plans} sampled plans, {found.new} are "
        f"beyond the warm start's grammar, {found.foreign} with a word that it does not have.{told}"
    )
