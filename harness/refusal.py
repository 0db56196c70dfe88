"""A refusal that Inspect's command line prints as a sentence, where it makes tasks and solvers."""

from inspect_ai._util.error import (
    PrerequisiteError,  # not exported, yet what Inspect prints plainly
)
from rich.markup import escape

from harness.errors import UserError


class Refusal(UserError, PrerequisiteError):
    """A UserError that Inspect's command line prints as it prints its own."""

    def __init__(self, said: str) -> None:
        """Say this; Inspect reads its own copy as rich's markup."""
        super().__init__(said)
        self.args = (said,)
        self.message = escape(said)
