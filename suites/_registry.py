"""What `pip install podium` adds to Inspect: the tasks, found through an entry point."""

from harness.cassette import IMPORTERS
from suites.aime25 import SATURN, aime25, saturn_cassette
from suites.bigcodebench import bigcodebench
from suites.gpqa_diamond import gpqa_diamond
from suites.humaneval import humaneval
from suites.livecodebench import livecodebench
from suites.math500 import math500, math500_all
from suites.mbpp import mbpp
from suites.mmlu import mmlu
from suites.practice.choice import practice_choice
from suites.practice.composed import practice_composed
from suites.practice.integer import practice_integer
from suites.practice.programs import practice_code
from suites.rlpr import rlpr, rlpr_rules

IMPORTERS[SATURN] = saturn_cassette

__all__ = [
    "aime25",
    "bigcodebench",
    "gpqa_diamond",
    "humaneval",
    "livecodebench",
    "math500",
    "math500_all",
    "mbpp",
    "mmlu",
    "practice_choice",
    "practice_code",
    "practice_composed",
    "practice_integer",
    "rlpr",
    "rlpr_rules",
]
