"""Rewards for training, computed by the functions that grade an evaluation.

Read the modules `outcome`, `reward`, `splits`, then `trainers`, or `server` and `reward_service`.
`outcome` and `trainers` need the standard library only, as they run in a trainer's environment.
"""
