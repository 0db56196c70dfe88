"""The private methods of TRL's GRPOTrainer that a training replaces, each under a public name.

No other method of TRL is replaced; tests/conductor/training/test_trl_adapter.py compares each
method with the installed release (TRL 1.16).
"""
# pyright: basic, reportMissingImports=false
# torch's libraries have no types here: they are not installed in this environment.

from typing import Any

from trl import GRPOTrainer

Trainer: Any = GRPOTrainer


class TrlAdapter(Trainer):
    """GRPOTrainer (arXiv 2402.03300) with public methods that a subclass can override."""

    def write_plans(self, prompts: Any) -> Any:
        """Generate a completion for each prompt of a batch."""
        return super()._generate(prompts)

    def write_turn(self, prompt_ids: Any, *arguments: Any, **options: Any) -> Any:
        """Generate the tokens of one conversation turn for each prompt of a batch."""
        return super()._generate_single_turn(prompt_ids, *arguments, **options)

    def write_and_score(self, inputs: Any) -> Any:
        """Generate a completion for each row of a batch, and score the completions."""
        return super()._generate_and_score_completions(inputs)

    def save_step(self, model: Any, trial: Any) -> None:
        """Save the trainer's state after a step as a checkpoint."""
        super()._save_checkpoint(model, trial)

    def _generate(self, prompts: Any) -> Any:
        return self.write_plans(prompts)

    def _generate_single_turn(self, prompt_ids: Any, *arguments: Any, **options: Any) -> Any:
        return self.write_turn(prompt_ids, *arguments, **options)

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        return self.write_and_score(inputs)

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self.save_step(model, trial)
