"""What systems learn from and what they have learnt: scores, rounds of tries, artifacts.

What is learnt is each system's own (baselines/); the rounds are run by harness/run/lessons.py.
"""
