"""Learned routers: from single workers' results, which one worker to ask each question."""
