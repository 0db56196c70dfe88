"""The arguments of every command, apart from what the commands do (harness/cli/).

Nothing slow is imported here: `podium --help` reads this file on every call.
"""

import argparse
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from harness.parsing import decimal_of

MOST = 1_000_000_000
"""Of anything that is counted, and of dollars."""
EPOCHS = 10_000
SANDBOXES = 10_000
SEED = 2**63 - 1
"""The largest seed that every generator takes."""
DIGITS = 30
Command = Callable[[argparse.Namespace], int]
"""Runs one command and returns its exit code; the first line of its docstring is its help."""


def dollars(text: str) -> Decimal:
    """Return a positive amount of US dollars."""
    try:
        value = decimal_of(text)
    except ValueError:
        said = f"{text[:40]!r} is not an amount in US dollars"
        raise argparse.ArgumentTypeError(said) from None
    if not 0 < value <= MOST:
        said = f"{text[:40]!r} is not a positive amount in US dollars, at most {MOST:,}"
        raise argparse.ArgumentTypeError(said)
    return value


def up_to(most: int) -> Callable[[str], int]:
    """Return what reads a whole number no larger than `most`.

    Numbers from there on are a slip of the hand, and lists as long as that fill any memory. What is
    too small is refused by who knows why.
    """

    def whole(text: str) -> int:
        if len(text) > DIGITS or abs(value := int(text)) > most:
            said = f"{text[:40]!r} is too large: {most:,} is the most"
            raise argparse.ArgumentTypeError(said)
        return value

    return whole


def finite(text: str) -> float:
    """Return a number from 0 up to a billion; NaN and infinity are none."""
    value = float(text)
    if not 0 <= value <= MOST:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 0 to {MOST:,}")
    return value


def new_command(commands: Any, name: str, function: Command) -> argparse.ArgumentParser:
    """Return the parser of a command that calls `function`, described by its docstring."""
    text = (function.__doc__ or "").splitlines()[0]
    made: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    made.set_defaults(command=function, command_name=name)
    return made


def box_arguments(graded: argparse.ArgumentParser) -> None:
    """Add where programs run and how many at once."""
    graded.add_argument(
        "--box",
        help="sandbox for suites that run programs: docker, docker:runsc, bwrap, subprocess "
        "(docker; subprocess for rehearsal workers)",
    )
    graded.add_argument(
        "--max-sandboxes",
        type=up_to(SANDBOXES),
        metavar="N",
        help="programs that run at once (all cores)",
    )


def demo_arguments(demo: argparse.ArgumentParser) -> None:
    """Add what `podium demo` takes."""
    demo.add_argument("--out", type=Path, default=Path("demo"), help="directory to write (demo)")
    demo.add_argument("--limit", type=up_to(MOST), default=20, help="questions per suite")


def record_arguments(record: argparse.ArgumentParser) -> None:
    """Add what `podium record` takes."""
    record.add_argument(
        "logs", type=Path, nargs="+", metavar="LOG", help=".eval files or directories"
    )
    record.add_argument(
        "--out", type=Path, required=True, help="cassette to write, e.g. runs/tape.jsonl"
    )


def grade_arguments(grade: argparse.ArgumentParser) -> None:
    """Add what `podium grade` takes."""
    grade.add_argument("--suite", required=True, help="suite name")
    grade.add_argument(
        "--problems",
        type=Path,
        metavar="FILE",
        help="the benchmark's own rows, JSONL (also .gz) or CSV (the suite's pinned questions)",
    )
    grade.add_argument(
        "--replies",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSONL rows with question_id, reply and, where it is not 1, the epoch that was asked",
    )
    grade.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="JSONL of verdicts: new, or to resume",
    )
    box_arguments(grade)


def redact_arguments(redact: argparse.ArgumentParser) -> None:
    """Add what `podium redact` takes."""
    redact.add_argument(
        "paths", type=Path, nargs="+", metavar="LOG", help=".eval files or directories"
    )
    redact.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="directory for the copies"
    )


def regrade_arguments(regrade: argparse.ArgumentParser) -> None:
    """Add what `podium regrade` takes."""
    regrade.add_argument("dir", type=Path, metavar="DIR", help="log directory")
    which = regrade.add_mutually_exclusive_group()
    which.add_argument("--unscored", action="store_true", help="only what has no score (default)")
    which.add_argument("--all", action="store_true", help="everything, after a scorer changed")
    box_arguments(regrade)


def listed_arguments(listed: argparse.ArgumentParser) -> None:
    """Add what `podium suites` and `podium systems` take."""
    listed.add_argument("name", nargs="?", help="show one in full")


def data_arguments(data: argparse.ArgumentParser) -> None:
    """Add what `podium data` takes."""
    actions = data.add_subparsers(dest="action", metavar="ACTION", required=True)
    fetch = actions.add_parser("fetch", help="download what is pinned and not here yet")
    fetch.add_argument("names", nargs="+", metavar="SUITE", help="suite names")
    verify = actions.add_parser("verify", help="check what is here; download nothing")
    verify.add_argument("names", nargs="*", metavar="SUITE", help="suite names (all)")
    for action in (fetch, verify):
        action.add_argument(
            "--data", type=Path, metavar="DIR", help="folder of local data (PODIUM_DATA)"
        )


def ledger_arguments(ledger: argparse.ArgumentParser) -> None:
    """Add what `podium ledger` takes."""
    actions = ledger.add_subparsers(dest="action", metavar="ACTION", required=True)
    export = actions.add_parser("export", help="write calls and queries as tables")
    export.add_argument("dir", type=Path, metavar="DIR", help="directory that a run wrote")
    export.add_argument(
        "--out", type=Path, required=True, metavar="D", help="directory for the tables"
    )
    export.add_argument(
        "--format",
        default="parquet",
        choices=("parquet", "csv", "jsonl", "otel", "md", "html"),
        help="otel has calls only, md and html queries only (parquet)",
    )
    sql = actions.add_parser("sql", help="run one SELECT over the views calls and queries")
    sql.add_argument(
        "dir", type=Path, metavar="DIR", help="directory of a run or an export, or a .parquet file"
    )
    sql.add_argument("query", metavar="SQL", help='e.g. "SELECT sum(usd_list) FROM calls"')
    sql.add_argument("--format", default="table", choices=("table", "csv", "json"), help="(table)")


def pool_arguments(pooled: argparse.ArgumentParser) -> None:
    """Add what `podium workers` takes."""
    pooled.add_argument("--pool", default="rehearsal", help="pool name or .toml file (rehearsal)")


def doctor_arguments(doctor: argparse.ArgumentParser) -> None:
    """Add what `podium doctor` takes, beside what a run may learn from."""
    pool_arguments(doctor)
    add = doctor.add_argument
    add("--suite", action="append", default=[], help="check a run of this suite; repeat")
    add("--system", action="append", default=[], help="by this system, or a group; repeat")
    add("--split", help="train, validation or eval (eval)")
    add("--limit", type=int, help="first N questions (all)")
    add("--log-dir", type=Path, help="an experiment that the run would go on with (a new one)")
    add("--box", help="also check this sandbox")


def sandbox_arguments(sandbox: argparse.ArgumentParser) -> None:
    """Add what `podium sandbox` takes."""
    actions = sandbox.add_subparsers(dest="action", metavar="ACTION", required=True)
    build = actions.add_parser("build", help="make the image that programs run in")
    build.add_argument(
        "--image", default="basic", choices=("basic", "bigcodebench"), help="which one (basic)"
    )
    build.add_argument(
        "--base-image", metavar="NAME", help="image with python3 to build on (a public Python's)"
    )
    actions.add_parser("status", help="say what can run programs here, and in which images")
    clean = actions.add_parser("clean", help="remove what killed runs and older builds left")
    clean.add_argument("--all", action="store_true", help="also every image that podium made")


def run_arguments(run: argparse.ArgumentParser) -> None:
    """Add what `podium run` takes."""
    run.add_argument(
        "--suite", action="append", required=True, help="suite name; repeat for several"
    )
    run.add_argument(
        "--system",
        action="append",
        default=[],
        help="system name; `single` for every worker; `all` for every contestant, router and "
        "control that fits pool, suites and installed extras; `contestants`, `routers`, `controls` "
        "or `frameworks` for those of a group; repeat (all that fit and need no training)",
    )
    pool_arguments(run)
    run.add_argument("--log-dir", type=Path, required=True, help="an experiment: new, or to resume")
    run.add_argument("--limit", type=up_to(MOST), help="first N questions (all)")
    run.add_argument(
        "--epochs",
        type=up_to(EPOCHS),
        help="times each question is asked (the suite's usual number)",
    )
    run.add_argument(
        "--seed", type=up_to(SEED), help="seed of random controls and rehearsal workers (0)"
    )
    run.add_argument("--split", help="train, validation or eval (eval)")
    run.add_argument(
        "--prompt",
        choices=("official", "paper"),
        help="as the benchmark's authors ask, or as the Conductor paper did where known (official)",
    )
    _budget_arguments(run)
    box_arguments(run)
    run.add_argument(
        "--time-scale", type=finite, help="rehearsal latency is slept times this (0.01)"
    )
    run.add_argument(
        "--display",
        default="line",
        choices=("line", "full", "rich", "plain", "none"),
        help="progress: line is ours, the others are Inspect's (line)",
    )


def _budget_arguments(run: argparse.ArgumentParser) -> None:
    run.add_argument(
        "--max-usd",
        type=dollars,
        metavar="USD",
        help="stop before a call that could pass this: each in flight holds back the most that it "
        "can cost (prompt, max_tokens, dearest rates), and those in flight are waited for",
    )
    run.add_argument(
        "--max-usd-per-query",
        type=dollars,
        metavar="USD",
        help="the same for each question: it is left unanswered before a call that could pass "
        "this, and the others go on",
    )
    run.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be asked and what it may cost; ask nobody, write nothing",
    )
    run.add_argument(
        "--like",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="with --dry-run: past runs of the same workers to go by; repeat",
    )


def reward_arguments(rewarded: argparse.ArgumentParser) -> None:
    """Add what `podium reward` takes."""
    actions = rewarded.add_subparsers(dest="action", metavar="ACTION", required=True)
    serve = actions.add_parser("serve", help="answer POST /score, /get_reward, /rm and /verify")
    add = serve.add_argument
    add("--suite", action="append", required=True, help="suite name; repeat for several")
    add("--split", default="train", choices=("train", "validation"), help="(train)")
    add("--limit", type=up_to(MOST), metavar="N", help="first N questions of each suite (all)")
    add("--pool", help="completions are workflows for these workers (completions are replies)")
    add("--host", default="127.0.0.1", help="address to listen on (127.0.0.1: this machine only)")
    add(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="holds what every request must send as `Authorization: Bearer`; needed beyond this "
        "machine",
    )
    add(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="name under which trainers reach it, beside its address; repeat",
    )
    add("--port", type=int, default=0, help="port; 0 takes a free one and prints it (0)")
    add("--max-usd", type=dollars, help="ask no worker once this much is spent")
    add("--log-dir", type=Path, metavar="DIR", help="write down every call of a worker (nowhere)")
    add("--timeout", type=float, default=120.0, metavar="S", help="seconds per item (120)")
    add("--max-masked", type=float, default=0.3, help="largest share without a value (0.3)")
    add("--most", type=up_to(EPOCHS), metavar="N", help="items at once (cores; with --pool 64)")
    add(
        "--values",
        default="plain",
        choices=("plain", "paper"),
        help="plain: the grade; paper, with --pool: 0.5 for a readable plan that is wrong (plain)",
    )
    add(
        "--on-unscored",
        default="error",
        choices=("error", "zero"),
        help="what OpenRLHF is told of a missing reward: fail the request, or 0 (error)",
    )
    box_arguments(serve)


def manifest_arguments(manifest: argparse.ArgumentParser) -> None:
    """Add what `podium manifest` takes."""
    actions = manifest.add_subparsers(dest="action", metavar="ACTION", required=True)
    write = actions.add_parser("write", help="write down what is here now; keeps earlier roots")
    verify = actions.add_parser("verify", help="find what was changed since; 1 if anything was")
    sign = actions.add_parser("sign", help="sign the manifest (extra: signing)")
    for action in (write, verify, sign):
        action.add_argument("dir", type=Path, metavar="DIR", help="log directory")
    verify.add_argument("--root", metavar="HEX", help="the root that was published")
    verify.add_argument("--public-key", type=Path, metavar="FILE", help="who must have signed")
    verify.add_argument(
        "--shared", action="store_true", help="only a part of the run is here, or redacted copies"
    )
    verify.add_argument(
        "--regrade", action="store_true", help="give all verdicts anew and compare; asks no model"
    )
    verify.add_argument(
        "--box", help="with --regrade: sandbox for suites that run programs (they are left out)"
    )
    sign.add_argument("--key", type=Path, required=True, metavar="FILE", help="private key (PEM)")
    key = actions.add_parser("key", help="make an Ed25519 key (extra: signing)")
    key.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help="private key; FILE.pub is public"
    )
