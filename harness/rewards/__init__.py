"""Scorers as rewards: the function that scores an evaluation rewards training."""


# § Scorers as rewards: the function that scores an evaluation is the function that rewards
# § training.
# §
# § One core, thin adapters. Read in this order: items.py (what goes in and comes out),
# § core.py
# § (`Reward`: answer, grade, count), exams.py (which questions may teach), then one adapter
# § per
# § trainer: for_trl.py, for_verl.py, for_verifiers.py, for_openrlhf.py. An adapter takes
# § anything that
# § has `Scores`. Trainers whose environment cannot be ours ask a service: client.py (in
# § theirs),
# § wire.py and labels.py (what is said), bodies.py and replies.py (what trainers say and
# § hear), service.py (the endpoints), hosting.py (a port), launch.py (all of it, for the
# § command line).
# §
# § Nothing here imports a trainer; items.py, the adapters, client.py, wire.py and labels.py
# § import
# § nothing outside the standard library, for they run in a trainer's own environment.
