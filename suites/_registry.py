"""What `pip install podium` adds to Inspect: the tasks and the provider of practice workers."""

from inspect_ai.model import ModelAPI, modelapi

from harness.cassette import IMPORTERS
from suites.aime25 import SATURN, saturn_cassette
from suites.aime25 import aime25 as aime25
from suites.bigcodebench import bigcodebench as bigcodebench
from suites.gpqa_diamond import gpqa_diamond as gpqa_diamond
from suites.humaneval import humaneval as humaneval
from suites.livecodebench import livecodebench as livecodebench
from suites.math500 import math500 as math500
from suites.math500 import math500_all as math500_all
from suites.mbpp import mbpp as mbpp
from suites.mmlu import mmlu as mmlu
from suites.practice.choice import practice_choice as practice_choice
from suites.practice.composed import practice_composed as practice_composed
from suites.practice.deep import practice_deep as practice_deep
from suites.practice.integer import practice_integer as practice_integer
from suites.practice.programs import practice_code as practice_code
from suites.rlpr import rlpr as rlpr
from suites.rlpr import rlpr_rules as rlpr_rules

IMPORTERS[SATURN] = saturn_cassette


@modelapi(name="rehearsal")
def rehearsal() -> type[ModelAPI]:
    """Return the provider of rehearsal workers (suites/practice/workers)."""
    from suites.practice.workers.provider import RehearsalAPI

    return RehearsalAPI
