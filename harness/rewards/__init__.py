"""Scorers as rewards: the function that scores an evaluation rewards training.

Read `outcome`, `reward`, `splits`, then `trainers`, or `server`, `client` and `launch`. A trainer's
own environment has the standard library only: `outcome`, `trainers` and `client` import no more.
"""
