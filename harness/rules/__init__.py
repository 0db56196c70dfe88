"""The rules that find the answer in a reply: rules.toml, with the lists of words in words.toml.

`podium suites SUITE --rules` prints these rules. For each rule examples.toml has three replies that
it decides and three that it must not match, each with its source; tests read all of them.
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
"""Names of the rules that find an answer; other rules reject, withdraw or read a found answer."""
STAGES = ("find", "drop", "withdraw", "conclude", "value")
SOON_SEARCHED = 40  # characters; in shorter texts matching is faster than checking `needs`
_NAME = re.compile(r"\{([A-Z][A-Z_]+)\}")


@dataclass(frozen=True, slots=True)
class ReadingRule:
    """A rule that finds, rejects or reads the answer in a reply: a table of rules.toml."""

    name: str
    stage: str
    where: str
    yields: str
    outranked_by: str
    """What has precedence over the rule, in words; names of other rules are in backticks."""
    pattern: tuple[str, ...]
    flags: str = ""
    needs: tuple[str, ...] = ()
    """Texts in lower case; the pattern is tried only if one of them is in the reply."""


@dataclass(frozen=True, slots=True)
class RuleExample:
    """An example reply for a rule, the answer that is read in it, and the reply's source."""

    rule: str
    decides: bool
    """True if the rule must decide the example; False for a counter-example."""
    suite: str
    reply: str
    reads: str | None
    source: str
    choices: tuple[str, ...] = ()
    letter: bool = False
    """True if the example's correct answer is the letter of one of up to 16 options."""


@cache
def rules() -> Mapping[str, ReadingRule]:
    """Return every rule of rules.toml by name, in the order of the stages of reading."""
    rows = dict(_table("rules.toml"))
    by_stage = rows.pop("outranked_by")
    return {
        name: ReadingRule(name, **{"outranked_by": by_stage[row["stage"]]} | _frozen(row))
        for name, row in rows.items()
        if name != "parts"
    }


def _frozen(row: dict[str, Any]) -> dict[str, Any]:
    lists = {key: tuple(row[key]) for key in ("pattern", "choices") if key in row}
    return {**row, **lists, **({"needs": _needed(row["needs"])} if "needs" in row else {})}


def _needed(needs: Sequence[str]) -> tuple[str, ...]:
    """Return the texts of which a reply must contain one: `needs`, with its word lists expanded.

    A listed word of several parts is replaced by its longest part.
    """
    texts: dict[str, None] = {}
    for need in needs:
        listed = words(need[1:-1]) if need[0] == "{" else ()
        stems = [max(re.split(r"[\s'*]+", word.lower()), key=len) for word in listed]
        texts |= dict.fromkeys(stems or [need])
    return tuple(text for text in texts if sum(shorter in text for shorter in texts) == 1)


@cache
def rule_examples() -> Sequence[RuleExample]:
    """Return the examples and counter-examples of all rules, from examples.toml."""
    rows: list[dict[str, Any]] = _table("examples.toml")["example"]
    none: dict[str, Any] = {"reads": None}
    return [RuleExample(**none | _frozen(row)) for row in rows]


def rule_table() -> tuple[list[dict[str, Any]], str]:
    """Return every rule of rules.toml with its examples, as plain values and as a text."""
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
    """Return the words of one list in words.toml, in all languages."""
    languages = _table("words.toml")[name].items()
    return tuple(word for key, listed in languages if key != "example" for word in listed)


def word_examples() -> Mapping[str, str]:
    """Return, for each list of words by name, a sentence that contains one of its words."""
    return {name: row["example"] for name, row in _table("words.toml").items()}


@cache
def pattern(name: str, letters: str = "") -> re.Pattern[str]:
    """Return a rule's pattern; each character @ in the rule stands for one of `letters`."""
    rule = rules()[name]
    text = expanded("".join(rule.pattern))
    flags = f"(?{rule.flags})" if rule.flags else ""
    return re.compile(flags + (text.replace("@", f"[{letters}]") if letters else text))


class _Compiled(dict[str, re.Pattern[str]]):
    def __missing__(self, name: str) -> re.Pattern[str]:
        self[name] = pattern(name)
        return self[name]


RULE: Mapping[str, re.Pattern[str]] = _Compiled()
"""Rule's name -> its pattern, compiled when it is first used."""


def may_match(name: str, small: str) -> bool:
    """Return whether a lower-case text may match a rule: it is short, or has one of the `needs`."""
    if len(small) < SOON_SEARCHED:
        return True
    for need in rules()[name].needs:  # noqa: SIM110 - `any` takes twice as long
        if need in small:
            return True
    return False


def search(name: str, text: str) -> re.Match[str] | None:
    """Return the first match of a rule in a text, None without one; the rule must have `needs`."""
    return RULE[name].search(text) if may_match(name, text.lower()) else None


def expanded(text: str) -> str:
    """Return a pattern, its `{NAME}`s replaced by fragments of rules.toml or by lists of words."""
    fragments: Mapping[str, Sequence[str]] = _table("rules.toml")["parts"]

    def part(name: re.Match[str]) -> str:
        if name[1] in fragments:
            return f"(?:{expanded(''.join(fragments[name[1]]))})"
        return f"(?:{'|'.join(map(_word, sorted(words(name[1]), key=len, reverse=True)))})"

    return _NAME.sub(part, text)


def _word(word: str) -> str:
    plain = re.escape(word).replace("\\ ", r"\s+").replace("'", "['\u2019]")
    return plain.removesuffix(r"\*") + r"\w*" if word.endswith("*") else plain


@cache
def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / name).read_text(encoding="utf-8"))
