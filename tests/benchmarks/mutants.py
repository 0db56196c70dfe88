"""Measure whether tests notice mutants of a module, sampled by seed: operators are cosmic-ray's.

    pip install cosmic-ray==8.7.0
    python -m tests.benchmarks.mutants harness/prices/cost.py --tests tests/harness/prices

A mutant is killed if a test fails or takes five times as long as all tests of the unchanged module.
Mutants of annotations, and those that cannot be imported, do not count. Survivors are printed with
their line; whether one of them changes anything is for the reader to say.
"""

import argparse
import ast
import importlib.abc
import importlib.machinery
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import ROOT

WARM = ("inspect_ai.model", "inspect_ai.scorer", "pandas", "hypothesis", "numpy")
"""Slow imports that no mutant changes; each test run is forked from a process that has them."""
SLOWER = 5
"""Times the seconds of the unchanged module after which a mutant counts as killed."""
IMPORT_FAILED = 99
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-m", "not slow")
OPTIONS += ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # of what is imported already


class Mutant(NamedTuple):
    """A changed source, and the lines that differ."""

    path: Path
    operator: str
    source: str
    change: str


class _Mutated(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Loads one module from a changed source, under the package's names."""

    def __init__(self, mutant: Mutant) -> None:
        self.source = mutant.source.encode()
        self.file = str(ROOT / mutant.path)
        self.module = f"podium.{'.'.join(mutant.path.with_suffix('').parts)}"

    def find_spec(self, name: str, *rest: Any) -> importlib.machinery.ModuleSpec | None:
        if name != self.module:
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=self.file)

    def get_filename(self, fullname: str) -> str:
        return self.file

    def get_data(self, path: str | bytes) -> bytes:
        return self.source


def code_of(source: str) -> str:
    """Return what a source does: its syntax tree without annotations."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for field in ("annotation", "returns"):
            if hasattr(node, field):
                setattr(node, field, None)
    return ast.dump(tree)


def sampled(paths: Sequence[Path], count: int, seed: int) -> tuple[list[Mutant], int]:
    """Return mutants of modules that differ in more than annotations, and how many could be made.

    At most `count`, drawn by `seed` from all places that an operator can change.
    """
    plugins: Any = import_module("cosmic_ray.plugins")
    trees: Any = import_module("cosmic_ray.ast")
    mutate: Any = import_module("cosmic_ray.mutating").mutate_code
    places = list[tuple[Path, str, int]]()
    sources = {path: (ROOT / path).read_text() for path in paths}
    code = {path: code_of(source) for path, source in sources.items()}
    for path, source in sources.items():
        nodes = list(trees.ast_nodes(trees.get_ast(source)))
        for name in plugins.operator_names():
            operator = plugins.get_operator(name)
            if not operator.arguments():
                changes = sum(len(list(operator().mutation_positions(node))) for node in nodes)
                places += [(path, name, number) for number in range(changes)]
    random.Random(seed).shuffle(places)
    mutants = list[Mutant]()
    for path, name, number in places:
        source = sources[path]
        changed = mutate(source, plugins.get_operator(name)(), number)
        with suppress(SyntaxError):
            if changed and code_of(changed) != code[path]:
                change = _change(source, changed)
                mutants.append(Mutant(path, name.removeprefix("core/"), changed, change))
        if len(mutants) == count:
            break
    return mutants, len(places)


def _change(old: str, new: str) -> str:
    pairs = enumerate(zip(old.splitlines(), new.splitlines(), strict=False), 1)
    differing = [(number, a, b) for number, (a, b) in pairs if a != b]
    number, before, after = differing[0] if differing else (0, "", "lines were removed")
    return f"{number}: {before.strip()}  =>  {after.strip()}"


def begin(mutant: Mutant | None, tests: Sequence[str]) -> int:
    """Fork a process that runs tests, on a mutant if there is one; return its id."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    code = IMPORT_FAILED
    with suppress(BaseException):
        if mutant:
            silent = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silent, 1)
            os.dup2(silent, 2)
            finder = _Mutated(mutant)
            sys.meta_path.insert(0, finder)
            import_module(finder.module)
        code = pytest.main([*OPTIONS, *tests])
    os._exit(int(code))


def judged(
    mutants: Sequence[Mutant], tests: Sequence[str], jobs: int, limit: float
) -> Iterator[tuple[Mutant, str]]:
    """Yield each mutant with `killed`, `survived` or `not importable`, as tests end."""
    waiting, running = list(reversed(mutants)), dict[int, tuple[Mutant, float]]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            running[begin(mutant, tests)] = (mutant, time.monotonic())
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended in running:
            mutant, _ = running.pop(ended)
            code = os.waitstatus_to_exitcode(status)
            yield mutant, {0: "survived", IMPORT_FAILED: "not importable"}.get(code, "killed")
            continue
        for process, (_, began) in running.items():
            if time.monotonic() - began > limit:
                with suppress(ProcessLookupError):
                    os.killpg(process, signal.SIGKILL)
        time.sleep(0.05)


def main() -> None:
    """Judge a sample of mutants of modules, and print the survivors and the share killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="+", type=Path, help="files, relative to the repository")
    parser.add_argument("--tests", nargs="+", required=True, help="tests that should kill mutants")
    parser.add_argument("--count", type=int, default=300, help="mutants in the sample (300)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the sample (0)")
    parser.add_argument("--jobs", type=int, default=2, help="concurrent test runs (2)")
    given = parser.parse_args()
    sample, places = sampled(given.modules, given.count, given.seed)
    for name in WARM:
        import_module(name)
    began = time.monotonic()
    _, status = os.waitpid(begin(None, given.tests), 0)
    if status:
        sys.exit("The tests fail on the unchanged modules.")
    limit = SLOWER * (time.monotonic() - began) + SLOWER
    counts = Counter[str]()
    for mutant, outcome in judged(sample, given.tests, given.jobs, limit):
        counts[outcome] += 1
        if outcome == "survived":
            sys.stdout.write(f"{mutant.path}:{mutant.change}  ({mutant.operator})\n")
            sys.stdout.flush()
    judged_count = counts["killed"] + counts["survived"]
    share = 100 * counts["killed"] / max(judged_count, 1)
    names = ", ".join(map(str, given.modules))
    sys.stdout.write(
        f"{names}: {counts['killed']} of {judged_count} mutants killed ({share:.1f} %), "
        f"{counts['not importable']} not importable; sampled from {places} places.\n"
    )


if __name__ == "__main__":
    main()
