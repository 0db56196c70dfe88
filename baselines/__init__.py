"""What people use instead of a learned conductor, and the controls.

Belongs here: systems whose plan a rule of a person's, a router, a search or a framework makes, each
a `System` and an Inspect solver. Does not: plans written by a model (conductor/), suites (suites/).
To add one, read `single.py`, name its card in `SYSTEMS` and its solver in `_registry.py`.
"""

from collections.abc import Mapping

from baselines import (
    ab_mcts,
    by_tests,
    controls,
    debate,
    mixture,
    oracle,
    reflection,
    roles,
    single,
    template_router,
    voting,
)
from baselines.cascade import AUTOMIX, CASCADE, FRUGAL
from baselines.frameworks import CREWAI, FRAMEWORKS
from baselines.llm_router import ROUTER_LLM
from baselines.mas_router import MAS_SAMPLE, ROUTER_MAS
from baselines.routers.systems import ROUTER_CARDS as ROUTERS
from baselines.smoothie import SMOOTHIE_GLOBAL, SMOOTHIE_LOCAL
from baselines.trinity import RANDOM_TRINITY, TRINITY
from harness.system import SystemCard

# § Routers that spend calls at test time: they ask before, or after, they know whom to trust.
# §
# § Belongs here: Smoothie, cascades, a model as router, routers over collaboration modes,
# § TRINITY. Does
# § not: routers that choose from the question alone (baselines/routing/).
# §
# § Reading order: `hashing.py`, `smoothie.py`, `llm_router.py`; `accepting.py`, `cascade.py`
# § and its
# § training; `mas_space.py`, `mas_router.py`; `turns.py`, `trinity.py`,
# § `trinity_training.py`.


ADAPTIVE: tuple[SystemCard, ...] = (
    ROUTER_LLM,
    SMOOTHIE_GLOBAL,
    SMOOTHIE_LOCAL,
    CASCADE,
    AUTOMIX,
    FRUGAL,
    MAS_SAMPLE,
    ROUTER_MAS,
    RANDOM_TRINITY,
    TRINITY,
)
"""In the order in which tables list them."""


# § What people use instead of a learned conductor, and the controls.
# §
# § Belongs here: systems whose plan a rule of a person's, a router, a search or a framework
# § makes, each
# § a `System` and an Inspect solver. Does not: plans written by a model (conductor/), exams
# § (suites/),
# § running a plan (harness/execute.py), the rounds in which a system learns
# § (harness/learning/).
# §
# § Reading order: `single.py` (the smallest), `self_consistency.py` (votes), `mixture.py`
# § (published,
# § with a prompt of its own), `self_mixture.py`, `reflection.py`, `best_of_n.py` and
# § `debate.py` (one
# § worker, asked more often), `by_tests.py` (programs, chosen by public tests), `roles.py`,
# § `random_plans.py`, `compute_matched.py`, then `tree_search.py` (a search by a library),
# § `plan_set.py` and `oracle.py` (workflows enumerated), `templates.py` and
# § `template_router.py` (one
# § of them chosen). `routing/` learns from single workers' results whom to ask, `calling/`
# § asks before
# § it trusts, `frameworks/` are other people's; `matrices/` reads recorded verdicts, and
# § `judging/`
# § judges routers on them. Shared: `extras.py` (optional packages), `ridge_logistic.py`.


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
        reflection.SELF_REFLECTION,
        reflection.LONG_CONTEXT,
        voting.BEST_OF_N,
        debate.DEBATE,
        by_tests.BEST_OF_N_TESTS,
        by_tests.RETRY,
        by_tests.WARMING,
        by_tests.ESCALATION,
        ab_mcts.AB_MCTS,
        roles.PLANNER_EXECUTOR_VERIFIER,
        *ROUTERS,
        *ADAPTIVE,
        controls.RANDOM_WORKER,
        controls.RANDOM_WORKFLOW,
        template_router.TEMPLATE_ROUTER,
        controls.COMPUTE_MATCHED_USD,
        controls.COMPUTE_MATCHED_TOKENS,
        oracle.ORACLE,
        *FRAMEWORKS.values(),
        CREWAI,
    )
}
"""By name as in tables. `single:<worker>` is a pattern: one row per worker."""
