"""What people use instead of a learned conductor, and the controls.

Belongs here: systems whose plan a rule of a person's, a router, a search or a framework makes, each
a `System` and an Inspect solver. Does not: plans written by a model (conductor/), exams (suites/),
running a plan (harness/execute.py), the rounds in which a system learns (harness/learning/).

Reading order: `single.py` (the smallest), `self_consistency.py` (votes), `mixture.py` (published,
with a prompt of its own), `self_mixture.py`, `reflection.py`, `best_of_n.py` and `debate.py` (one
worker, asked more often), `by_tests.py` (programs, chosen by public tests), `roles.py`,
`random_plans.py`, `compute_matched.py`, then `tree_search.py` (a search by a library),
`plan_set.py` and `oracle.py` (workflows enumerated), `templates.py` and `template_router.py` (one
of them chosen). `routing/` learns from single workers' results whom to ask, `calling/` asks before
it trusts, `frameworks/` are other people's; `matrices/` reads recorded verdicts, and `judging/`
judges routers on them. Shared: `extras.py` (optional packages), `ridge_logistic.py`.
"""

from collections.abc import Mapping

from baselines import (
    best_of_n,
    by_tests,
    calling,
    compute_matched,
    debate,
    mixture,
    oracle,
    random_plans,
    reflection,
    roles,
    self_consistency,
    self_mixture,
    single,
    template_router,
    tree_search,
)
from baselines.frameworks.crewai_system import CREWAI
from baselines.frameworks.systems import FRAMEWORKS
from baselines.routing.manifests import MANIFESTS as ROUTERS
from harness.system import SystemCard

SYSTEMS: Mapping[str, SystemCard] = {
    manifest.name: manifest
    for manifest in (
        single.SINGLE,
        single.BEST_SINGLE,
        self_consistency.SELF_CONSISTENCY,
        mixture.MOA_PAPER,
        mixture.MOA_LITE,
        mixture.MOA_3,
        self_mixture.SELF_MOA,
        reflection.SELF_REFLECTION,
        reflection.LONG_CONTEXT,
        best_of_n.BEST_OF_N,
        debate.DEBATE,
        by_tests.BEST_OF_N_TESTS,
        by_tests.RETRY,
        by_tests.WARMING,
        by_tests.ESCALATION,
        tree_search.AB_MCTS,
        roles.PLANNER_EXECUTOR_VERIFIER,
        *ROUTERS,
        *calling.MANIFESTS,
        random_plans.RANDOM_WORKER,
        random_plans.RANDOM_WORKFLOW,
        template_router.TEMPLATE_ROUTER,
        compute_matched.COMPUTE_MATCHED_USD,
        compute_matched.COMPUTE_MATCHED_TOKENS,
        oracle.ORACLE,
        *FRAMEWORKS.values(),
        CREWAI,
    )
}
"""By name as in tables. `single:<worker>` is a pattern: one row per worker."""
