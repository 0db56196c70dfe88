"""`podium serve`: every system as a model with a bill, in three dialects.

What any server of ours listens with is `podium.harness.listener`.
"""
