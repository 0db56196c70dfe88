"""A provider whose requests say what becomes of them, for tests of what is written down of a call.

`moody/<name>` reads the last message: the words behind the colon are the fates of the request's
attempts over HTTP, in order: `429` and `500` fail and are tried again, so does `drop`, which gets
no answer, `400` and `die` fail for good, `hang` never ends, `long` is refused for its length,
`answer` answers. Every attempt that reaches it is noted in `SENT`.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog
from inspect_ai.model import (
    ChatMessage,
    GenerateConfig,
    Model,
    ModelAPI,
    ModelCall,
    ModelOutput,
    ModelUsage,
    get_model,
    modelapi,
)
from inspect_ai.solver import Solver, solver
from inspect_ai.tool import ToolChoice, ToolInfo
from tenacity import wait_none
from tenacity.wait import WaitBaseT

from podium.harness.context import run_context
from podium.harness.inspect_adapters import as_solver
from podium.harness.ledger.journal import Head, folder_of, read_lines
from podium.harness.ledger.recorder import TaskJournal
from podium.harness.system import planned
from podium.harness.workflow import Step, Workflow

SENT: list[str] = []
"""`name fate` of every attempt, in order."""

SECRET = "the gold answer is swordfish"
"""What a provider's error quotes."""

HEAD = Head("moods", "mood", "moody", "live", "book", "0" * 64)


class Refused(Exception):
    """What an SDK raises for an HTTP status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status}: {SECRET}")
        self.status_code = status


class MoodyAPI(ModelAPI):
    """Does what the request says."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - Inspect's own signature
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)
        self.tried: Counter[str] = Counter()

    def should_retry(self, ex: BaseException) -> bool:
        refused = isinstance(ex, Refused) and ex.status_code in (429, 500)
        return refused or isinstance(ex, ConnectionError)

    def retry_wait(self) -> WaitBaseT:
        return wait_none()

    def max_tokens(self) -> int:
        return 777

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> tuple[ModelOutput, ModelCall]:
        """Meet the fate of this attempt; the last one stays."""
        text = input[-1].text
        fates = text.partition(":")[2].split()
        fate = fates[min(self.tried[text], len(fates) - 1)]
        self.tried[text] += 1
        SENT.append(f"{self.model_name} {fate}")
        if fate == "hang":
            await anyio.sleep_forever()
        if fate == "drop":
            raise ConnectionError(SECRET)
        if fate == "die":
            raise RuntimeError(SECRET)
        if fate.isdigit():
            raise Refused(int(fate))
        return _reply(self.model_name, too_long=fate == "long")


def _reply(name: str, *, too_long: bool) -> tuple[ModelOutput, ModelCall]:
    said = "swordfish" if not too_long else SECRET
    output = ModelOutput.from_content(f"{name}-2026-01", said)
    if too_long:
        output.choices[0].stop_reason = "model_length"
    else:
        output.usage = ModelUsage(input_tokens=7, output_tokens=3, total_tokens=10)
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "tier": "default", "note": SECRET}
    response: dict[str, Any] = {"id": "reply-1", "usage": usage, "text": said}
    return output, ModelCall.create({"model": name}, response)


@modelapi(name="moody")
def moody() -> type[ModelAPI]:
    """Register the provider with Inspect."""
    return MoodyAPI


def model(name: str = "sage", **config: Any) -> Model:
    """Return a worker's model."""
    return get_model(f"moody/{name}", config=GenerateConfig(**config), memoize=False)


@solver
def asking_all(workers: tuple[str, ...]) -> Solver:
    """Ask some workers at once what the sample says."""
    return as_solver(planned(lambda question, pool: Workflow(tuple(map(Step, workers)))))


def sat(
    log_dir: Path, texts: Sequence[str], workers: Sequence[Model] = (), **settings: Any
) -> EvalLog:
    """Let every worker answer every text, with a journal, as `podium run` does; return the log."""
    SENT.clear()
    roles = {one.name: one for one in workers or (model(),)}
    journal = TaskJournal(log_dir, HEAD)
    with run_context(log_dir=log_dir, journal=journal):
        solving = asking_all(tuple(roles))
    samples = [Sample(id=text.partition(":")[0], input=text) for text in texts]
    task = Task(MemoryDataset(samples), solver=solving, name=HEAD.task)
    chosen = {"fail_on_error": False, "log_model_api": True, "display": "none", **settings}
    (log,) = eval(task, model=None, model_roles=dict(roles), log_dir=str(log_dir), **chosen)
    journal.close()
    return log


def lines(log_dir: Path, *kinds: str) -> list[dict[str, Any]]:
    """Return the lines of the task's journals, of some kinds or all."""
    paths = sorted(folder_of(log_dir, HEAD.task).glob("*.jsonl"))
    return [row for path in paths for row in read_lines(path) if not kinds or row["kind"] in kinds]


def events(log: EvalLog) -> list[ModelEvent]:
    """Return the model events of a log, in order."""
    found = [event for sample in log.samples or [] for event in sample.events]
    return [event for event in found if isinstance(event, ModelEvent)]
