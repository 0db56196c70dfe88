"""Scorers as rewards: the function that scores an evaluation rewards training.

Read `outcome`, `reward`, `splits`, then `trainers`, or `server` and `reward_service`. `outcome` and
`trainers` need the standard library only, since they run in a trainer's own environment.
"""
