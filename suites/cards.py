"""Read suites/cards.toml: what each suite asks, where it is from, and how well people did.

A card is for people (`podium suites NAME`); nothing is graded or fetched by it. What pins the data
is sources.toml.
"""

import tomllib
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, StringConstraints, ValidationError

from harness.errors import UserError
from harness.suite import Card, Split

CARDS = Path(__file__).parent / "cards.toml"

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Change = Annotated[str, StringConstraints(pattern=r"^\d+-[A-Z] \(\d{4}-\d\d-\d\d\): \S")]


class Table(BaseModel):
    """One table of cards.toml; its fields are those of harness.suite.Card."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Text
    paper: Text
    sizes: dict[Split, PositiveInt]
    licence: Text
    human: Text
    about: Text
    changes: tuple[Change, ...] = Field(min_length=1)

    def card(self) -> Card:
        """Return the card, its paragraph on one line."""
        return Card(
            title=self.title,
            paper=self.paper,
            sizes=self.sizes,
            licence=self.licence,
            human=self.human,
            about=" ".join(self.about.split()),
            changes=self.changes,
        )


def card(name: str) -> Card:
    """Return a suite's card; UserError names the table and the field that is wrong."""
    return cards()[name]


@cache
def cards(path: Path = CARDS) -> dict[str, Card]:
    """Return every card of a file by suite; UserError names the table and field that is wrong."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path.name} is no TOML: {error}.") from error
    return {name: _checked(name, table, path).card() for name, table in tables.items()}


def _checked(name: str, table: object, path: Path) -> Table:
    try:
        return Table.model_validate(table)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or "the table"
        raise UserError(f"{path.name}, [{name}], {field}: {first['msg']}.") from error
