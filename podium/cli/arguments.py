"""Arguments of commands: a parser with one-sentence errors, converters of values, examples."""

import argparse
import errno
import json
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import fields
from datetime import date
from decimal import Decimal
from importlib import metadata
from pathlib import Path
from typing import Any, NoReturn, cast

from pydantic import TypeAdapter

from podium.harness.errors import UserError, did_you_mean
from podium.harness.files import decimal_of, refuse_unwritable_file
from podium.harness.text import fitted_text, say

Reader = Callable[[str], Any]


class Parser(argparse.ArgumentParser):
    """A parser with one-sentence errors; control characters in quoted input are escaped."""

    near = ""  # a suggestion for a typo
    later: Callable[[], None] | None = None  # adds arguments that are looked up only if needed
    lists = False  # whether `--json` before a name has no PATH: `suites --json math500`
    takes_file = False  # whether it takes a run file; if so, `typed` names the typed arguments

    def __init__(self, *args: Any, **options: Any) -> None:
        """Create the parser without abbreviated options, because a typo could start a run."""
        super().__init__(*args, **{**options, "allow_abbrev": False})

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride] - it is overloaded
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """Parse arguments; exit with this command's own error if arguments are unknown."""
        add, self.later = self.later, None
        if add:
            add()
        typed = sys.argv[1:] if args is None else [*args]
        if self.lists and "--json" in typed[:-1]:
            i = typed.index("--json") + 1
            typed[i - 1 : i] = ["--json"] if typed[i].endswith(".json") else [f"--json={HERE}"]
        options = [option for action in self._actions for option in action.option_strings]
        for word in (text.partition("=")[0] for text in typed if text.startswith("--")):
            if word not in options:
                self.near = self.near or did_you_mean(word, options)
        parsed, strange = super().parse_known_args(typed, namespace)
        if strange:
            self.error(f"unrecognized arguments: {' '.join(strange)}")
        if self.takes_file:
            for action in self._actions:
                action.default = argparse.SUPPRESS
            parsed.typed = frozenset(vars(super().parse_known_args(typed)[0]))
        return parsed, strange

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        choices = [*map(str, action.choices or ())]
        if choices and value not in choices:
            self.near = did_you_mean(str(value), choices)
        super()._check_value(action, value)

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 and print the message in one sentence, without the usage."""
        self.exit(2, f"{self.prog}: {self.near}{message}; see {self.prog} --help.\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            say(message, file=file or sys.stderr, end="")


class Version(argparse.Action):
    """Action of `--version`; the installed version is looked up only if the option is given."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print podium's version and exit."""
        say(f"podium {metadata.version('podium')}")
        parser.exit()


class Arguments:
    """Adds arguments to a command's parser; each method adds one argument or a few."""

    def __init__(self, parser: Any) -> None:
        """Store `parser`, an argparse parser or argument group, to which arguments are added."""
        self.parser = parser

    def __call__(self, name: str, text: str, read: Reader | None = None, **options: Any) -> None:
        """Add an option (`--out DIR`) or argument (`dirs DIR`) with help; `read` converts values.

        An option `--format one|other` has the choices `one` and `other`; `one` is the default if no
        default is given.
        """
        flag, _, metavar = name.partition(" ")
        read = path if read is Path else read
        if "|" in metavar:
            choices = metavar.split("|")
            options = {"choices": choices, "default": choices[0]} | options
        elif metavar:
            options["metavar"] = metavar
        self.parser.add_argument(flag, help=text, type=read, **options)

    def flag(self, name: str, text: str) -> None:
        """Add an option without a value; it is False unless it is given."""
        self.parser.add_argument(name, help=text, action="store_true")

    def repeated(self, name: str, text: str, read: Reader | None = None) -> None:
        """Add an option that may be repeated; its default is an empty list."""
        self(name, text, read, action="append", default=[])

    def later(self, add: Callable[[], None]) -> None:
        """Call `add`, which adds further arguments, only if this command is parsed."""
        self.parser.later = add

    def run_file(self) -> None:
        """Add FILE, a TOML file of a whole run; other arguments override the file's values."""
        self.parser.takes_file = True
        self("file FILE", "TOML file of the whole run; options override it", Path, nargs="?")

    def gate(self) -> None:
        """Add `--gate`, a file of rules that the report must meet, and its output options."""
        self(
            "--gate FILE",
            "check the run by rules in FILE; exit code 0: all hold, 1: one fails, 3: one is open",
            path,
        )
        self("--inconclusive fail|pass", "exit code of --gate if a rule stays open: 3, or 0 (fail)")
        self("--junit FILE", "with --gate: also JUnit XML, a test case for each rule", path)
        self("--comment FILE", "with --gate: also Markdown for a pull request", path)
        self("--page URL", "URL of the published pages, for links in --comment")

    def listing(self) -> None:
        """Add `--json` to a command that lists names and facts."""
        self.parser.lists = True
        self.json("the same facts")

    def json(self, facts: str) -> None:
        """Add `--json [PATH]`, for output as JSON; `facts`: its contents, for the help text."""
        text = f"print {facts} as JSON; with PATH (.json): print text, write the JSON to PATH"
        self("--json PATH", text, Path, nargs="?", const=Path(HERE))

    def actions(self, metavar: str = "ACTION") -> "Callable[[str, str], Arguments]":
        """Return a function (name, help) that adds a subcommand and returns its `Arguments`."""
        subparsers = self.parser.add_subparsers(dest="action", metavar=metavar, required=True)
        return lambda name, text: Arguments(subparsers.add_parser(name, help=text))


HERE = "-"
"""Value of a path option that means standard output."""


def say_listing(args: argparse.Namespace, facts: Any, text: str) -> None:
    """Print `text`, fitted to the terminal's width, or `facts` as JSON, as `say_facts` does."""
    say_facts(args, facts, fitted_text(text))


def say_facts(args: argparse.Namespace, facts: Any, text: str) -> None:
    """Print `text` unchanged; `--json PATH` also writes `facts`, `--json` prints only `facts`."""
    if args.json and args.json != Path(HERE):
        refuse_unwritable_file(args.json, "--json")
        if args.json.exists():
            raise UserError(f"{args.json} already exists. Use another --json PATH.")
    say_or_write(args.json, text, lambda: TypeAdapter(Any).dump_json(facts, indent=2))


def say_or_write(target: Path | None, text: str, content: Callable[[], bytes]) -> None:
    """Print `text`, and write JSON to `target`, if given; if `target` is `-`, print only JSON."""
    if target == Path(HERE):
        say(content().decode().rstrip("\n"))
        return
    if target:
        target.write_bytes(content())
    if text:
        say(text)


def path(text: str) -> Path:
    """Return an argument as a path; refuse impossible file names, and loops of symbolic links."""
    # On such a path, most calls raise an OSError, others a RuntimeError or a ValueError.
    try:
        Path(text).stat()
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            reason = f"{text[:80]!r} cannot be a path ({error.strerror})"
            raise ArgumentTypeError(reason) from None
    except ValueError:  # a NUL, or a character that the system's encoding lacks
        raise ArgumentTypeError(f"{text[:80]!r} is not a valid file name") from None
    return Path(text)


MOST = 1_000_000_000  # maximum of counts, and of dollars
EPOCHS = SANDBOXES = 10_000
DIGITS = 30
SEEDS = 2**32


def within(low: float, high: float, bounds: str) -> Callable[[str], float]:
    """Return a function that reads a number from `low` to `high`; `bounds`: the range in words."""

    def number(text: str) -> float:
        value = float(text)
        if not low <= value <= high:  # refuses NaN, too
            raise ArgumentTypeError(f"{text[:40]!r} is not {bounds}")
        return value

    return number


finite = within(0, MOST, f"a number from 0 to {MOST:,}")
share = within(0, 1, "between 0 and 1")


def percentage_points(text: str) -> float:
    """Read percentage points as a fraction: `5` is 0.05."""
    value = float(text) / 100
    if not 0 < value <= 1:
        raise ArgumentTypeError(f"{text} is not above 0 and at most 100 points")
    return value


def table_format(text: str) -> str:
    """Return the name of a table's format; ArgumentTypeError, with a hint, for `html` (removed)."""
    if text == "html":
        raise ArgumentTypeError(
            "html was removed: use `podium report DIR --site D` for pages, or md for a table"
        )
    return text


def dollars(text: str) -> Decimal:
    """Read a positive amount of US dollars from an argument."""
    with suppress(ValueError):
        if 0 < (value := decimal_of(text)) <= MOST:
            return value
    reason = f"{text[:40]!r} is not a positive amount in US dollars, at most {MOST:,}"
    raise ArgumentTypeError(reason)


def up_to(maximum: int) -> Callable[[str], int]:
    """Return a function that reads whole numbers up to `maximum`; callers check the lower bound."""

    def whole(text: str) -> int:
        if len(text) > DIGITS or abs(value := int(text)) > maximum:
            raise ArgumentTypeError(f"{text[:40]!r} is too large: the maximum is {maximum:,}")
        return value

    return whole


def counts(text: str) -> tuple[int, ...]:
    """Read whole numbers above 0 from an argument such as 1,2,4."""
    values = tuple(up_to(MOST)(number) for number in text.split(","))
    if min(values) < 1:
        raise ArgumentTypeError(f"{text} has a number below 1: use numbers above 0")
    return values


def names(text: str) -> tuple[str, ...]:
    """Read names from an argument such as one,two,three."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def tokens(text: str) -> int:
    """Read a number of tokens from an argument."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} is not a number of tokens: use digits only")
    return int(text)


def seed(text: str) -> int:
    """Read a seed of 32 bits, which every random generator accepts, from an argument."""
    if not (text.isascii() and text.isdigit() and int(text) < SEEDS):
        raise ArgumentTypeError(f"{text!r} is not a whole number from 0 to {SEEDS - 1}")
    return int(text)


def day(text: str) -> date:
    """Read a day from an argument of the form YEAR-MONTH-DAY."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a day such as 2025-12-04") from None


def pair(form: str) -> Callable[[str], tuple[str, str]]:
    """Return a function that reads NAME=VALUE; errors show the expected `form`, e.g. `SUITE=N`."""

    def both(text: str) -> tuple[str, str]:
        key, _, value = text.rpartition("=")
        if not key or not value:
            raise ArgumentTypeError(f"{text!r} is not {form}")
        return key, value

    return both


renamed = pair("OURS=THEIRS")


def numbered(form: str) -> Callable[[str], tuple[str, int]]:
    """Return a function that reads NAME=N, with N above 0; errors show `form`, e.g. `SUITE=N`."""

    def both(text: str) -> tuple[str, int]:
        name, digits = pair(form)(text)
        if not digits.isdecimal() or not (number := up_to(MOST)(digits)):
            raise ArgumentTypeError(
                f"{digits[:40]!r} is not a whole number above 0: write {name}=N"
            )
        return name, number

    return both


def argument(text: str) -> tuple[str, Any]:
    """Read (key, value) of a task argument KEY=VALUE; a value that is not JSON stays a text."""
    key, value = pair("KEY=VALUE")(text)
    with suppress(ValueError):
        return key, json.loads(value)
    return key, value


def option(text: str) -> tuple[str, str, Any]:
    """Read (system or "", option, value) of `-S`; Inspect's rules for `-S` parse the value."""
    from inspect_ai._util.config import parse_cli_args  # slow; help does not need it

    names, _, raw = text.partition("=")
    system, _, name = names.rpartition(".")
    if not raw or not (name := name.replace("-", "_")).isidentifier():
        raise ArgumentTypeError(f"{text[:80]!r} is not NAME=VALUE or SYSTEM.NAME=VALUE")
    try:
        value = parse_cli_args([f"value={raw}"])["value"]
        # A value that experiment.json cannot hold would change when the run is resumed.
        return system, name, json.loads(json.dumps(value, allow_nan=False, default=str))
    except Exception:  # YAML raises many types
        raise ArgumentTypeError(f"{raw[:80]!r} cannot be read: use YAML, or a,b,c") from None


def launch(text: str) -> tuple[str, str]:
    """Read a model and its launch day from an argument of the form MODEL=YEAR-MONTH-DAY."""
    model, when = pair("MODEL=YEAR-MONTH-DAY")(text)
    return model, day(when).isoformat()


def taken(record: Any, args: argparse.Namespace, **values: Any) -> Any:
    """Return a new `record` (a dataclass) from `values`, and from arguments with a field's name."""
    shared = {field.name for field in fields(record)} & vars(args).keys()
    return record(**{name: getattr(args, name) for name in shared} | values)


LINES = """
podium demo --out demo
podium run --suite aime25 --system single --log-dir runs/first
podium shard runs/first/shards/0001
podium report runs/first --vs best-single --derived
podium view runs/first --port 8000
podium power --effect 5 --questions 30,198
podium route lcb-leaderboard --split date:0.3 --router router-knn
podium record runs/first --out tape.jsonl
podium grade --suite math500 --replies in.jsonl --out out.jsonl
podium redact runs/first --out shared
podium regrade runs/first --unscored
podium reward serve --suite practice-integer --limit 100
podium serve --system moa-lite --log-dir serving
podium train practice-cpu --set grpo.max_steps=50 --dry-run
podium ablate routing-only --seed 0 --out ablations
podium export eee runs/first --out eee
podium export verifiers --suite practice-choice --out taskset
podium export latex runs/first --out paper
podium export hub conductor runs/first --out model
podium export routerarena runs/first --out arena
podium export site runs/first runs/second --out public
podium audit runs/first --strict --invoice openai.json
podium ledger export runs/first --out tables
podium ledger sql runs/first "SELECT sum(usd_list) FROM calls"
podium manifest write runs/first
podium manifest verify runs/first --public-key signer.pub
podium manifest sign runs/first --key signer.pem
podium manifest anchor runs/first --request
podium manifest key --out signer.pem
podium prices list rehearsal
podium prices verify --json
podium prices diff paper-2025-12-04 list-2026-11-21
podium prices snapshot --pool paper-constrained --out mine.toml
podium prices update --out list-2026-11-30.toml
podium prices export --inspect costs.json
podium reprice runs/first --book list-2026-11-21
podium suites aime25
podium data fetch aime25
podium data verify aime25
podium data list aime25 --json sources.json
podium systems moa-lite
podium workers --pool paper-constrained
podium pool new --worker a=openai/gpt-5 --price 1.25,10 --yes
podium doctor --suite practice-integer --system conductor
podium sandbox build --image basic
podium sandbox status
podium sandbox clean
podium completion bash
"""


def add_examples(podium: argparse.ArgumentParser) -> None:
    """Append an example to the help of `podium` and of each command."""
    for parser in every_parser(podium):
        lines = (line for line in LINES.splitlines() if f"{line} ".startswith(f"{parser.prog} "))
        parser.epilog = f"for example: {next(lines, '')}"


def every_parser(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield a parser, the parsers of its commands, and the parsers of their subcommands."""
    yield parser
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage] - argparse lists them here
        choices: Any = action.choices
        if isinstance(choices, dict):
            for inner in cast("dict[str, argparse.ArgumentParser]", choices).values():
                yield from every_parser(inner)
