"""Routers that spend calls at test time: they ask before, or after, they know whom to trust.

Belongs here: Smoothie, cascades, a model as router, routers over collaboration modes, TRINITY. Does
not: routers that choose from the question alone (baselines/routing/).

Reading order: `hashing.py`, `smoothie.py`, `llm_router.py`; `accepting.py`, `cascade.py` and its
training; `mas_space.py`, `mas_router.py`; `turns.py`, `trinity.py`, `trinity_training.py`.
"""

from baselines.calling.cascade import AUTOMIX, CASCADE, FRUGAL
from baselines.calling.llm_router import ROUTER_LLM
from baselines.calling.mas_router import MAS_SAMPLE, ROUTER_MAS
from baselines.calling.smoothie import SMOOTHIE_GLOBAL, SMOOTHIE_LOCAL
from baselines.calling.trinity import TRINITY
from baselines.calling.turns import RANDOM_TRINITY
from harness.system import SystemCard

MANIFESTS: tuple[SystemCard, ...] = (
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
