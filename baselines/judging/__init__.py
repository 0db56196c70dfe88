"""Judging routers on a matrix: splits, the anchors they are held against, and a sweep over prices.

Reading order: `splits.py` (who learns from what), `anchors.py` (rows that no learning makes),
`judged.py` (every system on every held-out question). Figures only: intervals and tables are
reports/routes.py. Not here: routers themselves (baselines/routing/), where verdicts are from
(baselines/matrices/).
"""
