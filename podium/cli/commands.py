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
REFERENCE = "hold all others against this one (best-single, else the first single worker)"
SLOW = ("podium.harness.run.run", "podium._registry")
"""Modules that `run` and `demo` import before they begin, so that Ctrl-C interrupts no run."""


def load(name: str) -> Command:
    """Return the function of a command, with its modules imported; without a command, help."""
    if name not in COMMANDS:
        return lambda args: build_parser().print_help() or 0
    # Help does not need this import; garbage collection takes a seventh of the others' time.
    from podium.harness.parallel import without_collector

    with without_collector():
        for module in SLOW if name in ("run", "demo", "shard") else ():
            import_module(module)
        return getattr(import_module(f"podium.cli.{COMMANDS[name][1]}"), f"{name}_command")


def carry_out(command: Command, args: argparse.Namespace) -> int:
    """Run a command; its exceptions become a sentence and an exit code."""
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
        say("\npodium: stopped; the same command again finishes what is left.", file=sys.stderr)
        return 128 + getattr(stop, "number", SIGINT)  # as shells do


def _remedy(place: object, args: argparse.Namespace) -> str:
    """Return a hint which argument to change, if one names the place of an error."""
    here = Path(str(place))
    for name, value in vars(args).items():
        if isinstance(value, Path) and (here.is_relative_to(value) or value.is_relative_to(here)):
            return f"; name another {'DIR' if name == 'dir' else '--' + name.replace('_', '-')}"
    return ""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; its help is the reference."""
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
    # Fixed before any run: `podium power --effect 40 --discordant 0.5` says 25 for one comparison.
    # Holm over the demo's 16 takes z from 1.96 to 2.95: 25 x (2.95 + 0.84)^2 / (1.96 + 0.84)^2.
    add("--limit", "questions per suite", up_to(MOST), default=46)


def run(add: Arguments) -> None:
    """Run systems on suites over a pool, or as a run file states; print what remains."""
    add.run_file()
    add.repeated("--suite", "suite name; repeat for several (the file's)")
    add.repeated(
        "--system",
        "system name; `single` for every worker; `all` for every system, router and control that "
        "fits pool, suites and installed extras; `contestants`, `routers`, `controls` or "
        "`frameworks` for those of a group; repeat (all that fit, untrained; live pools: none)",
    )
    add.repeated("-T KEY=VALUE", "argument of an Inspect task among the suites; repeat", argument)
    _pool(add)
    add("--log-dir", "an experiment: new, or to resume (the file's)", Path)
    add("--save-run FILE", "write the file of this run, new; ask nobody, write nothing else", Path)
    add("--limit", "first N questions (all)", up_to(MOST))
    of_suite = "first N questions of one suite, in place of --limit; repeat for several"
    add.repeated("--suite-limit SUITE=N", of_suite, numbered("SUITE=N"))
    add("--epochs", "times each question is asked (the suite's usual number)", up_to(EPOCHS))
    add("--seed", "seed of random controls and rehearsal workers (0)", seed)
    add("--split", "train, validation or eval (eval)")
    prompt = "as the benchmark's authors ask, or as the Conductor paper did where known (official)"
    add("--prompt official|paper", prompt, default=None)
    _budget(add)
    add("--gate FILE", "rules that the run is to keep; the logs note the file's digest", Path)
    add("--headline SYSTEM", "system whose verdict stands above the table (the conductor)")
    _box(add)
    add("--time-scale", "rehearsal latency is slept times this (0.01)", finite)
    add("--display line|full|rich|plain|none", "progress: line is ours, others Inspect's (line)")
    add.flag("--fresh-draws", "let each system buy its own replies; a new run shares equal draws")
    grace = "seconds for calls in flight once Ctrl-C, SIGTERM or SIGHUP stops it (20)"
    add("--grace S", grace, finite, default=20.0)
    _of_systems(add)
    add("--shards N", "shards to cut it into, one at a time on each core (none)", up_to(MOST))
    starts = "with --shards: what starts them, processes here, SLURM's jobs or Ray's tasks (local)"
    add("--launcher local|slurm|ray", starts, choices=["local", "slurm", "ray"], default=None)
    address = "a partition of SLURM (`local`: no cluster), or where a Ray cluster answers (auto)"
    add("--address PLACE", address, default=None)


def shard(add: Arguments) -> None:
    """Run the rest of one shard: `podium run --shards` starts this command."""
    add("dir DIR", "directory of a shard: LOG_DIR/shards/0001", Path)
    add.flag("--attached", "end when standard input does")


def _budget(add: Arguments) -> None:
    add(
        "--max-usd USD",
        "stop before a call that could pass this: each in flight holds back the most that it can "
        "cost (prompt, max_tokens, dearest rates), and those in flight are waited for",
        dollars,
    )
    each = "the same for each question: it is left unanswered before that, and the others go on"
    add("--max-usd-per-query USD", each, dollars)
    equal = "the same calls, tokens, usd or seconds a question for each system; several sizes: runs"
    add("--equal UNIT=N[,N]", equal, default=None)
    _consent(add)
    turns = "calls that may begin in a minute at a provider, evenly, retries and shards included"
    add.repeated("--rpm PROVIDER=N", f"{turns}; repeat (as many as may)", numbered("PROVIDER=N"))
    add.flag("--dry-run", "say what would be asked and what it may cost; ask nobody, write nothing")
    add.repeated("--like DIR", "with --dry-run: past runs of these workers to go by; repeat", Path)


def _consent(add: Arguments) -> None:
    add.flag("--yes", "agree to what live workers may cost, where no terminal can")


def _box(add: Arguments) -> None:
    kinds = "docker, docker:runsc, bwrap, subprocess (docker; subprocess for rehearsal workers)"
    add("--box", f"sandbox for suites that run programs: {kinds}")
    add("--max-sandboxes N", "programs that run at once (all cores)", up_to(SANDBOXES))


def _of_systems(add: Arguments) -> None:
    whose = "of the systems that have it, SYSTEM.NAME=VALUE of one (`podium systems NAME` lists)"
    add.repeated("-S NAME=VALUE", f"an option {whose}; repeat", option)
    budget = "worker calls that each system may spend on learning (40 per worker)"
    add("--train-calls N", budget, up_to(MOST))
    add.repeated("--train-on SUITE", "learn on this suite's train split; repeat (its own)")
    add("--profile DIR", "take an earlier run's answers to train questions over", Path)
    matched = "what compute-matched-usd and compute-matched-tokens cost (the conductor)"
    add("--match SYSTEM", matched)
    cards = (
        "whether conductors that are prompted, and router-llm, read the workers' role cards "
        "(shown; the paper hides them; a trained conductor is asked as it was trained)"
    )
    add("--worker-cards shown|hidden", cards, default=None)
    add.flag("--batch", "ask workers in batches (openai/, anthropic/): cheaper, up to 24 h a reply")


def report(add: Arguments) -> None:
    """Write table.md, table.csv, table.json and plot.png from logs alone."""
    add("dirs DIR", "log directories, searched recursively", Path, nargs="+")
    add("--out", "directory to write (DIR/report)", Path)
    add("--vs SYSTEM", REFERENCE)
    add("--epochs N", "only the first N epochs of every question (all)", up_to(EPOCHS))
    add("--maj K", "k of maj@k, avg@k, pass@k and pass^k (all epochs)", up_to(EPOCHS))
    same = "call systems equivalent that are shown to differ by less (not asked)"
    add("--equivalence POINTS", same, percentage_points)
    add.flag("--derived", "print derived rows, too: maj@k, oracle-router")
    add("--against DIR", "compare each system with itself in this run instead: against.json", Path)
    add.flag("--choices", "print whom gateways asked, at which price, right how often; and rivals")
    add.gate()
    add.flag("--targets", "gone: `python -m tests.benchmarks.targets DIR` in a checkout")
    add.flag("--published", "print published figures of these suites, too")
    add("--site DIR", "also write pages to look at there: files that any browser opens", Path)
    columns = "columns of table.csv that the tables show, in this order; `list` names them all"
    add("--columns NAME,NAME", columns, names, default=())
    best = "also draw accuracy against dollars and seconds, and print who is best at each price"
    add("--curve FILE", best, Path)
    add.flag("--deep", "read the logs of every shard, not the figures that are kept of them")
    add.flag("--latex", "also table.tex (booktabs), references.bib and table.parquet, for a paper")


def view(add: Arguments) -> None:
    """Serve the pages of runs to this machine: texts in full, and Inspect View beside them."""
    add("dirs DIR", "log directories, searched recursively", Path, nargs="+")
    add("--port", "port; 0 takes a free one and prints it (0)", int, default=0)
    add("--vs SYSTEM", REFERENCE)


def power(add: Arguments) -> None:
    """Say how many questions and epochs it takes to see an effect; asks no model."""
    effect = "difference to be seen, in percentage points (3)"
    add("--effect POINTS", effect, percentage_points, default=0.03)
    add("--from DIR", "take the variance from these logs", Path, dest="dirs", nargs="+")
    add("--vs SYSTEM", "with --from: the reference")
    add("--discordant SHARE", "share of the questions on which two systems differ (0.1)", share)
    add("--accuracy SHARE", "of both systems", share)
    add("--correlation R", "with --accuracy: of their grades (0.5)", share)
    within = "share of the variance that lies within questions, which epochs shrink (0: unknown)"
    add("--within SHARE", within, share)
    add("--epochs N,N", "(1,2,4,8)", counts, default=(1, 2, 4, 8))
    add("--questions N,N", "(30,100,198,500,1055 and that of --from)", counts)


def route(add: Arguments) -> None:
    """Judge routers on recorded verdicts of real models, against the best single worker."""
    add("source SOURCE", "verdicts to judge on; --list names them", nargs="?")
    add.flag("--list", "list the sources and what they hold")
    add.listing()
    add("--router NAME", "routers to judge (all)", nargs="+", action="extend")
    usual = "declared where the source declares one, else folds:5"
    add("--split HOW", f"date:0.3, share:0.5, folds:5, folds:5:group or declared ({usual})")
    studied = "checkpoints of a study of this source and split: a row each, and of their mean"
    add("--conductor DIR", studied, Path, nargs="+", action="extend")
    add.flag("--drop-shared", "leave questions that would teach and be judged out of what teaches")
    add("--seed", "of folds and of learning (0)", seed, default=0)
    add("--embedder NAME", "tfidf (default) or wordllama", default="tfidf")
    add("--save FILE", "also keep what the one --router has learnt", Path)
    add("--out", "directory for route.md, route.csv, route.json", Path)
    add("--data DIR", "folder of local data (PODIUM_DATA)", Path)


def record(add: Arguments) -> None:
    """Turn logs, or the results of a batch, into a cassette that replays them."""
    add("logs LOG", ".eval files or directories; or a batch's results, JSONL", Path, nargs="+")
    add("--requests FILE", "what the batch asked, JSONL: results are joined by custom_id", Path)
    add.flag("--strict", "refuse a batch with rows that cannot be read, else left out and listed")
    add("--out", "cassette to write, e.g. runs/tape.jsonl", Path, required=True)


def grade(add: Arguments) -> None:
    """Grade replies made anywhere; asks no model, resumes."""
    add("--suite", "suite name", required=True)
    rows = "the benchmark's own rows, JSONL (also .gz) or CSV (the suite's pinned questions)"
    add("--problems FILE", rows, Path)
    replies = "JSONL rows with question_id, reply and, where it is not 1, the epoch that was asked"
    add("--replies FILE", replies, Path, required=True)
    add("--out FILE", "JSONL of verdicts: new, or to resume", Path)
    add("--explain LINE", "print how the reply on this line is read; grade nothing", up_to(MOST))
    _box(add)


def redact(add: Arguments) -> None:
    """Copy logs without their texts, to share results of suites that must not be published."""
    add("paths LOG", ".eval files or directories", Path, nargs="+")
    add("--out DIR", "directory for the copies", Path, required=True)


def regrade(add: Arguments) -> None:
    """Grade logs again without asking any model."""
    add("dir DIR", "log directory", Path)
    choice = Arguments(add.parser.add_mutually_exclusive_group())
    choice.flag("--unscored", "only what has no score (default)")
    choice.flag("--all", "everything, after a scorer changed")
    _box(add)


def reward(add: Arguments) -> None:
    """Serve a suite's grades as rewards to a trainer, over HTTP."""
    add = add.actions()("serve", "answer POST /score, /get_reward, /rm and /verify")
    add("--suite", "suite name; repeat for several", action="append", required=True)
    add("--split train|validation", "(train)")
    add("--limit N", "first N questions of each suite (all)", up_to(MOST))
    add("--pool", "completions are workflows for these workers (completions are replies)")
    add("--host", "address to listen on (127.0.0.1: this machine only)", default="127.0.0.1")
    token = "what every request must send as `Authorization: Bearer`; needed beyond this machine"
    add("--token-file FILE", f"holds {token}", Path)
    host = "name under which trainers reach it, beside its address; repeat"
    add.repeated("--allow-host NAME", host)
    add("--port", "port; 0 takes a free one and prints it (0)", int, default=0)
    add("--workers N", "processes that score, behind one address (1)", up_to(SANDBOXES), default=1)
    add("--max-usd", "ask no worker once this much is spent", dollars)
    add("--log-dir DIR", "write down every call of a worker (nowhere)", Path)
    add("--timeout S", "seconds per item (120)", float, default=120.0)
    add("--max-masked", "largest share without a value (0.3)", float, default=0.3)
    add("--most N", "items at once (cores; with --pool 64)", up_to(EPOCHS))
    values = "plain: the grade; paper, with --pool: 0.5 for a readable plan that is wrong (plain)"
    add("--values plain|paper", values)
    missing = "what OpenRLHF is told of a missing reward: fail the request, or 0 (error)"
    add("--on-unscored error|zero", missing)
    _box(add)


def serve(add: Arguments) -> None:
    """Serve systems as models that clients of OpenAI and Anthropic can ask, each with its bill."""
    add.repeated("--system", "system to serve, `single` for every worker; repeat")
    _pool(add)
    add("--log-dir DIR", "where requests are written down: new, or to go on with", Path)
    add("--host", "address to listen on (127.0.0.1: this machine only)", default="127.0.0.1")
    add("--port", "port; 0 takes a free one and prints it (0)", int, default=0)
    host = "name under which clients reach it, beside its address; repeat"
    add.repeated("--allow-host NAME", host)
    keys = "who may ask, as digests of keys; needed beyond this machine (anybody)"
    add("--keys FILE", keys, Path)
    add("--new-key NAME", "with --keys: make a key, print it once, and serve nothing")
    add("--learnt DIR", "serve systems that learn as they answered in this run", Path)
    add.flag("--keep-texts", "also keep prompts and replies, for their owner alone to read")
    _serving_limits(add)
    _consent(add)
    add("--otlp URL", "also send spans to this OpenTelemetry collector (extra: otlp)")
    add("--grace S", "seconds for requests in flight once it is stopped (30)", finite, default=30.0)
    add("--seed", "seed of random controls and rehearsal workers (0)", seed, default=0)
    add("--time-scale", "rehearsal latency is slept times this (0.01)", finite, default=0.01)


def _serving_limits(add: Arguments) -> None:
    for name, whose in (
        ("--max-usd", "all requests, those of earlier sittings included"),
        ("--max-usd-per-query", "one request"),
        ("--max-usd-per-day", "all requests of a day (UTC)"),
        ("--max-usd-per-key", "all requests of a key, unless the keys' file says otherwise"),
    ):
        add(f"{name} USD", f"dollars that {whose} may cost", dollars)
    add("--max-calls N", "calls that one request may make (30)", up_to(EPOCHS), default=30)
    deadline = "seconds after which a request makes no new call (600)"
    add("--deadline S", deadline, finite, default=600.0)
    add("--concurrency N", "requests of one key at once (64)", up_to(EPOCHS), default=64)


def train(add: Arguments) -> None:
    """Train a conductor by reward, say what that would take, draw how it went, or release it."""
    add("config CONFIG", "a shipped name or the path of a TOML file", nargs="?")
    add("--out DIR", "run folder (training/CONFIG-seed-N)", Path)
    add("--seed N", "run.seed (the config's)", up_to(SEED))
    add.flag("--dry-run", "estimate memory, calls and dollars; train nothing")
    add("--max-usd X", "stop with a checkpoint once this is spent", dollars)
    _consent(add)
    add.flag("--resume", "go on from the newest checkpoint in --out")
    add.repeated("--set SECTION.KEY=VALUE", "change a value of the config; repeat")
    add("--plot DIR", "draw the learning curves of runs", Path, nargs="+")
    add("--release DIR", "release the median seed of runs", Path, nargs="+")
    add("--to PATH", "where --plot draws (curve.png; a folder: a page), --release writes", Path)
    add("--untrained DIR", "with --release: where its warm start goes", Path)
    add.flag("--list", "list the shipped configs")
    add.listing()


def ablate(add: Arguments) -> None:
    """Train a conductor's ablations alike, evaluate each on validation, and make one table."""
    add("names NAME", "ablations, beside the reference (all)", nargs="*")
    add("--out DIR", "folder (ablations)", Path, default=Path("ablations"))
    add("--seed N", "train each with it; repeat (0)", up_to(SEED), action="append")
    add("--file FILE", "a file of ablations (the shipped one)", Path)
    warm = "a training whose warm start is used where it would be the same; repeat"
    add.repeated("--begin DIR", warm, Path)
    add("--max-usd X", "stop each training, and each evaluation, once this is spent", dollars)
    _consent(add)
    add.flag("--table", "make the table of what is there; train nothing")
    add.flag("--list", "list the ablations")
    add.listing()


def audit(add: Arguments) -> None:
    """Check eighteen invariants of a run's money, from its files alone; exit 1 when one fails."""
    add("dir DIR", "log directory, or one .eval file", Path, nargs="?")
    add.flag("--strict", "gaps in the record are failures, too")
    _regrading(add)
    add("--query ID", "show this question with every text instead: an id, or SUITE/ID")
    add("--system", "with --query: as this system answered it (all)")
    add("--epoch N", "with --query: the Nth time it was asked (all)", up_to(EPOCHS))
    add.flag("--brief", "with --query: only the first words of each reply")
    add.json("every fault, or the query,")
    add("--site DIR", "also write the audit as a page to look at there", Path)
    bill = "usage export of OpenAI, Anthropic, Google or OpenRouter, or a CSV by request; repeat"
    add.repeated("--invoice FILE", bill, Path)
    add("--project", "with --invoice: only lines of this project or workspace")
    add("--key", "with --invoice: only lines of this API key")
    add.flag("--whole-account", "with --invoice: all its lines are this run's")
    alias = "with --invoice: a model that goes by another name there; repeat"
    add.repeated("--model OURS=THEIRS", alias, renamed)
    add("--tolerance N", "tokens that may differ (0)", tokens, default=0)
    add("--tolerance-usd", "dollars that may differ (0)", dollars, default=Decimal(0))
    predictions = "audit this prediction file of RouterArena instead, anybody's; repeat"
    add.repeated("--routerarena FILE", predictions, Path)
    add("--costs FILE", "with --routerarena: their model_cost.json (that of its checkout)", Path)


def _regrading(add: Arguments) -> None:
    add.flag("--regrade", "give all verdicts anew and compare; asks no model")
    add("--box", "with --regrade: sandbox for suites that run programs (they are left out)")


def ledger(add: Arguments) -> None:
    """Export every call and query as a table (Parquet, CSV, ...), or ask them in SQL."""
    action = add.actions()
    export = action("export", "write calls and queries as tables")
    export("dir DIR", "directory that a run wrote", Path)
    export("--out D", "directory for the tables", Path, required=True)
    export("--format parquet|csv|jsonl|otel|md", "(parquet); otel calls, md queries", table_format)
    sql = action("sql", "run one SELECT over the views calls and queries")
    sql("dir DIR", "directory of a run or an export, or a .parquet file", Path)
    sql("query SQL", 'e.g. "SELECT sum(usd_list) FROM calls"')
    sql("--format table|csv|json", "(table)")


def export(add: Arguments) -> None:
    """Write runs in forms that others read, for their boards, archives and tools."""
    declare_kinds(add)


def manifest(add: Arguments) -> None:
    """Write, verify, sign or time-stamp what a run's directory held, or make a key to sign with."""
    action = add.actions()
    write = action("write", "write down what is here now; keeps earlier roots")
    verify = action("verify", "find what was changed since; 1 if anything was")
    sign = action("sign", "sign the manifest (extra: signing)")
    anchor = action("anchor", "let an authority say by when the root was there (RFC 3161)")
    for command in (write, verify, sign, anchor):
        command("dir DIR", "log directory", Path)
    verify("--root HEX", "the root that was published")
    verify("--public-key FILE", "who must have signed", Path)
    trusted = "certificates (PEM) of the authority whose time stamp is to be trusted"
    verify("--ca FILE", f"{trusted}: it must hold", Path)
    verify.flag("--shared", "only a part of the run is here, or redacted copies")
    _regrading(verify)
    sign("--key FILE", "private key (PEM)", Path, required=True)
    choice = Arguments(anchor.parser.add_mutually_exclusive_group(required=True))
    choice.flag("--request", "write MANIFEST.tsq, the query, and ask nobody")
    choice("--reply FILE", "keep what an authority answered to it as MANIFEST.tsr", Path)
    choice("--authority URL", "ask this authority now: it gets a digest, and nothing else is sent")
    anchor("--ca FILE", f"with --reply and --authority: {trusted}", Path)
    key = action("key", "make an Ed25519 key (extra: signing)")
    key("--out FILE", "private key; FILE.pub is public", Path, required=True)


def reprice(add: Arguments) -> None:
    """Show what the runs of a directory would have cost at another price book."""
    add("dir DIR", "log directory", Path)
    add("--book B", "book name or .toml file", required=True)
    add("--out D", "also write reprice.json there", Path)


def suites(add: Arguments) -> None:
    """List the suites, or print one suite's card."""
    add("name", "show one in full", nargs="?")
    add("--pool", "with a name: beside its dates, the knowledge cutoffs of this pool's workers")
    add.flag("--rules", "print the rules by which the suite reads replies")
    add.flag("--inspect", "list the Inspect tasks that installed packages bring instead")
    add.listing()


def data(add: Arguments) -> None:
    """Fetch questions and recordings that are pinned, or verify what is here."""
    action = add.actions()
    fetch = action("fetch", "download what is pinned and not here yet")
    fetch("names NAME", "suites or sources; `podium data list` names them", nargs="+")
    verify = action("verify", "check what is here; download nothing")
    listed = action("list", "name all that is pinned: size, licence, place, and whether it is here")
    for command in (verify, listed):
        command("names NAME", "suites or sources (all)", nargs="*")
        command.listing()
    for command in (fetch, verify, listed):
        command("--data DIR", "folder of local data (PODIUM_DATA)", Path)


def systems(add: Arguments) -> None:
    """List the systems, or print one system's manifest."""
    add("name", "show one in full", nargs="?")
    add.listing()


def _pool(add: Arguments) -> None:
    add("--pool", "pool name or .toml file (rehearsal)", default="rehearsal")


def workers(add: Arguments) -> None:
    """List a pool's workers with their prices and settings, or what they showed in a run."""
    _pool(add)
    add("--profile DIR", "what each showed on train questions of a run of this pool", Path)
    add.listing()


def doctor(add: Arguments) -> None:
    """Say what is missing before anything is spent, of a pool or of a whole run."""
    add.run_file()
    _pool(add)
    add.listing()
    add.repeated("--suite", "check a run of this suite; repeat")
    add.repeated("--system", "by this system, or a group; repeat")
    add("--split", "train, validation or eval (eval)")
    add("--limit", "first N questions (all)", int)
    add("--log-dir", "an experiment that the run would go on with (a new one)", Path)
    add("--box", "also check this sandbox")
    add("--max-usd USD", "list who is asked one call at a time under such a limit, too", dollars)
    add.flag("--drill", "also put one short question to each model; says the price and asks first")
    add.flag("--yes", "drill without asking, where no terminal can answer")
    _of_systems(add)


def completion(add: Arguments) -> None:
    """Print a script that completes commands, options and names; your shell's start reads it."""
    add("shell bash|zsh|fish", 'e.g. eval "$(podium completion bash)" in ~/.bashrc')


def sandbox(add: Arguments) -> None:
    """Make, show or remove what programs run in: images and containers."""
    action = add.actions()
    build = action("build", "make the image that programs run in")
    build("--image basic|bigcodebench", "which one (basic)")
    build("--box docker|bwrap", "box to build for (docker, and bwrap if it is usable here)")
    build("--base-image NAME", "image with python3 to build on (a public Python's)")
    action("status", "say what can run programs here, and in which images").listing()
    clean = action("clean", "remove what killed runs and older builds left")
    clean.flag("--all", "also every image that podium made")


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
"""Name -> the function that declares its arguments (its docstring is the help), and its module."""
