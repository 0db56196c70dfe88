"""The solvers Inspect finds: `inspect eval suites/aime25 --solver baselines/moa_3 -S pool=NAME`."""

from baselines.ab_mcts import ab_mcts
from baselines.by_tests import best_of_n_tests, escalation, retry, warming
from baselines.cascade import cascade, cascade_automix, cascade_frugal, try_cascade
from baselines.controls import compute_matched, random_worker, random_workflow
from baselines.debate import debate
from baselines.frameworks import (
    ag2,
    agent_framework,
    autogen,
    crewai,
    langchain,
    langgraph,
    openai_agents,
)
from baselines.llm_router import router_llm
from baselines.mas_router import mas_sample, router_mas
from baselines.mixture import moa_3, moa_lite, moa_paper, self_moa
from baselines.oracle import oracle
from baselines.reflection import long_context, self_reflection
from baselines.roles import planner_executor_verifier
from baselines.routers.systems import (
    router_cluster,
    router_contrastive,
    router_knn,
    router_logistic,
    router_mf,
    router_mlp,
)
from baselines.single import best_single, single
from baselines.smoothie import smoothie_global, smoothie_local
from baselines.template_router import template_router, try_templates
from baselines.trinity import random_trinity, trinity, try_trinity
from baselines.voting import best_of_n, self_consistency

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
