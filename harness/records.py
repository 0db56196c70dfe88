"""The frozen dataclasses that all parts of podium exchange, and the keys of logged facts."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Literal

SEED = 2**63 - 1  # The largest seed that every generator takes


Kind = Literal["integer", "choice", "program", "text"]  # form of answers, for normalising them
BARE = "bare"  # key in a question's metadata: its text without the prompt around it
READ_BY = "read_by"  # key in a grade's metadata: the rule of harness/rules that read the reply
PODIUM = "podium"  # key of podium's facts in logs and samples, and name of its scorer
SECONDS = "seconds"
"""Key in a sample's facts: seconds of its solver, by a monotonic clock; None if replies of an
interrupted run were read back, which takes no time."""
STATED = "stated_s"
"""Key in a reply's metadata: a rehearsal worker's stated seconds; actual sleep is ignored."""
WAVES = "waves"
"""Key in a sample's facts: the number of parallel steps per wave, if waves wait for each other."""
TURN_COUNT, TOOL_CALL_COUNT, UNUSED = "turns", "tool_calls", "unused"
"""Keys in a sample's facts: numbers of turns and of tool calls in a task with several turns; the
unused part of an equal budget."""
ORDER = "order"
"""Key in a redacted sample's facts: the plan without texts, that is, each step's worker and
reads."""
ANSWER = "answer"  # key in a sample's facts: its system's answer
TOOL_CALLS = "Tool calls: "  # prefix of the text that systems read for a reply with tool calls
CONDUCTOR, GRADER = "conductor", "grader"  # the two roles that are not workers
ENVIRONMENT: Literal["environment"] = "environment"  # role of calls by a task's own code
Draws = Literal["fresh", "shared"]
FRESH: Draws = "fresh"
"""Mode of a run in which every system samples its own replies."""
SHARED: Draws = "shared"
"""Mode in which a worker's k-th sampled reply to a request is the same for every system of a
run."""
Overflows = Literal["wrong", "unanswered"]
WRONG: Overflows = "wrong"
"""Rule for a request too long for its model: the answer is wrong, and is counted separately."""
UNANSWERED: Overflows = "unanswered"
"""Rule of older runs for a request too long for its model: the call failed, unless Inspect turned
the error into a reply."""
EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Question:
    """One suite question. Systems and workers see it only `sealed`, that is, without its target."""

    id: str
    """Identifier, the same in all runs and data revisions, e.g. `aime25-I-1`."""
    text: str
    """The exact text that a single worker gets, with the instruction on the answer's format."""
    kind: Kind
    target: str | None = None
    """The correct answer (for programs: the hidden tests as JSON); None in a sealed question."""
    topic: str = ""
    """The question's subject within its suite; empty if it has none."""
    metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """Facts that systems may see, as plain JSON values: public tests, starter code, choices."""

    def sealed(self) -> "Question":
        """Return the question as a system may see it: without its target."""
        return replace(self, target=None)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call; all zero is a measurement, never a stand-in for "not reported".

    `input` excludes cached tokens (Inspect's convention), `output` includes reasoning; `reasoning`
    is None if the provider does not report it. Orchestration tokens are those that a product spends
    on its own models; neither `input` nor `output` includes them.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    """Tokens written to the provider's cache, for any duration."""
    reasoning: int | None = None
    cache_write_1h: int = 0
    """Part of `cache_write` that the provider keeps for an hour, at another price."""
    orchestration_in: int = 0
    """Input tokens that a product spends on its own models, cached tokens included."""
    orchestration_in_cached: int = 0
    orchestration_out: int = 0
    total_reported: int | None = None
    """The total number of tokens that the provider reports; None if it reports none."""

    @property
    def input_total(self) -> int:
        """All tokens of the prompt, cached or not."""
        return self.input + self.cache_read + self.cache_write

    @property
    def parts_total(self) -> int:
        """The sum of all token counts, which `total_reported` should equal."""
        return self.input_total + self.output + self.orchestration_in + self.orchestration_out

    @property
    def is_cached(self) -> bool:
        """Whether the provider read any tokens from its cache, or wrote any to it."""
        return bool(self.cache_read or self.cache_write or self.orchestration_in_cached)

    def __add__(self, addend: "Usage") -> "Usage":
        total: dict[str, Any] = {}
        for name in self.__slots__:
            mine, theirs = getattr(self, name), getattr(addend, name)
            total[name] = None if mine is None or theirs is None else mine + theirs
        return Usage(**total)


@dataclass(frozen=True, slots=True)
class Reply:
    """A worker's reply to one request, with its tokens and dollars."""

    worker: str
    text: str
    usage: Usage | None
    """Tokens of the call; None if the provider reported no usage: unknown, not zero."""
    usd: Decimal | None = None
    """Dollars by the run's price book; None if the call has no price or the pool no book."""
    too_long: bool = False
    """True if the provider refused the request because it exceeds the model's context; the text
    is then the refusal."""
    ended_s: float | None = None
    """End of the reply, in seconds on the question's critical path; known only in an equal
    budget."""


FALLBACK = "fallback"


@dataclass(frozen=True, slots=True)
class Answer:
    """A system's answer to one question, with the structure of the work behind it."""

    text: str
    replies: tuple[Reply, ...] = ()
    """Worker replies in step order (conductor calls are not steps and not listed)."""
    depth: int = 0
    """Number of steps on the longest chain of steps that read each other: the critical path."""
    stopped: str | None = None
    """The limit that ended the work early, e.g. `calls`; None if the work ran to its end."""
    plan: str | None = None
    """The plan as a workflow in JSON, or why the plan was malformed; None if nothing was
    planned."""
    noted: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
    """A system's log entries on how it decided: JSON values, no text of a question or reply, e.g.
    a cascade's confidence or a router's fallback. Under `FALLBACK`: podium's own sentence, which is
    printed below the table with its count."""
    waves: tuple[int, ...] = ()
    """Number of parallel steps in each wave, if each wave waits for the wave before; else empty."""

    @property
    def too_long(self) -> bool:
        """Whether there is no answer: the text is a refusal of a worker's request as too long."""
        refusals = [r.too_long for r in self.replies if r.text.strip() == self.text.strip()]
        return bool(refusals) and all(refusals)


@dataclass(frozen=True, slots=True)
class Grade:
    """A suite's grading of one reply; if it cannot be graded, an exception is raised instead."""

    value: float
    """1.0 right, 0.0 wrong; values in between only if a suite's card documents them."""
    extracted: str | None
    """The answer found in the reply; None if none was found (graded as wrong, counted
    separately)."""
    explanation: str = ""
    metadata: Mapping[str, Any] = field(default_factory=lambda: EMPTY)
