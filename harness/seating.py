"""A system that brings its own conductor: who sits in that role in its rows.

The pool file says who conducts for everybody else. A seat changes the role for one entry: its log
names that model, and its calls are billed at that model's price.
"""

from harness.errors import UserError
from harness.pool_file import PoolSpec, WorkerSpec
from harness.records import CONDUCTOR


def seated(spec: PoolSpec, seat: WorkerSpec | None) -> PoolSpec:
    """Return a pool with another conductor; None leaves it as it is."""
    return spec if seat is None else spec.model_copy(update={"conductor": seat})


def refuse_another(seat: WorkerSpec, role: object) -> None:
    """Raise UserError when somebody else was named for the role, who would be billed as the seat.

    `role` is Inspect's model of the role, as it prints itself.
    """
    if str(role) != seat.model:
        raise UserError(
            f"This system brings its own {CONDUCTOR}, {seat.model}: leave out --model-role "
            f"{CONDUCTOR}={role}."
        )
