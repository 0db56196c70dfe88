"""Text for output: counts with nouns, aligned columns, and escaping of untrusted text."""

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
"""Minimum line width, in characters; a narrower terminal wraps the lines itself."""
GAP = 2  # spaces between two columns
UNSAFE = re.compile(r"[^\w.-]+")
"""Characters in a name that `safe_name` replaces by `_`."""


def terminal_width() -> int | None:
    """Return the maximum line width, by COLUMNS or the terminal; None in files and pipes."""
    width = get_terminal_size((0, 0)).columns
    return max(width, NARROWEST) if width else None


def columns(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as aligned columns that fit the terminal; the last column is not padded."""
    return "\n".join(line for row in folded((heads, *rows)) for line in row)


def folded(rows: Sequence[Sequence[str]], indent: int = 0) -> list[list[str]]:
    """Return each row's lines: cells are folded if the rows are wider than the terminal."""
    width = terminal_width()
    room = _cell_widths(rows, width - indent) if width else [sys.maxsize for _ in rows[0]]
    cells = [[_folded(*cell) for cell in zip(row, room, strict=True)] for row in rows]
    lines = [[*zip_longest(*row, fillvalue="")] for row in cells]
    text = iter(aligned([line for row in lines for line in row], n_left=len(room)))
    return [[next(text) for _ in row] for row in lines]


_JOINT = re.compile(r"\s+|(?<=[-/_=:])(?=\w)")
"""Positions at which a word that is longer than its column may be broken."""


def _folded(cell: str, width: int) -> list[str]:
    lines = list[str]()
    for word in cell.split():
        lines.append("")
        for piece in _JOINT.split(word) if len(word) > width else [word]:
            lines += [piece] if len(lines[-1] + piece) > width else [lines.pop() + piece]
    return wrap(" ".join(lines), width, break_on_hyphens=False) or [""]


def _cell_widths(rows: Sequence[Sequence[str]], room: int) -> list[int]:
    """Return column widths that fit: the widest shrink first; words are broken as a last resort."""
    texts = [" ".join(column) for column in zip(*rows, strict=True)]
    words = [max(map(len, text.split(" "))) for text in texts]
    pieces = [words[0], *(max(map(len, _JOINT.split(text))) for text in texts[1:])]
    full = [max(1, *map(len, column)) for column in zip(*rows, strict=True)]
    letters = [words[0], *(1 for _ in words[1:])]
    for least, upper in ((words, full), (pieces, words), (letters, words)):
        for cap in range(max(upper), 0, -1):
            pairs = zip(least, upper, strict=True)
            widths = [min(width, max(cap, low)) for low, width in pairs]
            if sum(widths) + GAP * (len(widths) - 1) <= room:
                return widths
    return words


def fitted_text(text: str) -> str:
    """Return a text whose lines fit the terminal: longer lines are wrapped and indented."""
    width = terminal_width() or sys.maxsize
    lines = text.split("\n")
    return "\n".join(piece for line in lines for piece in _wrapped(line, width))


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


def aligned(rows: Sequence[Sequence[str]], n_left: int = 1) -> list[str]:
    """Return lines of padded columns: the first `n_left` columns left-aligned, others right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.ljust(width) if index < n_left else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def records(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return rows as records for `--json`, with keys from the heads of the columns.

    >>> records(("book", "prices of"), [("none", "undated")])
    [{'book': 'none', 'prices_of': 'undated'}]
    """
    names = [re.sub(r"\W+", "_", head) for head in heads]
    return [dict(zip(names, row, strict=True)) for row in rows]


DEEPEST = 200  # Maximum levels of a reply that are read; pydantic writes at most 255


def first_line(error: object) -> str:
    r"""Return the first line of an error's message, or of any text; empty if it has none.

    >>> first_line(ValueError("\nno such file\nat line 3"))
    'no such file'
    """
    return next(iter(str(error).strip().splitlines()), "")


def storable(text: str) -> str:
    r"""Return a text that UTF-8 can encode: each lone surrogate as its six-character escape.

    A reply is converted before its first use, so that systems and Inspect's log get one text.

    >>> storable("half a \ud83d")
    'half a \\ud83d'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def make_storable(value: Any, depth: int = 0) -> Any:
    """Return JSON whose texts and keys UTF-8 can encode; change pydantic models in place."""
    if isinstance(value, str):
        return storable(value)
    if depth > DEEPEST:
        return value
    again = partial(make_storable, depth=depth + 1)
    if isinstance(value, BaseModel):
        if not _has_utf8(value):  # rare
            vars(value).update(again(dict(vars(value))))
        return value
    if isinstance(value, Mapping):
        members = cast(Mapping[Any, Any], value).items()
        return {again(name): again(member) for name, member in members}
    if isinstance(value, list):
        return [again(item) for item in cast(list[Any], value)]
    return value


def _has_utf8(value: BaseModel) -> bool:
    try:
        type(value).__pydantic_serializer__.to_json(value)
    except ValueError:
        return False
    return True


def pluralise(count: int, noun: str) -> str:
    """Return a count with its noun, in the plural unless it is 1.

    >>> pluralise(1, "system run"), pluralise(1200, "system run")
    ('1 system run', '1,200 system runs')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def format_range(span: tuple[int, int] | None) -> str:
    """Return a range (least, most) in figures; empty for None.

    >>> format_range((8, 8)), format_range((1, 5)), format_range(None)
    ('8', '1-5', '')
    """
    return "-".join(str(count) for count in dict.fromkeys(span or ()))


_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that change the direction of text
    "\u00ad\u180e\u200b-\u200d\u2060-\u2064\U000e0000-\U000e007f"  # characters without width
    "\u2028\u2029\ufeff"
    "\ud800-\udfff]"  # halves of characters, which no stream can encode
)
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_SCHEME = re.compile(r"\]\((?=\s*(?:javascript|data|vbscript)\s*:)", re.IGNORECASE)


def escape_controls(text: str) -> str:
    r"""Return a text with the control characters of terminals escaped as in JSON.

    >>> escape_controls("red \x1b[31m, bell \x07")
    'red \\u001b[31m, bell \\u0007'
    """
    plain = text.replace("\r\n", "\n")
    return _UNSEEN.sub(_spelt, plain)


def _spelt(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def escape_markdown(text: str) -> str:
    """Return Markdown with HTML tags, entities and script links escaped.

    >>> escape_markdown("p <0.01 <script>alert(1)</script>")
    'p <0.01 &lt;script>alert(1)&lt;/script>'
    """
    plain = _TAG.sub("&lt;", _ENTITY.sub("&amp;", escape_controls(text)))
    return _SCHEME.sub(r"]\\(", plain)


def markdown_cell(text: str) -> str:
    """Return a text as one cell of a Markdown table: on one line, with bars escaped."""
    return " ".join(text.split("\n")).replace("|", "\\|")


FORMULA = tuple("=+-@\t\n\r\uff1d\uff0b\uff0d\uff20")  # the last four: full-width
NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


def csv_line(values: Iterable[Any]) -> str:
    """Return a line of a CSV file, without its newline; spreadsheets run no text as a formula."""
    line = StringIO(newline="")
    csv.writer(line, lineterminator="").writerow(map(spreadsheet_safe, values))
    return line.getvalue()


def spreadsheet_safe(value: Any) -> Any:
    """Return a CSV cell; a text that a spreadsheet would run as a formula gets a leading quote."""
    # Texts come from models. Numbers stay unchanged, also those written as text.
    if not isinstance(value, str):
        return value
    formula = value.startswith(FORMULA) and not NUMBER.fullmatch(value)
    return escape_controls(f"'{value}" if formula else value)


def say(*texts: object, file: IO[str] | None = None, end: str = "\n", flush: bool = False) -> None:
    """Print like `print`, without API keys; control and unencodable characters are escaped."""
    stream = file or sys.stdout
    if stream is None:  # pyright: ignore[reportUnnecessaryComparison]: a closed stdout (`>&-`)
        return
    line = escape_controls(without_keys(" ".join(map(str, texts)) + end))
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(line.encode(encoding, "backslashreplace").decode(encoding))
    if flush:
        stream.flush()


def safe_name(name: str) -> str:
    """Return a name that may be part of any path: `single:sage` becomes `single_sage`."""
    return UNSAFE.sub("_", name).strip(". ") or "_"
