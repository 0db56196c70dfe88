"""Every command of `podium`: its help, its arguments, and the module that runs it.

A module is imported only when one of its commands runs, so that help is fast and runs nothing.
"""

import argparse
import os
import sys
from collections.abc import Callable
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from signal import SIGINT

from podium.cli.arguments import (
    EPOCHS,
    MOST,
    SANDBOXES,
    Arguments,
    Parser,
    Version,
    add_examples,
    argument,
    counts,
    dollars,
    finite,
    names,
    numbered,
    option,
    percentage_points,
    renamed,
    seed,
    share,
    table_format,
    tokens,
    up_to,
)
from podium.cli.export_commands import declare_kinds
from podium.cli.money_commands import prices
from podium.cli.pool_command import pool
from podium.harness.errors import PodiumError
from podium.harness.records import SEED
from podium.harness.text import say

Command = Callable[[argparse.Namespace], int]  # runs one command and returns its exit code
REFERENCE = "system that all others are compared with (best-single, else the first single worker)"
SLOW = ("podium.harness.run.run", "podium._registry")
"""Modules that import slowly; imported before a run begins, so that Ctrl-C in an import interrupts
no run."""


def load(name: str) -> Command:
    """Import a command's module and return its function; without a command, one that shows help."""
    if name not in COMMANDS:
        return lambda args: build_parser().print_help() or 0
    # Help does not need this import. Garbage collection would take a seventh of the import time.
    from podium.harness.parallel import without_collector

    with without_collector():
        for module in SLOW if name in ("run", "demo", "shard") else ():
            import_module(module)
        return getattr(import_module(f"podium.cli.{COMMANDS[name][1]}"), f"{name}_command")


def carry_out(command: Command, args: argparse.Namespace) -> int:
    """Run a command and return its exit code; print an exception as one sentence."""
    try:
        return command(args)
    except PodiumError as error:
        say(f"podium: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output, e.g. `head`, has exited
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        place = error.filename or getattr(args, "log_dir", None) or "a file"
        say(f"podium: {place}: {error.strerror or error}{_remedy(place, args)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        say("\npodium: stopped. Run the same command again to finish.", file=sys.stderr)
        return 128 + getattr(stop, "number", SIGINT)  # as shells do


def _remedy(place: object, args: argparse.Namespace) -> str:
    """Return a hint to change what led to an error at `place`; empty if none is known."""
    here = Path(str(place))
    for name, value in vars(args).items():
        if isinstance(value, Path) and (here.is_relative_to(value) or value.is_relative_to(here)):
            return f"; name another {'DIR' if name == 'dir' else '--' + name.replace('_', '-')}"
    at_home = here.is_relative_to(Path.home())
    return "; set XDG_DATA_HOME to a folder that can be written" if at_home else ""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands, which prints each command's help."""
    parser = Parser(
        prog="podium",
        description="Does a small learned orchestrator beat what people use instead, at what cost?",
    )
    parser.add_argument("--version", action=Version, nargs=0, help="print podium's version")
    commands = parser.add_subparsers(title="commands", dest="command_name", metavar="COMMAND")
    parser.set_defaults(command_name="help", commands=commands.choices)
    for name, (declare, _) in COMMANDS.items():
        text = declare.__doc__
        declare(Arguments(commands.add_parser(name, help=text, description=text)))
    add_examples(parser)
    return parser


def demo(add: Arguments) -> None:
    """Run every kind of system on two practice suites and on recorded AIME25, then report."""
    add("--out", "directory to write (demo)", Path, default=Path("demo"))
    # Fixed before any run: `podium power --effect 40 --discordant 0.5` gives 25 for one comparison.
    # Holm over 16 comparisons raises z from 1.96 to 2.95: 25 x (2.95 + 0.84)^2 / (1.96 + 0.84)^2.
    add("--limit", "questions per suite", up_to(MOST), default=46)


def run(add: Arguments) -> None:
    """Run systems on suites with a pool, or a run file; repeat the command to resume."""
    add.run_file()
    add.repeated("--suite", "suite name; repeat for several (the file's)")
    add.repeated(
        "--system",
        "system name; `single`: every worker; `all`: every system, router and control that fits "
        "pool, suites and installed extras; `contestants`, `routers`, `controls` or `frameworks`: "
        "those of a group; repeat (all that fit, untrained; live pools: none)",
    )
    _task_arguments(add)
    _pool(add)
    add("--log-dir", "directory of the run: a new one, or one to resume (the run file's)", Path)
    add("--save-run FILE", "write these options to a new run file; run nothing", Path)
    add("--limit", "first N questions (all)", up_to(MOST))
    of_suite = "first N questions of one suite, instead of --limit; repeat for several"
    add.repeated("--suite-limit SUITE=N", of_suite, numbered("SUITE=N"))
    add("--epochs", "number of times each question is asked (the suite's default)", up_to(EPOCHS))
    add("--seed", "seed of random controls and rehearsal workers (0)", seed)
    add("--split", "train, validation or eval (eval)")
    prompt = "prompt of the benchmark's authors, or of the Conductor paper if known (official)"
    add("--prompt official|paper", prompt, default=None)
    _budget(add)
    add("--gate FILE", "file of rules that the run must meet; its digest is logged", Path)
    add("--headline SYSTEM", "system whose verdict is printed above the table (the conductor)")
    _box(add)
    add("--time-scale", "factor for the latency of rehearsal workers (0.01)", finite)
    add("--display line|full|rich|plain|none", "progress display: line, or one of Inspect's (line)")
    add.flag("--fresh-draws", "share no replies between systems (default: equal calls share one)")
    grace = "seconds to wait for calls in flight after Ctrl-C, SIGTERM or SIGHUP (20)"
    add("--grace S", grace, finite, default=20.0)
    _of_systems(add)
    add("--shards N", "number of shards; each core runs one at a time (none)", up_to(MOST))
    starts = "with --shards: start them as local processes, SLURM jobs or Ray tasks (local)"
    add("--launcher local|slurm|ray", starts, choices=["local", "slurm", "ray"], default=None)
    address = "SLURM partition (`local`: no cluster), or address of a Ray cluster (auto)"
    add("--address PLACE", address, default=None)


def shard(add: Arguments) -> None:
    """Run or resume one shard; `podium run --shards` starts this command."""
    add("dir DIR", "directory of a shard: LOG_DIR/shards/0001", Path)
    add.flag("--attached", "end when standard input is closed")


def _budget(add: Arguments) -> None:
    add(
        "--max-usd USD",
        "limit in US dollars: no call starts if its maximum cost (prompt, max_tokens, highest "
        "rates) could pass it, counting the maximum of calls in flight, which are awaited",
        dollars,
    )
    each = "the same limit for each question; a question that reaches it stays unanswered"
    add("--max-usd-per-query USD", each, dollars)
    equal = "limit per question for every system, in calls, tokens, usd or seconds; one run per N"
    add("--equal UNIT=N[,N]", equal, default=None)
    _consent(add)
    turns = "maximum calls to a provider per minute, evenly spaced, retries and shards included"
    add.repeated("--rpm PROVIDER=N", f"{turns}; repeat (no limit)", numbered("PROVIDER=N"))
    add.flag("--dry-run", "print the planned calls and their maximum cost; run nothing")
    add.repeated("--like DIR", "with --dry-run: estimate from a run of these workers; repeat", Path)


def _consent(add: Arguments) -> None:
    add.flag("--yes", "agree to the cost of live workers without a question at the terminal")


def _box(add: Arguments) -> None:
    kinds = "docker, docker:runsc, bwrap, subprocess (docker; subprocess for rehearsal workers)"
    add("--box", f"sandbox for suites that run programs: {kinds}")
    add("--max-sandboxes N", "maximum concurrent programs (number of cores)", up_to(SANDBOXES))


def _of_systems(add: Arguments) -> None:
    whose = "of all systems that have it, or SYSTEM.NAME=VALUE of one (see `podium systems NAME`)"
    add.repeated("-S NAME=VALUE", f"option {whose}; repeat", option)
    budget = "maximum worker calls per system for learning (40 per worker)"
    add("--train-calls N", budget, up_to(MOST))
    add.repeated("--train-on SUITE", "suite whose train split systems learn from; repeat (its own)")
    add("--profile DIR", "earlier run whose answers to train questions are reused", Path)
    matched = "system that compute-matched-usd and compute-matched-tokens match (the conductor)"
    add("--match SYSTEM", matched)
    cards = (
        "role cards of the workers in the prompts of prompted conductors and of router-llm (shown; "
        "the paper hides them; a trained conductor gets the prompt that it was trained with)"
    )
    add("--worker-cards shown|hidden", cards, default=None)
    add.flag("--batch", "use batch APIs (openai/, anthropic/): cheaper, up to 24 h per reply")


def report(add: Arguments) -> None:
    """Write table.md, table.csv, table.json and plot.png from logs alone."""
    add("dirs DIR", "log directories, searched recursively", Path, nargs="+")
    add("--out", "directory to write (DIR/report)", Path)
    add("--vs SYSTEM", REFERENCE)
    add("--epochs N", "only the first N epochs of every question (all)", up_to(EPOCHS))
    add("--maj K", "k of maj@k, avg@k, pass@k and pass^k (all epochs)", up_to(EPOCHS))
    same = "call two systems equivalent if they are shown to differ by less than this (no test)"
    add("--equivalence POINTS", same, percentage_points)
    add.flag("--derived", "also print derived rows: maj@k, oracle-router")
    add("--against DIR", "compare each system with itself in this run; writes against.json", Path)
    add.flag("--choices", "print the models that gateways chose, their prices, accuracy and rivals")
    add.gate()
    add.flag("--targets", "removed: use `python -m tests.benchmarks.targets DIR` in a checkout")
    add.flag("--published", "also print published figures of these suites")
    add("--site DIR", "also write static HTML pages into this directory", Path)
    columns = "columns of table.csv to show in the tables, in this order; `list` prints all names"
    add("--columns NAME,NAME", columns, names, default=())
    best = "also plot accuracy against dollars and seconds, and print the best system at each price"
    add("--curve FILE", best, Path)
    add.flag("--deep", "read the logs of every shard instead of their stored figures")
    add.flag("--latex", "also write table.tex (booktabs), references.bib and table.parquet")


def view(add: Arguments) -> None:
    """Serve the pages of runs on this machine, with full texts and Inspect View."""
    add("dirs DIR", "log directories, searched recursively", Path, nargs="+")
    add("--port", "port; 0 takes a free one and prints it (0)", int, default=0)
    add("--vs SYSTEM", REFERENCE)


def power(add: Arguments) -> None:
    """Compute how many questions and epochs are needed to detect an effect; calls no model."""
    effect = "difference to detect, in percentage points (3)"
    add("--effect POINTS", effect, percentage_points, default=0.03)
    add("--from DIR", "log directories to estimate the variance from", Path, dest="dirs", nargs="+")
    add("--vs SYSTEM", "with --from: the reference system")
    add("--discordant SHARE", "share of questions on which two systems differ (0.1)", share)
    add("--accuracy SHARE", "accuracy of both systems", share)
    add("--correlation R", "with --accuracy: correlation of their grades (0.5)", share)
    within = "share of the variance within questions, which more epochs reduce (0: unknown)"
    add("--within SHARE", within, share)
    add("--epochs N,N", "numbers of epochs (1,2,4,8)", counts, default=(1, 2, 4, 8))
    add("--questions N,N", "numbers of questions (30,100,198,500,1055 and that of --from)", counts)


def route(add: Arguments) -> None:
    """Judge routers on recorded verdicts of real models, against the best single worker."""
    add("source SOURCE", "source of verdicts; --list prints all sources", nargs="?")
    add.flag("--list", "list the sources with their contents")
    add.listing()
    add("--router NAME", "routers to judge (all)", nargs="+", action="extend")
    usual = "declared if the source declares a split, else folds:5"
    add("--split HOW", f"split: date:0.3, share:0.5, folds:5, folds:5:group or declared ({usual})")
    studied = "conductors trained on this source and split; a row for each and for their mean"
    add("--conductor DIR", studied, Path, nargs="+", action="extend")
    add.flag("--drop-shared", "do not train on questions that are also evaluated")
    add("--seed", "seed of the folds and of learning (0)", seed, default=0)
    add("--embedder NAME", "text embedding: tfidf or wordllama (tfidf)", default="tfidf")
    add("--save FILE", "also save the trained router; needs exactly one --router", Path)
    add("--out", "directory for route.md, route.csv, route.json", Path)
    add("--data DIR", "folder of local data (PODIUM_DATA)", Path)


def record(add: Arguments) -> None:
    """Turn logs, or the results of a batch, into a cassette that replays them."""
    add("logs LOG", ".eval files, directories, or the results of a batch (JSONL)", Path, nargs="+")
    add("--requests FILE", "requests of the batch (JSONL), joined by custom_id", Path)
    add.flag("--strict", "fail if a row of a batch cannot be read (else list and skip it)")
    add("--out", "cassette file to write, e.g. runs/tape.jsonl", Path, required=True)


def grade(add: Arguments) -> None:
    """Grade replies from any source; calls no model; repeat the command to resume."""
    add("--suite", "suite name", required=True)
    _task_arguments(add)
    rows = "rows of the benchmark, as JSONL (also .gz) or CSV (the suite's pinned questions)"
    add("--problems FILE", rows, Path)
    replies = "JSONL file; each row has question_id, reply and, unless it is 1, epoch"
    add("--replies FILE", replies, Path, required=True)
    add("--out FILE", "JSONL file of verdicts: a new one, or one to resume", Path)
    add("--explain LINE", "print how the reply on this line is parsed; grade nothing", up_to(MOST))
    _box(add)


def redact(add: Arguments) -> None:
    """Copy logs without their texts, to share results of suites that must not be published."""
    add("paths LOG", ".eval files or directories", Path, nargs="+")
    add("--out DIR", "directory for the redacted copies", Path, required=True)


def regrade(add: Arguments) -> None:
    """Grade logs again without asking any model."""
    add("dir DIR", "log directory", Path)
    add.repeated("--suite FILE.py@NAME", "suite of your own in these logs; repeat")
    choice = Arguments(add.parser.add_mutually_exclusive_group())
    choice.flag("--unscored", "grade only answers without a score (default)")
    choice.flag("--all", "grade all answers again, for example after a change of a scorer")
    _box(add)


def reward(add: Arguments) -> None:
    """Serve a suite's grades as rewards to a trainer, over HTTP."""
    add = add.actions()("serve", "answer POST /score, /get_reward, /rm and /verify")
    add("--suite", "suite name; repeat for several", action="append", required=True)
    _task_arguments(add)
    add("--split train|validation", "split of the questions (train)")
    add("--limit N", "first N questions of each suite (all)", up_to(MOST))
    add("--pool", "execute completions as workflows with this pool (completions are replies)")
    add("--host", "address to listen on (127.0.0.1: this machine only)", default="127.0.0.1")
    token = "token that requests must send as `Authorization: Bearer`; required unless on loopback"
    add("--token-file FILE", f"file with the {token}", Path)
    host = "additional host name that trainers may use; repeat"
    add.repeated("--allow-host NAME", host)
    add("--port", "port; 0 takes a free one and prints it (0)", int, default=0)
    add("--workers N", "scoring processes behind one address (1)", up_to(SANDBOXES), default=1)
    add("--max-usd", "limit in US dollars: call no worker after this is spent", dollars)
    add("--log-dir DIR", "directory for a log of all worker calls (none)", Path)
    add("--timeout S", "timeout per item, in seconds (120)", float, default=120.0)
    add("--max-masked", "maximum share of items without a value (0.3)", float, default=0.3)
    add(
        "--most N",
        "maximum items scored at once (number of cores; 64 for a --pool)",
        up_to(EPOCHS),
    )
    values = "plain: the grade; paper, with --pool: 0.5 for a valid plan that is wrong (plain)"
    add("--values plain|paper", values)
    missing = "response to OpenRLHF if a reward is missing: fail the request, or send 0 (error)"
    add("--on-unscored error|zero", missing)
    _box(add)


def serve(add: Arguments) -> None:
    """Serve systems as models over the OpenAI and Anthropic APIs, with the cost of each request."""
    add.repeated("--system", "system to serve; `single`: every worker; repeat")
    _pool(add)
    add("--log-dir DIR", "directory for logs of requests: a new one, or one to continue", Path)
    add("--host", "address to listen on (127.0.0.1: this machine only)", default="127.0.0.1")
    add("--port", "port; 0 takes a free one and prints it (0)", int, default=0)
    host = "additional host name that clients may use; repeat"
    add.repeated("--allow-host NAME", host)
    keys = "file with digests of accepted keys; required unless on loopback (no key needed)"
    add("--keys FILE", keys, Path)
    add("--new-key NAME", "with --keys: add a new key to FILE, print it once, and serve nothing")
    add("--learnt DIR", "run directory with the learnt state of systems that learn", Path)
    add.flag("--keep-texts", "also store prompts and replies, in files that only you can read")
    _serving_limits(add)
    _consent(add)
    add("--otlp URL", "also send spans to this OpenTelemetry collector (extra: otlp)")
    add("--grace S", "seconds for requests in flight at shutdown (30)", finite, default=30.0)
    add("--seed", "seed of random controls and rehearsal workers (0)", seed, default=0)
    add("--time-scale", "factor for the latency of rehearsal workers (0.01)", finite, default=0.01)


def _serving_limits(add: Arguments) -> None:
    for name, whose in (
        ("--max-usd", "all requests, earlier sessions included"),
        ("--max-usd-per-query", "one request"),
        ("--max-usd-per-day", "all requests of a day (UTC)"),
        ("--max-usd-per-key", "all requests of a key, unless the keys file sets another limit"),
    ):
        add(f"{name} USD", f"limit in US dollars for {whose}", dollars)
    add("--max-calls N", "maximum calls per request (30)", up_to(EPOCHS), default=30)
    deadline = "seconds after which a request starts no new call (600)"
    add("--deadline S", deadline, finite, default=600.0)
    add("--concurrency N", "maximum concurrent requests per key (64)", up_to(EPOCHS), default=64)


def train(add: Arguments) -> None:
    """Train a conductor with rewards, estimate the cost, plot learning curves, or release it."""
    add("config CONFIG", "name of a shipped config, or path of a TOML file", nargs="?")
    add("--out DIR", "run folder (training/CONFIG-seed-N)", Path)
    add("--seed N", "seed of the training, instead of the config's run.seed", up_to(SEED))
    add.flag("--dry-run", "estimate memory, calls and dollars; train nothing")
    add("--max-usd X", "stop with a checkpoint after this many US dollars are spent", dollars)
    _consent(add)
    add.flag("--resume", "continue from the newest checkpoint in --out")
    add.repeated("--set SECTION.KEY=VALUE", "override a value of the config; repeat")
    add("--plot DIR", "draw the learning curves of runs", Path, nargs="+")
    add("--release DIR", "release the median seed of runs", Path, nargs="+")
    add("--to PATH", "output of --plot (curve.png; a folder: a page) or --release", Path)
    add("--untrained DIR", "with --release: folder for the warm start", Path)
    add.flag("--list", "list the shipped configs")
    add.listing()


def ablate(add: Arguments) -> None:
    """Train a conductor's ablations in the same way, evaluate each, and make one table."""
    add("names NAME", "ablations to train in addition to the reference (all)", nargs="*")
    add("--out DIR", "output folder (ablations)", Path, default=Path("ablations"))
    add("--seed N", "seed of each training; repeat (0)", up_to(SEED), action="append")
    add("--file FILE", "TOML file of ablations (the shipped one)", Path)
    warm = "training whose warm start is reused if it would be identical; repeat"
    add.repeated("--begin DIR", warm, Path)
    add("--max-usd X", "limit in US dollars for each training and for each evaluation", dollars)
    _consent(add)
    add.flag("--table", "make the table from existing results; train nothing")
    add.flag("--list", "list the ablations")
    add.listing()


def audit(add: Arguments) -> None:
    """Check eighteen invariants of a run's records, from its files alone; exit 1 when one fails."""
    add("dir DIR", "log directory, or one .eval file", Path, nargs="?")
    add.flag("--strict", "also count gaps in the record as failures")
    _regrading(add)
    add("--query ID", "instead show this question with all texts: an id, or SUITE/ID")
    add("--system", "with --query: only the answers of this system (all)")
    add("--epoch N", "with --query: only epoch N (all)", up_to(EPOCHS))
    add.flag("--brief", "with --query: only the first words of each reply")
    add.json("all faults, or the query,")
    add("--site DIR", "also write the audit as an HTML page into this directory", Path)
    bill = "usage export of OpenAI, Anthropic, Google or OpenRouter, or a CSV by request; repeat"
    add.repeated("--invoice FILE", bill, Path)
    add("--project", "with --invoice: only lines of this project or workspace")
    add("--key", "with --invoice: only lines of this API key")
    add.flag("--whole-account", "with --invoice: all lines of the invoice belong to this run")
    alias = "with --invoice: name of our model OURS on the invoice; repeat"
    add.repeated("--model OURS=THEIRS", alias, renamed)
    add("--tolerance N", "tolerated difference in tokens (0)", tokens, default=0)
    add("--tolerance-usd", "tolerated difference in US dollars (0)", dollars, default=Decimal(0))
    predictions = "instead audit this prediction file of RouterArena; repeat"
    add.repeated("--routerarena FILE", predictions, Path)
    add("--costs FILE", "with --routerarena: model_cost.json (that of its checkout)", Path)


def _regrading(add: Arguments) -> None:
    add.flag("--regrade", "grade all answers again and compare the verdicts; calls no model")
    add("--box", "with --regrade: sandbox for suites that run programs (skip those suites)")


def ledger(add: Arguments) -> None:
    """Export all calls and queries as tables (Parquet, CSV, ...), or query them with SQL."""
    action = add.actions()
    export = action("export", "write calls and queries as tables")
    export("dir DIR", "directory that a run wrote", Path)
    export("--out D", "directory for the tables", Path, required=True)
    export(
        "--format parquet|csv|jsonl|otel|md",
        "format (parquet); otel: calls only; md: queries only",
        table_format,
    )
    sql = action("sql", "run one SELECT over the views calls and queries")
    sql("dir DIR", "directory of a run or an export, or a .parquet file", Path)
    sql("query SQL", 'e.g. "SELECT sum(usd_list) FROM calls"')
    sql("--format table|csv|json", "output format (table)")


def export(add: Arguments) -> None:
    """Write runs in the formats of other leaderboards, archives and tools."""
    declare_kinds(add)


def manifest(add: Arguments) -> None:
    """Write, verify, sign or time-stamp the manifest of a run directory, or make a signing key."""
    action = add.actions()
    write = action("write", "list the current files and their digests; keeps earlier roots")
    verify = action("verify", "find files that changed since; exit 1 if any did")
    sign = action("sign", "sign the manifest (extra: signing)")
    anchor = action("anchor", "get a time stamp of the root from an authority (RFC 3161)")
    for command in (write, verify, sign, anchor):
        command("dir DIR", "log directory", Path)
    verify("--root HEX", "published root to compare with")
    verify("--public-key FILE", "public key that the signature must match", Path)
    trusted = "certificates (PEM) of the trusted time-stamping authority"
    verify("--ca FILE", f"{trusted}; the stamp must be valid", Path)
    verify.flag("--shared", "accept a part of the run, or redacted copies")
    _regrading(verify)
    sign("--key FILE", "private key (PEM)", Path, required=True)
    choice = Arguments(anchor.parser.add_mutually_exclusive_group(required=True))
    choice.flag("--request", "write the query to MANIFEST.tsq; contact no authority")
    choice("--reply FILE", "store the reply of an authority to the query as MANIFEST.tsr", Path)
    choice("--authority URL", "send the query to this authority now; it contains only a digest")
    anchor("--ca FILE", f"with --reply and --authority: {trusted}", Path)
    key = action("key", "make an Ed25519 key (extra: signing)")
    key("--out FILE", "private key; the public key goes to FILE.pub", Path, required=True)


def reprice(add: Arguments) -> None:
    """Show what the runs of a directory would have cost with another price book."""
    add("dir DIR", "log directory", Path)
    add("--book B", "book name or .toml file", required=True)
    add("--out D", "also write reprice.json there", Path)


def suites(add: Arguments) -> None:
    """List the suites, or print one suite's card."""
    add("name", "suite to show in full", nargs="?")
    add("--pool", "with a name: also show the knowledge cutoffs of the workers of this pool")
    add.flag("--rules", "print the rules by which the suite reads replies")
    add.flag("--inspect", "instead list the Inspect tasks of installed packages")
    add.listing()


def data(add: Arguments) -> None:
    """Download pinned questions and recordings, or verify or list the local files."""
    action = add.actions()
    fetch = action("fetch", "download the pinned files that are missing")
    fetch("names NAME", "suites or sources; see `podium data list`", nargs="+")
    verify = action("verify", "check the local files; download nothing")
    listed = action("list", "list pinned files: size, licence, place, and presence here")
    for command in (verify, listed):
        command("names NAME", "suites or sources (all)", nargs="*")
        command.listing()
    for command in (fetch, verify, listed):
        command("--data DIR", "folder of local data (PODIUM_DATA)", Path)


def systems(add: Arguments) -> None:
    """List the systems, or print one system's card."""
    add("name", "system to show in full", nargs="?")
    add.listing()


def _task_arguments(add: Arguments) -> None:
    add.repeated("-T KEY=VALUE", "argument of suites that are Inspect tasks; repeat", argument)


def _pool(add: Arguments) -> None:
    add("--pool", "pool name or .toml file (rehearsal)", default="rehearsal")


def workers(add: Arguments) -> None:
    """List the workers of a pool with prices and settings, or their results in a run."""
    _pool(add)
    add("--profile DIR", "show the results of each worker on the train questions of this run", Path)
    add.listing()


def doctor(add: Arguments) -> None:
    """Check a pool or a whole run, and list what is missing, before anything is spent."""
    add.run_file()
    _pool(add)
    add.listing()
    add.repeated("--suite", "check a run of this suite; repeat")
    add.repeated("--system", "check a run of this system or group; repeat")
    add("--split", "train, validation or eval (eval)")
    add("--limit", "first N questions (all)", int)
    add("--log-dir", "check a resume of the run in this directory (a new run)", Path)
    add("--box", "also check this sandbox")
    add(
        "--max-usd USD",
        "also list workers that this limit restricts to one call at a time",
        dollars,
    )
    add.flag("--drill", "also send a short question to each model, after you agree to its price")
    add.flag("--yes", "agree to the price of the drill without a question at the terminal")
    _of_systems(add)


def completion(add: Arguments) -> None:
    """Print a shell script that completes commands, options and names."""
    add("shell bash|zsh|fish", 'e.g. eval "$(podium completion bash)" in ~/.bashrc')


def sandbox(add: Arguments) -> None:
    """Build, show or remove the images and containers in which programs run."""
    action = add.actions()
    build = action("build", "build the image in which programs run")
    build("--image basic|bigcodebench", "image to build (basic)")
    build("--box docker|bwrap", "sandbox to build for (docker, and bwrap if it is usable here)")
    build("--base-image NAME", "base image, with python3 (a public Python image)")
    action("status", "show the usable sandboxes and their images").listing()
    clean = action("clean", "remove leftovers of killed runs and old builds")
    clean.flag("--all", "also remove all images that podium built")


COMMANDS = {
    declare.__name__: (declare, home)
    for home, several in (
        ("run_commands", (demo, run, shard)),
        ("report_commands", (report, view, power)),
        ("run_commands", (serve,)),
        ("train_commands", (route,)),
        ("run_commands", (record,)),
        ("grade_commands", (grade, redact, regrade, reward)),
        ("train_commands", (train, ablate)),
        ("export_commands", (export,)),
        ("money_commands", (audit, ledger, manifest, prices, reprice)),
        ("list_commands", (suites, data, systems, workers)),
        ("pool_command", (pool,)),
        ("run_commands", (doctor,)),
        ("list_commands", (sandbox,)),
        ("completion", (completion,)),
    )
    for declare in several
}
"""Command name -> the function that declares the command's arguments (its docstring is the help),
and the module that runs the command."""
