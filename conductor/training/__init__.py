"""Training a conductor; `train.py` is the order of it all."""
