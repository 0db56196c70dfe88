"""Count what rewards came to, add up their dollars, and say when too many have no value."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from threading import Lock

from harness.errors import TooManyMasked
from harness.rewards.items import VALUED, RewardOutcome, Status

WINDOW = 512
"""The latest outcomes that the masked share looks back on: in a long run an outage must not hide
behind all that went well before, and a busy hour must not end a run by chance."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What a reward has done so far."""

    by_status: Mapping[Status, int]
    """Always every status, so that a trainer's log has the same keys at every step."""
    usd: Decimal
    """Would-be dollars of all answers, those with no price left out."""
    shared: int
    """Items whose grade was already known, or being made."""
    abandoned: int
    """Gradings that outlasted their time and could not be ended: each may still keep a thread."""

    @property
    def items(self) -> int:
        """All items so far."""
        return sum(self.by_status.values())

    @property
    def masked(self) -> int:
        """Items without a value."""
        return self.items - sum(self.by_status[status] for status in VALUED)


class Tally:
    """The running counts, safe to use from several threads."""

    def __init__(self, max_masked: float, masked_after: int) -> None:
        """Refuse once more than `max_masked` of the latest outcomes, if so many, have no value."""
        self._max_masked = max_masked
        self._after = masked_after
        self._by_status: Counter[Status] = Counter()
        self._latest: deque[bool] = deque(maxlen=max(WINDOW, masked_after))
        self._usd = Decimal(0)
        self._shared = 0
        self._reason = ""
        self._refusal = ""
        """Once too many have no value: work was cut short, whatever comes of the rest meanwhile."""
        self._lock = Lock()

    def __reduce__(self) -> tuple[type["Tally"], tuple[float, int]]:
        """Begin anew in another process."""
        return Tally, (self._max_masked, self._after)

    def counts(self, abandoned: int = 0) -> Counts:
        """Return what has been counted."""
        with self._lock:
            by_status = {status: self._by_status[status] for status in Status}
            return Counts(by_status, self._usd, self._shared, abandoned)

    @property
    def usd(self) -> Decimal:
        """Dollars so far."""
        return self._usd

    def pay(self, usd: Decimal | None) -> None:
        """Add the price of an answer; None is unknown and adds nothing."""
        with self._lock:
            self._usd += usd or 0

    def note(self, outcome: RewardOutcome, *, latest: bool = True) -> None:
        """Count one outcome, and unless told otherwise for the share without a value too."""
        masked = outcome.value is None
        with self._lock:
            self._by_status[outcome.status] += 1
            if latest:
                self._latest.append(masked)
            self._shared += outcome.shared
            if masked:
                self._reason = f"{outcome.status}: {outcome.reason}"

    @property
    def too_many(self) -> bool:
        """Whether the share without a value is beyond its limit, or once was."""
        with self._lock:
            return self._beyond()

    def _beyond(self) -> bool:
        seen, masked = len(self._latest), sum(self._latest)
        if not self._refusal and seen >= self._after and masked > self._max_masked * seen:
            self._refusal = (
                f"{masked} of the latest {seen} rewards have no value, more than the share of "
                f"{self._max_masked:g} that is allowed. The last one: {self._reason} Mend that and "
                "resume: what is learned from the rest is noise."
            )
        return bool(self._refusal)

    def refuse(self) -> None:
        """Raise TooManyMasked when the share is, or ever was, found beyond its limit."""
        with self._lock:
            if self._beyond():
                raise TooManyMasked(self._refusal)
