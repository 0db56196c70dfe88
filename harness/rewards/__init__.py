"""Scorers as rewards: the function that scores an evaluation rewards training."""
