"""`podium export KIND`: runs in formats of other tools. A kind is one line of KINDS."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from podium.cli.arguments import Arguments, names, renamed
from podium.cli.list_commands import InstalledParts
from podium.harness.errors import UserError
from podium.harness.text import pluralise, say

Exporter = Callable[[Sequence[Path], Path], Iterable[Path]]
"""Another package's exporter: (log directories, a new folder) -> the files it wrote."""
Declare = Callable[[Arguments], None]
Carry = Callable[[argparse.Namespace], int]


def declare_kinds(add: Arguments) -> None:
    """Add each kind, an export format such as `latex`, as a subcommand with its arguments."""
    action = add.actions("KIND")
    for name, (declare, _) in KINDS.items():
        declare(action(name, declare.__doc__ or name))

    def installed() -> None:
        for name in exporters:
            if name not in KINDS:
                of_runs(action(name, f"A kind of {exporters.package(name)}."))

    exporters = InstalledParts("podium.exporters")
    add.later(installed)


def export_command(args: argparse.Namespace) -> int:
    """Write runs in one export format; return the exit code."""
    if args.action in KINDS:
        return KINDS[args.action][1](args)
    if args.out.exists():
        raise UserError(f"{args.out} already exists. Use another --out.")
    exporter: Exporter = InstalledParts("podium.exporters")[args.action]
    for path in exporter(args.dirs, args.out):
        say(f"Wrote {path}")
    return 0


def of_runs(add: Arguments) -> None:
    """Add the arguments of all export formats that read runs: log directories and `--out`."""
    add("dirs DIR", "log directories, searched recursively", Path, nargs="+")
    into_folder(add)


def into_folder(add: Arguments) -> None:
    """Add `--out`, the new folder that an export writes."""
    add("--out DIR", "folder to write; it must not exist yet", Path, required=True)


def eee(add: Arguments) -> None:
    """Every Eval Ever 0.3: a record per system and suite, and samples if they may be published."""
    of_runs(add)


def write_eee(args: argparse.Namespace) -> int:
    """Write runs as records for the archive Every Eval Ever; return 0."""
    from podium.reports import eee

    paths = eee.write_eee(args.dirs, args.out)
    records = sum(path.suffix == ".json" for path in paths)
    say(f"Wrote {pluralise(records, 'record')}, {len(paths) - records} with samples, below")
    say(f"{args.out}/data; check: every_eval_ever validate '{args.out}/data/**/*.json*'")
    return 0


def latex(add: Arguments) -> None:
    """LaTeX tables (booktabs), BibTeX of all that they cite, and a document that shows them."""
    of_runs(add)
    add(
        "--vs SYSTEM",
        "system that all others are compared with (best-single, else the first worker)",
    )
    add("--columns NAME,NAME", "columns of table.csv to show, in this order", names, default=())


def write_latex(args: argparse.Namespace) -> int:
    """Write a paper's LaTeX tables and references from runs; return 0."""
    from podium.cli.arguments import taken
    from podium.reports.blocks import ReportOptions
    from podium.reports.paper import export_paper

    paths = export_paper(args.dirs, args.out, taken(ReportOptions, args))
    say(f"Wrote {', '.join(path.name for path in paths)} into {args.out}")
    return 0


def hub(add: Arguments) -> None:
    """Hugging Face: a conductor's checkpoint with its card and .eval_results, to upload."""
    add(
        "checkpoint CHECKPOINT",
        "name of a released checkpoint, or a folder that podium train wrote",
    )
    add("dirs DIR", "log directories of runs with this conductor", Path, nargs="+")
    into_folder(add)


def write_hub(args: argparse.Namespace) -> int:
    """Write a conductor's checkpoint as a Hugging Face model repository; return 0."""
    from podium.conductor.checkpoint import checkpoint_digest, checkpoint_folder, read_info
    from podium.conductor.training.model_card import RESULTS, write_model
    from podium.reports.hub_results import eval_results, results_text, rows_of_checkpoint
    from podium.reports.report import report_of

    folder = checkpoint_folder(args.checkpoint)
    read_info(folder)  # refuses a folder without a checkpoint
    rows = rows_of_checkpoint(report_of(args.dirs), checkpoint_digest(folder))
    files = dict(eval_results(rows))
    write_model(folder, args.out, results_text(rows), files)
    say(f"Wrote a model repository into {args.out}, {len(files)} in {RESULTS}: one for each result")
    say("on a data set of the Hub, except those with rehearsal workers. To publish it:")
    say(f"  hf upload OWNER/NAME {args.out}")
    return 0


def routerarena(add: Arguments) -> None:
    """RouterArena: prediction files, configs and prices; includes all calls of each question."""
    of_runs(add)
    alias = "name of our model OURS on that board; repeat (our name, without the provider)"
    add.repeated("--model OURS=THEIRS", alias, renamed)


def write_routerarena(args: argparse.Namespace) -> int:
    """Write runs as files for the leaderboard RouterArena; return 0."""
    from podium.reports import routerarena

    for line in routerarena.write_routerarena(args.dirs, args.out, dict(args.model)):
        say(line)
    say(f"Copy {args.out} over a checkout; add new entries of model_cost to theirs by hand, and")
    say("the models to universal_model_names.py. Then `podium audit --routerarena FILE` checks it,")
    say("also whether its questions are a complete split of RouterArena (809, 8,400 or 420).")
    return 0


def verifiers(add: Arguments) -> None:
    """Verifiers 0.4: an installable taskset of practice questions, for podium reward serve."""
    usual = "practice suite; repeat (practice-integer and practice-choice)"
    add("--suite", usual, action="append")
    into_folder(add)


def write_verifiers(args: argparse.Namespace) -> int:
    """Write practice suites as a taskset package for the library Verifiers; return 0."""
    from podium.cli.list_commands import suite_versions
    from podium.harness.rewards.taskset import USUAL, write_taskset

    paths = write_taskset(args.out, args.suite or USUAL, [*suite_versions()])
    say(f"Wrote {', '.join(path.name for path in paths)} into {args.out}: README.md shows how to")
    say("install it. While `podium reward serve` runs: vf-eval podium-practice --no-push")
    return 0


def site(add: Arguments) -> None:
    """A leaderboard of runs: leaderboard.json, its page, and each run's pages with its audit."""
    of_runs(add)


def write_site(args: argparse.Namespace) -> int:
    """Write a leaderboard of runs as JSON and HTML pages; return 0."""
    from podium.cli.list_commands import suite_versions
    from podium.reports.site import write_board

    for line in write_board(args.dirs, args.out, suite_versions()):
        say(line)
    say(f"Wrote leaderboard.json, index.html and the pages of each run into {args.out}")
    return 0


KINDS: Mapping[str, tuple[Declare, Carry]] = {
    "eee": (eee, write_eee),
    "verifiers": (verifiers, write_verifiers),
    "latex": (latex, write_latex),
    "hub": (hub, write_hub),
    "routerarena": (routerarena, write_routerarena),
    "site": (site, write_site),
}
"""Kind of export -> the function that declares the kind's arguments (its docstring is the help),
and the function that writes the export."""
