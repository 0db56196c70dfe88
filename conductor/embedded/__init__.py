"""Small Qwen2 checkpoints decoded in NumPy: what the demo's conductor thinks with, without torch.

`provider.py` is the seam to Inspect (`embedded/NAME_OR_PATH`). Not here: training, and any model
too large for one file of weights; those are served by vLLM or transformers.
"""
