"""`python -m podium`: the same as the command `podium`, which begins here too."""

import sys

from podium.cli import main

if __name__ == "__main__":
    sys.exit(main())
