"""Tables of a training's TOML file: on top of those of another one, and changed key by key.

What the tables may hold is config.py.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from harness.errors import UserError
from harness.files import parse_toml, read_toml

CONFIGS = Path(__file__).parents[1] / "configs"


def read_tables(path: Path) -> dict[str, Any]:
    """Return a file's tables on top of those of the shipped configuration that is its `base`.

    A table changes the keys that it names; `[model]` stands for the whole of its base's, and other
    suites have other weights.
    """
    try:
        data = read_toml(path)
    except ValueError as error:
        raise UserError(f"Config {path} is not valid TOML: {error}.") from error
    base = data.pop("base", None)
    if base is None:
        return data
    under = CONFIGS / f"{base}.toml"
    if not under.is_file() or under == path:
        raise UserError(f"Config {path}: there is no shipped config {base!r} to be its base.")
    found = read_tables(under)
    if "model" in data:
        found.pop("model", None)
    if "names" in data.get("suites", {}):
        found.get("suites", {}).pop("weights", None)
    return _over(found, data)


def _over(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return nested tables with those of `above` put over them."""
    found = dict(below)
    for key, value in above.items():
        held = found.get(key)
        both = isinstance(held, dict) and isinstance(value, dict)
        found[key] = (
            _over(cast("dict[str, Any]", held), cast("dict[str, Any]", value)) if both else value
        )
    return found


def put(data: dict[str, Any], setting: str) -> None:
    """Set `section.key=value`; a value is TOML where it reads as such, else a string."""
    key, separator, value = setting.partition("=")
    parts = key.strip().split(".")
    if not separator or not all(parts):
        raise UserError(f"--set takes section.key=value, not {setting!r}.")
    for part in parts[:-1]:
        table = data.setdefault(part, {})
        if not isinstance(table, dict):
            raise UserError(f"--set {setting}: {part!r} is a value, not a table.")
        data = cast("dict[str, Any]", table)
    try:
        data[parts[-1]] = parse_toml(f"value = {value}")["value"]
    except ValueError:
        data[parts[-1]] = value
