"""`podium pool new`: writes a pool file of the user's models, and sends each a test question."""

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from podium.cli.arguments import Arguments, pair
from podium.harness.errors import UserError, no_such, reasons_of
from podium.harness.files import refuse_unwritable_file
from podium.harness.text import pluralise, say

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
URL = re.compile(r"https?://(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9._-]+)(:\d+)?(/[!#->A-[\]-~]*)?")
"""A server's URL, without a user before `@` and without a query, as these may contain a key."""
OWN = "openai-api/"
"""Prefix of a model id on an OpenAI-compatible server: `openai-api/NAME/MODEL`."""
RATES = ("input", "output", "cache_read")
DOLLARS = "US dollars per million tokens, IN,OUT or IN,OUT,CACHED (0,0 if they are free)"
PLANNER = "worker whose model also writes the plans of conductor-prompted"
FLAGS = (
    "There is no terminal to ask. Add --worker NAME=MODEL for each model; for a server of your own "
    "also --base-url URL and --key-variable VARIABLE; for a model without a listed price also "
    "--price NAME=IN,OUT."
)
HEAD = '# Made by `podium pool new`; keys stay in environment variables.\nlabel = "live"\n'
CARD = 'card = ""   # what it is good at, for conductors that read cards'
BOUND = "config = { max_tokens = 4096 }   # without it, nothing bounds what a call costs"


def pool(add: Arguments) -> None:
    """Write a pool file for your own models, with prices, and send one question to each."""
    new = add.actions()(
        "new", "write a pool file from answers at the terminal or from flags, then drill its models"
    )
    file = "pool file to write: new, .toml (mine.toml)"
    new("file FILE", file, Path, nargs="?", default=Path("mine.toml"))
    worker = "worker and its model: PROVIDER/MODEL, or with --base-url the model's name there"
    text = f"{worker}; repeat (ask at the terminal)"
    new.repeated("--worker NAME=MODEL", text, pair("NAME=MODEL"))
    new.repeated("--base-url URL", "URL of an OpenAI-compatible server; NAME=URL for one worker")
    key = "with --base-url: environment variable with its key, e.g. ACME_API_KEY; or NAME=VARIABLE"
    new.repeated("--key-variable VARIABLE", key)
    new.repeated("--price IN,OUT", f"{DOLLARS}; NAME=IN,OUT for one worker (the newest book's)")
    new("--conductor NAME", f"{PLANNER} (none)", default="")
    new.flag("--no-drill", "write and check the file; ask no model")
    new.flag("--yes", "agree to the price of the drill without a question at the terminal")


def pool_command(args: argparse.Namespace) -> int:
    """Write a pool file and run doctor on it; return doctor's exit code."""
    from podium.harness.pool_config import parse_pool

    if args.file.suffix != ".toml" or not NAME.fullmatch(args.file.stem):
        raise UserError(
            f"{args.file} is not a valid pool file name. Use letters, digits and .toml."
        )
    refuse_unwritable_file(args.file, "FILE")
    if args.file.exists():
        raise UserError(f"{args.file} already exists and is not overwritten. Use another FILE.")
    workers, conductor = _named(args) if args.worker else _asked(args)
    tables = [HEAD]
    tables += [f'[[workers]]\nname = "{name}"\n{CARD}\n{toml}' for name, toml in workers.items()]
    tables += [f"[conductor]\n{workers[conductor]}"] if conductor else []
    content = "\n".join(tables).encode()
    spec = parse_pool(content, args.file)
    args.file.parent.mkdir(parents=True, exist_ok=True)
    with args.file.open("xb") as file:
        file.write(content)
    say(f"{args.file} is written, with {pluralise(len(workers), 'worker')}; it holds no key.")
    return _checked(args, spec)


def _checked(args: argparse.Namespace, spec: Any) -> int:
    """Run `podium doctor`, with test questions (a drill) if possible; return its exit code."""
    from podium.cli.run_commands import doctor_command
    from podium.harness.run.drill import fit_for_drill

    drill = not args.no_drill and not [*reasons_of(fit_for_drill, spec, spec.book())]
    file, options = str(args.file), argparse.Namespace(suite=(), system=(), box=None, max_usd=None)
    vars(options).update(pool=file, drill=drill, yes=args.yes and drill, json=None, S=())
    code = doctor_command(options)
    run = f"podium run --suite practice-integer --limit 4 --system single --pool {file}"
    free = f"Next, at no cost: {run} --log-dir logs/mine --dry-run"
    say(f"Then: podium doctor --pool {file} --drill" if code else free)
    return code


def _named(args: argparse.Namespace) -> tuple[dict[str, str], str]:
    """Return workers (name -> TOML) and the conductor's name from options; UserError if invalid."""
    if not (args.no_drill or args.yes or sys.stdin.isatty()):
        refusal = "A drill costs money, and there is no terminal to ask"
        raise UserError(f"{refusal}. Add --yes, or --no-drill.")
    models, workers = dict[str, str](), dict[str, str]()
    for name, model_id in args.worker:
        models[_name(name, models)] = model_id
    urls = _by_worker("--base-url", args.base_url, models)
    variables = _by_worker("--key-variable", args.key_variable, urls or models)
    prices = _by_worker("--price", args.price, models)
    for name, model_id in models.items():
        url = _url(urls[name]) if name in urls else ""
        model = _model(model_id, url, _variable(variables[name]) if name in variables else "")
        price = _price(prices[name]) if name in prices else _listed(model)
        if not price:
            fix = f"Add --price {name}=IN,OUT, in {DOLLARS}"
            raise UserError(f"No price book has {model}. {fix}.")
        workers[name] = _settings(model, price, url)
    return workers, args.conductor and _worker(args.conductor, workers)


def _by_worker(option: str, values: Sequence[str], names: Iterable[str]) -> dict[str, str]:
    """Return worker -> value of an option; the user writes VALUE for all or NAME=VALUE for one."""
    every, single = dict[str, str](), dict[str, str]()
    for value in values:
        name, equals, setting = value.partition("=")
        if equals and NAME.fullmatch(name):
            single[_worker(name, names, f" ({option})")] = setting
        else:
            every = dict.fromkeys(names, value)
    return every | single


def _asked(args: argparse.Namespace) -> tuple[dict[str, str], str]:
    """Ask at the terminal for workers (name -> TOML) and the conductor's name; return both."""
    if args.base_url or args.key_variable or args.price or not sys.stdin.isatty():
        raise UserError(FLAGS)
    workers, place, variable, again = dict[str, str](), "openai", "", "y"
    while again.lower() in ("y", "yes"):
        question = "Provider (openai, google, ...), or a server's base URL"
        place = _answer(question, place, lambda text: (_url if "://" in text else _provider)(text))
        url, prefix, key = (place, "", variable) if "://" in place else ("", f"{place}/", "")
        if url:
            question = "Environment variable with its key, such as ACME_API_KEY"
            variable = key = _answer(question, key, _variable)
        model = _answer("Model", "", partial(_model, url=url, variable=key, prefix=prefix))
        short = re.sub(r"[^A-Za-z0-9._-]+", "-", model.rpartition("/")[2])
        name = _answer("Name of this worker", short, lambda text: _name(text, workers))
        unknown = f"No price book has this model. Its price, in {DOLLARS}"
        workers[name] = _settings(model, _listed(model) or _answer(unknown, "", _price), url)
        again = _answer("Another worker? [y/N]", "", str)
    planner = f"The {PLANNER} (Enter: none)"
    return workers, _answer(planner, args.conductor, lambda text: text and _worker(text, workers))


def _answer(question: str, default: str, read: Callable[[str], str]) -> str:
    """Ask at the terminal until the answer is valid; an empty answer means the default."""
    while True:
        suffix = f" [{default}]" if default else ""
        say(f"{question}{suffix}: ", file=sys.stderr, end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            raise UserError(
                "The input ended before the last answer, so no file was written. Try again."
            )
        try:
            return read(line.strip() or default)
        except UserError as error:
            say(error, file=sys.stderr)


def _name(text: str, names: Iterable[str]) -> str:
    if not NAME.fullmatch(text):
        raise UserError(
            f"{text[:40]!r} is not a valid worker name. Use letters, digits, dots and hyphens."
        )
    if text in (*names, "conductor", "grader"):
        raise UserError(f"The name {text!r} is taken. Give this worker another name.")
    return text


def _worker(name: str, workers: Iterable[str], hint: str = "") -> str:
    if name in workers:
        return name
    raise no_such("worker", name, workers, more=hint)


def _provider(text: str) -> str:
    """Return `text` if Inspect has a provider of this name; UserError otherwise."""
    from inspect_ai._util.registry import registry_find, registry_info
    from inspect_ai.model._providers import providers

    apis = registry_find(lambda info: info.type == "modelapi") if providers else []
    names = {registry_info(api).name.rpartition("/")[2] for api in apis} - {"rehearsal", "recorded"}
    if text in names:
        return text
    hint = "; for an OpenAI-compatible server, give its URL, with http:// or https://"
    raise no_such("provider", text[:40], sorted(names), more=hint)


def _url(text: str) -> str:
    if URL.fullmatch(text):
        return text.rstrip("/").removesuffix("/chat/completions")
    raise UserError(
        "This is not a base URL such as http://localhost:8000/v1. Leave user, key and query out."
    )


def _variable(text: str) -> str:
    if re.fullmatch("[A-Z][A-Z0-9_]*_API_KEY", text):
        return text
    # The input may be a key, so the error does not repeat it.
    form = "the name of an environment variable, in capitals, ending in _API_KEY"
    raise UserError(f"Give {form}, such as ACME_API_KEY. Do not give the key itself.")


def _model(model_id: str, url: str, variable: str, prefix: str = "") -> str:
    """Return Inspect's id of a model, given the model's id at its provider or server."""
    if not re.fullmatch(r"[!#-.0-[\]-~][!#-[\]-~]*", model_id):
        raise UserError(f"{model_id[:40]!r} is not a model id. Use a word without spaces.")
    model_id = prefix + model_id
    if url and not model_id.startswith(OWN):
        if not variable:
            raise UserError("--base-url needs --key-variable VARIABLE. Add it, e.g. ACME_API_KEY.")
        return f"{OWN}{variable.removesuffix('_API_KEY').lower()}/{model_id}"
    provider, _, path = model_id.partition("/")
    owner, _, model = path.partition("/") if model_id.startswith(OWN) else (provider, "", path)
    if not model:
        hint = "for a server of your own add --base-url URL and --key-variable VARIABLE"
        raise UserError(f"{model_id!r} has no provider. Write PROVIDER/MODEL; {hint}.")
    if variable not in ("", f"{owner.upper().replace('-', '_')}_API_KEY"):
        fix = "Leave it out, or add --base-url URL with the server's own name of the model"
        raise UserError(f"The key for {model_id} is not read from {variable}. {fix}.")
    return f"{_provider(provider)}/{path}"


def _price(text: str) -> str:
    """Return the TOML line of a price that the user gave; UserError if it cannot be read."""
    from podium.harness.prices.book import price_from

    rates = [rate.strip() for rate in text.split(",")]
    try:
        price = price_from("it", dict(zip(RATES[: len(rates)], rates, strict=True)), "")
    except ValueError:  # also BadEntry, its subclass
        raise UserError(f"{text[:40]!r} is not a price. Give {DOLLARS}.") from None
    return _price_line(price, "Price as given to `podium pool new`")


def _listed(model: str) -> str:
    """Return the TOML line of a model's price in the newest book; empty if the book has none."""
    from podium.harness.prices.book import newest_list

    book = newest_list()
    price = book.price(model)
    return _price_line(price, f"Price of {book.date}, from book {book.name}") if price else ""


def _price_line(price: Any, source: str) -> str:
    from podium.harness.prices.book import price_json, toml

    left_out = ("evidence", "launched", "source")
    fields = {name: value for name, value in price_json(price).items() if name not in left_out}
    bare = re.sub(r'"(\w+)"(?= =)|"([\d.]+)"', r"\1\2", toml(fields))
    return f"# {source}, in US dollars per million tokens\nprice = {bare}"


def _settings(model: str, price: str, url: str) -> str:
    address = f'args = {{ base_url = "{url}" }}\n' if url else ""
    return f'model = "{model}"\n{price}\n{BOUND}\n{address}'
