"""Learned routers: from single workers' results, which one worker to ask each question."""


# § Routers: who learn from single workers' results which one worker to ask each question.
# §
# § Reading order: `router.py` (the interface and the one decision rule), `embedders.py`,
# § `knn.py` (the
# § smallest router), `learning.py` (from a matrix to an artefact and back), `solvers.py`. Not
# § here:
# § routers that call workers in order to choose (baselines/calling/), and judging routers
# § (baselines/judging/).
