"""A seeded mutation fuzzer for every reader of plans.

Grammar-aware: it begins with plans in every spelling that a reader knows, and cuts, doubles, swaps,
nests and splices them with the words and signs that such texts are made of. Each input goes through
every reader; what comes back must be a workflow that can run, or a reason. test_reader_fuzz.py runs
ten thousand, `make fuzz` (benchmarks/fuzz.py) a million.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random

from podium.conductor.parse import KEEP, PlanFormat, plan_or_keep, read_plan
from podium.harness.workflow import Malformed, Workflow, check

WORKERS = ("abacus", "sage", "scribe")

SEEDS = (
    'model_id = [0]\nsubtasks = ["Solve it."]\naccess_list = [[]]',
    'model_id = [1, 0]\nsubtasks = ["Look up.", "Compute."]\naccess_list = [[], ["all"]]',
    "model_id = [2,1,0]\nsubtasks = ['a', 'b', '''c\nd''']\naccess_list = [[], \"all\", [0, 1]]",
    "model_id = []\nsubtasks = []\naccess_list = []",
    '{"model_id": [1, 0], "subtasks": ["Look up.", "Compute."], "access_list": [[], ["all"]]}',
    '{"steps": [{"model_id": 0, "subtask": "Do \\"it\\".", "access_list": []}]}',
    '[{"model_id": 0, "subtask": "a", "access_list": []},'
    ' {"model_id": 1, "subtask": "\\ud83d\\ude00", "access_list": [0]}]',
    '{"model_id": [], "subtasks": [], "access_list": []}',
    'I think.\n```python\nmodel_ids: ("Model 2", 1)\nsubtask = [“x”, "y\nz"]\n'
    "access_list = (None, all)\n```",
    'model_id = 1\nsubtasks = "Find \\frac{1}{2} of \\theta"',
)
WORDS = (
    *("model_id", "subtasks", "access_list", "steps", "subtask", " = ", ": ", "[", "]", "(", ")"),
    *("{", "}", ",", '"', "'", '"""', "'''", "“", "”", "\\", "\n", "\r", "\t", "#", "all", "None"),
    *("null", "true", "NaN", "-", "0", "1", "9" * 30, "1e999", "0x1", "\0", "\ud800", "Model 1"),
    *("__import__('os').system('x')", "lambda: 0", "f'{1}'", "b'a'", "\\N{BULLET}", "\\u0041"),
    *("[" * 40, "{" * 40, '{"a":' * 40, "[[]" * 20, " " * 300, "\\" * 99, "```", "é", "\u2028"),
)
FORMS = (
    PlanFormat(),
    PlanFormat(reply="json", access="off", subtasks=False, worker="sage"),
)


def inputs(seed: int) -> Iterator[str]:
    """Yield texts without end; the same seed yields the same ones."""
    random = Random(seed)
    while True:
        text = random.choice(SEEDS)
        for _ in range(random.randint(1, 5)):
            text = random.choice(MUTATIONS)(text, random)
        yield text[:8_000]


def _span(text: str, random: Random) -> tuple[int, int]:
    start = random.randint(0, len(text))
    return start, min(len(text), start + random.choice((0, 1, 2, 5, 20)))


def _cut(text: str, random: Random) -> str:
    start, end = _span(text, random)
    return text[:start] + text[end:]


def _double(text: str, random: Random) -> str:
    start, end = _span(text, random)
    return text[:end] + text[start:end] * random.choice((1, 2, 30)) + text[end:]


def _insert(text: str, random: Random) -> str:
    start, end = _span(text, random)
    return text[:start] + random.choice(WORDS) + text[random.choice((start, end)) :]


def _swap(text: str, random: Random) -> str:
    one, other = random.choice(WORDS), random.choice(WORDS)
    return text.replace(one, other) if len(text) < 5_000 else text


def _splice(text: str, random: Random) -> str:
    other = random.choice(SEEDS)
    return text[: random.randint(0, len(text))] + other[random.randint(0, len(other)) :]


def _break_off(text: str, random: Random) -> str:
    return text[: random.randint(0, len(text))]


def _nest(text: str, random: Random) -> str:
    opening, closing = random.choice((("[", "]"), ("(", ")"), ('{"steps": ', "}"), ('"', '"')))
    times = random.choice((1, 1, 3, 60))
    return opening * times + text + closing * times


def _draft(text: str, random: Random) -> str:
    return f"{random.choice(SEEDS)}\nNo, better:\n{text}"


def _letter(text: str, random: Random) -> str:
    at = random.randint(0, len(text))
    code = random.randrange(random.choice((128, 0x11000)))
    return text[:at] + chr(code) + text[at:]


MUTATIONS: tuple[Callable[[str, Random], str], ...] = (
    *(_cut, _cut, _double, _insert, _insert, _swap, _splice, _break_off, _nest, _draft, _letter),
)


def read_by_all(text: str) -> list[str]:
    """Return what each reader made of a text; AssertionError for what no reader may make."""
    found: list[str] = []
    for form in FORMS:
        plan = read_plan(form, text, WORKERS)
        if isinstance(plan, Workflow):
            assert check(plan, WORKERS, form.max_steps) is plan
            assert all(step.subtask.encode().decode() == step.subtask for step in plan.steps)
            found.append("plan")
        else:
            assert isinstance(plan, Malformed)
            assert plan.reason
            assert len(plan.reason) < 300
            found.append("keep" if plan_or_keep(plan) is KEEP else "malformed")
    return found


def fuzz(count: int, seed: int = 0) -> Counter[str]:
    """Read so many texts with every reader; return how often each kind of result came."""
    tally: Counter[str] = Counter()
    for text in islice(inputs(seed), count):
        try:
            tally.update(read_by_all(text))
        except Exception as error:
            raise AssertionError(f"seed {seed}: {text!r}") from error
    return tally
