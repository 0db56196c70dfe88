"""Attack the boxes named on the command line, or all, and print what became of each attack."""

# ruff: noqa: T201

import sys
from contextlib import ExitStack, closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from podium.sandbox import open_box
from tests.sandbox.attacks.strike import Struck, attacks, strike
from tests.sandbox.boxes import missing
from tests.sandbox.test_bwrap import OrdinaryBox

BOXES = ("docker", "docker:runsc", "bwrap")
ORDINARY = "bwrap, ordinary user"


def main() -> None:
    """Print the table, a row per attack, as it fills."""
    names = sys.argv[1:] or [*(one for one in BOXES if not missing(one)), ORDINARY]
    print("| attack | what it tries |", " | ".join(names), "|")
    print("|---|---|" + "---|" * len(names))
    with ExitStack() as stack:
        boxes = [OrdinaryBox(1) if one == ORDINARY else open_box(one, 1) for one in names]
        for box in boxes:
            stack.enter_context(closing(box))
        for attack in attacks():
            cells = [shown(strike(box, attack)) for box in boxes]
            print(f"| {attack.name} | {attack.tries} |", " | ".join(cells), "|", flush=True)


def shown(struck: Struck) -> str:
    """Return a cell of the table."""
    how = "**" + "; ".join(struck.faults) + "**" if struck.faults else struck.ended
    return f"{how}; cell replaced" if struck.replaced else how


if __name__ == "__main__":
    main()
