"""Inspect tasks that run programs in one of podium's sandboxes (a box) or in one of Inspect's.

In Inspect's sandbox, podium's judge (sandbox/inside) runs as root, so that it can give each run of
a program its own user. A solver that is root in the same sandbox could replace the judge: give such
a solver another sandbox. Expected outputs never enter the sandbox.
"""

import base64
import json
import math
import re
import zlib
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from io import BytesIO
from typing import Any, cast

import anyio
import anyio.from_thread
import anyio.to_thread
from inspect_ai import Task, util
from inspect_ai.solver import Generate, Solver, TaskState, solver

from podium.harness.boxes import BoxRecord, refuse_lacking
from podium.harness.context import run_context
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import as_task, offer_public_tests, public_tests_of
from podium.harness.parallel import cores
from podium.harness.suite import Split, Suite
from podium.sandbox import (
    IMAGE,
    Box,
    Limits,
    Program,
    ProgramOutcome,
    SandboxError,
    SandboxFacts,
    cells,
)
from podium.sandbox import open_box as open_own_box
from podium.sandbox.box import SLACK_BYTES
from podium.sandbox.cells import TWICE
from podium.sandbox.images import RECIPES
from podium.sandbox.packages import pinned_packages

COMPOSE = str(resources.files("podium.sandbox") / "compose.yaml")

LACKS_PACKAGES = (
    "The {} sandbox lacks {} packages that programs may import, such as {}. Use the image {}, as "
    "podium's sandbox/compose.yaml does (`podium sandbox build` makes it)."
)

FIRST_S, GROWTH = 2.0, 4.0
"""FIRST_S: for how many seconds a program's first sandbox command may run tests. GROWTH: the
factor by which this grows per command, so that a program that fails early runs few tests."""
GRACE_S = 60.0
INPUT_BYTES = 16 << 20
"""Maximum size of the inputs of one command, in bytes, unless a single input is larger."""
ANSWER_BYTES = 16 << 20
_BATCH_BOOT = cells.BOOT.replace('".judge"', '".batch"')
_FLAGS = (_BATCH_BOOT if flag is cells.BOOT else flag for flag in cells.PYTHON_FLAGS)
COMMAND = ["python3", *_FLAGS]
NO_SANDBOX = (
    "Running programs needs a sandbox. Give one of Inspect's (--sandbox docker) or one of "
    "podium's (-T box=docker)."
)
NO_ISOLATION = (
    "Inspect's local sandbox isolates nothing, so programs written by models do not run there. "
    "Give --sandbox docker, or -T box=subprocess to run them without isolation."
)
NOT_ALLOWED = (
    "The {name} sandbox cannot judge programs: {problem}. Give it root with the capabilities "
    "SETUID, SETGID and KILL, and memory for a program, as podium's sandbox/compose.yaml does."
)
NO_PYTHON = (
    "The {name} sandbox has no `python3` of version 3.11 or newer to judge programs with. "
    "Use the image of podium's sandbox/compose.yaml (`podium sandbox build` makes it)."
)


def boxed_task(
    suite: Suite[Any],
    box: str | None,
    *,
    split: Split = "eval",
    limit: int | None = None,
    epochs: int = 1,
    max_sandboxes: int | None = None,
    limits: Limits = Limits(),  # noqa: B008
) -> Task:
    """Return a suite's task for `inspect eval`; programs run in podium's sandbox named `box`.

    If `box` is None, programs run in Inspect's docker sandbox (or that of `--sandbox`) under
    `limits`. At most `max_sandboxes` programs run simultaneously (None: one per core). Raises
    UserError if podium's sandbox is unknown, unavailable or lacks a package. If Inspect's sandbox
    cannot run the programs, the first sample fails before its first model call.
    """
    opened, facts = InspectBox(limits), dict[str, Any]()
    if box is not None:
        opened, facts = _open_checked_box(box, suite, max_sandboxes)
    places = anyio.CapacityLimiter(max_sandboxes or cores())
    with run_context(programs=places):
        task = as_task(suite, split=split, limit=limit, epochs=epochs, box=opened, metadata=facts)
    setup: list[Solver] = []
    if box is None:
        task.sandbox = compose(suite.image, limits)
        setup.append(sandbox_checked(suite.image, limits))
    trial = public_tests_of(suite, opened, places)
    if trial:
        setup.append(offer_public_tests(trial))
    if setup:
        task.setup = setup
    return task


def compose(image: str = IMAGE, limits: Limits = Limits()) -> util.SandboxEnvironmentSpec:  # noqa: B008
    """Return Inspect's docker sandbox with the image and memory limit of podium's docker box."""
    if image == IMAGE and limits.memory_bytes == Limits().memory_bytes:
        return util.SandboxEnvironmentSpec("docker", COMPOSE)
    config = util.parse_compose_yaml(COMPOSE)
    service = config.services["default"]
    service.image = image
    service.mem_limit = f"{(limits.memory_bytes + SLACK_BYTES) >> 20}m"
    service.memswap_limit = service.mem_limit
    return util.SandboxEnvironmentSpec("docker", config)


@solver
def sandbox_checked(image: str = IMAGE, limits: Limits = Limits()) -> Solver:  # noqa: B008
    """Return a solver that logs facts on Inspect's sandbox; UserError if it cannot run programs."""
    facts_by_box: dict[str, dict[str, Any]] = {}

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        box = InspectBox(limits)
        try:
            if box.name not in facts_by_box:
                facts = await anyio.to_thread.run_sync(box.facts)
                if lacking := _missing_packages(image, facts.packages):
                    raise SandboxError(
                        LACKS_PACKAGES.format(box.name, len(lacking), lacking[0], image)
                    )
                record = BoxRecord.model_validate(facts).model_dump(mode="json", exclude_none=True)
                facts_by_box[box.name] = {**record, "packages": len(facts.packages)}
            state.metadata["box"] = box.name
            state.metadata["box_facts"] = facts_by_box[box.name]
        except SandboxError as error:
            raise UserError(str(error)) from error
        return state

    return solve


def _missing_packages(image: str, packages: Sequence[str]) -> list[str]:
    present = {_package_name(package) for package in packages}
    recipes = (recipe for recipe in RECIPES.values() if recipe.image == image)
    pins = (pin for recipe in recipes for pin in pinned_packages(recipe.requirements))
    return [pin for pin in pins if _package_name(pin) not in present]


def _package_name(pin: str) -> str:
    return re.sub(r"[-_.]+", "-", pin.partition("==")[0]).lower()


def _open_checked_box(
    name: str, suite: Suite[Any], max_sandboxes: int | None
) -> tuple[Box, dict[str, Any]]:
    try:
        box = open_own_box(name, max_sandboxes)
        facts = BoxRecord.model_validate(box.facts(suite.image))
    except SandboxError as error:
        raise UserError(str(error)) from error
    refuse_lacking(suite, name, facts.packages)
    return box, {"box": name, "box_facts": facts.model_dump(mode="json")}


class _Died(Exception):
    """Raised if the judge (podium's process in the sandbox) was killed, by a program or not."""


class _Lost(_Died):
    """Raised if the output of the judge in the sandbox is missing: no program can cause that."""


@dataclass(frozen=True, slots=True)
class _Job:
    """The settings of one sandbox command: a program, its limits and the stop conditions."""

    program: Program
    limits: Limits
    seconds: float = math.inf
    past_failures: bool = False

    def frames(self, inputs: Iterable[bytes]) -> bytes:
        """Return the command's stdin: messages that start the judge, the program, the inputs."""
        order = {
            "seconds": min(self.seconds, 1e9),
            "past_failures": self.past_failures,
            "most_bytes": ANSWER_BYTES,
            "program_bytes": self.limits.memory_bytes,
            "memory_bytes": self.limits.memory_bytes + SLACK_BYTES,
        }
        frames = [cells.boot_message("users", (), "batch"), cells.json_line(order), cells.FACTS]
        frames.append(cells.load_frame(self.program))
        for data in inputs:
            frames += [cells.run_header(len(data), self.limits), data]
        return b"".join(frames)

    @property
    def most_bytes(self) -> int:
        """Maximum bytes of the judge's answers: ANSWER_BYTES, plus one run that may exceed it."""
        return ANSWER_BYTES + 4 * self.limits.output_bytes

    def timeout_s(self, inputs: int) -> int:
        """Return the command's timeout in seconds: GRACE_S, and time for runs on the inputs."""
        runs_s = min(inputs * self.limits.wall_s, self.seconds + self.limits.wall_s)
        return math.ceil(runs_s + GRACE_S)


class InspectBox:
    """A box (sandbox) that runs programs in Inspect's sandbox of the sample that is graded."""

    def __init__(self, limits: Limits = Limits()) -> None:  # noqa: B008
        """Store the limits of programs; `facts` checks that the sandbox can apply them."""
        self._limits = limits

    @property
    def name(self) -> str:
        """Name, e.g. `inspect:docker`; SandboxError if Inspect has only `local` or no sandbox."""
        try:
            sandbox: object = util.sandbox().as_type(cast(Any, util.SandboxEnvironment))
        except ProcessLookupError:
            raise SandboxError(NO_SANDBOX) from None
        provider = util.registry_info(type(sandbox)).name.rpartition("/")[2]
        if provider == "local":
            raise SandboxError(NO_ISOLATION)
        return f"inspect:{provider}"

    def run(
        self,
        program: Program,
        inputs: Iterable[bytes],
        limits: Limits = Limits(),  # noqa: B008
        *,
        alone: bool = False,
    ) -> Generator[ProgramOutcome]:
        """Yield one outcome of the program per input, as in `sandbox.box.Box.run`."""
        stream, pending = iter(inputs), list[bytes]()  # inputs that have no outcome yet
        one_process = program.runner == "official"
        job = _Job(program, limits, math.inf if one_process else FIRST_S)
        while True:
            size = sum(len(data) for data in pending)
            while size < INPUT_BYTES and (data := next(stream, None)) is not None:
                pending.append(data)
                size += len(data)
            if not pending:
                return
            outcomes = self._outcomes(job, pending, alone)
            del pending[: len(outcomes)]
            yield from outcomes
            failed = any(outcome.status != "exited" or outcome.exit_code for outcome in outcomes)
            job = _Job(program, limits, job.seconds * GROWTH, job.past_failures or failed)

    def facts(self, image: str = IMAGE) -> SandboxFacts:
        """Return the sandbox's Python and packages; SandboxError if it cannot run the judge."""
        try:
            reply, _ = self._ask(_Job(Program(""), self._limits), [])
        except _Died as error:
            raise SandboxError(f"The {self.name} sandbox is down: {error}.") from error
        return SandboxFacts(self.name, reply["python"], packages=tuple(reply["packages"]))

    def close(self) -> None:
        """Do nothing: Inspect closes its sandbox."""

    def _outcomes(self, job: _Job, chunk: list[bytes], alone: bool) -> list[ProgramOutcome]:
        """Return outcomes of the first inputs in `chunk`; if the judge dies, try just the first."""
        try:
            with cells.CORES.all() if alone else cells.CORES.one():
                return _outcomes(self._ask(job, chunk)[1])
        except _Died:
            pass
        try:
            with cells.CORES.all():
                return _outcomes(self._ask(job, chunk[:1])[1])
        except _Lost as error:
            raise SandboxError(f"The {self.name} sandbox is down: {error}.") from error
        except _Died:
            self.facts()
            return [TWICE]

    def _ask(self, job: _Job, inputs: list[bytes]) -> tuple[dict[str, Any], bytes]:
        result = anyio.from_thread.run(_execute, self.name, job, inputs)
        if not result.success:
            raise _failure(self.name, result)
        answers = _answers(self.name, result.stdout, job.most_bytes)
        _, _, answers = answers.partition(b"\n")  # drop the line "ready"
        reply, _, answers = answers.partition(b"\n")
        return json.loads(reply), answers


async def _execute(name: str, job: _Job, inputs: list[bytes]) -> util.ExecResult[str]:
    data, timeout_s = job.frames(inputs), job.timeout_s(len(inputs))
    try:
        with util.override_sandbox_output_limit(2 * job.most_bytes, "exec"):  # base64 is longer
            return await util.sandbox().exec(
                COMMAND, input=data, env=cells.ENVIRONMENT, timeout=timeout_s, timeout_retry=False
            )
    except TimeoutError:
        raise SandboxError(f"The {name} sandbox did not answer in {timeout_s} s.") from None
    except Exception as error:  # each provider raises its own errors
        raise SandboxError(f"The {name} sandbox failed: {error}") from error


def _failure(name: str, result: util.ExecResult[str]) -> Exception:
    output = (result.stderr or result.stdout).strip()
    if result.returncode in (126, 127) or "option -P" in output or "option: -P" in output:
        return SandboxError(NO_PYTHON.format(name=name))
    if result.returncode < 0 or result.returncode > 128:
        return _Died(f"its judge was killed ({result.returncode})")
    problem = output.splitlines()[-1] if output else f"code {result.returncode}"
    return SandboxError(f"The judge failed in the {name} sandbox: {problem}")


def _answers(name: str, text: str, max_bytes: int) -> bytes:
    head, _, body = text.partition("\n")
    try:
        order = json.loads(head)
        answers = zlib.decompressobj().decompress(base64.b64decode(body), max_bytes)
    except (ValueError, zlib.error):
        raise _Lost("its judge's answer is missing") from None
    if order["problem"]:
        raise SandboxError(NOT_ALLOWED.format(name=name, problem=order["problem"]))
    if len(answers) != order["bytes"]:
        raise SandboxError(f"The {name} sandbox truncated the judge's answer.")
    return answers


def _outcomes(answers: bytes) -> list[ProgramOutcome]:
    outcomes, stream = list[ProgramOutcome](), BytesIO(answers)
    while line := stream.readline():
        header = json.loads(line)
        fields = [stream.read(header[name]) for name in cells.PARTS]
        outcomes.append(cells.parse_outcome(header, fields))
    if not outcomes:
        raise _Died("its judge gave no answer")
    return outcomes
