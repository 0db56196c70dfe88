"""Keep the pages' tables what the demo prints: `python tests/readme_demo.py DIR [--write]`.

Without `--write` it compares and exits with 1 on a difference. docs/quickstart.md shows two blocks
whole; README shows of one the five most accurate rows and the reference, in the order in which they
are printed.
"""

import argparse
import shutil
import sys
from pathlib import Path

from podium.reports.report import write_report

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
QUICKSTART = ROOT / "docs" / "quickstart.md"
PICTURE = ROOT / "reports" / "demo.png"
START, END = "<!-- demo-table:start -->\n", "<!-- demo-table:end -->"
SHOWN = ("aime25", "practice-composed")
TOP = 5


def shown_blocks(text: str) -> str:
    """Return the blocks of the printed table that the quickstart shows."""
    blocks = [block for block in text.split("\n\n") if _is_shown(block)]
    return "\n\n".join(blocks)


def _is_shown(block: str) -> bool:
    """Say whether a block is of a suite that is shown; its headline stands before its name."""
    return any(line.startswith(SHOWN) for line in block.splitlines())


def six_rows(blocks: str) -> str:
    """Return the head of the last block, its first five rows and the reference, else its sixth."""
    lines = blocks.split("\n\n")[-1].splitlines()
    first = next(at for at, line in enumerate(lines, 1) if line.startswith("system "))
    head, rows = lines[:first], lines[first:]
    others = rows[TOP:]
    reference = next((row for row in others if " reference " in row), others[0])
    return "\n".join([*head, *rows[:TOP], reference])


def parted(page: Path) -> tuple[str, str, str]:
    """Return what stands before a page's table, the table, and what stands after it."""
    before, rest = page.read_text().split(START)
    block, after = rest.split(END)
    return before, block.strip().removeprefix("```text\n").removesuffix("\n```"), after


def holds(page: Path, printed: str) -> bool:
    """Return whether a page shows a table; say so where it shows another."""
    stands = parted(page)[1]
    if "\n\n" in stands and "aime25" not in printed:  # the demo leaves it out without its data
        stands = stands[stands.index("\n\n") + 2 :]
    if stands == printed:
        print(f"{page.name} shows what the demo prints.")
        return True
    print(f"{page.name} shows another table than the demo prints:\n{printed}", file=sys.stderr)
    return False


def main() -> int:
    """Compare or rewrite the blocks; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("demo", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    dirs = [asked.demo / name for name in ("practice", "aime25") if (asked.demo / name).is_dir()]
    printed = shown_blocks(write_report(dirs, asked.demo / "report").text)
    tables = {README: six_rows(printed), QUICKSTART: printed}
    if asked.write:
        for page, table in tables.items():
            before, _, after = parted(page)
            page.write_text(f"{before}{START}```text\n{table}\n```\n{END}{after}")
        shutil.copy(asked.demo / "report" / "plot.png", PICTURE)
        return 0
    wrong = [page for page, table in tables.items() if not holds(page, table)]
    if not wrong:
        return 0
    print(f"Rewrite it: python tests/readme_demo.py {asked.demo} --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
