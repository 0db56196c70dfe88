# ruff: noqa: E501 - one pattern to a line: wrapped, nobody can compare them
"""The Inspect provider `rehearsal/WORKER`: makes a worker's reply, and counts tokens and time."""

import ast
import hashlib
import random
import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import anyio
from inspect_ai.model import (
    ChatCompletionChoice,
    ChatMessage,
    ChatMessageAssistant,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from podium.harness.context import current, sample_index
from podium.harness.errors import UserError, first_fault
from podium.harness.python_syntax import parse_python
from podium.harness.records import STATED
from podium.harness.request import request_digest
from podium.suites.practice.workers import choices
from podium.suites.practice.workers.agents import (
    AgentTurn,
    Episode,
    respond_as_agent,
    respond_as_dispatcher,
    respond_as_user,
    spell_calls,
    turn_number,
)
from podium.suites.practice.workers.arithmetic import evaluate
from podium.suites.practice.workers.choices import (
    WorkedAnswer,
    calculate,
    find_expression,
    known_names,
    most_common,
)
from podium.suites.practice.workers.facts import (
    attributes_in,
    name_pattern,
    place_statements,
    statements,
)
from podium.suites.practice.workers.phrases import atomised
from podium.suites.practice.workers.program_writer import write_program
from podium.suites.practice.workers.workers import (
    AnswerKind,
    Chat,
    OutOfReach,
    Scratch,
    Worker,
    count_tokens,
    cut_tokens,
    final_answer,
    find_worker,
    plain_words,
    read_chat,
    without_format,
)


class WorkerArguments(BaseModel):
    """Settings of a worker in a pool file or on the command line; UserError names any other."""

    model_config = ConfigDict(extra="forbid")

    seed: int = 0
    time_scale: float = Field(default=0.0, ge=0)  # seconds slept per second of modelled latency
    stream: str = ""
    """Name of the random stream; workers with the same name make the same slips (random errors).
    Empty: the worker's name."""
    slip: float | None = Field(default=None, ge=0, le=1)
    code_slip: float | None = Field(default=None, ge=0, le=1)
    verbosity: float | None = Field(default=None, gt=0, le=20)
    digits: int | None = Field(default=None, ge=1, le=4000)
    reach: int | None = Field(default=None, ge=1, le=100_000)
    families: int | None = Field(default=None, ge=0)


def _set_up(name: str, model_args: dict[str, Any]) -> tuple[Worker, WorkerArguments]:
    worker = find_worker(name)
    try:
        given = WorkerArguments.model_validate(model_args)
    except ValidationError as error:
        field, said = first_fault(error)
        known = ", ".join(WorkerArguments.model_fields)
        raise UserError(
            f"rehearsal/{name}: argument {field!r}: {said} (known: {known})."
        ) from error
    limits = given.model_dump(exclude={"seed", "time_scale", "stream"}, exclude_none=True)
    return replace(worker, **limits), given


class RehearsalAPI(ModelAPI):
    """A rehearsal worker, one of podium's small programs, as a model of Inspect."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **model_args: Any,
    ) -> None:
        """Set the worker `model_name` up; UserError names an unknown worker or model argument."""
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        self._worker, self._given = _set_up(model_name, model_args)
        self._asked: Counter[str] = Counter()

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the worker's reply to a chat, cut at `max_tokens` as by any provider."""
        started = time.monotonic()
        names = [] if tool_choice == "none" else [tool.name for tool in tools]
        text, calls = self._reply(input, names, config)
        limit = config.max_tokens
        short = text if limit is None else cut_tokens(text, limit)
        cut = short != text
        if limit is not None and count_tokens(spell_calls(calls)) > limit:
            calls, cut = [], True  # half a call is none
        usage = _usage(input, tools, short + spell_calls(calls))
        latency_s = self._worker.latency_s + usage.output_tokens / self._worker.tokens_per_s
        await anyio.sleep(latency_s * self._given.time_scale)
        message = ChatMessageAssistant(
            content=short, tool_calls=calls or None, model=self.model_name, source="generate"
        )
        stop = "max_tokens" if cut else "tool_calls" if calls else "stop"
        return ModelOutput(
            model=self.model_name,
            choices=[ChatCompletionChoice(message=message, stop_reason=stop)],
            usage=usage,
            time=time.monotonic() - started,
            metadata={STATED: round(latency_s, 6)},
        )

    def _reply(
        self, messages: list[ChatMessage], tools: list[str], config: GenerateConfig
    ) -> AgentTurn:
        episode = Episode.running() if self._worker.manner in ("act", "advise", "user") else None
        draw = drawn.occurrence if (drawn := current().sample) else 0
        if self._worker.manner == "dispatch":
            return respond_as_dispatcher(messages, self._random(request_digest(messages), draw)), []
        if episode is None:
            digest = request_digest(messages)
            sample = sample_index(digest, self._asked)
            heat = 1.0 if config.temperature is None else config.temperature
            rng = self._random(digest, sample.epoch, sample.occurrence)
            return respond(self._worker, messages, rng, heat), []
        if self._worker.manner == "user":
            return respond_as_user(self._worker, episode, messages, tools)
        # Slips do not scale with temperature: tau2 sets 0. Draws differ only within a pool.
        rng = self._random(episode.sample, turn_number(messages), draw)
        return respond_as_agent(self._worker, episode, messages, tools, rng)

    def _random(self, *parts: str | int) -> random.Random:
        key = (self._given.seed, self._given.stream or self._worker.name, *parts)
        return random.Random(int(hashlib.sha256(repr(key).encode()).hexdigest(), 16))

    async def count_text_tokens(self, text: str) -> int:
        """Return the number of a text's tokens as billed; Inspect's own count needs network."""
        return count_tokens(text)

    def max_connections(self) -> int:
        """Return how many calls may run at the same time: many, since no server is asked."""
        return 64


def _usage(messages: list[ChatMessage], tools: list[ToolInfo], reply: str) -> ModelUsage:
    """Return the tokens of messages, tools and reply, plus four per message for turn markers."""
    asked = sum(4 + _counted(_written(message)) for message in messages)
    asked += sum(_counted(tool.model_dump_json(exclude_none=True)) for tool in tools)
    said = max(1, count_tokens(reply))
    both = {"input_tokens": asked, "output_tokens": said}
    return ModelUsage(**both, total_tokens=asked + said, reasoning_tokens=0)


def _written(message: ChatMessage) -> str:
    calls = message.tool_calls if isinstance(message, ChatMessageAssistant) else None
    return message.text + spell_calls(calls or [])


_counted = lru_cache(maxsize=1024)(count_tokens)  # a policy and its tools come again each turn


OWN_WEIGHT = {"solve": 1.4, "part": 1.4, "verify": 1.6, "recite": 1.1, "plan": 0.5, "format": 0.0,
              "act": 0.0, "advise": 0.0, "user": 0.0, "dispatch": 0.0}  # fmt: skip
"""Weight of a worker's own answer, by its manner of work; an earlier reply's answer weighs 1."""


def respond(
    worker: Worker, messages: Sequence[ChatMessage], rng: random.Random, heat: float
) -> str:
    """Return a worker's reply to a chat; every chat gets a reply. `heat`: request's temperature."""
    chat = read_chat(messages)
    paper = Scratch(rng, worker, slip=min(1.0, worker.slip * heat))
    if chat.asked == "plan" and worker.name in ("planner", "sage"):
        return _plan_reply(messages[-1].text if messages else "", paper)
    if chat.asked == "program":
        return _program(worker, chat, paper)
    if worker.manner == "recite" and chat.asked != "choice":
        return _recitation(worker, chat, paper)
    return _answer(worker, chat, paper)


def _attempt(worker: Worker, chat: Chat, paper: Scratch) -> WorkedAnswer:
    if worker.manner == "format":
        return WorkedAnswer(None, "I only tidy up what others found")
    if chat.asked == "choice":
        return choices.choose(worker, chat, paper)
    if worker.manner == "part":
        return choices.work_parts(worker, chat, paper)
    attempts = [calculate(worker, chat, paper) for _ in range(worker.passes)]
    answers = [attempt.answer for attempt in attempts]
    if worker.passes == 2 and answers[0] != answers[1]:
        paper.note("The two results differ, so I work it out once more.")
        answers.append(calculate(worker, chat, paper).answer)
    return WorkedAnswer(most_common(answers), attempts[0].why)


def _answer(worker: Worker, chat: Chat, paper: Scratch) -> str:
    own = _attempt(worker, chat, paper)
    checks = paper if worker.manner == "verify" or chat.gathered else None
    if worker.manner == "verify":
        for at, reply in enumerate(chat.earlier, start=1):
            for error in _wrong_equations(reply, paper)[:3]:
                paper.note(f"Reply {at} has an error: {error}.")
    weight = OWN_WEIGHT[worker.manner]
    answer = _weigh(chat.earlier, chat.asked, (own.answer, weight), checks)
    if own.answer is not None and answer != own.answer:
        paper.note(f"I get {own.answer}, but more of the replies before me say {answer}.")
    if answer is None and worker.manner == "plan":
        return _plan_in_words(chat, own.why)
    if answer is None and chat.asked == "choice":
        paper.note(f"{own.why[:1].upper()}{own.why[1:]}, so this is a guess.")
        answer = choices.guess(worker, chat, paper)
    if answer is None:
        return _no_answer_reply(worker, own.why, paper)
    return _answer_reply(worker, chat, answer, paper)


def _recitation(worker: Worker, chat: Chat, paper: Scratch) -> str:
    """Return a reply that states the facts a question needs; other workers are to compute."""
    told = statements(place_statements(chat.everything, chat.earlier), known_names(worker.facts))
    kept = [line for line in told if not paper.slips(1)]
    found = None if told else find_expression(chat.question)
    if found:
        kept.append(f"By {found[0]}, compute: {found[1]}.")
    settled = _weigh(chat.earlier, chat.asked, (None, 0.0), None)
    if settled is not None and not kept:
        return _answer_reply(worker, chat, settled, paper)
    if not kept:
        return _no_answer_reply(worker, "I know of no fact that helps here", paper)
    ending = "I leave the computation to someone else."
    return "\n".join(["These are the facts that matter here.", *kept, ending])


def _program(worker: Worker, chat: Chat, paper: Scratch) -> str:
    own = write_program(worker, chat.question, paper) if worker.families else None
    mine = own[1].strip("\n") if own else None
    earlier = [reply for reply in chat.earlier if final_answer(reply, "program")]
    weighed = _weigh(earlier, "program", (mine, OWN_WEIGHT[worker.manner]), None)
    code = agreed_program(earlier, mine) if chat.gathered else weighed
    if code is None:
        return _no_answer_reply(worker, "I do not know how to write this program", paper)
    return _program_reply(worker, chat, code, own[0] if own and code == mine else "")


_LEFT = re.compile(r"[\d(][-+*/^().\d\s]*$")
_RIGHT = re.compile(r"\s*(-?\d+)(?![\d.*/^+(]|\s*[-*/^+(])")
_NAMED = re.compile(
    r"the (sum|difference|product|power|quotient) of (-?\d+), (-?\d+) is (-?\d+)\b(?!/)"
)
_SIGNS = {"sum": "+", "difference": "-", "product": "*", "power": "^", "quotient": "/"}


def _wrong_equations(reply: str, paper: Scratch) -> list[str]:
    """Return sentences on the equations in a reply that are wrong when computed again."""
    low = plain_words(reply[:6000])
    stated = _stated(low)
    stated += [(f"({m[2]}) {_SIGNS[m[1]]} ({m[3]})", m[4]) for m in _NAMED.finditer(low)][:12]
    found: list[str] = []
    for expression, claimed in stated:
        state = atomised(expression)
        try:
            value = evaluate(state.marks(state.text)[-1], paper)
        except (OutOfReach, IndexError):
            continue
        if str(value) != claimed:
            found.append(f"{expression} = {claimed} is wrong, it is {value}")
    return found


def _stated(text: str) -> list[tuple[str, str]]:
    """Return (expression, claimed value) of equations in a text, from its first 12 equals signs."""
    found: list[tuple[str, str]] = []
    for sign in list(re.finditer("=", text))[:12]:
        left = _LEFT.search(text[max(0, sign.start() - 80) : sign.start()])
        right = _RIGHT.match(text, sign.end())
        if left and right and re.search(r"\d\s*[-+*/^]", left[0]):
            found.append((left[0].strip(), right[1]))
    return found


def _form(program: str) -> str | None:
    """Return a program without layout and comments, or None if it is not Python; runs nothing."""
    try:
        return ast.unparse(parse_python(program))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def agreed_program(replies: Sequence[str], own: str | None) -> str | None:
    """Return the program that most replies agree on; of equally frequent ones, the first.

    The worker's own program counts as one more vote; it is returned only if no reply has a program.
    """
    found = [final_answer(reply, "program") for reply in replies]
    programs = [program for program in found if program and _form(program) is not None]
    if not programs:
        return own
    forms = [_form(program) for program in [*programs, *([own] if own else [])]]
    return max(programs, key=lambda program: forms.count(_form(program)))


def _weigh(
    replies: Sequence[str], asked: AnswerKind, own: tuple[str | None, float], paper: Scratch | None
) -> str | None:
    """Return the answer with most weight: 1 per reply, less if equations in a reply are wrong.

    `own` is the worker's own answer with its weight. Of replies, later ones weigh slightly more.
    Without `paper` (working memory) no equation is checked, so all replies weigh about the same.
    """
    weights: dict[str, float] = {}
    for at, reply in enumerate(replies):
        answer = final_answer(reply, asked)
        if answer is None or (asked == "program" and _form(answer) is None):
            continue
        errors = _wrong_equations(reply, paper) if paper and asked != "program" else []
        weights[answer] = weights.get(answer, 0.0) + (0.25 if errors else 1.0) + 0.001 * at
    if own[0] is not None:
        weights[own[0]] = weights.get(own[0], 0.0) + own[1]
    return max(weights, key=lambda answer: weights[answer]) if weights else None


_QUESTION = re.compile(r"USER QUESTION:\s*(.*?)\s*(?=AVAILABLE LANGUAGE MODELS:|\Z)", re.DOTALL)
_MODELS = re.compile(r"^\W*Model (\d+)(?:\s*[:\-]\s*(.*))?$", re.MULTILINE)
_MOST = re.compile(r"at most (\d+)")
_CODE = r"class solution|stdin|standard input|```python|first line|\bprogram\b|\bprint\b"
_ASKED_AGAIN = "leave all three lists empty"
_KEEP = "I cannot do better.\n\nmodel_id = []\nsubtasks = []\naccess_list = []"
"""The reply to a prompt that asks for a better plan: a worker cannot judge the answer so far."""
_FOUND = re.compile(
    r"element (?:with|whose|having|that has|which has|number)|is the atomic number of (?:an?|some|which)"
    r"|(?:places?|positions|steps) (?:after|before|from|forward|back|ahead|beyond)"
)
"""Matches a question in which an element must be found by a number that is computed first."""
ROLES = {
    "facts": r"\bfacts?\b|knowledge|elements|planets|remembers|encyclop|looks? up|recit",
    "compute": r"arithmetic|comput|calculat|number theory|numbers|mathematic",
    "code": r"\bcode|program|python|software",
    "all": r"generalist|careful|all-?round|everything|general",
    "check": r"verif|check|review|errors|mistakes",
    "format": r"format|tidies|final answer|extract|cleans",
}


_Step = tuple[str, str, tuple[int, ...] | str]  # role or model, subtask, and what it reads
_WORK = "Use the work above to answer the question."
_FACTS = "Write down the facts and intermediate results that answering the question needs."
_PLANS: dict[str, tuple[str, list[_Step]]] = {
    "code": (
        "The question asks for a program, so a model that writes code should do it in one step.",
        [("code", "Write the program.", ())],
    ),
    "lookup": (
        "The question asks for a fact, so the model with the largest store of facts should answer.",
        [("facts", "", ())],
    ),
    "compute": (
        "The question is a computation; one model computes and another checks the result.",
        [("compute", "", ()), ("check", "Check the reply above and give the final answer.", "all")],
    ),
    "choice": (
        "The question needs a formula or fact and then a computation, in that order.",
        [
            ("facts", "State the facts or the formula that the question needs.", ()),
            ("compute", "Compute the result and choose.", "all"),
        ],
    ),
    "composed": (
        "The question needs facts first and a computation on them second.",
        [("facts", _FACTS, ()), ("compute", _WORK, "all")],
    ),
    "found": (
        "An element has to be found by computing before more can be looked up.",
        [
            ("facts", "Write down the facts that the question needs first.", ()),
            ("compute", "Work out which element or planet is meant, by its number.", "all"),
            ("facts", "Look up what the question asks of it.", "all"),
            ("compute", _WORK, "all"),
        ],
    ),
}


def _plan_reply(prompt: str, paper: Scratch) -> str:
    if _ASKED_AGAIN in prompt:
        return _KEEP
    found, most = _QUESTION.search(prompt), _MOST.search(prompt)
    question = found[1] if found else ""
    listed = prompt[prompt.find("AVAILABLE LANGUAGE MODELS:") :]
    cards = {int(m[1]): (m[2] or "").lower() for m in _MODELS.finditer(listed) if int(m[1]) < 100}
    if not cards:
        return "I see no models to choose from."
    reason, wanted = _PLANS[_kind(question)]
    if not any(cards.values()):  # identities are hidden
        wanted = [*wanted, ("all", "Give the final answer from the replies above.", "all")]
    models: list[int] = []
    for role, _, _ in wanted:
        models.append(_pick(role, cards, paper, models))
    limit = max(1, int(most[1][:3]) if most else 5)
    subtasks = ", ".join(f'"{subtask}"' for _, subtask, _ in wanted[:limit])
    reads = [reads if at else () for at, (_, _, reads) in enumerate(wanted[:limit])]
    access = ", ".join('["all"]' if one == "all" else str(list(one)) for one in reads)
    lists = f"model_id = {models[:limit]}\nsubtasks = [{subtasks}]\naccess_list = [{access}]"
    return f"{reason}\n\n{lists}"


def _kind(question: str) -> str:
    low = question.lower()
    if re.search(_CODE, low):
        return "code"
    facts = re.search(name_pattern(), low) is not None and bool(attributes_in(low))
    if re.search(r"^\s*\(?[A-D][).:]", question, re.MULTILINE):
        return "lookup" if not re.search(r"\d", low.split("\na")[0]) else "choice"
    if facts and _FOUND.search(low):
        return "found"
    return "composed" if facts else "compute"


def _pick(role: str, cards: dict[int, str], paper: Scratch, taken: list[int]) -> int:
    fits = {model: len(re.findall(ROLES[role], card)) for model, card in cards.items()}
    if any(fits.values()):
        return max(fits, key=lambda model: fits[model])
    return paper.random.choice([model for model in cards if model not in taken] or list(cards))


def _plan_in_words(chat: Chat, why: str) -> str:
    """Return a plan in words: what to find out, what to compute, and how the answer must look."""
    names = list(dict.fromkeys(re.findall(name_pattern(), chat.question.lower())))[:6]
    steps = [f"Find out what the question needs about {name}." for name in names]
    steps += ["Put these values into the question.", "Work the calculation out step by step."]
    steps += ["Give the final answer in the form that is asked for."]
    listed = "\n".join(f"Step {at}: {step}" for at, step in enumerate(steps, start=1))
    return f"{listed}\n{why[:1].upper()}{why[1:]}, so I leave the steps to others."


ASIDES = (
    "Let me restate what is asked, so that nothing is overlooked.",
    "I write the quantities down before I combine them.",
    "Each step is done on its own and then compared with the one before.",
    "The size of the result is what one would expect.",
    "A second look at the wording does not change the reading.",
    "I keep the exact values until the end.",
    "Nothing in the question suggests another interpretation.",
    "The units and the range of the answer are consistent with the question.",
)


def _written_working(worker: Worker, chat: Chat, paper: Scratch) -> str:
    """Return the working that a worker writes before its answer: the question, asides, steps."""
    words = without_format(chat.question).split()[: round(12 * worker.verbosity)]
    asides = [ASIDES[at % len(ASIDES)] for at in range(round(1.5 * worker.verbosity))]
    half = len(asides) // 2
    lines = paper.lines[: round(8 * worker.verbosity)]
    opening = f"The question: {' '.join(words)} ..."
    return "\n".join([opening, *asides[:half], *lines, *asides[half:]])


def _answer_reply(worker: Worker, chat: Chat, answer: str, paper: Scratch) -> str:
    text = _written_working(worker, chat, paper)
    if chat.asked == "choice":
        ending = f"It is {answer}." if worker.prose and paper.slips(2) else f"Answer: {answer}"
    elif worker.prose:
        ending = f"So it is {answer}." if paper.random.random() < 0.5 else f"\\boxed{{{answer}}}"
    else:
        ending = f"The answer is \\boxed{{{answer}}}."
    return f"{text}\n{ending}".strip()


def _program_reply(worker: Worker, chat: Chat, code: str, family: str) -> str:
    intro = f"This is a task about {family}.\n" if family and worker.verbosity >= 0.5 else ""
    asides = "\n".join(ASIDES[: round(3 * worker.verbosity)])
    return f"{intro}{asides}\n```python\n{code}\n```".strip()


def _no_answer_reply(worker: Worker, why: str, paper: Scratch) -> str:
    lines = "\n".join(paper.lines[:5]) if worker.verbosity >= 1 else ""
    reason = why or "I cannot settle this"
    return f"{lines}\n{reason[:1].upper()}{reason[1:]}. I cannot give an answer.".strip()
