"""OpenRouter's Fusion, and the strategies of several calls in vLLM's Semantic Router.

The Semantic Router (its model `vllm-sr/auto`) calls such a strategy a looper: `fusion`, `remom`,
`confidence`, `ratings` (Apache-2.0; github.com/vllm-project/semantic-router, commit 3d48f8c,
pkg/looper). Fusion is OpenRouter's product (openrouter.ai/docs/guides/features/plugins/fusion),
whose prompts are not public: our `fusion` has OpenRouter's presets and vLLM's prompts.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import chain, islice, repeat
from typing import Any, cast

from podium.baselines.by_tests import cheapest_first
from podium.baselines.common import register, seeded_random
from podium.baselines.mixture import as_names
from podium.baselines.single import known
from podium.harness.errors import UserError
from podium.harness.execute import Session
from podium.harness.pool import Pool
from podium.harness.pool_config import PoolSpec
from podium.harness.records import FALLBACK, Answer, Question, Reply
from podium.harness.system import VOTED, Calls, System, SystemCard, SystemMethods, exactly
from podium.harness.workflow import Sampling, Step

SOURCE = "vLLM Semantic Router, pkg/looper/{}.go, commit 3d48f8c (Apache-2.0)"
OWN_LIMIT = "each worker keeps its own token limit"
_UNSCORED = "a worker without a reply leaves the question unscored (theirs: it is left out)"
_IN_ONE = (
    "a stage's prompt follows the question in one user message (theirs: in a second one, or in its "
    "place)"
)


class _Unread(SystemMethods):
    def footnote(self, label: str) -> str:
        if label != "rehearsal":
            return ""
        return (
            "rehearsal workers do not read replies that a prompt quotes, so this row shows what it "
            "costs there, not how well it does"
        )


def _filled(template: str, **texts: str) -> str:
    """Return a prompt template with its fields replaced by texts; braces in a text stay as is."""
    names = "|".join(texts)
    return re.sub(rf"\{{({names})\}}", lambda match: texts[match.group(1)], template)


def _numbered(label: str, replies: Sequence[Reply]) -> str:
    """Return replies as one text, each under a heading with its number and its worker's name."""
    listed = (f"{label} {n} ({reply.worker}):\n{reply.text}" for n, reply in enumerate(replies, 1))
    return "\n\n".join(listed)


# --- fusion -----------------------------------------------------------------------------------

ANALYSIS = """\
You are the Fusion analysis judge. Compare the panel responses and return only valid JSON with \
these keys: consensus, contradictions, partial_coverage, unique_insights, blind_spots. Return \
compact JSON only: no markdown, no code fences, no prose before or after the JSON. Each value must \
be an array with at most two concise strings.

Original prompt:
{question}

Panel responses:
{responses}"""
NO_ANALYSIS = "No structured analysis is available. Synthesize directly from the panel responses."
FINAL = """\
You are the Fusion calling model. Produce the final answer for the user using the panel responses \
and structured analysis. Resolve contradictions explicitly and do not mention internal model names \
unless the user asks.

Rules:
- Preserve the original output contract exactly.
- Do not reveal hidden reasoning, scratch work, panel reasoning, tool traces, or internal \
deliberation.
- Provide a concise explanation only when the original output contract asks for one.

Original prompt:
{question}

Structured analysis:
{analysis}

Panel responses:
{responses}

Final answer:"""
"""The three prompts of vLLM's fusion looper, word for word: fusion.go at the commit in `SOURCE`."""

KEYS = ("consensus", "contradictions", "partial_coverage", "unique_insights", "blind_spots")
PANEL = 8  # OpenRouter's largest panel
COLD = Sampling(temperature=0.0)
"""OpenRouter's judge always compares at temperature 0 (guides/routing/routers/fusion-router)."""

OPUS = "~anthropic/claude-opus-latest"
PRESETS: Mapping[str, tuple[str, ...]] = {
    "general-high": (OPUS, "~openai/gpt-latest", "~google/gemini-pro-latest"),
    "general-budget": (
        "google/gemini-3-flash-preview",
        "moonshotai/kimi-k2.6",
        "deepseek/deepseek-v4-pro",
    ),
}
"""OpenRouter's presets: name -> model ids of the panel. For both, `OPUS` judges and writes.
The first is the default in the plugin's documentation (read 2026-11-27); the second is the
budget panel of its announcement (fusion-beats-frontier, 2026-06-12)."""

UNCOMPARED = "a judge's comparison could not be read, so the panel's replies alone were merged"


def _panel(args: Mapping[str, Any], workers: int) -> int:
    preset = PRESETS.get(str(args.get("preset")), ())
    return len(as_names(args.get("panel"))) or len(preset) or min(workers, PANEL)


class _Presets(_Unread):
    """Methods of system `fusion`; for `fusion@PRESET`, the pool must have the preset's models."""

    def arguments(self, x: str) -> Mapping[str, Any]:
        """Return the arguments for `fusion@PRESET`; `aggregator` None means the preset's judge."""
        if x and x not in PRESETS:
            raise UserError(f"fusion has no preset {x!r}; it has {', '.join(PRESETS)}.")
        return {"preset": x, "aggregator": None} if x else {}

    def pool_refusal(self, x: str, spec: PoolSpec) -> str | None:
        """Return a message with the preset's models that the pool lacks; None if it has all."""
        has = {slot.model.removeprefix("openrouter/") for slot in spec.workers}
        models = dict.fromkeys((*PRESETS[x], OPUS)) if x in PRESETS else ()
        lacks = ", ".join(model for model in models if model not in has)
        return f"needs workers of {lacks}. Use pool openrouter-fusion." if lacks else None


FUSION = SystemCard(
    name="fusion",
    solver="podium/fusion",
    summary="A panel answers; a judge compares the answers and writes the final one.",
    source=f"OpenRouter's Fusion, 2026-06; prompts: {SOURCE.format('fusion')}",
    calls=Calls(
        "panel + 2: n + 2 with at most eight workers, 5 with a preset",
        exactly(lambda n, args: _panel(args, n) + 2),
    ),
    prompts=(ANALYSIS, NO_ANALYSIS, FINAL),
    k="preset",
    deviations=(
        "no web search (OpenRouter's panel and judge have it)",
        "every question is deliberated on (OpenRouter's model decides whether to)",
        "who judges and writes is the best single worker on train questions where the run chooses "
        "one, else the pool's first, unless named or a preset's",
        "the panel of general-budget is the announcement's of 2026-06-12",
        "a comparison is the JSON between its outer braces (the open looper also mends loose JSON)",
        _IN_ONE,
        _UNSCORED,
        OWN_LIMIT,
    ),
    methods=_Presets(),
    spent=VOTED,
)


def comparison(text: str) -> dict[str, list[str]] | None:
    """Return a judge's comparison: key of `KEYS` -> sentences; None if the text has no such JSON.

    >>> comparison('It is {"consensus": ["both say 4"], "blind_spots": [], "more": 1}')
    {'consensus': ['both say 4']}
    >>> comparison("They agree."), comparison('{"consensus": "all"}')
    (None, None)
    """
    start, end = text.find("{"), text.rfind("}")
    try:
        parsed: object = json.loads(text[start : end + 1]) if start >= 0 else None
    except (ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    fields = cast("dict[str, object]", parsed)
    lists = {name: fields[name] for name in KEYS if fields.get(name)}
    if not all(isinstance(entry, list) for entry in lists.values()):
        return None
    read = cast("dict[str, list[object]]", lists)
    if not all(isinstance(text, str) for texts in read.values() for text in texts):
        return None
    return cast("dict[str, list[str]]", read)


def _with_model(pool: Pool, model: str) -> str:
    """Return the pool's first worker that uses `model`; UserError if no worker does."""
    for worker in pool.workers:
        name = pool.spec.worker(worker).model if pool.spec else str(pool.models[worker])
        if name.removeprefix("openrouter/") == model:
            return worker
    raise UserError(f"This pool has no worker of {model}. Use pool openrouter-fusion.")


@register
def fusion_system(
    preset: str | None = None,
    panel: str | list[str] | None = None,
    aggregator: str | None = None,
) -> System:
    """Return Fusion: a panel of workers answers, then `aggregator` judges and writes the answer.

    The panel is `panel`, else that of `preset`, else the pool's first 8 workers.
    """
    FUSION.methods.arguments(preset or "")  # raises for an unknown preset

    async def answer(question: Question, pool: Pool) -> Answer:
        workers = [known(pool, name) for name in as_names(panel)]
        workers = workers or [_with_model(pool, model) for model in PRESETS.get(preset or "", ())]
        ends = _with_model(pool, OPUS) if preset and not aggregator else known(pool, aggregator)
        session = Session(question, pool)
        steps = [Step(worker) for worker in workers or pool.workers[:PANEL]]
        drawn = await session.ask_all(steps, partly=True, keeps=2)
        texts = {"question": question.text, "responses": _numbered("Response", drawn).strip()}
        judging = Step(ends, _filled(ANALYSIS, **texts), reads="all", sampling=COLD)
        result = comparison((await session.ask(judging, quoted=True, opinion=True)).text)
        text = NO_ANALYSIS if result is None else json.dumps(result, indent=2, ensure_ascii=False)
        writing = Step(ends, _filled(FINAL, analysis=text, **texts), reads="all")
        final = await session.ask(writing, quoted=True)
        return session.answer(final.text, {FALLBACK: UNCOMPARED} if result is None else {})

    return answer


# --- remom ------------------------------------------------------------------------------------

REFERENCES = (
    "You are given a problem and a list of reference responses. Your job is to analyze these "
    "references and provide your own response."
)
SYNTHESIS = """\
Reference Responses:

{responses}

Now, based on the original problem and reference responses above, please provide your own \
comprehensive solution."""
"""Texts of vLLM's ReMoM looper before and after the question: remom.go, commit in `SOURCE`."""

BREADTH = 4  # default calls in a single round, before the final call
HOT = Sampling(temperature=1.0)


def _breadths(breadth: object) -> list[int]:
    """Return remom's calls per round: `4` is one round, `3,2` are two; UserError if invalid."""
    listed = cast("list[object]", breadth) if isinstance(breadth, list) else [breadth]
    words = [word.strip() for entry in listed for word in str(entry).split(",")]
    if not all(re.fullmatch(r"[1-9]\d?", word, re.ASCII) for word in words):
        raise UserError(
            f"remom's breadth is 1 to 99 calls, or one such number per round, not {breadth!r}."
        )
    return [int(word) for word in words]


REMOM = SystemCard(
    name="remom",
    solver="podium/remom",
    summary="Parallel answers in rounds that read the round before; one final call.",
    source=f"{SOURCE.format('remom')}, after PaCoRe, arXiv 2601.05593",
    calls=Calls(
        "breadth + 1, with breadth = 4 by default; several rounds: their sum + 1",
        exactly(lambda n, args: sum(_breadths(args.get("breadth") or BREADTH)) + 1),
    ),
    prompts=(REFERENCES, SYNTHESIS),
    k="breadth",
    deviations=(
        "calls go to workers in turn from the pool's first, as with its equal weights (theirs then "
        "shuffles who is asked first, which changes nothing)",
        "references stand in an order that our seed draws anew for each question (theirs: one "
        "fixed shuffle of replies by length)",
        "its opening words are the system message, and the question stands without its heading",
        "the last call goes to the best single worker on train questions where the run chooses "
        "one, else to the pool's first, unless named (theirs: the first, unless named)",
        _UNSCORED,
        OWN_LIMIT,
    ),
    methods=_Unread(),
    spent=VOTED,
)


@register
def remom_system(
    breadth: int | str | list[int] = BREADTH, aggregator: str | None = None, seed: int = 0
) -> System:
    """Return ReMoM: rounds of parallel calls (`breadth=[3, 2]`: two rounds), then a final call."""
    rounds = _breadths(breadth)

    async def answer(question: Question, pool: Pool) -> Answer:
        random = seeded_random(REMOM.name, seed, question.id, pool.epoch)
        final, session, start = known(pool, aggregator), Session(question, pool), 0
        replies: list[Reply] = []
        for number, count in enumerate((*rounds, 1)):
            workers = _in_turn(pool.workers, count) if number < len(rounds) else [final]
            read = tuple(range(start, len(session.steps)))
            start = len(session.steps)
            shuffled = random.sample(replies, len(replies))
            steps = [_synthesis(worker, shuffled, read) for worker in workers]
            keeps = int(number < len(rounds))
            replies = await session.ask_all(steps, quoted=True, partly=True, keeps=keeps)
        return session.answer(replies[0].text)

    return answer


def _in_turn(workers: Sequence[str], count: int) -> list[str]:
    """Return the worker of each of a round's `count` calls: the pool's workers in order, repeated.

    >>> _in_turn(["a", "b"], 5)
    ['a', 'b', 'a', 'b', 'a']
    """
    return list(islice(chain.from_iterable(repeat(workers)), count))


def _synthesis(worker: str, replies: Sequence[Reply], read: tuple[int, ...]) -> Step:
    if not replies:
        return Step(worker, sampling=HOT)
    prompt = _filled(SYNTHESIS, responses=_numbered("Reference", replies))
    return Step(worker, prompt, reads=read, system=REFERENCES, sampling=HOT)


# --- confidence -------------------------------------------------------------------------------

EVALUATING = "You are evaluating the quality of an AI assistant's response."
RATE = """\
AI's Response: {response}

Rate the quality and correctness of this response on a scale of 0.0 to 1.0:
- 1.0 = Completely correct, comprehensive, and well-explained
- 0.8 = Mostly correct with minor issues
- 0.6 = Partially correct but missing important details
- 0.4 = Has some correct elements but significant errors
- 0.2 = Mostly incorrect or irrelevant
- 0.0 = Completely wrong or harmful

Respond with ONLY a JSON object in this format:
{"confidence": 0.X, "reason": "brief explanation"}
"""
"""Texts of vLLM's confidence looper before and after the question: confidence.go at the commit in
`SOURCE`."""

THRESHOLD = 0.7  # the looper's default if workers rate their own answers
NEARLY_COLD = Sampling(temperature=0.1)
UNRATED = "no worker's rating of its own answer could be read, so the last answer stands"

CONFIDENCE = SystemCard(
    name="confidence",
    solver="podium/confidence",
    summary="Asks workers, cheapest first, until one is sure of its own answer.",
    source=SOURCE.format("confidence"),
    calls=Calls("2-2n", lambda n, args: (2, 2 * (len(as_names(args.get("order"))) or n))),
    prompts=(EVALUATING, RATE),
    traits=frozenset({"adaptive"}),
    deviations=(
        "a worker rates its own answer, as with its `self_verify` (its default reads the odds of "
        "tokens, which few providers tell, and accepts every answer at its default threshold)",
        "cheapest first by input plus output rate, as in its order `cost`, in pool order where a "
        "worker has no price or the pool no file, unless named (its default: fewest parameters)",
        "its opening words are the system message, and the question stands without its heading",
        "where no rating can be read the last answer stands (theirs: an error)",
        _UNSCORED,
        f"{OWN_LIMIT}, ratings too (theirs: 256 tokens for a rating)",
    ),
    methods=_Unread(),
    acts="passes",
)


def stated_confidence(text: str) -> float | None:
    r"""Return the confidence, from 0 to 1, that a worker's self-rating states; None if unreadable.

    >>> stated_confidence('{"confidence": 0.85, "reason": "x"}'), stated_confidence("about 0.4")
    (0.85, 0.4)
    >>> stated_confidence("{sure}"), stated_confidence("I give it 7."), stated_confidence("Fine.")
    (None, None, None)
    """
    text = text.strip()
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        number = re.search(r"[0-9]+\.?[0-9]*", text)
        value = float(number.group()) if number else -1.0
        return value if 0 <= value <= 1 else None
    try:
        data: object = json.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return None
    sure = cast("dict[str, object]", data).get("confidence", 0) if isinstance(data, dict) else None
    if isinstance(sure, bool) or not isinstance(sure, int | float) or math.isnan(sure):
        return None
    return float(min(1, max(0, sure)))


@register
def confidence_system(order: str | list[str] | None = None, threshold: float = THRESHOLD) -> System:
    """Return the system that asks workers in turn until a self-rating reaches `threshold`.

    The workers are those of `order`, else all of the pool, cheapest first.
    """
    if not 0 <= threshold <= 1:
        raise UserError(f"confidence needs a threshold between 0 and 1, not {threshold:g}.")
    orders: dict[tuple[str, ...], tuple[str, ...]] = {}  # cached: reads a price book once per pool

    async def answer(question: Question, pool: Pool) -> Answer:
        if pool.workers not in orders:
            workers = tuple(known(pool, name) for name in as_names(order))
            orders[pool.workers] = workers or cheapest_first(pool)
        session, rated, reply = Session(question, pool), list[float | None](), ""
        rated_reply: str | None = None
        for worker in orders[pool.workers]:
            reply = (await session.ask(Step(worker))).text
            sure = await _rated(session, worker, reply)
            rated.append(sure)
            rated_reply = rated_reply if sure is None else reply
            if sure is not None and sure >= threshold:
                break
        noted: dict[str, Any] = {"confidences": rated}
        noted |= {FALLBACK: UNRATED} if rated_reply is None else {}
        return session.answer(reply if rated_reply is None else rated_reply, noted)

    return answer


async def _rated(session: Session, worker: str, answer: str) -> float | None:
    prompt = _filled(RATE, response=answer)
    read = (len(session.steps) - 1,)
    step = Step(worker, prompt, reads=read, system=EVALUATING, sampling=NEARLY_COLD)
    return stated_confidence((await session.ask(step, quoted=True, opinion=True)).text)


# --- ratings ----------------------------------------------------------------------------------

RATINGS = SystemCard(
    name="ratings",
    solver="podium/ratings",
    summary="Every worker answers, for a person to rate; the first answer is graded.",
    source=SOURCE.format("ratings"),
    calls=Calls("n", exactly(lambda n, args: n)),
    deviations=(
        "all replies are choices for a person to rate, and nobody rates in an exam: the first "
        "choice, the pool's first worker's, is what is graded, and all are paid for",
        _UNSCORED,
    ),
    acts="votes",
)


@register
def ratings_system() -> System:
    """Return the system whose workers all answer, for a person to rate; the first one is graded."""

    async def answer(question: Question, pool: Pool) -> Answer:
        session = Session(question, pool)
        replies = await session.ask_all([Step(worker) for worker in pool.workers], partly=True)
        return session.answer(replies[0].text)

    return answer
