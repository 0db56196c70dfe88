"""`podium serve`: every system as a model with a bill, in three API dialects."""
