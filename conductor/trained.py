"""Systems in which a trained model (a checkpoint) plans, for any pool that it fits."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from inspect_ai.model import GenerateConfig
from inspect_ai.solver import Solver, solver

from podium.conductor import prompt
from podium.conductor.checkpoint import (
    EXTRA,
    MODULE,
    ORIGIN,
    TRAINED,
    CheckpointInfo,
    cards_digest,
    checkpoint_digest,
    checkpoint_folder,
    grader_versions,
    read_info,
    read_study,
    released_names,
    short_digest,
    stands_on_base,
)
from podium.conductor.parse import PlanFormat
from podium.conductor.policy import RoundLimits, conductor_system
from podium.harness.context import current
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import as_solver, named_pool
from podium.harness.pool import Pool
from podium.harness.pool_config import PoolSpec, WorkerSpec, read_pool
from podium.harness.records import CONDUCTOR, Answer, Question
from podium.harness.suite import TaskRefusal
from podium.harness.system import Calls, Extra, System, SystemCard, SystemMethods
from podium.harness.text import pluralise
from podium.harness.workflow import MAX_STEPS

PROVIDER = "embedded"
PRICE = "embedded/conductor"  # key in price books of conductors that run in this process
MOST_TOKENS = 1024  # maximum tokens of a plan, as published (arXiv 2512.04388, section 4.1)
PLAN_TOKENS = 256  # tokens of context reserved for a small model's plan; the longest plan has 130

BY_CARDS = (
    "its decoder can write nothing but plans of the workers that it is shown (a regular "
    "expression, in the log of each of its calls)",
    "a card that opens with a word that it never learnt is not shown to it, and the order of "
    "workers that it cannot tell apart is drawn for each question",
)

OTHERS = (
    "was trained for the {1} of pool {0!r} alone and identifies them by number, but {2} has other "
    "workers or another order. Use conductor-prompted, which plans with the pool's conductor model."
)

DRAWN = "workers drawn evenly"
"""Note on answers of a checkpoint that knew no worker's card, so that it chose workers at
random."""

CALLS = "1-5, plus 1 of the conductor; none if its plan is malformed"
SOURCE = "Conductor, arXiv 2512.04388 (trained on the practice suites)"


@solver
def conductor(
    checkpoint: str = TRAINED,
    pool: str | None = None,
    shown: int | str = "all",
    order: str = "pool",
    shown_seed: int = 0,
    rounds: int | None = None,
    worker: str = "",
    sha256: str = "",
) -> Solver:
    """Let a checkpoint, given by released name or by folder, plan each question.

    `shown`, `order` and `shown_seed` select the workers in the prompt. `rounds`: number of planning
    rounds after the first (default: as in the checkpoint's training). `worker`, if given, does
    every step. UserError if the checkpoint's digest is not `sha256`, so that a resumed run uses the
    same model.
    """
    whom = prompt.parse_shown(shown, order, shown_seed)
    system = _checked_system(
        checkpoint, whom, rounds, pool, sha256=sha256, constrained=True, worker=worker
    )
    return as_solver(system, pool, conductor_slot(checkpoint))


@solver
def conductor_served(
    checkpoint: str,
    pool: str | None = None,
    shown: int | str = "all",
    order: str = "pool",
    shown_seed: int = 0,
    rounds: int | None = None,
    sha256: str = "",
    constrained: bool = False,
) -> Solver:
    """Let a checkpoint on your own server plan each question.

    The role `conductor` must be that server's model, and `checkpoint` the folder that the server
    loads: its podium.json defines the plan format. `constrained` sends vLLM's `structured_outputs`,
    so that the server writes only valid plans; other servers refuse or ignore that parameter.
    """
    whom = prompt.parse_shown(shown, order, shown_seed)
    system = _checked_system(checkpoint, whom, rounds, pool, sha256=sha256, constrained=constrained)
    return as_solver(system, pool)


def _checked_system(
    checkpoint: str,
    whom: prompt.ShownWorkers,
    rounds: int | None,
    pool: str | None,
    *,
    sha256: str,
    constrained: bool,
    worker: str = "",
) -> System:
    whom = replace(whom, reading=card_reading(checkpoint, constrained=constrained))
    folder, about = checkpoint_folder(checkpoint), _read(checkpoint)
    if sha256 and checkpoint_digest(folder) != sha256:
        raise TaskRefusal(
            f"Checkpoint {checkpoint} is not the one with which this run began. Restore it, or "
            "name another --log-dir."
        )
    spec = named_pool(pool)  # for plain Inspect; `podium run` has checked it already
    if spec and (reason := CheckpointMethods().pool_refusal(checkpoint, spec)):
        raise TaskRefusal(f"This checkpoint {reason}")
    study = read_study(folder) if about.role == "study" else None
    studied = frozenset((*study.taught, *study.validated)) if study else frozenset[str]()
    form = replace(about.form, worker=worker or about.form.worker)
    return trained_system(replace(about, form=form), whom, rounds, studied)


def _others(about: CheckpointInfo, place: str) -> str:
    return OTHERS.format(about.pool, pluralise(len(about.workers), "worker"), place)


def trained_system(
    about: CheckpointInfo,
    view: prompt.ShownWorkers = prompt.WHOLE_POOL,
    rounds: int | None = None,
    studied: frozenset[str] = frozenset(),
) -> System:
    """Return the system in which a checkpoint plans, prompted and parsed in its own format.

    The system raises UserError for a question whose id is in `studied`, the checkpoint's training
    data; under plain `inspect eval`, nothing else checks this.
    """
    further = about.rounds if rounds is None else rounds
    system = conductor_system(about.form, retries=0, shown=view, rounds=RoundLimits(further))

    async def answer(question: Question, pool: Pool) -> Answer:
        if question.id in studied:
            raise UserError(
                f"Question {question.id} was used to train or select this checkpoint: name another "
                "suite."
            )
        if pool.spec is None and not about.conducted(pool.workers, ()):
            raise UserError(f"This checkpoint {_others(about, 'this eval')}")
        result = await system(question, pool)
        return replace(result, noted={**result.noted, "workers": DRAWN}) if drawn(pool) else result

    def drawn(pool: Pool) -> bool:  # only plain Inspect: `podium run` refuses such pools
        cards = [worker.card for worker in pool.spec.workers] if pool.spec else []
        return plain and bool(view.reading) and not any(map(view.reading.knows, cards))

    plain = current().spec is None
    return answer


def card_reading(checkpoint: str, *, constrained: bool) -> prompt.CardReading | None:
    """Return which cards of workers a checkpoint can read; None if it was not trained on cards."""
    about = _read(checkpoint)
    if not (about.is_adaptive and about.cards_sha256):
        return None
    if about.form.layout != "compact":
        return prompt.CardReading(constrained=constrained)
    limit, fits = len(about.workers) or None, _fitting(checkpoint_folder(checkpoint))
    return prompt.CardReading(_openings(about), limit, fits, constrained)


def _openings(about: CheckpointInfo) -> frozenset[str] | None:
    if about.openings:
        return frozenset(about.openings)
    try:
        cards = [worker.card for worker in read_pool(about.pool).workers]
    except UserError:
        return None
    same = cards_digest(cards) == about.cards_sha256
    return frozenset(prompt.first_word(card) for card in cards) if same else None


def _fitting(folder: Path) -> Callable[[str], bool] | None:
    # Imported late: Inspect imports this file in every process, and few need a tokenizer.
    from podium.conductor.embedded import fitting

    with suppress(UserError):
        return fitting(folder, PLAN_TOKENS)
    return None


def conductor_slot(checkpoint: str) -> WorkerSpec:
    """Return a pool entry that makes a checkpoint the conductor; UserError if it is missing."""
    if any(sign.isspace() for sign in checkpoint):
        raise UserError(
            f"The path of a checkpoint must not contain white space: {checkpoint!r}. Rename the "
            "folder."
        )
    about = _read(checkpoint)
    return WorkerSpec(
        name=CONDUCTOR,
        model=f"{PROVIDER}/{checkpoint}",
        card=about.summary,
        price=PRICE,
        config=GenerateConfig(temperature=0.0, max_tokens=MOST_TOKENS),
    )


def _read(checkpoint: str) -> CheckpointInfo:
    return read_info(checkpoint_folder(checkpoint))


def solver_arguments(checkpoint: str) -> Mapping[str, Any]:
    """Return a solver's arguments, a checkpoint and its digest; UserError if it is missing."""
    if not checkpoint:
        raise UserError(
            "name the folder of the checkpoint that your server runs as the pool's conductor, as "
            "in conductor-served@FOLDER."
        )
    _read(checkpoint)
    return {"checkpoint": checkpoint, "sha256": checkpoint_digest(checkpoint_folder(checkpoint))}


class CheckpointMethods(SystemMethods):
    """Methods of a system that runs a checkpoint: the one named after `@` (`x`), or else `own`."""

    def __init__(self, checkpoint: str = "", extra: Extra | None = None) -> None:
        """Store the default checkpoint: used if a system's name has no `@CHECKPOINT`."""
        super().__init__(extra)
        self.own = checkpoint

    def _named(self, x: str) -> str:
        return x or self.own

    def arguments(self, x: str) -> Mapping[str, Any]:
        """Return the solver's arguments: the checkpoint's name, and the digest of its files."""
        return solver_arguments(self._named(x))

    def pool_refusal(self, x: str, spec: PoolSpec) -> str | None:
        """Return why a pool does not fit, to print after the checkpoint's name; None if it fits."""
        about = _read(self._named(x))
        if about.conducted(spec.names, [worker.card for worker in spec.workers]):
            return None
        return _others(about, f"pool {spec.name!r}")

    def remarks(self, x: str, spec: PoolSpec) -> tuple[str, ...]:
        """Return remarks on which of the workers' cards the checkpoint reads and knows."""
        about = _read(self._named(x))
        if not about.is_adaptive:
            return ()
        words = about.form.card_words
        prefix = "" if words is None else f"the first {pluralise(words, 'word')} of "
        remarks = [f"sees {prefix}each worker's card; it was trained on pool {about.pool!r}."]
        reading = card_reading(self._named(x), constrained=True)
        if reading is not None:
            remarks += reading.remarks({worker.name: worker.card for worker in spec.workers})
        return tuple(remarks)

    def live_refusal(self, x: str, spec: PoolSpec) -> str | None:
        """Return why a live run is refused: the checkpoint knows no card in the pool; else None."""
        reading = card_reading(self._named(x), constrained=True)
        if reading is None or any(reading.knows(worker.card) for worker in spec.workers):
            return None
        return (
            f"knows no card of pool {spec.name!r}, so it would choose workers at random. Use "
            f"conductor-prompted; `inspect eval` still runs it, with answers labelled {DRAWN!r}."
        )

    def suite_refusal(self, x: str, suite: str, digests: Sequence[str]) -> str | None:
        """Return why a suite is refused: the checkpoint was trained on its questions; else None."""
        checkpoint = self._named(x)
        about = _read(checkpoint)
        if about.role == "study" and suite in about.suites:
            return (
                f"Checkpoint {checkpoint} was trained on recorded verdicts of {suite}, so this "
                "suite cannot evaluate it: name another suite or another checkpoint."
            )
        taught = frozenset(about.taught)
        shared = sum(short_digest(digest) in taught for digest in digests)
        if shared:
            return (
                f"Checkpoint {checkpoint} was trained on {shared} questions of {suite}: name "
                "another suite, or another checkpoint."
            )
        return None

    def graders(self, x: str) -> Mapping[str, str] | None:
        """Return suite -> version of its grader in training: {} if none, None if unknown."""
        return grader_versions(checkpoint_folder(self._named(x)))


class _Seated(CheckpointMethods):
    """Methods of systems whose checkpoint runs in this process, as the pool's conductor."""

    def conductor(self, x: str) -> WorkerSpec:
        return conductor_slot(self._named(x))


class _NotReleased(SystemMethods):
    extra = Extra(EXTRA, (MODULE,))

    def arguments(self, x: str) -> NoReturn:
        raise UserError(
            "no adapters are released yet. Train them on a GPU with `podium train smollm --out "
            "RUN`, then name conductor@RUN/best."
        )


SERVED = SystemCard(
    name=f"{CONDUCTOR}-served",
    solver="podium/conductor_served",
    summary="A checkpoint on your own server plans each question: conductor-served@FOLDER.",
    source="Conductor, arXiv 2512.04388 (trained)",
    calls=Calls(CALLS, lambda n, args: (0, _most_calls(args, "")), conductor=1),
    needs=frozenset({"conductor"}),
    k="checkpoint",
    methods=CheckpointMethods(),
    acts="last step acts",
)


SMOLLM = SystemCard(
    name=f"{CONDUCTOR}-{EXTRA}",
    solver="podium/conductor",
    summary=f"Adapters on {ORIGIN} plan: not released yet, see docs/training.md.",
    source=SOURCE,
    calls=Calls(CALLS, lambda n, args: (0, MAX_STEPS), conductor=1),
    methods=_NotReleased(),
    acts="last step acts",
)


def manifests() -> tuple[SystemCard, ...]:
    """Return the cards of all systems that run checkpoints, first the one that runs `TRAINED`."""
    released = [name for name in released_names() if name != TRAINED]
    return (
        _manifest(CONDUCTOR, TRAINED),
        *(_manifest(f"{CONDUCTOR}-{name}", name) for name in released),
        *([] if EXTRA in released else [SMOLLM]),
        SERVED,
    )


def _manifest(name: str, checkpoint: str) -> SystemCard:
    about, small = _read(checkpoint), "a small model trained from scratch on the practice suites"
    on_base = stands_on_base(checkpoint_folder(checkpoint))
    again = f"; {pluralise(about.rounds, 'further round')} at most" if about.rounds else ""
    return SystemCard(
        name=name,
        solver="podium/conductor",
        summary=f"A trained model writes a workflow for each question: {about.summary}.",
        source=SOURCE,
        calls=Calls(
            f"{CALLS}{again}",
            lambda n, args: (0, _most_calls(args, checkpoint)),
            conductor=lambda args: 1 + (args.get("rounds") or about.rounds),
        ),
        prompts=prompt.prompt_texts(about.form),
        k="checkpoint" if name == CONDUCTOR else "",
        methods=_Seated(checkpoint, Extra(EXTRA, (MODULE,)) if on_base else None),
        deviations=(
            f"{f'adapters on {ORIGIN}' if on_base else small}, not Qwen2.5-7B",
            "it runs on the machine that asks: nobody bills it, the rehearsal book invents a price",
            *(BY_CARDS if about.is_adaptive and about.cards_sha256 else ()),
        ),
        acts="last step acts",
    )


def _most_calls(args: Mapping[str, Any], checkpoint: str) -> int:
    form, rounds = PlanFormat(), 0
    with suppress(UserError):  # a missing checkpoint is reported later, on opening
        about = _read(str(args.get("checkpoint") or checkpoint))
        form, rounds = about.form, about.rounds
    further = args.get("rounds")
    return RoundLimits(rounds if further is None else int(further)).calls(form)
