"""`python -m harness.cli`: the same as `podium`, for launchers that start a module."""

import sys

from harness.cli import main

if __name__ == "__main__":
    sys.exit(main())
