"""What others wrote, made harmless where it is shown: on a terminal, and in Markdown.

A log header, a price book or a model's reply may hold bytes that move a terminal's cursor, ring its
bell or set its title, marks that turn the direction of text, and HTML. `say` is the only way in
which a command prints, and `markdown` cleans whatever goes into an `.md` file. Files of data (CSV,
JSON, Parquet) keep texts as they are: what reads them must not lose a character.
"""

import argparse
import re
import sys
from typing import IO, Any, NoReturn

from harness.api_keys import without_keys

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # marks that turn the direction of text
    "\u2028\u2029\ufeff"
    "\ud800-\udfff]"  # halves of characters, which no stream can encode
)
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_ENTITY = re.compile(r"&(?=#?\w+;)")
_SCHEME = re.compile(r"\]\((?=\s*(?:javascript|data|vbscript)\s*:)", re.IGNORECASE)


def visible(text: str) -> str:
    r"""Return a text in which what would steer a terminal stands as JSON writes it.

    >>> visible("red \x1b[31m, bell \x07")
    'red \\u001b[31m, bell \\u0007'
    """
    return _UNSEEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text.replace("\r\n", "\n"))


def markdown(text: str) -> str:
    """Return Markdown in which no tag, entity or link of another's begins.

    >>> markdown("p <0.01 <script>alert(1)</script>")
    'p <0.01 &lt;script>alert(1)&lt;/script>'
    """
    plain = _TAG.sub("&lt;", _ENTITY.sub("&amp;", visible(text)))
    return _SCHEME.sub(r"]\\(", plain)


def cell(text: str) -> str:
    """Return a text as one cell of a Markdown table: on one line, without a bar that ends it.

    The table, or the whole file that it stands in, goes through `markdown`, once.
    """
    return " ".join(text.split("\n")).replace("|", "\\|")


def say(*texts: object, file: IO[str] | None = None, end: str = "\n", flush: bool = False) -> None:
    """Print texts as `print` does, made visible and without keys.

    What a stream cannot encode is spelt out.
    """
    stream = file or sys.stdout
    line = visible(without_keys(" ".join(map(str, texts)) + end))
    encoding = getattr(stream, "encoding", None) or "utf-8"
    stream.write(line.encode(encoding, "backslashreplace").decode(encoding))
    if flush:
        stream.flush()


class Parser(argparse.ArgumentParser):
    """A parser that refuses in one sentence; what it quotes of what was typed is made visible."""

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one sentence, in place of the whole usage."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help.\n")

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            say(message, file=file or sys.stderr, end="")
