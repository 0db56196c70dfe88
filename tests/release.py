"""Hold a tag against the version that pyproject.toml, CITATION.cff and CHANGELOG.md state.

python tests/release.py v0.2.0
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def versions() -> dict[str, str]:
    """Return the version by the file that states it; the changelog's is its newest dated one."""
    citation, changelog = ((ROOT / name).read_text() for name in ("CITATION.cff", "CHANGELOG.md"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cited, released = (
        re.search(pattern, text, re.MULTILINE)
        for pattern, text in (
            (r"^version: (\S+)$", citation),
            (r"^## (\d\S*) - \d{4}-\d\d-\d\d$", changelog),
        )
    )
    return {
        "pyproject.toml": project["version"],
        "CITATION.cff": cited[1] if cited else "none",
        "CHANGELOG.md": released[1] if released else "none",
    }


def main(tag: str) -> int:
    """Return 0 where the tag is the version of each file, else print those that differ."""
    wrong = {file: version for file, version in versions().items() if f"v{version}" != tag}
    for file, version in wrong.items():
        sys.stderr.write(f"{tag} is no release of {file}, which says {version}.\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
