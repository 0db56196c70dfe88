"""The blocks of README and docs: what a reader may copy, and what is to be done with it here.

A comment stands above each block of commands or code: `<!-- run -->`, or `<!-- parse: WHY -->`
where it cannot run here. A block with a title is a file that the blocks below it use; the lines of
one marked `<!-- printed -->` are what those above it print, but for seconds in the last column.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

from tests import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(
    r"^ *(?:<!-- (?P<mark>[^\n]+) -->\n *)?"
    r'```(?P<language>\w+)(?: title="(?P<title>[^\n"]+)")?\n'
    r"(?P<text>.*?)^ *```$",
    re.MULTILINE | re.DOTALL,
)
_SNIPPET = re.compile(r"^--8<--\n(\S+)\n--8<--\n", re.MULTILINE)  # a file that mkdocs puts there
RUN = "run"
PARSE = "parse: "
PRINTED = "printed"


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a page."""

    language: str
    text: str
    title: str
    """The file that it is; empty for most."""
    mark: str
    """What the comment above it says; empty without one."""

    @property
    def runs(self) -> bool:
        return self.mark == RUN

    @property
    def commands(self) -> list[list[str]]:
        """Return the words of each command of a console block, without the shell's comments."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [shlex.split(line.removeprefix("$ "), comments=True) for line in lines]


def blocks(page: Path) -> Iterator[Block]:
    for found in _BLOCK.finditer(page.read_text()):
        parts = {name: text or "" for name, text in found.groupdict().items()}
        text = _SNIPPET.sub(lambda line: (ROOT / line[1]).read_text(), dedent(parts["text"]))
        yield Block(parts["language"], text, parts["title"], parts["mark"])


def cells(text: str) -> list[list[str]]:
    """Return the cells of each line but the last, which is the machine's."""
    return [line.split()[:-1] for line in text.splitlines()]
