"""`python -m podium`: the same as the command `podium`."""

import sys

from podium.cli import main

if __name__ == "__main__":
    sys.exit(main())
