"""TRINITY (arXiv 2512.04695): turns of worker and role until a verifier accepts.

Written from the paper's description: three roles, at most five turns, all earlier turns visible.
`trinity` is led by a linear head over features of question and turns, which sep-CMA-ES evolves; a
try is one question with one candidate head. `random-trinity` chooses at random: what the loop is
worth without a coordinator.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from baselines.common import (
    Rounds,
    hash_words,
    import_extra,
    learnt_from,
    refuse_too_few,
    refuse_unfit,
    registered,
    registered_learner,
    seeded_random,
)
from baselines.voting import approves
from harness.errors import UserError
from harness.execute import Session
from harness.learning import Artifact, Floats, Round, TrainingBudget, TrialResult
from harness.pool import Pool
from harness.records import Answer, Kind, Question
from harness.system import System, SystemCard
from harness.workflow import Step

Role = Literal["thinker", "worker", "verifier"]
ROLES: tuple[Role, ...] = ("thinker", "worker", "verifier")
TURNS = 5  # the paper's K

THINK = (
    "You are the thinker of this turn. Do not state a final answer. Study the question and the "
    "work so far, say what is missing or doubtful, and say what should be done next."
)
WORK = (
    "You are the worker of this turn. Use the work above where it helps and carry it on to a "
    "complete answer of the question, in the form it asks for."
)
VERIFY = (
    "You are the verifier of this turn. Check the latest answer above. If it is correct and "
    "complete, repeat it in the form the question asks for and end with the line VERDICT: ACCEPT. "
    "If not, say what is wrong with it and end with the line VERDICT: REVISE."
)
"""Our own wording: the paper describes the roles, and its prompts are not ours to copy."""
PROMPTS = {"thinker": THINK, "worker": WORK, "verifier": VERIFY}

SOURCE = "TRINITY, arXiv 2512.04695 (the Conductor's sister paper)"
DEVIATIONS = (
    "the roles' prompts are in our own words",
    "a verifier without a verdict accepts when its own answer is the worker's, as our rehearsal "
    "workers cannot say one",
    "a verdict before any worker's turn ends nothing",
)


@dataclass(frozen=True, slots=True)
class TrinityTurn:
    """One turn that was taken."""

    worker: str
    role: Role
    text: str


Coordinator = Callable[[Question, Sequence[TrinityTurn]], tuple[int, Role]]
"""(question, turns so far) -> the next worker, by its place in the pool, and its role."""


def is_accepted(kind: Kind, turns: Sequence[TrinityTurn]) -> bool:
    """Return whether the last turn is a verifier's that accepts the latest worker's reply."""
    latest = latest_work(turns[:-1])
    if not turns or turns[-1].role != "verifier" or latest is None:
        return False
    return approves(kind, latest, turns[-1].text, "ACCEPT", "REVISE")


def latest_work(turns: Sequence[TrinityTurn]) -> str | None:
    """Return what a worker said last; None when no turn was a worker's."""
    return next((turn.text for turn in reversed(turns) if turn.role == "worker"), None)


CoordinatorOf = Callable[[Question, Pool], Coordinator]


def turns_system(coordinator_of: CoordinatorOf, turns: int = TURNS) -> System:
    """Return the loop; `coordinator_of` gives each sample its coordinator.

    The answer is the latest worker's reply, or the last reply where no turn was a worker's.
    """
    if turns < 1:
        raise UserError(f"TRINITY needs turns of at least 1, not {turns}.")

    async def answer(question: Question, pool: Pool) -> Answer:
        coordinator, session = coordinator_of(question, pool), Session(question, pool)
        taken: list[TrinityTurn] = []
        while len(taken) < turns and not (taken and is_accepted(question.kind, taken)):
            at, role = coordinator(question, taken)
            worker = pool.workers[at]
            reply = await session.ask(Step(worker, PROMPTS[role], reads="all"))
            taken.append(TrinityTurn(worker, role, reply.text))
        said = latest_work(taken)
        roles = [turn.role for turn in taken]
        noted = {"roles": roles, "accepted": is_accepted(question.kind, taken)}
        return session.answer(taken[-1].text if said is None else said, noted)

    return answer


def random_trinity_system(seed: int = 0, turns: int = TURNS) -> System:
    """Return the loop in which worker and role of each turn are drawn uniformly."""

    def coordinator_of(question: Question, pool: Pool) -> Coordinator:
        random = seeded_random("random-trinity", seed, question.id, pool.epoch)
        workers = len(pool.workers)
        return lambda _question, _turns: (random.randrange(workers), random.choice(ROLES))

    return turns_system(coordinator_of, turns)


def _expected(workers: int, args: Mapping[str, Any]) -> tuple[int, int]:
    most = int(args.get("turns", TURNS))
    return min(2, most), most  # at the least one to work, one to accept


RANDOM_TRINITY = SystemCard(
    name="random-trinity",
    solver="baselines/random_trinity",
    summary="Up to five turns, each by a random worker in a random role.",
    group="controls",
    source=f"podium (control); the loop of {SOURCE}",
    calls="2-5",
    expected=_expected,
    prompts=(THINK, WORK, VERIFY),
    deviations=DEVIATIONS,
)


random_trinity = registered(random_trinity_system)


HASH, HF = "hash", "hf:"
WORDS = 8  # hashed features of the question: few, because calls are few


@dataclass(frozen=True, slots=True)
class HashEncoder:
    """Hashed words of the question, the role of the last turn, and how far the loop is."""

    @property
    def dims(self) -> int:
        """Words, one per role that may have come last and one for none, and the progress."""
        return WORDS + len(ROLES) + 2

    def __call__(self, question: Question, turns: Sequence[TrinityTurn]) -> Floats:
        """Return the features; the state of the loop has the same weight as the question."""
        last = [float(bool(turns) and turns[-1].role == role) for role in ROLES]
        state = [float(not turns), *last, len(turns) / TURNS]
        return np.array([*hash_words(question.text, WORDS), *state])


def transcript(question: Question, turns: Sequence[TrinityTurn]) -> str:
    """Return what a coordinator's model reads: the question and all turns."""
    said = [f"[{turn.role}, {turn.worker}]\n{turn.text}" for turn in turns]
    return "\n\n".join([question.text, *said])


WRITES = 8  # tokens that are written to get to a penultimate one; the paper does not say how many
READS = 4096  # tokens of the transcript that are read: the last ones


class HiddenState:
    """The last layer's state at the penultimate token that a local model writes, of length 1.

    The text is thrown away. Weights come from a folder on this machine and are never fetched. The
    model runs in this process: no provider bills it, and the ledger does not know its tokens.
    """

    def __init__(self, path: str) -> None:
        """Load a model and its tokenizer; UserError without torch or without such a folder."""
        try:
            import torch  # pyright: ignore[reportMissingImports]
            import transformers  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise UserError(
                "features=hf:PATH needs torch and transformers: pip install '.[train]'."
            ) from None
        if not (Path(path) / "config.json").is_file():
            raise UserError(f"There is no transformers model at {path}: it has no config.json.")
        loading: Any = transformers
        self._torch: Any = torch
        self._tokens: Any = loading.AutoTokenizer.from_pretrained(path, local_files_only=True)
        model: Any = loading.AutoModelForCausalLM.from_pretrained(path, local_files_only=True)
        self._model: Any = model.eval()

    @property
    def dims(self) -> int:
        """The model's hidden size."""
        return int(self._model.config.hidden_size)

    def __call__(self, question: Question, turns: Sequence[TrinityTurn]) -> Floats:
        """Return the state; greedy, so that the same transcript has the same features."""
        read = self._tokens(transcript(question, turns), return_tensors="pt")["input_ids"]
        read = read[:, -READS:]
        with self._torch.no_grad():
            written = self._model.generate(
                read,
                attention_mask=self._torch.ones_like(read),
                max_new_tokens=WRITES,
                min_new_tokens=WRITES,
                do_sample=False,
                output_hidden_states=True,
                return_dict_in_generate=True,
                pad_token_id=0,
            )
        state = written.hidden_states[-1][-1][0, -1]  # what the last step read: the one before last
        found = np.asarray(state.float().tolist(), dtype=np.float64)
        return found / (float(np.linalg.norm(found)) or 1.0)


Encoder = HashEncoder | HiddenState


@cache
def load_encoder(name: str) -> Encoder:
    """Return the encoder `hash`, or `hf:PATH`: a local transformers model, loaded once."""
    if name == HASH:
        return HashEncoder()
    if name.startswith(HF) and name != HF:
        return HiddenState(name.removeprefix(HF))
    raise UserError(f"Features are {HASH!r} or 'hf:PATH' of a local model, not {name!r}.")


def head_size(workers: int, features: int) -> int:
    """Return how many weights a head has."""
    return (workers + len(ROLES)) * features


def head_coordinator(weights: Floats, workers: int, encode: Encoder) -> Coordinator:
    """Return the coordinator that takes the worker and the role of the highest logits."""
    head = weights.reshape(workers + len(ROLES), encode.dims)

    def choose(question: Question, turns: Sequence[TrinityTurn]) -> tuple[int, Role]:
        logits = head @ encode(question, turns)
        return int(np.argmax(logits[:workers])), ROLES[int(np.argmax(logits[workers:]))]

    return choose


NAME, WEIGHTS = "trinity", "weights"
SIGMA = 1.0  # first step size; logits are compared with each other only, so their scale is free
MOST_QUESTIONS = 16  # evaluations per candidate: the paper's m
MOST_GENERATIONS = 60  # the paper's

Fitness = Sequence[Sequence[float]]  # (generations, candidates): mean grades


def population_size(dims: int) -> int:
    """Return how many candidates a generation has: 4 + 3 ln n, rounded up, as in the paper.

    >>> population_size(10_240)
    32
    """
    return math.ceil(4 + 3 * math.log(dims))


def evolve(dims: int, seed: int, fitness: Fitness) -> tuple[Floats, Floats]:
    """Return the next generation's candidates (population, dims) and the mean they vary around."""
    most = population_size(dims)
    search: Any = import_extra("cmaes", "routers").SepCMA(
        mean=np.zeros(dims), sigma=SIGMA, seed=seed, population_size=most
    )
    for values in fitness:
        asked = [search.ask() for _ in range(most)]
        search.tell([(one, -value) for one, value in zip(asked, values, strict=True)])
    return np.array([search.ask() for _ in range(most)]), np.array(search.mean)


def mean_grades(tries: Sequence[TrialResult], candidates: int) -> list[float]:
    """Return each candidate's mean grade; who has none gets the mean of all, and 0 without any."""
    grades: list[list[float]] = [[] for _ in range(candidates)]
    for one in tries:
        if one.value is not None:
            grades[one.epoch - 1].append(one.value)
    graded = [value for values in grades for value in values]
    usual = sum(graded) / len(graded) if graded else 0.0
    return [round(sum(values) / len(values) if values else usual, 6) for values in grades]


def first_question(generation: int, questions: int, known: int) -> int:
    """Return where a generation's questions start; each start comes before any comes again.

    >>> [first_question(at, 5, 9) for at in range(6)], first_question(3, 9, 9)
    ([0, 1, 2, 3, 4, 0], 0)
    """
    starts, stride = known - questions + 1, questions
    while math.gcd(stride, starts) != 1:
        stride += 1
    return generation * stride % starts


@dataclass(frozen=True, slots=True)
class TrinityExplorer:
    """Spends the budget on generations; each generation is asked other questions."""

    features: str = HASH
    turns: int = TURNS

    def next_round(self, given: TrainingBudget, done: Rounds) -> Round | None:
        """Return the next generation, None when the budget may not pay for all its turns."""
        dims = head_size(len(given.workers), load_encoder(self.features).dims)
        each = population_size(dims) * self.turns
        refuse_too_few(NAME, given, each)
        questions = self._questions(given, each)
        spent = sum(one.calls for tried in done for one in tried)
        if len(done) >= MOST_GENERATIONS or spent + each * questions > given.calls:
            return None
        args = {
            "seed": given.seed,
            "turns": self.turns,
            "features": self.features,
            "fitness": [mean_grades(tried, population_size(dims)) for tried in done],
        }
        first = first_question(len(done), questions, len(given.questions))
        most = self.turns
        return Round("baselines/try_trinity", args, questions, population_size(dims), first, most)

    def learnt(self, given: TrainingBudget, done: Rounds) -> Artifact:
        """Return the mean of the last generation's distribution: no single lucky candidate."""
        dims = head_size(len(given.workers), load_encoder(self.features).dims)
        fitness = [mean_grades(tried, population_size(dims)) for tried in done]
        _, mean = evolve(dims, given.seed, fitness)
        settings = {"embedder": self.features, "turns": self.turns, "generations": len(fitness)}
        return Artifact(learnt_from(NAME, given, done, settings), {WEIGHTS: mean})

    def _questions(self, given: TrainingBudget, each: int) -> int:
        """Return the questions per candidate: ours is that a budget buys as many as generations."""
        return max(1, min(math.isqrt(given.calls // each), MOST_QUESTIONS, len(given.questions)))


TRINITY = replace(
    RANDOM_TRINITY,
    name=NAME,
    solver="baselines/trinity",
    summary="Up to five turns; an evolved linear head chooses worker and role of each.",
    group="routers",
    source=SOURCE,
    extra="routers",
    modules=("cmaes",),
    explorer=TrinityExplorer,
    deviations=(
        "features are hashed words and the state of the loop (the paper: a hidden state of a 0.6B "
        "model; features=hf:PATH takes one, and its own computing is not on the ledger)",
        "evolved for the run's budget of worker calls (the paper: 30,720 evaluations); the head "
        "only, no singular values",
        "the answer is the head at the mean of the last generation, without sampling",
        *DEVIATIONS,
    ),
)


def trinity_system(learned: Artifact) -> System:
    """Return the loop led by what was learnt."""
    encode = load_encoder(learned.about.embedder)
    workers = learned.about.workers

    def coordinator_of(question: Question, pool: Pool) -> Coordinator:
        refuse_unfit(learned, pool, question)
        places = [pool.workers.index(worker) for worker in workers]
        choose = head_coordinator(learned.arrays[WEIGHTS], len(workers), encode)

        def placed(question: Question, turns: Sequence[TrinityTurn]) -> tuple[int, Role]:
            at, role = choose(question, turns)
            return places[at], role

        return placed

    settings = learned.about.settings or {}
    return turns_system(coordinator_of, int(settings.get("turns", TURNS)))


trinity = registered_learner(NAME, trinity_system)


@registered
def try_trinity(
    seed: int, fitness: list[list[float]], features: str = HASH, turns: int = TURNS
) -> System:
    """Try one candidate head per epoch: of the generation that this fitness leads to."""
    encode, made = load_encoder(features), dict[int, Floats]()

    def coordinator_of(question: Question, pool: Pool) -> Coordinator:
        workers = len(pool.workers)
        if workers not in made:
            made[workers] = evolve(head_size(workers, encode.dims), seed, fitness)[0]
        return head_coordinator(made[workers][pool.epoch - 1], workers, encode)

    return turns_system(coordinator_of, turns)
