"""Systems to compare a learned conductor with: alternatives to it, and controls.

Belongs here: systems that plan by a person's rule, a router, a search or a framework, each a
`System` and an Inspect solver. Elsewhere: plans written by a model (conductor/), suites (suites/).
To add one, read `single.py` and `voting.py`, and add its card to `SYSTEMS`.
"""

from collections.abc import Mapping

from podium.baselines import (
    ab_mcts,
    by_tests,
    cascade,
    controls,
    frameworks,
    loopers,
    mas_router,
    mixture,
    oracle,
    rules_planner,
    single,
    template_router,
    trinity,
    voting,
)
from podium.baselines.routers import router_systems, switchyard
from podium.harness.system import SystemCard

SYSTEMS: Mapping[str, SystemCard] = {
    manifest.name: manifest
    for manifest in (
        single.SINGLE,
        single.BEST_SINGLE,
        voting.SELF_CONSISTENCY,
        mixture.MOA_PAPER,
        mixture.MOA_LITE,
        mixture.MOA_3,
        mixture.SELF_MOA,
        loopers.FUSION,
        loopers.REMOM,
        loopers.CONFIDENCE,
        loopers.RATINGS,
        single.SELF_REFLECTION,
        single.LONG_CONTEXT,
        voting.BEST_OF_N,
        voting.DEBATE,
        by_tests.BEST_OF_N_TESTS,
        by_tests.RETRY,
        by_tests.WARMING,
        by_tests.ESCALATION,
        ab_mcts.AB_MCTS,
        frameworks.PLANNER_EXECUTOR_VERIFIER,
        *router_systems.ROUTER_CARDS,
        router_systems.ROUTER_LLM,
        switchyard.SWITCHYARD,
        voting.SMOOTHIE_GLOBAL,
        voting.SMOOTHIE_LOCAL,
        cascade.CASCADE,
        cascade.AUTOMIX,
        cascade.FRUGAL,
        mas_router.MAS_SAMPLE,
        mas_router.ROUTER_MAS,
        trinity.RANDOM_TRINITY,
        trinity.TRINITY,
        controls.RANDOM_WORKER,
        controls.RANDOM_WORKFLOW,
        template_router.TEMPLATE_ROUTER,
        rules_planner.RULES_PLANNER,
        controls.COMPUTE_MATCHED_USD,
        controls.COMPUTE_MATCHED_TOKENS,
        oracle.ORACLE,
        *frameworks.FRAMEWORKS.values(),
        frameworks.CREWAI,
    )
}
"""Maps each system's name to its card (a description), in the row order of tables. All single
workers share the card `single:<worker>`."""
