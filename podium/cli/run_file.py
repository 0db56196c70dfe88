"""A TOML file of a whole run: its keys are fields of `RunRequest` and `Sharding`, and `report`.

A key's value is checked twice: by its field's type, and by the option of the same meaning.
"""

import argparse
import hashlib
import json
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

from pydantic import TypeAdapter, ValidationError

from podium.harness.errors import UserError, first_fault, no_such
from podium.harness.files import SETTINGS, parse_toml, read_limited, refuse_unwritable_file
from podium.harness.prices.book import toml
from podium.harness.run.catalogue import OWN, RunRequest
from podium.harness.shards.sharded_run import Sharding
from podium.reports.blocks import ReportOptions

OURS = ("settled", "group_dir", "run_file", "own")
"""Fields of `RunRequest` and `Sharding` that a run file cannot set."""
STATED = [field for field in (*fields(RunRequest), *fields(Sharding)) if field.name not in OURS]
KEYS = {**{field.name: field.type for field in STATED}, "report": dict[str, Any]}
REPORT = {field.name: field.type for field in fields(ReportOptions)}
OPTIONS = {
    "suites": "suite", "systems": "system", "task_args": "T", "grace_s": "grace",
    "suite_limits": "suite_limit",
}  # fmt: skip
"""Key of the run file -> argparse name of the option of the same meaning, if the names differ."""
PARTS = ("suites", "systems", "train_on")
PLACES = (*PARTS, "log_dir", "profile", "pool", "gate")
"""Keys whose values may be paths relative to the run file's folder."""
HEAD = "# `podium run` on this file is this run. Relative paths start at the file's folder.\n"


def take_run_file(args: argparse.Namespace) -> None:
    """Set arguments that the user did not type to the run file's values; merge tables by key."""
    if not args.file.is_file():
        raise UserError(f"There is no run file {args.file}. Write one with --save-run.")
    content = read_limited(args.file, SETTINGS)
    readers = {option.dest: option.type for option in args.commands["run"]._actions}
    for name, value in read_run_file(content, args.file, readers).items():
        option = OPTIONS.get(name, name)
        if option not in args.typed:
            setattr(args, option, value)
        elif isinstance(value, dict):
            setattr(args, option, {**cast(dict[str, Any], value), **dict(getattr(args, option))})
    typed = [name for name in KEYS if OPTIONS.get(name, name) in args.typed]
    args.run_file = {"sha256": hashlib.sha256(content).hexdigest(), "options": typed}


def read_run_file(content: bytes, path: Path, readers: Mapping[str, Any]) -> dict[str, Any]:
    """Return a run file's values by key; UserError names the first invalid key."""
    try:
        data = parse_toml(content)
    except ValueError as error:
        raise UserError(f"Run file {path} is not valid TOML: {error}. Correct it.") from error
    for name, place in data.items():
        if name in PLACES and (place == "" or "\0" in str(place)):
            raise _wrong(path, name, "It names no place")
    values = _typed(path, data, KEYS)
    _typed(path, values.get("report", {}), REPORT, "report.")
    for name, value in values.items():
        try:
            for word in _number_words(name, value):
                (readers.get(OPTIONS.get(name, name)) or str)(word)
        except ArgumentTypeError as error:
            raise _wrong(path, name, error) from error
    return {name: _placed(name, value, path.parent) for name, value in values.items()}


def _typed(
    path: Path, data: Mapping[str, Any], types: Mapping[str, Any], table: str = ""
) -> dict[str, Any]:
    """Return a TOML table's values, checked by their fields' types; UserError if one is wrong."""
    for name in (name for name in data if name not in types):
        raise no_such("key", name, types, f"{path}{table and ', in [report],'} may have: ")
    values: dict[str, Any] = {}
    for name, value in data.items():
        try:
            content = json.dumps(value, default=str)
            values[name] = TypeAdapter[Any](types[name]).validate_json(content, strict=True)
        except ValidationError as error:
            place = f"{table}{name}.{first_fault(error)[0]}".rstrip(".")
            raise _wrong(path, place, first_fault(error)[1]) from error
    return values


def _wrong(path: Path, name: str, reason: object) -> UserError:
    return UserError(f"{path}: {name} has a wrong value. {reason}. Correct it.")


def _number_words(name: str, value: Any) -> list[str]:
    """Return a key's numbers as its command-line option takes them: `5`, or `openai=5`."""
    if name in ("rpm", "suite_limits"):
        return [f"{key}={number}" for key, number in value.items()]
    return [str(value)] if isinstance(value, int | float | Decimal) else []


def _placed(name: str, value: Any, folder: Path) -> Any:
    """Return the value of key `name`, with relative paths resolved against `folder`."""
    if name in ("log_dir", "profile", "gate"):
        return folder / Path(value).expanduser()
    if isinstance(value, tuple):
        return tuple(_placed(name, item, folder) for item in cast(Iterable[Any], value))
    if (name in PARTS and OWN in value) or (name == "pool" and value.endswith(".toml")):
        return str(folder / Path(value).expanduser())
    return value


def save_run_file(args: argparse.Namespace, request: RunRequest) -> None:
    """Write a run file with a request, and with the options of its shards and its report."""
    path: Path = args.save_run
    refuse_unwritable_file(path, "--save-run")
    if path.exists():
        raise UserError(f"{path} already exists. Use another --save-run FILE.")
    values = {name: getattr(request, name, getattr(args, name, None)) for name in KEYS}
    stated = {name: v for name, v in values.items() if v is not None and v not in ((), {})}
    lines = (f"{name} = {_toml(name, value, path)}\n" for name, value in stated.items())
    path.write_text(HEAD + "".join(lines))


def _toml(name: str, value: Any, path: Path) -> str:
    """Return a value as TOML; paths in the run file's folder become relative to the folder."""
    plain = TypeAdapter(Any).dump_python(_placed(name, value, Path.cwd()), mode="json")
    folder = path.parent.absolute()
    return toml(plain).replace(f'"{folder}/', '"') if name in PLACES else toml(plain)
