"""The frozen nouns that every part of podium passes around."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

SEED = 2**63 - 1  # The largest seed that every generator takes


Kind = Literal["integer", "choice", "program", "text"]  # how answers look, for normalising them
BARE = "bare"  # key in a question's metadata: it without what is put around it
READ_BY = "read_by"  # key in a grade's metadata: the rule of harness/rules that read the reply
PODIUM = "podium"  # key of podium's facts in logs and samples, and name of its scorer
SECONDS = "seconds"
"""Key in a sample's facts: how long its solver took, by a steady clock; None where replies of an
earlier attempt were read back, which takes no time."""
STATED = "stated_s"
"""Key in a reply's metadata: the seconds that a rehearsal worker takes, however long it slept."""
WAVES = "waves"
"""Key in a sample's facts: how many steps were asked at once, where one wave waits for another."""
TURN_COUNT, TOOL_CALL_COUNT, UNUSED = "turns", "tool_calls", "unused"
"""Keys in the facts of a sample whose task asks more than once, and may offer tools."""
ORDER = "order"
"""Key in a redacted sample's facts: its plan without texts, who read whom."""
ANSWER = "answer"  # key in a sample's facts: what its system answered
TOOL_CALLS = "Tool calls: "  # begins what systems read of a reply that calls tools
CONDUCTOR, GRADER = "conductor", "grader"  # the two roles that are not workers
ENVIRONMENT: Literal["environment"] = "environment"  # of calls that a task's own code makes
Draws = Literal["fresh", "shared"]
FRESH: Draws = "fresh"
"""Every system buys its own replies."""
SHARED: Draws = "shared"
"""The k-th draw of a worker on one request is the same reply for every system of a run."""
Overflows = Literal["wrong", "unanswered"]
WRONG: Overflows = "wrong"
"""What a run makes of an answer whose request was refused for its length: wrong, counted apart."""
UNANSWERED: Overflows = "unanswered"
"""The same in directories begun before that: a failed call, but a reply where a code says it."""
EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Question:
    """One suite question. Systems and workers see it only `sealed`, that is, without its target."""

    id: str
    """Stable across runs and data revisions, e.g. `aime25-I-1`."""
    text: str
    """Exactly what a single worker is sent, answer-format instruction included."""
    kind: Kind
    target: str | None = None
    """The gold answer (for programs: the hidden tests as JSON); None once sealed."""
    topic: str = ""
    """A subject within the suite, for breakdowns only."""
    metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """Visible facts as plain JSON values: public tests, starter code, choices."""

    def sealed(self) -> "Question":
        """Return the question as a system may see it: without its target."""
        return replace(self, target=None)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; all zero is a measurement, never a stand-in for "not reported".

    `input` excludes cached tokens (Inspect's convention), `output` includes reasoning, of which
    many providers do not say how much it was: then `reasoning` is None. Orchestration tokens are
    what a product spends on models of its own; they are in neither `input` nor `output`.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    """However long they are kept."""
    reasoning: int | None = None
    cache_write_1h: int = 0
    """Part of `cache_write`: kept for an hour, at another rate."""
    orchestration_in: int = 0
    """Cached ones included."""
    orchestration_in_cached: int = 0
    orchestration_out: int = 0
    total_reported: int | None = None
    """What the provider says all of it comes to; None when it does not say."""

    @property
    def input_total(self) -> int:
        """The prompt, cached or not."""
        return self.input + self.cache_read + self.cache_write

    @property
    def parts_total(self) -> int:
        """What `total_reported` should be."""
        return self.input_total + self.output + self.orchestration_in + self.orchestration_out

    @property
    def is_cached(self) -> bool:
        """Whether a provider read any of it from a cache of its own, or wrote it there."""
        return bool(self.cache_read or self.cache_write or self.orchestration_in_cached)

    def __add__(self, other: "Usage") -> "Usage":
        total: dict[str, Any] = {}
        for name in self.__slots__:
            one, more = getattr(self, name), getattr(other, name)
            total[name] = None if one is None or more is None else one + more
        return Usage(**total)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a worker said to one request."""

    worker: str
    text: str
    usage: Usage | None
    """None when the provider reported none: unknown, not zero."""
    usd: Decimal | None = None
    """Would-be price at the run's book; None when the call has no price or the pool no book."""
    too_long: bool = False
    """True when the provider refused the request because it exceeds the model's context; the text
    is then the refusal."""
    ended_s: float | None = None
    """When it came on its answer's critical path; known within an equal budget."""


FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system says to one question, with the shape of the work behind it."""

    text: str
    replies: tuple[Reply, ...] = ()
    """Worker replies in step order (conductor calls are not steps and not listed)."""
    depth: int = 0
    """Steps on the longest chain of reads: the critical path."""
    stopped: str | None = None
    """The budget that ended the work early, e.g. `calls`; None when it ran to its end."""
    plan: str | None = None
    """The workflow as it was planned (JSON), or why the plan was malformed."""
    noted: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """What a system wants its log to say of how it decided: plain JSON values, no texts of others.
    A cascade's confidence, a router's fallback. Under `FALLBACK`: a sentence of our own that stands
    below the table, with how often it was so."""
    waves: tuple[int, ...] = ()
    """How many steps were asked side by side, wave after wave, where they wait for more than they
    read; empty where the plan says it all."""

    @property
    def too_long(self) -> bool:
        """Say whether the answer is missing: its text is a worker's refusal of its request."""
        said = [one.too_long for one in self.replies if one.text.strip() == self.text.strip()]
        return bool(said) and all(said)


@dataclass(frozen=True, slots=True)
class Grade:
    """A suite's verdict on one reply. A grade always exists: "could not grade" is an exception."""

    value: float
    """1.0 right, 0.0 wrong; in between only where a suite's card says so."""
    extracted: str | None
    """The answer found in the reply; None when nothing could be read (wrong, and counted apart)."""
    explanation: str = ""
    metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
