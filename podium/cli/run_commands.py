"""Commands that call models, or check whether they can: run, demo, record, serve, doctor."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from podium.cli.arguments import say_facts, taken
from podium.cli.consent import agree_to_run, agree_to_serving, terminal_agrees
from podium.cli.list_commands import controls, whole_catalogue
from podium.cli.report_commands import report_command, say_site
from podium.harness.errors import UserError, WorkerError
from podium.harness.files import refuse_unwritable, refuse_unwritable_file
from podium.harness.text import fitted_text, say


def run_request(args: argparse.Namespace, **values: Any) -> Any:
    """Return a `RunRequest` from a command's arguments; other fields keep their defaults."""
    from podium.harness.run.catalogue import RunRequest

    names = {"suites": tuple(args.suite), "systems": tuple(args.system)}
    pairs = {"rpm": "rpm", "suite_limits": "suite_limit", "task_args": "T"}
    pairs = {name: option for name, option in pairs.items() if hasattr(args, option)}
    values |= {name: dict(getattr(args, option)) for name, option in pairs.items()}
    values |= {"system_options": _system_options(args)}
    values |= {"grace_s": args.grace} if hasattr(args, "grace") else {}
    return taken(RunRequest, args, **names, train_on=tuple(args.train_on), **values)


def _system_options(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Return system -> option -> value: those of the run file, overridden by those of -S."""
    stated: dict[str, dict[str, Any]] = getattr(args, "system_options", {})
    options = {name: dict(values) for name, values in stated.items()}
    for system, name, value in getattr(args, "S", ()):
        options.setdefault(system, {})[name] = value
    return options


def run_command(args: argparse.Namespace) -> int:
    """Run systems on suites, or estimate the cost; return 1 if questions remain unanswered."""
    from podium.harness.run.catalogue import with_own

    if args.like and not args.dry_run:
        raise UserError("--like goes with --dry-run: add it, or leave --like out.")
    _take_file(args)
    for option, value in (("suite", args.suite), ("log-dir", args.log_dir)):
        if not value:
            raise UserError(f"The run has no --{option}. Add it, or use a run file that has it.")
    if args.gate:
        from podium.reports.gate import read_gate

        read_gate(args.gate)
    request = run_request(args)
    code = _run_sizes(args, *with_own(request, whole_catalogue()))
    if args.save_run:
        from podium.cli.run_file import save_run_file

        save_run_file(args, request)
        say(f"Wrote {args.save_run}; no model was called. Next: podium run {args.save_run}")
    elif not (code or args.dry_run) and hasattr(args, "report"):
        return _report(args)
    return code


def _run_sizes(args: argparse.Namespace, base: Any, catalogue: Any) -> int:
    """Run, estimate or check a request, once per budget size of --equal; return the exit code."""
    from podium.harness.reply_cache import PaidReplies
    from podium.harness.run.equal_budgets import by_size
    from podium.harness.run.estimate import estimate, estimate_text
    from podium.harness.run.run import podium_run, say_who_runs
    from podium.harness.run.run_request import RequestReader

    requests, asks_nobody = by_size(base), args.dry_run or args.save_run
    if args.shards and len(requests) > 1:
        raise UserError("--shards supports one size of --equal. Run each size in a run of its own.")
    for request in requests:
        if len(requests) > 1:
            say(f"Budget {request.equal}, in {request.log_dir}:")
        reader = RequestReader(request, catalogue, controls())
        if asks_nobody:
            job = reader.read()
            say_who_runs(job)
            text = estimate_text(estimate(job, args.like), request) if args.dry_run else ""
            say(fitted_text(text), end="")
        elif code := podium_run(reader, partial(agree_to_run, yes=args.yes), _sharded(args)):
            return code
    if len(requests) > 1 and not asks_nobody:
        PaidReplies(base.log_dir).clear()
    return 0


def _take_file(args: argparse.Namespace) -> None:
    """If a run file is given, take from it all arguments that the user did not type."""
    if getattr(args, "file", None):
        from podium.cli.run_file import take_run_file

        take_run_file(args)


def _report(args: argparse.Namespace) -> int:
    """Write the report with the options that the run file has for it; return 0."""
    words: argparse.Namespace = args.commands["report"].parse_args([str(args.log_dir)])
    vars(words).update(args.report)
    return report_command(words)


def _sharded(args: argparse.Namespace) -> Any:
    """Return a function that runs a request in shards; None if --shards is not given."""
    if args.shards is None:
        for name in ("launcher", "address"):
            if getattr(args, name) is not None:
                raise UserError(f"--{name} goes with --shards N: add it, or leave --{name} out.")
        return None
    from podium.harness.shards.sharded_run import Sharding, own_parts, run_sharded

    names = own_parts(args.suite), own_parts(args.system)
    return partial(
        run_sharded, sharding=Sharding(args.shards, args.launcher or "local", args.address, names)
    )


def shard_command(args: argparse.Namespace) -> int:
    """Run the remaining questions of a shard; return 1 if questions remain unanswered."""
    from podium.harness.shards.launcher import end_with_input
    from podium.harness.shards.sharded_run import run_shard, shard_catalogue

    if args.attached:
        end_with_input()
        with Path(f"{args.dir}.log").open("ab") as log:
            for stream in (1, 2):
                os.dup2(log.fileno(), stream)
    catalogue = shard_catalogue(args.dir, whole_catalogue())
    outcome = run_shard(args.dir, catalogue, controls())
    for reason in outcome.trouble:
        say(f"podium: unanswered: {reason}", file=sys.stderr)
    return 0 if outcome.finished else 1


PRACTICE = ("practice-choice", "practice-composed")
"""A suite that one worker can answer, and a suite that needs two workers (for facts, for maths)."""
SYSTEMS = """
single best-single self-consistency moa-lite conductor-prompted compute-matched-usd random-worker
oracle
"""
CHECKPOINTS = ("conductor", "conductor-untrained")
"""Further systems of the demo: a trained conductor, and its checkpoint before training."""
RECORDED = "recorded-aime25"
SELECTION = 20
"""Train questions per worker and suite in the demo; fewer than in `podium run`, to save time."""


def demo_command(args: argparse.Namespace) -> int:
    """Run practice suites and recorded AIME25, print the tables, write a report; return 0."""
    from podium.harness.pool_config import read_pool
    from podium.harness.run.catalogue import RunRequest
    from podium.harness.run.preflight import why_unfit
    from podium.harness.run.run import run
    from podium.reports.audit import beside_a_report
    from podium.reports.report import report_of, write_report
    from podium.reports.site import refuse_foreign_site

    refuse_unwritable(args.out, "--out")
    refuse_foreign_site(args.out / "site")
    catalogue = whole_catalogue()
    free = replace(controls(), log_realtime=False)  # its calls cost nothing
    spec = read_pool("rehearsal")
    systems = [
        *SYSTEMS.split(),
        *(name for name in CHECKPOINTS if why_unfit(name, catalogue, spec) is None),
    ]

    def ran(folder: Path, *suites: str, **options: Any) -> Path:
        outcome = run(RunRequest(suites=suites, log_dir=folder, **options), catalogue, free)
        if not outcome.finished:
            raise WorkerError(f"Not finished: {'; '.join(outcome.trouble)}. Repeat the command.")
        say(f"{report_of([folder]).text}\n")
        return folder

    dirs, left_out = [args.out / "practice"], _not_run(systems, catalogue)
    try:
        dirs.append(ran(args.out / "aime25", "aime25", systems=(), pool=RECORDED))
    except UserError as error:
        left_out = f"{left_out}\nAIME25 on recorded replies did not run: {error}"
    settings = {"pool": "rehearsal", "limit": args.limit, "selection_limit": SELECTION}
    for suite in PRACTICE:
        ran(dirs[0] / suite, suite, systems=tuple(systems), **settings)
    say(left_out)
    beside = beside_a_report(dirs)
    report = write_report(dirs, args.out / "report", beside=beside)
    say(f"Written to {args.out / 'report'}: {', '.join(path.name for path in report.files)}")
    say_site(dirs, report, args.out / "site", beside)
    return 0


def _not_run(systems: Sequence[str], catalogue: Any) -> str:
    """Return a sentence on how many suites and systems the demo leaves out."""
    n_systems = len([name for name in catalogue.systems if name not in systems])
    n_suites = len([name for name in catalogue.suites if name not in PRACTICE])
    return f"Not run: {n_suites} suites (`podium suites`), {n_systems} systems (`podium systems`)."


def record_command(args: argparse.Namespace) -> int:
    """Write a cassette, a file of recorded replies; return 0."""
    refuse_unwritable_file(args.out, "--out")
    if args.strict and not args.requests:
        raise UserError("--strict goes with --requests: add it, or leave --strict out.")
    if args.requests and len(args.logs) > 1:
        raise UserError("--requests supports one file of results. Record each batch on its own.")
    if args.requests:
        from podium.harness.batch_replies import record_batch

        say(record_batch(args.logs[0], args.requests, args.out, strict=args.strict))
    else:
        from podium.harness.cassette import record
        from podium.harness.ledger.logs import find_logs

        say(record(find_logs(args.logs), args.out))
    return 0


def serve_command(args: argparse.Namespace) -> int:
    """Serve systems as models until a signal, or make an access key for a client; return 0."""
    from podium.serving.access_keys import new_key
    from podium.serving.launch import EndpointRequest, serve_models

    if args.new_key:
        if args.keys is None:
            raise UserError("--new-key adds a key to a file. Add --keys FILE.")
        say(new_key(args.keys, args.new_key))
        say(
            f"{args.keys} now has the digest of this key. Save the key: it is not shown again.",
            file=sys.stderr,
        )
        return 0
    if not args.system or args.log_dir is None:
        raise UserError("A server needs a system and a log directory. Add --system and --log-dir.")
    agree_to_serving(args)
    request = taken(
        EndpointRequest,
        args,
        systems=tuple(args.system),
        allow_hosts=tuple(args.allow_host),
        deadline_s=args.deadline,
        grace_s=args.grace,
    )
    log = partial(say, file=sys.stderr, flush=True)
    serve_models(request, whole_catalogue(), say=partial(say, flush=True), log=log)
    return 0


NO_TERMINAL = "A drill costs money, and there is no terminal to ask. Add --yes."


def doctor_command(args: argparse.Namespace) -> int:
    """Check a pool or a run, print the findings; return 1 if there is a problem to fix."""
    from podium.harness.run.catalogue import with_own
    from podium.harness.run.equal_budgets import by_size
    from podium.harness.run.experiment import NEW
    from podium.harness.run.run import examine, examine_run

    if args.yes and not args.drill:
        raise UserError("--yes agrees to the price of a drill: add --drill, or leave --yes out.")
    if args.S and not (args.suite or args.system):
        raise UserError("-S sets options of systems: add --system, or leave -S out.")
    catalogue = whole_catalogue()
    _take_file(args)
    if args.suite or args.system:
        request = run_request(args, log_dir=args.log_dir or NEW)
        request = replace(request, equal=by_size(request)[0].equal)  # the smallest budget
        check = examine_run(*with_own(request, catalogue), controls())
    else:
        check = examine(args.pool, args.box, catalogue, args.max_usd)
    if args.drill:
        check = _drilled(check, args)
    lines = [*check.facts, *(f"- {problem}" for problem in check.problems)]
    lines += [f"- note: {note}" for note in check.notes]
    lines.append(
        f"{check.what}: " + (f"{len(check.problems)} to fix." if check.problems else "ready.")
    )
    say_facts(args, check, "\n".join(lines))
    return 1 if check.problems else 0


def _drilled(check: Any, args: argparse.Namespace) -> Any:
    """Ask each model a question (a drill) if the user agrees; return `check` with the results."""
    from podium.harness.pool_config import read_pool
    from podium.harness.run.drill import drill, drill_price, drill_total, fit_for_drill

    spec = read_pool(args.pool)
    book = spec.book()
    slots = fit_for_drill(spec, book)
    say(drill_price(slots, book), file=sys.stderr)
    if not (args.yes or terminal_agrees(NO_TERMINAL, "Call these models?")):
        return replace(
            check, notes=(*check.notes, "you did not agree to the drill, so no model was called")
        )
    drilled = drill(spec, book, slots)
    return replace(
        check,
        problems=(*check.problems, *(text for row in drilled for text in row.problems)),
        notes=(*check.notes, *(text for row in drilled for text in row.notes)),
        facts=(*check.facts, drill_total(drilled)),
    )
