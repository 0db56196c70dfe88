"""Read mutated plans and print every event that Python audits meanwhile (test_reader_fuzz.py).

Executing, importing, opening, calling out are such events. Compiling is one too: `ast.literal_eval`
compiles to a syntax tree and nothing more, so what it is given must be a bounded literal.
"""

import re
import sys

from podium.conductor.parse import MAX_LIST
from tests.conductor.fuzz_readers import fuzz

LITERAL = re.compile(
    r"""(?:[\s,\[\]] | -?\d+ | \#[^\n]*
    | \"{3}(?:\\.|[^\\])*?\"{3} | '{3}(?:\\.|[^\\])*?'{3}
    | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*')+""",
    re.S | re.X,
)
SEEN: set[str] = set()


def watch(event: str, args: tuple[object, ...]) -> None:
    """Note one audited event."""
    source = args[0] if event == "compile" else None
    if isinstance(source, bytes):
        source = source.decode()
    bounded = isinstance(source, str) and len(source) <= 2 * MAX_LIST
    SEEN.add("a literal" if bounded and LITERAL.fullmatch(str(source)) else f"{event} {args!r:.99}")


if __name__ == "__main__":
    fuzz(500)  # what a first use imports is there now
    sys.addaudithook(watch)
    fuzz(int(sys.argv[1]), seed=7)
    sys.stdout.write("\n".join(sorted(SEEN)))
