"""What a system's calls come to: per question, paid, and spent so far."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from harness.errors import UserError
from harness.ledger import CallSums, Phase, QueryTotals, QuestionResult, RunFigures, read_figures
from harness.ledger.call import Attempted, Scope, upper_bound
from harness.ledger.join import AttemptEnd, after_retry, ended
from harness.ledger.journal import FOLDER, AttemptLines, read_lines
from harness.ledger.logs import CallEvent, Json, naming, open_log
from harness.ledger.questions import PricedLog, about_log, entries, total
from harness.ledger.runs import RunFacts, facts_in, find_logs, journals_of
from harness.parallel import map_in_processes
from harness.pool_config import REPLAYING
from harness.prices import Book
from harness.prices.cost import cost
from harness.records import PODIUM

# § What a directory's logs have spent so far, for a spending limit.


def spent_in_logs(logs: Iterable[Path], known: Set[str] = frozenset()) -> Decimal:
    """Return the would-be dollars of all attempts in some logs.

    A call that failed or was cut off may have been billed, so it counts as the dearest call of its
    worker; `known` are uuids and spans of calls that were counted already. UserError names a worker
    whose replies have no price.
    """
    spent = Decimal(0)
    dearest: dict[str, Decimal] = {}
    unknown: Counter[str] = Counter()
    for about, call in _billed(logs, known):
        usd = about.money(call)[0]
        if usd is not None:
            spent += usd
            dearest[call.role] = max(usd, dearest.get(call.role, usd))
        elif call.pending or call.error:
            unknown[call.role] += 1
        else:
            raise UserError(
                f"Calls of {call.role!r} in {about.path.name} have no price, so --max-usd cannot "
                "hold: leave it out, or start in another --log-dir with a price book that has the "
                "worker."
            )
    return spent + sum(dearest.get(role, Decimal(0)) * times for role, times in unknown.items())


def _billed(logs: Iterable[Path], known: Set[str]) -> Iterator[tuple[PricedLog, CallEvent]]:
    """Yield every call that was not read from a local cache, each once."""
    seen = set(known)
    for path in logs:
        if not _is_ours(path):
            continue
        for entry in entries([path]):
            for call in entry.calls:
                if call.cache != "read" and call.id not in seen and call.span not in known:
                    seen.add(call.id)
                    yield entry.about, call


def _is_ours(path: Path) -> bool:
    with open_log(path) as log, naming(path):
        return facts_in(log.header["eval"].get("metadata"), path) is not None


# § What a run has spent so far, from all attempts: what `--max-usd` of a resumed run begins
# § with.
# §
# § Journals have every call, also those that no log kept; what only a log has, because it is
# § older or
# § its journal is gone, counts as well. Not here: the meter of a run in progress
# § (harness/budget.py).


ZERO = Decimal(0)


@dataclass(slots=True)
class CallLines:
    """What a journal says of one call."""

    intent: Json
    tries: AttemptLines = field(default_factory=AttemptLines)
    outcome: Json | None = None

    @property
    def retries(self) -> list[Json]:
        """Its failed HTTP attempts that another was to follow."""
        return self.tries.retries

    def attempts(self) -> Iterator[AttemptEnd]:
        """Yield how each attempt over HTTP ended, the last one last."""
        for number, retry in enumerate(self.retries, 1):
            yield after_retry(number, retry, None)
        if not self.tries.waited:
            yield ended(len(self.retries) + 1, self.outcome, None)

    def usd(self, told: AttemptEnd, book: Book) -> Decimal | None:
        """Return what an attempt that was billed costs at a book; None when that is unknown."""
        price = book.price(self.intent["price_ref"])
        service = self.intent.get("service") or "standard"
        return cost(told.usage, price, service) if told.usage and price else None

    def bound(self, book: Book) -> Decimal | None:
        """Return the most that an attempt without an end can cost; None when nothing bounds it."""
        price = book.price(self.intent["price_ref"])
        sizes = self.intent.get("prompt_bytes"), self.intent.get("max_tokens")
        service = self.intent.get("service") or "standard"
        return upper_bound(Attempted("unknown", "none", None, service, *sizes), price)


def calls_of(path: Path) -> Iterator[CallLines]:
    """Yield the calls of one journal, in the order of their intents.

    Lines that are damaged, or belong to no call, are for the audit to name; here they are nothing.
    """
    calls: dict[str, CallLines] = {}
    schema: object = None
    for line in read_lines(path):
        kind, call = line.get("kind"), str(line.get("call", ""))
        schema = line.get("schema") if kind == "head" else schema
        if kind == "intent":
            calls[call] = CallLines(line)
        elif call in calls and kind in ("retry", "again"):
            calls[call].tries.add(line, schema)
        elif call in calls and kind == "outcome":
            calls[call].outcome = line
    yield from calls.values()


@dataclass(frozen=True, slots=True)
class SpentSoFar:
    """What a run's directory has spent."""

    usd: Decimal = ZERO
    unbounded: Counter[str] = field(default_factory=Counter[str])
    """By price: attempts that may have been billed, of which nobody can say yet how much: nothing
    bounds them, and no call of their price has ended."""


def spent(log_dir: Path, book: Book) -> Decimal:
    """Return the dollars of `standing`; 0 when nothing was called yet."""
    return spent_so_far(log_dir, book).usd


def spent_so_far(log_dir: Path, book: Book) -> SpentSoFar:
    """Return the would-be dollars of all attempts below a run's directory, at the run's book.

    An attempt of which nobody knows whether it was billed counts as the most it can have cost, or
    where nothing bounds that, as the dearest call of its price.
    UserError names calls whose replies have no price.
    """
    sums = _Sums(book)
    for path in sorted(log_dir.glob(f"{FOLDER}/*/*.jsonl")):
        for call in calls_of(path):
            sums.add(call, path.name)
    logs = sorted(log_dir.glob("**/*.eval")) if log_dir.is_dir() else ()
    return SpentSoFar(sums.total() + spent_in_logs(logs, sums.known_calls), sums.unbounded)


@dataclass(slots=True)
class _Sums:
    book: Book
    known: Decimal = ZERO
    known_calls: set[str] = field(default_factory=set[str])
    """Spans and uuids of the events of the journals' calls."""
    dearest: dict[str, Decimal] = field(default_factory=dict[str, Decimal])
    unknown: list[tuple[str, Decimal | None]] = field(
        default_factory=list[tuple[str, Decimal | None]]
    )
    """Price and upper bound of attempts of which nobody knows whether they were billed."""

    def add(self, call: CallLines, journal: str) -> None:
        """Count all attempts of a call."""
        names = call.intent.get("span"), (call.outcome or {}).get("event")
        self.known_calls.update(name for name in names if name)
        for told in call.attempts():
            if told.billable == "yes":
                self._billed(call, told, journal)
            elif told.billable == "unknown":
                self.unknown.append((call.intent["price_ref"], call.bound(self.book)))

    def total(self) -> Decimal:
        """Return the sum; what is unknown counts as its bound, else as the dearest call."""
        assumed = (
            self.dearest.get(ref, ZERO) if bound is None else bound for ref, bound in self.unknown
        )
        return self.known + sum(assumed, ZERO)

    @property
    def unbounded(self) -> Counter[str]:
        """Return how many of each price nothing bounds, of prices that no ended call has."""
        refs = (ref for ref, bound in self.unknown if bound is None and ref not in self.dearest)
        return Counter(refs)

    def _billed(self, call: CallLines, told: AttemptEnd, journal: str) -> None:
        ref, usd = call.intent["price_ref"], call.usd(told, self.book)
        if usd is None:
            raise UserError(
                f"Calls of {call.intent['role']!r} in {journal} have no price, so --max-usd cannot "
                "hold: leave it out, or start in another --log-dir with a price book that has "
                "the worker."
            )
        self.known += usd
        self.dearest[ref] = max(usd, self.dearest.get(ref, ZERO))


# § What left a purse for a sitting, as a range, from its journals: they alone have every
# § call.
# §
# § A call that was dispatched and never answered may have been billed: it costs between
# § nothing and
# § what its request allowed. Only live workers cost anything. Not here: what a run may still
# § spend
# § (spending.py), and figures per query (harness/ledger/totals.py).


@dataclass(frozen=True, slots=True)
class Paid:
    """US dollars that were billed, as far as anybody knows."""

    low: Decimal = ZERO
    """What is known to be billed."""
    high: Decimal | None = ZERO
    """None: nothing bounds a call whose end is unknown, or a billed call has no price."""
    unknown: int = 0
    """Attempts of which nobody knows whether they were billed."""
    unpriced: int = 0
    """Attempts that were billed and have no price."""

    @property
    def exact(self) -> Decimal | None:
        """The one number that it is; None for a range."""
        return self.low if self.low == self.high else None

    def plus(self, other: "Paid") -> "Paid":
        """Return both together."""
        high = None if self.high is None or other.high is None else self.high + other.high
        unknown, unpriced = self.unknown + other.unknown, self.unpriced + other.unpriced
        return Paid(self.low + other.low, high, unknown, unpriced)


ByScope = Mapping[Scope, Paid]


def read_paid(logs: Sequence[Path]) -> ByScope | None:
    """Return what a sitting paid by scope, by the journals of the task that its logs are of.

    None for what cost nothing, because its workers are not live, and for logs older than journals.
    UserError for a damaged log, and for one that `podium run` did not write.
    """
    with open_log(logs[0]) as log:
        about, task = about_log(log.header, logs[0]), str(log.header["eval"].get("task", ""))
    if about.facts.label != "live" or not all(map(_is_in_journals, logs)):
        return None
    folders = sorted({path.parent for path in logs})
    journals = [path for folder in folders for path in journals_of(folder, task)]
    return paid_in(journals, about.book) if journals else None


def _is_in_journals(path: Path) -> bool:
    """Return whether a log says that all its calls are in journals too; older ones do not."""
    with open_log(path) as log, naming(path):
        return bool(log.header["eval"]["metadata"][PODIUM].get("journal"))


def paid_in(journals: Iterable[Path], book: Book) -> ByScope:
    """Return what the calls of some journals cost at a book, by scope."""
    found: dict[Scope, Paid] = {}
    for path in journals:
        for call in calls_of(path):
            scope: Scope = call.intent["scope"]
            for told in call.attempts():
                found[scope] = found.get(scope, Paid()).plus(_paid(call, told, book))
    return found


def _paid(call: CallLines, told: AttemptEnd, book: Book) -> Paid:
    if told.billable == "no":
        return Paid()
    if told.billable == "unknown":
        return Paid(high=call.bound(book), unknown=1)
    usd = call.usd(told, book)
    return Paid(high=None, unpriced=1) if usd is None else Paid(usd, usd)


# § A `Sitting`: one system that sat one exam, put together from all the logs of its attempts.
# §
# § A resumed or enlarged run leaves several logs. Each (question, epoch) pair is taken from
# § the newest
# § log that has it, spend is counted from all of them, and a call that several logs repeat
# § counts once.
# § Headers are read first, to know which logs belong together; the samples of many logs are
# § read in
# § several processes, a sitting at a time (harness/parallel.py).


Tokens = tuple[int, int, int, int]
"""Input, cache reads, cache writes, output."""


@dataclass(frozen=True, slots=True)
class SystemRun:
    """One system that sat one exam: its newest attempts, and the sums of all its calls."""

    facts: RunFacts
    paths: tuple[Path, ...]
    """Its logs, newest first; `read_figures(paths)` adds them up."""
    asked: int
    """(question, epoch) pairs that the run set out to ask."""
    epochs: int
    attempts: tuple[QuestionResult, ...]
    """One for each pair that was begun, sorted by question and epoch."""
    spend: CallSums
    """Every call of all attempts, each once, added up by kind."""
    told: Mapping[str, Tokens] | None
    """Inspect's own totals in the newest log, by model; None for a log without totals."""
    paid: ByScope | None = None
    """What left a purse, by the journals; None where nothing did, and for runs without journals."""

    @property
    def logs(self) -> tuple[str, ...]:
        """File names, newest first."""
        return tuple(path.name for path in self.paths)


def load_runs(
    dirs: Sequence[Path], recursive: bool = True
) -> tuple[tuple[SystemRun, ...], tuple[Path, ...]]:
    """Return the sittings in some directories, and the foreign logs that were passed over.

    UserError for a damaged file, and when no log of podium's is left.
    """
    groups: dict[object, list[_Head]] = {}
    foreign: list[Path] = []
    for path in find_logs(dirs, recursive):
        head = _read_head(path)
        if head is None:
            foreign.append(path)
        else:
            _join(groups, head)
    if not groups:
        raise UserError(f"{foreign[0]} was not written by `podium run`, and there is no other log.")
    once = {id(group): _by_age(group) for group in groups.values()}
    sat = list(once.values())
    sums = map_in_processes(_sums, [[head.path for head in group] for group in sat])
    found = (_sitting(group, *each) for group, each in zip(sat, sums, strict=True))
    return tuple(found), tuple(foreign)


def _sums(paths: Sequence[Path]) -> tuple[RunFigures, ByScope | None]:
    return read_figures(paths), read_paid(paths)


def _join(groups: dict[object, list["_Head"]], head: "_Head") -> None:
    """Put a log to those of its task and to those of its experiment, which become one group."""
    same_task = groups.get(head.task, [])
    same_run = groups.get(head.identity, [])
    together = same_task if same_task is same_run else [*same_task, *same_run]
    group = [*together, head]
    for member in group:
        groups[member.task] = groups[member.identity] = group


def _by_age(group: Sequence["_Head"]) -> list["_Head"]:
    return sorted(group, key=lambda head: head.age, reverse=True)


@dataclass(frozen=True, slots=True)
class _Head:
    """What a log's header says."""

    path: Path
    age: tuple[str, str]
    """Of two logs of one sitting, the greater one is the newer."""
    task: str
    identity: tuple[str, ...]
    """An experiment that grew (a larger limit) may have a new task id, and is the same sitting."""
    facts: RunFacts
    asked: int
    epochs: int
    told: Mapping[str, Tokens] | None


def _read_head(path: Path) -> _Head | None:
    """Read a header; None for a log that `podium run` did not write."""
    with open_log(path) as log, naming(path):
        about: Json = log.header["eval"]
        facts = facts_in(about.get("metadata"), path)
        if facts is None:
            return None
        epochs = _part(about, "config").get("epochs") or 1
        return _Head(
            path=path,
            # A regraded log repeats the old one's creation time, and has a later one in its name.
            age=(about["created"], path.name),
            task=about["task_id"],
            identity=(str(path.parent.resolve()), *_identity(facts)),
            facts=facts,
            asked=len(_part(about, "dataset").get("sample_ids") or ()) * epochs,
            epochs=epochs,
            told=_told(log.header),
        )


def _told(header: Json) -> Mapping[str, Tokens] | None:
    """Return Inspect's totals, which it writes when a run ends; a killed run has none."""
    totals: Mapping[str, Json] = _part(_part(header, "stats"), "model_usage")
    if header.get("status", "started") == "started" and not totals:
        return None
    return {
        model: (
            usage.get("input_tokens") or 0,
            usage.get("input_tokens_cache_read") or 0,
            usage.get("input_tokens_cache_write") or 0,
            usage.get("output_tokens") or 0,
        )
        for model, usage in totals.items()
    }


def _part(data: Json, name: str) -> Json:
    found: Json | None = data.get(name)
    return found or {}


def _identity(facts: RunFacts) -> tuple[str, ...]:
    image = facts.box_facts.image_id if facts.box_facts else None
    data = (facts.suite, facts.suite_version, facts.data_revision, facts.split, facts.prompt)
    exam = (*data, facts.box, image)
    system = (facts.system, sorted(facts.args.items()), facts.pool_sha256, facts.label, facts.seed)
    return tuple(str(part) for part in (*exam, *system, facts.purpose))


def _sitting(newest_first: Sequence[_Head], figures: RunFigures, paid: ByScope | None) -> SystemRun:
    newest = newest_first[0]
    return SystemRun(
        facts=newest.facts,
        paths=tuple(head.path for head in newest_first),
        asked=max(newest.asked, len(figures.attempts)),
        epochs=newest.epochs,
        attempts=figures.attempts,
        spend=figures.spend,
        told=newest.told,
        paid=paid,
    )


# § Totals of a ledger: what a question cost, and what a system costs per question.
# §
# § Two kinds of dollars, never mixed. *Would-be*: the calls of the graded attempts at the
# § list price in
# § the log's book, as if nothing had been cached anywhere, so that systems can be compared.
# § *Paid*: the
# § calls of all attempts that a provider billed, by the journals where there are any; nothing
# § for
# § recorded and rehearsal workers. Calls that grade are in neither.


@dataclass(frozen=True, slots=True)
class SystemTotals:
    """A system on an exam. Figures per query are means over the graded pairs."""

    n_asked: int
    n_graded: int
    n_unparsed: int
    """Wrong because no answer was found in the reply; where a plan failed there was no reply."""
    calls: float | None
    tokens_in: float | None
    tokens_out: float | None
    tokens_reasoning: float | None
    worker_tokens_out: float | None
    conductor_tokens: float | None
    usd: Decimal | None
    paid: Paid
    """All that was paid for answers, failed attempts included."""
    usd_paid: Decimal | None
    """The same over the pairs begun so far, and not divided; None when it is a range."""
    usd_spent: Decimal | None
    usd_grading: Decimal | None
    """Paid to graders that are models; in no figure per query."""
    steps: float | None
    depth: float | None
    latency_s: float | None
    n_unpriced: int
    """Calls with a reply and no price: the reason when there is no dollar figure."""
    n_planned: int
    """Graded pairs for which a model was asked for a plan."""
    plan_faults: Mapping[str, int]
    """Of those, what was wrong with plans that could not be carried out, and how often."""
    conductor_s: float | None
    """Of a model that plans in this process, on this machine's processor; None without one."""
    n_failed: int
    """Calls that ended in an error; what a provider billed for them is unknown."""

    @property
    def usd_at_least(self) -> Decimal:
        """What is known of what was paid: a call without an end may have been billed as well."""
        return self.paid.low


def system_totals(sitting: SystemRun) -> SystemTotals:
    """Average a system's queries, and add up what all its attempts have spent."""
    graded = [attempt for attempt in sitting.attempts if attempt.graded]
    rows = [attempt.totals for attempt in graded]
    begun, whole = len(sitting.attempts), total(sitting.spend.values())
    answering, scoring = (
        _paid_of(sitting, "inference", "solve"),
        _paid_of(sitting, "scoring", "score"),
    )
    spent = answering.exact
    return SystemTotals(
        n_asked=sitting.asked,
        n_graded=len(graded),
        n_unparsed=sum(not one.parsed and not one.plan_fault for one in graded),
        calls=_mean([row.calls for row in rows]),
        tokens_in=_mean([row.tokens_in for row in rows]),
        tokens_out=_mean([row.tokens_out for row in rows]),
        tokens_reasoning=_mean([row.tokens_reasoning for row in rows]),
        worker_tokens_out=_mean([row.worker_tokens_out for row in rows]),
        conductor_tokens=_mean([row.conductor_tokens for row in rows]),
        usd=_mean_usd(rows),
        paid=answering,
        usd_paid=spent / begun if spent is not None and begun else None,
        usd_spent=spent,
        usd_grading=scoring.exact,
        steps=_mean([attempt.steps for attempt in graded]),
        depth=_mean([attempt.depth for attempt in graded]),
        # A replayed reply comes at once: how long the real one took is not known.
        latency_s=None if _replayed(sitting) else _mean([one.latency_s for one in graded]),
        n_unpriced=whole.unpriced,
        n_planned=sum(attempt.planned for attempt in graded),
        plan_faults=Counter(one.plan_fault for one in graded if one.plan_fault),
        conductor_s=_mean([row.conductor_s for row in rows]),
        n_failed=whole.failed,
    )


def _paid_of(sitting: SystemRun, scope: Scope, phase: Phase) -> Paid:
    """Return what left a purse; by the logs for runs that are older than journals.

    A call that failed without saying whether it was billed has no upper bound there. Journals that
    have less than the logs are not all here, so what was paid has no upper bound either.
    """
    if sitting.facts.label != "live":
        return Paid()
    kinds = ((kind, tally) for kind, tally in sitting.spend.items() if kind.phase == phase)
    billed = total(tally for kind, tally in kinds if kind.billable)
    if sitting.paid is None:
        failed = billed.unbilled - billed.unpriced
        return Paid(billed.usd, billed.billed, failed, billed.unpriced)
    paid = sitting.paid.get(scope, Paid())
    if billed.usd <= paid.low:
        return paid
    return Paid(billed.usd, None, paid.unknown, paid.unpriced)  # a journal is gone


def _replayed(sitting: SystemRun) -> bool:
    """Say whether replies came from a cassette; rehearsal replies may, too."""
    models = [worker.model for worker in sitting.facts.workers.values()]
    return sitting.facts.label == "recorded" or any(
        model.startswith(f"{REPLAYING}/") for model in models
    )


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(values) if values and len(known) == len(values) else None


def _mean_usd(rows: Sequence[QueryTotals]) -> Decimal | None:
    known = [row.usd for row in rows if row.usd is not None]
    return sum(known, Decimal(0)) / len(rows) if rows and len(known) == len(rows) else None
