"""Sparing: a right answer is worth less for each worker call that it took."""

from dataclasses import dataclass

from podium import Effort, Status

NO_EFFORT = Effort()


@dataclass(frozen=True, slots=True)
class Sparing:
    per_call: float = 0.05

    def of(self, status: Status, grade: float, effort: Effort = NO_EFFORT) -> float | None:
        if status is Status.SCORED:
            return grade * max(0.5, 1 - self.per_call * effort.calls)
        invalid = status in (Status.INVALID_ACTION, Status.POLICY_FAULT)
        return 0.0 if invalid else None  # what the policy has not done has no value
