"""Footnotes: what limits a row, or must be known to read it, each in a few words."""

from collections import Counter
from pathlib import PurePath

from harness.logs import RunFacts
from harness.sittings import Sitting
from harness.totals import SystemTotals
from reports.money import notes_on_money
from reports.reference import SINGLE
from reports.render import usd
from reports.two_verdicts import two_verdicts

ARGUMENTS = 80
"""Arguments are shown up to this length; an oracle's list of plans stands in the CSV alone."""


def notes_of(sitting: Sitting, totals: SystemTotals) -> list[str]:
    """Return what limits a row, a sentence each: its footnotes."""
    notes = ["uses targets"] if sitting.facts.uses_targets else []
    notes += sitting.facts.notes
    chosen = ", ".join(f"{name}={value}" for name, value in arguments_of(sitting.facts).items())
    if 0 < len(chosen) <= ARGUMENTS and not sitting.facts.system.startswith(SINGLE):
        notes.append(f"{sitting.facts.system}: {chosen}")
    unscored = sorted({attempt.question for attempt in sitting.attempts if not attempt.graded})
    if unscored:
        shown = ", ".join(unscored[:10]) + (", ..." if len(unscored) > 10 else "")
        reasons = sorted({attempt.reason for attempt in sitting.attempts if attempt.reason})
        notes.append(f"with an unscored epoch: {shown} ({reasons[0][:120]})")
    missing = totals.n_asked - len(sitting.attempts)
    if missing:
        notes.append(f"interrupted: {missing} of {totals.n_asked} not asked yet")
    notes += _on_verdicts(sitting)
    notes += _fallbacks(sitting)
    if totals.n_unpriced:
        notes.append(f"{totals.n_unpriced} calls have no price")
    notes += notes_on_money(sitting, totals)
    if totals.n_failed:
        notes.append(_failures(totals, sitting.facts))
    return notes


def arguments_of(facts: RunFacts) -> dict[str, object]:
    """Return a system's arguments; of a file its name, because a table travels and paths do not."""
    return {name: _without_folder(value) for name, value in facts.args.items()}


def _without_folder(value: object) -> object:
    """Return a path's last part; `openai/gpt-4.1` is a model's name, and stays."""
    if not isinstance(value, str):
        return value
    path = PurePath(value)
    is_file = path.suffix[1:].isalpha()
    return path.name if path.is_absolute() or is_file else value


def _failures(totals: SystemTotals, facts: RunFacts) -> str:
    said = f"{totals.n_failed} calls failed"
    if facts.label != "live" or totals.usd_spent is not None:
        return said
    return f"{said}, billed or not is unknown: paid at least USD {usd(totals.usd_at_least)}"


def _fallbacks(sitting: Sitting) -> list[str]:
    """Return how often a system had to fall back, as it noted itself."""
    found = Counter(one.fallback for one in sitting.attempts if one.graded and one.fallback)
    whole = sum(attempt.graded for attempt in sitting.attempts)
    return [f"{count} of {whole} answers: {said}" for said, count in sorted(found.items())]


def _on_verdicts(sitting: Sitting) -> list[str]:
    """Return where the published evaluator says otherwise, and which verdicts hang on time."""
    rules = two_verdicts(sitting.attempts)
    notes = [rules.sentence] if rules and rules.differ else []
    fragile = sum(attempt.fragile for attempt in sitting.attempts if attempt.graded)
    if fragile:
        verdicts = "1 verdict is" if fragile == 1 else f"{fragile} verdicts are"
        notes.append(f"{verdicts} within 20 % of the time limit")
    return notes
