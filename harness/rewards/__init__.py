"""Scorers as rewards: the function that scores an evaluation rewards training.

Read `outcome`, `reward`, `splits`, then `trainers`, or `server` and `launch`. A trainer's own
environment has the standard library only: `outcome` and `trainers` import no more.
"""
