"""Entry point that Inspect loads: podium's Inspect tasks, and the model provider `rehearsal`."""

from inspect_ai.model import ModelAPI, modelapi

from podium.harness.cassette import IMPORTERS
from podium.suites.aime25 import SATURN, saturn_cassette
from podium.suites.aime25 import aime25 as aime25
from podium.suites.bigcodebench import bigcodebench as bigcodebench
from podium.suites.gpqa_diamond import gpqa_diamond as gpqa_diamond
from podium.suites.humaneval import humaneval as humaneval
from podium.suites.livecodebench import livecodebench as livecodebench
from podium.suites.math500 import math500 as math500
from podium.suites.math500 import math500_all as math500_all
from podium.suites.mbpp import mbpp as mbpp
from podium.suites.mmlu import mmlu as mmlu
from podium.suites.practice.choice import practice_choice as practice_choice
from podium.suites.practice.composed import practice_composed as practice_composed
from podium.suites.practice.deep import practice_deep as practice_deep
from podium.suites.practice.integer import practice_integer as practice_integer
from podium.suites.practice.programs import practice_code as practice_code
from podium.suites.rlpr import rlpr as rlpr
from podium.suites.rlpr import rlpr_rules as rlpr_rules

IMPORTERS[SATURN] = saturn_cassette


@modelapi(name="rehearsal")
def rehearsal() -> type[ModelAPI]:
    """Return the ModelAPI class of the practice workers: small programs, no real models."""
    from podium.suites.practice.workers.provider import RehearsalAPI

    return RehearsalAPI
