"""What does `podium record --requests` make of each shape of a batch's row?

    PYTHONPATH=. python tests/benchmarks/batch_table.py

Each shape (tests/harness/batch_shapes.py) is a batch of its own, beside a plain row. `refused`: the
whole batch was refused, and the plain row with it. The rows are synthetic.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from tests.harness.batch_shapes import SHAPES, recorded


def main() -> None:
    """Print a row per shape: what is wanted, and what came of it."""
    for name, shape in SHAPES.items():
        with TemporaryDirectory() as folder:
            result = recorded(shape, Path(folder))
        print(f"| {name} | {shape.outcome} | {result.outcome} |")


if __name__ == "__main__":
    main()
