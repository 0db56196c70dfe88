"""What `pip install podium` adds to Inspect: the tasks, found through an entry point.

Inspect imports this file in every process, so what it imports stays light.
"""

from harness.cassette import IMPORTERS
from suites.aime25 import aime25
from suites.import_saturn import NAME, saturn_cassette

IMPORTERS[NAME] = saturn_cassette

__all__ = ["aime25"]
