"""Whether a pool, a box and a run are ready: `podium doctor`, and its drill of one call each."""

import argparse
import sys
from dataclasses import replace
from typing import Any

from podium.cli.arguments import say_facts
from podium.cli.consent import terminal_agrees
from podium.cli.list_commands import controls, whole_catalogue
from podium.cli.run_commands import run_request
from podium.harness.errors import UserError
from podium.harness.text import say

NO_TERMINAL = "A drill spends money, and no terminal is here to agree: add --yes."


def doctor_command(args: argparse.Namespace) -> int:
    """Print what was found; return 1 where something is to be fixed."""
    from podium.harness.run.catalogue import with_own
    from podium.harness.run.experiment import NEW
    from podium.harness.run.run import examine, examine_run

    if args.yes and not args.drill:
        raise UserError("--yes agrees to the price of a drill: add --drill, or leave it out.")
    known = whole_catalogue()
    if args.suite or args.system:
        request = run_request(args, log_dir=args.log_dir or NEW)
        found = examine_run(*with_own(request, known), controls())
    else:
        found = examine(args.pool, args.box, known, args.max_usd)
    if args.drill:
        found = _drilled(found, args)
    lines = [*found.facts, *(f"- {one}" for one in found.problems)]
    lines += [f"- note: {note}" for note in found.notes]
    lines.append(
        f"{found.what}: " + (f"{len(found.problems)} to fix." if found.problems else "ready.")
    )
    say_facts(args, found, "\n".join(lines))
    return 1 if found.problems else 0


def _drilled(found: Any, args: argparse.Namespace) -> Any:
    """Return what a doctor has found with what a drill adds, once its price is agreed to."""
    from podium.harness.pool_config import read_pool
    from podium.harness.run.drill import drill, drill_price, drill_total, fit_for_drill

    spec = read_pool(args.pool)
    book = spec.book()
    slots = fit_for_drill(spec, book)
    say(drill_price(slots, book), file=sys.stderr)
    if not (args.yes or terminal_agrees(NO_TERMINAL, "Ask them?")):
        return replace(found, notes=(*found.notes, "the drill was not agreed to: nobody was asked"))
    drilled = drill(spec, book, slots)
    return replace(
        found,
        problems=(*found.problems, *(said for one in drilled for said in one.problems)),
        notes=(*found.notes, *(said for one in drilled for said in one.notes)),
        facts=(*found.facts, drill_total(drilled)),
    )
