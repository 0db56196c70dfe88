"""Training a conductor; `train.py` is the order of it all."""


# § Training a conductor: one code path from half a million to seven billion parameters.
# §
# § Belongs here: a training's configuration, its rows, its run folder, GRPO by TRL on the
# § harness's own
# § reward, validation, and what a run would cost. Does not: what a plan is worth
# § (plan_reward.py and
# § harness/rewards/), what a conductor is shown (prompt.py). Only grpo.py, stepping.py,
# § generating.py,
# § scratch_model.py and warm_start.py import torch, and only when a training starts.
# §
# § Reading order: config.py (what a training is told), job.py (what that names, found and
# § checked),
# § rows.py (who is asked what, by id), start.py (the order of it all), grpo.py (the trainer).
