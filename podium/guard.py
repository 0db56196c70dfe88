"""Our packages beside a user's own: `import podium` finds ours, whatever folders are on the path.

A notebook, a script and `python -c` look into their own folder first, and many a project has a
`suites/` or a `reports/` there. The folder that podium stands in answers for our names instead.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from os.path import realpath
from pathlib import Path
from types import ModuleType

NAMES = ("harness", "suites", "baselines", "conductor", "sandbox", "reports")
HOME = Path(realpath(__file__)).parent.parent


class PackageFinder:
    """A finder of Python's import system that answers for `NAMES` and for nothing else."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where a package of ours is; None for all others."""
        return PathFinder.find_spec(name, [str(HOME)]) if name in NAMES else None


def take_our_names() -> None:
    """Answer for our names from now on; ImportError where another package has one already."""
    for name in NAMES:
        ours = HOME / name / "__init__.py"
        module = sys.modules.get(name)
        if module is not None and (theirs := _file(module)) != ours:
            raise ImportError(
                f"Another package {name!r} is loaded already, {theirs}, and podium has one of its "
                f"own, {ours}: rename yours, or use podium in a process of its own."
            )
    if PackageFinder not in sys.meta_path:
        sys.meta_path.insert(0, PackageFinder)


def _file(module: ModuleType) -> Path:
    """Return the file of a module; the folder of a package that has none."""
    return Path(realpath(module.__file__ or next(iter(module.__path__))))
