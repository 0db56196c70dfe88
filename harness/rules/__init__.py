"""The table of rules by which a reply is read: rules.toml, built of the words in words.toml.

`podium suites SUITE --rules` prints it. examples.toml holds three replies for each rule that it
decides and three that it must leave alone, each with its source; tests read all of them.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
DECIDING = (
    *("box", "tag", "label-line", "label", "foreign-label", "value-before", "said-correct"),
    *("apart", "concludes", "only", "pick", "must-be", "named-option", "bold-option"),
    *("option-line", "concluded-letter", "option-text"),
)
"""Rules that give an answer; the others drop, withdraw or read one."""
STAGES = ("find", "drop", "withdraw", "conclude", "value")
_NAME = re.compile(r"\{([A-Z][A-Z_]+)\}")


@dataclass(frozen=True, slots=True)
class ReadingRule:
    """A row of the table."""

    name: str
    stage: str
    where: str
    yields: str
    outranked_by: str
    """What decides in its place; names of rules stand in backticks."""
    pattern: tuple[str, ...]
    flags: str = ""
    needs: tuple[str, ...] = ()
    """Texts without any of which the pattern is not tried."""


@dataclass(frozen=True, slots=True)
class RuleExample:
    """A reply, what is read in it, and the battery that has it."""

    rule: str
    decides: bool
    """False for a counter-example: the rule must leave it alone."""
    suite: str
    reply: str
    reads: str | None
    source: str
    choices: tuple[str, ...] = ()
    letter: bool = False
    """True for a reply whose reference is a letter of up to 16."""


@cache
def rules() -> Mapping[str, ReadingRule]:
    """Return every rule by name, in the order of the stages."""
    rows = dict(_table("rules.toml"))
    by_stage = rows.pop("outranked_by")
    return {
        name: ReadingRule(name, **{"outranked_by": by_stage[row["stage"]]} | _frozen(row))
        for name, row in rows.items()
        if name != "parts"
    }


def _frozen(row: dict[str, Any]) -> dict[str, Any]:
    lists = {key: tuple(row[key]) for key in ("pattern", "needs", "choices") if key in row}
    return {**row, **lists}


@cache
def rule_examples() -> Sequence[RuleExample]:
    """Return the examples and counter-examples of all rules."""
    rows: list[dict[str, Any]] = _table("examples.toml")["example"]
    none: dict[str, Any] = {"reads": None}
    return [RuleExample(**none | _frozen(row)) for row in rows]


def rule_table() -> tuple[list[dict[str, Any]], str]:
    """Return every rule with its examples, as plain values and as a text."""
    rows = [asdict(rule) | _examples_of(rule.name) for rule in rules().values()]
    return rows, "\n\n".join(_row_text(row) for row in rows)


def _examples_of(name: str) -> dict[str, list[dict[str, Any]]]:
    rows = [example for example in rule_examples() if example.rule == name]
    return {
        kind: [
            {"reply": row.reply, "reads": row.reads, "source": row.source}
            for row in rows
            if row.decides == decides
        ]
        for kind, decides in (("examples", True), ("counter_examples", False))
    }


def _row_text(row: Mapping[str, Any]) -> str:
    lines = [f"{row['name']} ({row['stage']})", f"  where        {row['where']}"]
    lines += [f"  yields       {row['yields']}", f"  outranked by {row['outranked_by']}"]
    lines += [f"  pattern      {line}" for line in row["pattern"]]
    for kind, label in (("examples", "example"), ("counter_examples", "unlike")):
        for example in row[kind]:
            read = "nothing" if example["reads"] is None else example["reads"]
            lines.append(f"  {label:<12} {example['reply']!r} -> {read} [{example['source']}]")
    return "\n".join(lines)


@cache
def words(name: str) -> tuple[str, ...]:
    """Return the words of a list, in all languages."""
    return tuple(word for words in word_lists()[name].values() for word in words)


@cache
def word_lists() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """Return the lists of words by name and language; `list_example` has their examples."""
    return {
        name: {language: words for language, words in row.items() if language != "example"}
        for name, row in _table("words.toml").items()
    }


def list_example(name: str) -> str:
    """Return a sentence that holds a word of the list."""
    return _table("words.toml")[name]["example"]


@cache
def pattern(name: str, letters: str = "") -> re.Pattern[str]:
    """Return a rule's pattern, @ being one of the letters."""
    rule = rules()[name]
    text = expanded("".join(rule.pattern))
    flags = f"(?{rule.flags})" if rule.flags else ""
    return re.compile(flags + (text.replace("@", f"[{letters}]") if letters else text))


def expanded(text: str) -> str:
    """Return a pattern with parts and lists of words in place of their names."""
    parts: Mapping[str, Sequence[str]] = _table("rules.toml")["parts"]

    def part(name: re.Match[str]) -> str:
        if name[1] in parts:
            return f"(?:{expanded(''.join(parts[name[1]]))})"
        return f"(?:{'|'.join(map(_word, sorted(words(name[1]), key=len, reverse=True)))})"

    return _NAME.sub(part, text)


def _word(word: str) -> str:
    plain = re.escape(word).replace("\\ ", r"\s+").replace("'", "['\u2019]")
    return plain.removesuffix(r"\*") + r"\w*" if word.endswith("*") else plain


@cache
def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))
