"""Training a conductor; `train.py` runs all its stages in order."""
