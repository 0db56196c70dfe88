"""Scorers as rewards: the function that scores an evaluation is the function that rewards training.

One core, thin adapters. Read in this order: items.py (what goes in and comes out), core.py
(`Reward`: answer, grade, count), exams.py (which questions may teach), then one adapter per
trainer: for_trl.py, for_verl.py, for_verifiers.py, for_openrlhf.py, and client.py with service.py
for trainers whose environment cannot be ours. An adapter takes anything that has `Scores`.

Nothing here imports a trainer; items.py and client.py import nothing outside the standard library,
for they run in a trainer's own environment.
"""
