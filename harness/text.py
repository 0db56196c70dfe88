"""Text as others see it: counts in words, aligned columns, and what foreign text may not do."""

import csv
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from io import StringIO
from itertools import zip_longest
from shutil import get_terminal_size
from textwrap import wrap
from typing import IO, Any, cast

from pydantic import BaseModel

from podium.harness.api_keys import without_keys

NARROWEST = 80
"""Nothing is made narrower: a terminal below it wraps whole lines."""
GAP = 2  # spaces between two columns


def terminal_width() -> int | None:
    """Return how wide lines may be: COLUMNS, else the terminal's width; None in files and pipes."""
    width = get_terminal_size((0, 0)).columns
    return max(width, NARROWEST) if width else None


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns that fit the terminal; the last one is not padded."""
    return "\n".join(line for row in folded((heads, *rows)) for line in row)


def folded(rows: Sequence[Sequence[str]], indent: int = 0) -> list[list[str]]:
    """Return each row's lines: cells are folded where the rows would be wider than the terminal."""
    width = terminal_width()
    room = _cell_widths(rows, width - indent) if width else [sys.maxsize for _ in rows[0]]
    cells = [[_folded(*cell) for cell in zip(row, room, strict=True)] for row in rows]
    lines = [[*zip_longest(*row, fillvalue="")] for row in cells]
    text = iter(aligned([line for row in lines for line in row], left=len(room)))
    return [[next(text) for _ in row] for row in lines]


_JOINT = re.compile(r"\s+|(?<=[-/_=:])(?=\w)")
"""Where a text may be broken if a word is longer than its column."""


def _folded(cell: str, width: int) -> list[str]:
    parts = list[str]()
    for word in cell.split():
        parts.append("")
        for piece in _JOINT.split(word) if len(word) > width else [word]:
            parts += [piece] if len(parts[-1] + piece) > width else [parts.pop() + piece]
    return wrap(" ".join(parts), width, break_on_hyphens=False) or [""]


def _cell_widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return widths that fit: the widest columns give way first, and words are broken last."""
    texts = [" ".join(column) for column in zip(*rows, strict=True)]
    words = [max(map(len, text.split(" "))) for text in texts]
    pieces = [words[0], *(max(map(len, _JOINT.split(text))) for text in texts[1:])]
    whole = [max(1, *map(len, column)) for column in zip(*rows, strict=True)]
    letters = [words[0], *(1 for _ in words[1:])]
    for least, most in ((words, whole), (pieces, words), (letters, words)):
        for cap in range(max(most), 0, -1):
            pairs = zip(least, most, strict=True)
            widths = [min(width, max(cap, low)) for low, width in pairs]
            if sum(widths) + GAP * (len(widths) - 1) <= room:
                return widths
    return words


def fitted_text(text: str) -> str:
    """Return a text whose lines fit the terminal: longer ones go on below, further in."""
    width = terminal_width() or sys.maxsize
    lines = text.split("\n")
    return "\n".join(part for line in lines for part in _wrapped(line, width))


def _wrapped(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    begin = " " * (len(line) - len(line.lstrip()))
    return wrap(
        line.strip(),
        width,
        initial_indent=begin,
        subsequent_indent=f"{begin}  ",
        break_on_hyphens=False,
        break_long_words=False,
    )


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return text columns padded to one width each, the first `left` of them to the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.ljust(width) if at < left else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def records(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return rows as `--json` lists them: each a record by the heads of its columns.

    >>> records(("book", "prices of"), [("none", "undated")])
    [{'book': 'none', 'prices_of': 'undated'}]
    """
    names = [re.sub(r"\W+", "_", head) for head in heads]
    return [dict(zip(names, row, strict=True)) for row in rows]


DEEPEST = 200  # Levels of a reply that are looked at; pydantic writes no more than 255


def first_line(said: object) -> str:
    r"""Return the first line of what an error says, or of any text; empty where it says nothing.

    >>> first_line(ValueError("\nno such file\nat line 3"))
    'no such file'
    """
    return next(iter(str(said).strip().splitlines()), "")


def storable(text: str) -> str:
    r"""Return a text that UTF-8 can hold: each lone surrogate as its six-character escape.

    A reply is rewritten so once, before anybody uses it: Inspect's log has those six characters.

    >>> storable("half a \ud83d")
    'half a \\ud83d'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def make_storable(value: Any, depth: int = 0) -> Any:
    """Return JSON with storable texts and names; a pydantic model is changed in place."""
    if isinstance(value, str):
        return storable(value)
    if depth > DEEPEST:
        return value
    again = partial(make_storable, depth=depth + 1)
    if isinstance(value, BaseModel):
        if not _has_utf8(value):  # as nearly all have
            vars(value).update(again(dict(vars(value))))
        return value
    if isinstance(value, Mapping):
        found = cast(Mapping[Any, Any], value).items()
        return {again(name): again(one) for name, one in found}
    if isinstance(value, list):
        return [again(one) for one in cast(list[Any], value)]
    return value


def _has_utf8(value: BaseModel) -> bool:
    try:
        type(value).__pydantic_serializer__.to_json(value)
    except ValueError:
        return False
    return True


def pluralise(count: int, noun: str) -> str:
    """Return a count and what is counted.

    >>> pluralise(1, "system run"), pluralise(1200, "system run")
    ('1 system run', '1,200 system runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_range(span: tuple[int, int] | None) -> str:
    """Return a range in figures; empty where there is none.

    >>> format_range((8, 8)), format_range((1, 5)), format_range(None)
    ('8', '1-5', '')
    """
    return "-".join(str(count) for count in dict.fromkeys(span or ()))


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that turn the direction of text
    "\u00ad\u180e\u200b-\u200d\u2060-\u2064\U000e0000-\U000e007f"  # without width
    "\u2028\u2029\ufeff"
    "\ud800-\udfff]"  # halves of characters, which no stream can encode
)
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_SCHEME = re.compile(r"\]\((?=\s*(?:javascript|data|vbscript)\s*:)", re.IGNORECASE)


def escape_controls(text: str) -> str:
    r"""Return a text in which what would steer a terminal stands as JSON writes it.

    >>> escape_controls("red \x1b[31m, bell \x07")
    'red \\u001b[31m, bell \\u0007'
    """
    plain = text.replace("\r\n", "\n")
    return _UNSEEN.sub(_spelt, plain)


def _spelt(found: re.Match[str]) -> str:
    units = found.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def escape_markdown(text: str) -> str:
    """Return Markdown in which no tag, entity or link of another's begins.

    >>> escape_markdown("p <0.01 <script>alert(1)</script>")
    'p <0.01 &lt;script>alert(1)&lt;/script>'
    """
    plain = _TAG.sub("&lt;", _ENTITY.sub("&amp;", escape_controls(text)))
    return _SCHEME.sub(r"]\\(", plain)


def markdown_cell(text: str) -> str:
    """Return a text as one cell of a Markdown table: on one line, without a bar that ends it."""
    return " ".join(text.split("\n")).replace("|", "\\|")


FORMULA = tuple("=+-@\t\n\r\uff1d\uff0b\uff0d\uff20")  # the last four: of full width
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def csv_line(values: Iterable[Any]) -> str:
    """Return a line of a CSV file, without its end; no text in it is a spreadsheet's formula."""
    line = StringIO(newline="")
    csv.writer(line, lineterminator="").writerow(map(spreadsheet_safe, values))
    return line.getvalue()


def spreadsheet_safe(value: Any) -> Any:
    """Return a cell of a CSV file; what a spreadsheet would compute gets a quote before it."""
    # Texts come from models. Numbers stay as they are, decimals as text among them.
    if not isinstance(value, str):
        return value
    formula = value.startswith(FORMULA) and not NUMBER.fullmatch(value)
    return escape_controls(f"'{value}" if formula else value)


def say(*texts: object, file: IO[str] | None = None, end: str = "\n", flush: bool = False) -> None:
    """Print as `print` does, without keys; what steers or cannot be encoded is spelt out."""
    stream = file or sys.stdout
    line = escape_controls(without_keys(" ".join(map(str, texts)) + end))
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(line.encode(encoding, "backslashreplace").decode(encoding))
    if flush:
        stream.flush()
