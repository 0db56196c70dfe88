"""The solvers Inspect finds: `inspect eval suites/aime25 --solver baselines/moa_3 -S pool=NAME`."""

from baselines.best_of_n import best_of_n
from baselines.by_tests import best_of_n_tests, escalation, retry, warming
from baselines.calling.cascade import cascade, cascade_automix, cascade_frugal, try_cascade
from baselines.calling.llm_router import router_llm
from baselines.calling.mas_router import mas_sample, router_mas
from baselines.calling.smoothie import smoothie_global, smoothie_local
from baselines.calling.trinity import trinity, try_trinity
from baselines.calling.turns import random_trinity
from baselines.compute_matched import compute_matched
from baselines.debate import debate
from baselines.frameworks.crewai_system import crewai
from baselines.frameworks.systems import (
    ag2,
    agent_framework,
    autogen,
    langchain,
    langgraph,
    openai_agents,
)
from baselines.mixture import moa_3, moa_lite, moa_paper
from baselines.oracle import oracle
from baselines.random_plans import random_worker, random_workflow
from baselines.reflection import long_context, self_reflection
from baselines.roles import planner_executor_verifier
from baselines.routing.solvers import (
    router_cluster,
    router_contrastive,
    router_knn,
    router_logistic,
    router_mf,
    router_mlp,
)
from baselines.self_consistency import self_consistency
from baselines.self_mixture import self_moa
from baselines.single import best_single, single
from baselines.template_router import template_router, try_templates
from baselines.tree_search import ab_mcts

__all__ = [
    "ab_mcts",
    "ag2",
    "agent_framework",
    "autogen",
    "best_of_n",
    "best_of_n_tests",
    "best_single",
    "cascade",
    "cascade_automix",
    "cascade_frugal",
    "compute_matched",
    "crewai",
    "debate",
    "escalation",
    "langchain",
    "langgraph",
    "long_context",
    "mas_sample",
    "moa_3",
    "moa_lite",
    "moa_paper",
    "openai_agents",
    "oracle",
    "planner_executor_verifier",
    "random_trinity",
    "random_worker",
    "random_workflow",
    "retry",
    "router_cluster",
    "router_contrastive",
    "router_knn",
    "router_llm",
    "router_logistic",
    "router_mas",
    "router_mf",
    "router_mlp",
    "self_consistency",
    "self_moa",
    "self_reflection",
    "single",
    "smoothie_global",
    "smoothie_local",
    "template_router",
    "trinity",
    "try_cascade",
    "try_templates",
    "try_trinity",
    "warming",
]
