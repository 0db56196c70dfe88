"""The tests, in folders that mirror the packages; helpers stand where they are shared."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
"""The checkout."""
