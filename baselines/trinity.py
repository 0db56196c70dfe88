"""TRINITY (arXiv 2512.04695): turns of worker and role until a verifier accepts."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Literal, Protocol

import numpy as np
from inspect_ai.solver import Solver, solver

from baselines.common import (
    hash_words,
    import_extra,
    learnt_from,
    refuse_taught,
    refuse_too_few,
    seeded_random,
)
from harness.errors import UserError
from harness.execute import Session
from harness.extract import normalised
from harness.inspect_adapters import as_solver
from harness.learning.fit import (
    Artifact,
    Explorer,
    Round,
    TrainingBudget,
    TrialResult,
    read_artifact,
    refuse_other_workers,
)
from harness.learning.matrix import Floats
from harness.pool import Pool
from harness.records import Answer, Kind, Question
from harness.system import System, SystemCard
from harness.workflow import Step

# § TRINITY's loop: in each turn a worker is chosen and a role, until a Verifier accepts.
# §
# § Written from the paper's description (TRINITY, Sakana AI): three roles, at most five
# § turns, all
# § earlier turns visible. `random-trinity` chooses at random: what the loop is worth without
# § a
# § coordinator. Not here: the coordinator that is evolved (trinity.py).


Role = Literal["thinker", "worker", "verifier"]
ROLES: tuple[Role, ...] = ("thinker", "worker", "verifier")
TURNS = 5
"""The paper's K."""

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

_VERDICT = re.compile(r"\bVERDICT\W{1,6}(ACCEPT|REVISE)", re.IGNORECASE)
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
    verdicts = _VERDICT.findall(turns[-1].text)
    if verdicts:
        return str(verdicts[-1]).upper() == "ACCEPT"
    own = normalised(kind, turns[-1].text)
    return own is not None and own == normalised(kind, latest)


def latest_work(turns: Sequence[TrinityTurn]) -> str | None:
    """Return what a worker said last; None when no turn was a worker's."""
    return next((turn.text for turn in reversed(turns) if turn.role == "worker"), None)


def turns_system(policy_of: Callable[[Question, Pool], Coordinator], turns: int = TURNS) -> System:
    """Return the loop; `policy_of` gives each sample its coordinator.

    The answer is the latest worker's reply, or the last reply where no turn was a worker's.
    """
    if turns < 1:
        raise UserError(f"TRINITY needs turns of at least 1, not {turns}.")

    async def answer(question: Question, pool: Pool) -> Answer:
        policy, session = policy_of(question, pool), Session(question, pool)
        taken: list[TrinityTurn] = []
        while len(taken) < turns and not (taken and is_accepted(question.kind, taken)):
            at, role = policy(question, taken)
            worker = pool.workers[at]
            reply = await session.ask(Step(worker, PROMPTS[role], reads="all"))
            taken.append(TrinityTurn(worker, role, reply.text))
        said = latest_work(taken)
        roles = [turn.role for turn in taken]
        noted = {"roles": roles, "accepted": is_accepted(question.kind, taken)}
        return session.answer(taken[-1].text if said is None else said, noted)

    return answer


def random_coordinator(random: Random, workers: int) -> Coordinator:
    """Return the coordinator that draws worker and role uniformly."""

    def choose(question: Question, turns: Sequence[TrinityTurn]) -> tuple[int, Role]:
        return random.randrange(workers), random.choice(ROLES)

    return choose


def random_trinity_system(seed: int = 0, turns: int = TURNS) -> System:
    """Return the loop without a coordinator; draws depend on seed, question and epoch only."""

    def policy_of(question: Question, pool: Pool) -> Coordinator:
        random = seeded_random("random-trinity", seed, question.id, pool.epoch)
        return random_coordinator(random, len(pool.workers))

    return turns_system(policy_of, turns)


def least_turns(turns: int) -> int:
    """Return the fewest turns that can end the loop: one to work, one to accept."""
    return min(2, turns)


RANDOM_TRINITY = SystemCard(
    name="random-trinity",
    solver="baselines/random_trinity",
    summary="Up to five turns, each by a random worker in a random role.",
    group="controls",
    source=f"podium (control); the loop of {SOURCE}",
    calls="2-5",
    expected=lambda _, args: (
        least_turns(int(args.get("turns", TURNS))),
        int(args.get("turns", TURNS)),
    ),
    prompts=(THINK, WORK, VERIFY),
    deviations=DEVIATIONS,
)


@solver
def random_trinity(seed: int = 0, turns: int = TURNS, pool: str | None = None) -> Solver:
    """Take at most `turns` turns, worker and role of each drawn at random."""
    return as_solver(random_trinity_system(seed, turns), pool)


# § TRINITY's coordinator: features of a question and its turns, and a linear head over them.
# §
# § The head has no bias: one row of weights per worker and per role, one column per feature.
# § The paper
# § feeds it a hidden state of a 0.6B model (`hf:PATH`, hidden_state.py); `hash` needs no
# § model.


HASH = "hash"
HF = "hf:"
WORDS = 8
"""Hashed features of the question, and again of the latest turn: few, because calls are few."""


class Encoder(Protocol):
    """What turns a question and its turns into features."""

    @property
    def dims(self) -> int:
        """How many features."""
        ...

    def __call__(self, question: Question, turns: Sequence[TrinityTurn]) -> Floats:
        """Return the features of the turn to be taken next."""
        ...


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


@cache
def load_encoder(name: str) -> Encoder:
    """Return the encoder of a name: `hash`, or `hf:PATH` for a local transformers model.

    A model is loaded once in a process. UserError for any other name.
    """
    if name == HASH:
        return HashEncoder()
    if name.startswith(HF) and name != HF:
        return HiddenState(name.removeprefix(HF))
    raise UserError(f"Features are {HASH!r} or 'hf:PATH' of a local model, not {name!r}.")


def transcript(question: Question, turns: Sequence[TrinityTurn]) -> str:
    """Return what a coordinator's model reads: the question and all turns."""
    said = [f"[{turn.role}, {turn.worker}]\n{turn.text}" for turn in turns]
    return "\n\n".join([question.text, *said])


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


# § A hidden state of a local transformers model as features: the only file here that needs
# § torch.
# §
# § TRINITY reads the state at the penultimate token that its 0.6B model writes; the text is
# § thrown
# § away. Weights come from a folder on this machine and are never fetched. The model runs in
# § this
# § process: no provider bills it, and the ledger does not know its tokens.


WRITES = 8
"""Tokens that are written to get to a penultimate one; the paper does not say how many."""
READS = 4096
"""Tokens of the transcript that are read: the last ones."""


class HiddenState:
    """The last layer's state at the penultimate written token, scaled to length 1."""

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


# § Evolve TRINITY's head with sep-CMA-ES (the `cmaes` package), one round of tries per
# § generation.
# §
# § A try is one question with one candidate head: the candidate is the epoch. A generation
# § follows from
# § the seed and the fitness of those before it, so these are all that a round's arguments
# § hold.


NAME = "trinity"
WEIGHTS = "weights"
SIGMA = 1.0
"""First step size; logits are compared with each other only, so their scale is free."""
MOST_QUESTIONS = 16
"""Evaluations per candidate: the paper's m."""
MOST_GENERATIONS = 60
"""The paper's."""

Fitness = Sequence[Sequence[float]]
"""(generations, candidates): mean grades."""


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

    def next_round(
        self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]
    ) -> Round | None:
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

    def learnt(self, given: TrainingBudget, done: Sequence[Sequence[TrialResult]]) -> Artifact:
        """Return the mean of the last generation's distribution: no single lucky candidate."""
        dims = head_size(len(given.workers), load_encoder(self.features).dims)
        fitness = [mean_grades(tried, population_size(dims)) for tried in done]
        _, mean = evolve(dims, given.seed, fitness)
        settings = {"embedder": self.features, "turns": self.turns, "generations": len(fitness)}
        return Artifact(learnt_from(NAME, given, done, settings), {WEIGHTS: mean})

    def _questions(self, given: TrainingBudget, each: int) -> int:
        """Return the questions per candidate: a budget buys as many of them as generations.

        The paper's own has 16 questions and 60 generations; what a smaller one is best spent on
        nobody has published.
        """
        return max(1, min(math.isqrt(given.calls // each), MOST_QUESTIONS, len(given.questions)))


# § TRINITY as a system: the loop of turns.py, led by an evolved head (trinity_training.py).


def _explorer() -> Explorer:
    return TrinityExplorer()


TRINITY = SystemCard(
    name=NAME,
    solver="baselines/trinity",
    summary="Up to five turns; an evolved linear head chooses worker and role of each.",
    group="routers",
    source=SOURCE,
    calls="2-5",
    expected=RANDOM_TRINITY.expected,
    prompts=RANDOM_TRINITY.prompts,
    extra="routers",
    modules=("cmaes",),
    explorer=_explorer,
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

    def policy_of(question: Question, pool: Pool) -> Coordinator:
        refuse_other_workers(learned, pool.workers)
        refuse_taught(learned, question)
        places = [pool.workers.index(worker) for worker in workers]
        choose = head_coordinator(learned.arrays[WEIGHTS], len(workers), encode)

        def placed(question: Question, turns: Sequence[TrinityTurn]) -> tuple[int, Role]:
            at, role = choose(question, turns)
            return places[at], role

        return placed

    settings = learned.about.settings or {}
    return turns_system(policy_of, int(settings.get("turns", TURNS)))


def trinity_tries_system(seed: int, fitness: Fitness, encode: Encoder, turns: int) -> System:
    """Return the loop led by the candidate that an epoch stands for."""
    made: dict[int, Floats] = {}

    def policy_of(question: Question, pool: Pool) -> Coordinator:
        workers = len(pool.workers)
        if workers not in made:
            made[workers] = evolve(head_size(workers, encode.dims), seed, fitness)[0]
        return head_coordinator(made[workers][pool.epoch - 1], workers, encode)

    return turns_system(policy_of, turns)


@solver
def trinity(
    learned: str | None = None, sha256: str | None = None, pool: str | None = None
) -> Solver:
    """Take up to five turns, led by a head that was evolved on the train split."""
    return as_solver(trinity_system(read_artifact(learned, NAME, sha256)), pool)


@solver
def try_trinity(
    seed: int,
    fitness: list[list[float]],
    features: str = HASH,
    turns: int = TURNS,
    pool: str | None = None,
) -> Solver:
    """Try one candidate head per epoch: of the generation that this fitness leads to."""
    return as_solver(trinity_tries_system(seed, fitness, load_encoder(features), turns), pool)
