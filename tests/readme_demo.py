"""Keep the README's table what the demo prints: `python tests/readme_demo.py DIR [--write]`.

Without `--write` it compares and exits with 1 on a difference. The last column (seconds) is not
compared, because it is the machine's. Only some blocks stand in the README; the demo prints all.
"""

import argparse
import shutil
import sys
from pathlib import Path

from reports.report import write_report

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "reports" / "demo.png"
START, END = "<!-- demo-table:start -->\n", "<!-- demo-table:end -->"
SHOWN = ("aime25", "practice-composed")


def shown_blocks(text: str) -> str:
    """Return the blocks of the printed table that the README shows."""
    blocks = [block for block in text.split("\n\n") if block.startswith(SHOWN)]
    return "\n\n".join(blocks)


def without_seconds(block: str) -> list[list[str]]:
    """Return the cells of each line, the last one left out."""
    return [line.split()[:-1] for line in block.splitlines()]


def main() -> int:
    """Compare or rewrite the block; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("demo", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    dirs = [asked.demo / name for name in ("practice", "aime25") if (asked.demo / name).is_dir()]
    printed = shown_blocks(write_report(dirs, asked.demo / "report").text)
    readme = README.read_text()
    before, rest = readme.split(START)
    block, after = rest.split(END)
    if asked.write:
        README.write_text(f"{before}{START}```text\n{printed}\n```\n{END}{after}")
        shutil.copy(asked.demo / "report" / "plot.png", PICTURE)
        return 0
    stands = block.strip().removeprefix("```text\n").removesuffix("\n```")
    if "aime25" not in printed:  # without the recorded data the demo leaves that block out
        stands = stands[stands.index("\n\n") + 2 :]
    if without_seconds(stands) == without_seconds(printed):
        print("The README shows what the demo prints.")
        return 0
    print(f"README.md shows another table than the demo prints:\n{printed}", file=sys.stderr)
    print(f"Rewrite it: python tests/readme_demo.py {asked.demo} --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
