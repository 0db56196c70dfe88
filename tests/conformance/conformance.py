"""Clients and suites that we did not write, against a real `podium serve`: `make conformance`.

    python tests/conformance/conformance.py --folder build/conformance

The folder gets two Python environments and one of npm (1.2 GB, downloaded once), pinned by the
files beside this one. Three servers are started: one over the rehearsal pool, and two over a
provider of our own, of whose models one calls tools, one is silent for ten seconds, and one plans.
Nothing else is asked: no key is needed, and no request leaves this machine. What cannot pass stands
in `EXPECTED`, with the reason; any other failure, and an expected one that passes, ends this with
1.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import distributions
from itertools import groupby
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from podium.harness.ledger.served import served_requests  # noqa: E402 - found by the line above
from tests.installed import new_environment, put  # noqa: E402
from tests.podium.serving.reply_checks import check_books  # noqa: E402
from tests.providers import Act, serve  # noqa: E402
from tests.providers.dialect import Asked  # noqa: E402

PLANS, ALONE = "podium/moa-lite", "podium/single:abacus"
CALLS_TOOLS, SILENT = "podium/single:caller", "podium/single:sleeper"
ACTING = ("podium/moa-lite", "podium/conductor-prompted")
SILENCE_S = 10
LOGS = ("rehearsal-pool", "own-provider", "acting")
NO_IMAGES = "a system that plans refuses images by name"
NO_CALLER = "rehearsal workers read no tools: see the same case with a worker that calls them"
NO_COUNT = "no worker of a system that plans is sent the conversation as it is"
EXPECTED: Mapping[tuple[str, str, str], str] = {
    **{
        ("llm-comply", model, f"{prefix}tool-calling"): NO_CALLER
        for model in (PLANS, ALONE)
        for prefix in ("", "chat-", "anth-")
    },
    **{
        ("llm-comply", PLANS, f"{prefix}image-input"): NO_IMAGES
        for prefix in ("", "chat-", "anth-")
    },
    ("anthropic", PLANS, "count_tokens"): NO_COUNT,
}
"""By tool, model and case: why it fails."""
FORMATS = ("open-responses", "openai-chat", "anthropic")
CHECKS = "not_a_server_error,response_schema_conformance,content_type_conformance"
HONOURED = ("model", "instructions", "metadata", "stream", "max_output_tokens")
BY_COUNT = ("schemathesis", "npm @openai/codex", "podium audit")
"""Tools whose few cases are worth their names."""
MUST_ANSWER = 30
"""So many replies Schemathesis must have seen to show anything."""
POOL = """\
label = "live"
prices = "book.toml"
"""
WORKER = """
[[workers]]
name = "{name}"
model = "openai-api/stub/{name}"
args = {{ base_url = "{url}", api_key = "test" }}
"""
BOOK = """\
date = "2026-01-02"
source = "made up for tests"
[usd_per_mtok]
"openai-api/stub/caller" = { input = "1", output = "10" }
"openai-api/stub/sleeper" = { input = "1", output = "10" }
"openai-api/stub/adviser" = { input = "1", output = "10" }
"openai-api/stub/planner" = { input = "1", output = "10" }
"""
PLAN = """\
model_id = [1, 0]
subtasks = ["Advise.", "Act."]
access_list = [[], ["all"]]
"""
CODEX = """\
model = "{model}"
model_provider = "podium"
[model_providers.podium]
name = "podium"
base_url = "{url}/v1"
wire_api = "responses"
stream_idle_timeout_ms = 4000
request_max_retries = 0
stream_max_retries = 0
"""
"""Its idle timer counts events, and ends a stream after four seconds without one."""


@dataclass(frozen=True, slots=True)
class ClientCase:
    """One case of one tool, and what was wrong with it."""

    tool: str
    version: str
    model: str
    name: str
    failed: str = ""
    skipped: bool = False

    @property
    def expected(self) -> str:
        """Why it cannot pass; empty where it must."""
        return EXPECTED.get((self.tool, self.model, self.name), "")

    @property
    def wrong(self) -> bool:
        """Whether it is not as it should be."""
        return bool(self.failed) != bool(self.expected) and not self.skipped


@dataclass(frozen=True, slots=True)
class Tools:
    """What is installed in the folder."""

    folder: Path

    def install(self) -> None:
        """Make what is missing; what is there stays."""
        for name in ("clients", "litellm"):
            pins = (HERE / f"{name}.txt").read_text()
            self._once(name, pins, lambda name=name: self._environment(name))
        self._once("node", (HERE / "package.json").read_text(), self._node)

    def _once(self, name: str, pins: str, make: Callable[[], None]) -> None:
        mark = self.folder / f"{name}.installed"
        if not mark.exists() or mark.read_text() != pins:
            make()
            mark.write_text(pins)

    def _environment(self, name: str) -> None:
        print(f"Installing {name} into {self.folder}", flush=True)
        put(new_environment(self.folder / name), "-r", str(HERE / f"{name}.txt"))

    def _node(self) -> None:
        print(f"Installing node packages into {self.folder}", flush=True)
        home = self.folder / "node"
        home.mkdir(exist_ok=True)
        (home / "package.json").write_text((HERE / "package.json").read_text())
        words = ["npm", "install", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(words, cwd=home, check=True)

    def python(self, name: str) -> Path:
        """Return an environment's interpreter."""
        return self.folder / name / "bin" / "python"

    def version(self, name: str, package: str) -> str:
        """Return what is installed of a package."""
        (packages,) = (self.folder / name).glob("lib/python*/site-packages")
        found = distributions(name=package, path=[str(packages)])
        return next(one.version for one in found)


@dataclass(frozen=True, slots=True)
class Conformance:
    """The tools and the servers that they ask."""

    tools: Tools
    scratch: Path
    url: str
    """Of the server over the rehearsal pool."""
    stub: str
    """Of the one over our own provider."""
    acting: str
    """Of the one whose systems let one of several workers of our own provider act."""

    def all(self) -> Iterator[ClientCase]:
        """Run everything."""
        for model in (ALONE, PLANS):
            yield from self.llm_comply(self.url, model)
        yield from self.llm_comply(self.stub, CALLS_TOOLS, only="tool-calling")
        for model in (ALONE, PLANS):
            yield from self.schemathesis(model)
            yield from self.script("openai", "openai_python.py", model)
            yield from self.script("anthropic", "anthropic_python.py", model)
            yield from self.script("langchain-openai", "langchain_openai_client.py", model)
            yield from self.script("litellm", "litellm_client.py", model, home="litellm")
            yield from self.node(model)
        yield from self.codex(self.stub, SILENT, "All quiet.", SILENCE_S)
        yield from self.llm_comply(self.acting, ACTING[1], only="tool-calling")
        for model in ACTING:
            yield from self.script("openai", "openai_tools.py", model, url=self.acting)
            yield from self.codex(self.acting, model, "607", 0)

    def llm_comply(self, url: str, model: str, only: str = "") -> Iterator[ClientCase]:
        """Run its three suites."""
        command = self.tools.python("clients").with_name("llm-comply")
        for form in FORMATS:
            words = ["--format", form, "-u", f"{url}/v1", "-k", "none", "-m", model, "--json"]
            prefix = {"openai-chat": "chat-", "anthropic": "anth-"}.get(form, "")
            words += ["-f", f"{prefix}{only}"] if only else []
            for one in json.loads(self._said([command, *words]))["results"]:
                skipped = one["status"] == "skipped"
                failed = "; ".join(one["errors"]) if one["status"] == "failed" else ""
                yield self._case("llm-comply", model, one["id"], failed, skipped)

    def schemathesis(self, model: str) -> Iterator[ClientCase]:
        """Fuzz the responses API by the document that llm-comply ships, refused or answered.

        It declares no status but 200, so statuses are not held against it. Most of what it makes is
        refused by name, and shows no reply; so it is run again with what is honoured alone.
        """
        packages = self.tools.folder.glob("clients/lib/python*/site-packages")
        shipped = next(packages) / "llm_comply" / "specs" / "openresponses.json"
        for what, words in (("any", ("--mode", "all")), ("honoured", ("--mode", "positive"))):
            document = _of_ours(json.loads(shipped.read_text()), model)
            if what == "honoured":
                _only_honoured(document)
            answered = self._answered()
            done = self._fuzzed(document, *words)
            answered = self._answered() - answered
            found = re.search(r"(\d+) generated", done.stdout)
            name = f"{found[1] if found else 'no'} {what} requests, {answered} answered"
            failed = "" if done.returncode == 0 else done.stdout[-3000:]
            if what == "honoured" and answered < MUST_ANSWER:
                failed = failed or f"fewer than {MUST_ANSWER} were answered: it shows nothing"
            yield self._case("schemathesis", model, name, failed)

    def _fuzzed(self, document: Mapping[str, Any], *words: str) -> subprocess.CompletedProcess[str]:
        path = self.scratch / "document.json"
        path.write_text(json.dumps(document))
        command = [self.tools.python("clients").with_name("schemathesis"), "run", path]
        asked = ["--url", f"{self.url}/v1", "--checks", CHECKS, "--seed", "1", "-n", "100"]
        return self._run([*command, *asked, "--no-color", "--include-path", "/responses", *words])

    def _answered(self) -> int:
        found = served_requests(self.scratch / LOGS[0])
        return sum(query.ending == "answered" for query in found)

    def script(
        self, tool: str, script: str, model: str, home: str = "clients", url: str = ""
    ) -> Iterator[ClientCase]:
        """Run a script of ours in a client's own environment."""
        words = [self.tools.python(home), HERE / "clients" / script, url or self.url, model]
        yield from self._lines(tool, model, words)

    def node(self, model: str) -> Iterator[ClientCase]:
        """Run the npm package openai; a module is looked for beside the script."""
        script = self.tools.folder / "node" / "openai_node.mjs"
        script.write_text((HERE / "clients" / script.name).read_text())
        yield from self._lines("npm openai", model, ["node", script, self.url, model])

    def codex(self, url: str, model: str, answer: str, silence_s: float) -> Iterator[ClientCase]:
        """Ask by Codex's command line, whose tools go along; it must print an answer."""
        home, work = self.scratch / model / "codex", self.scratch / model / "work"
        home.mkdir(parents=True)
        work.mkdir()
        (home / "config.toml").write_text(CODEX.format(model=model, url=url))
        command = self.tools.folder / "node" / "node_modules" / ".bin" / "codex"
        # Our provider has it run `expr` alone, and it cannot make its sandbox everywhere.
        trusted = ["danger-full-access", "-c", 'web_search="disabled"']
        access = ["read-only"] if silence_s else trusted
        words = [command, "exec", "--skip-git-repo-check", "--sandbox", *access, "Say it."]
        began = time.monotonic()
        done = self._run(words, cwd=work, CODEX_HOME=str(home))
        waited = time.monotonic() - began
        failed = "" if answer in done.stdout else (done.stdout + done.stderr)[-2000:]
        name = f"codex exec, {silence_s} s of silence, idle timeout 4 s"
        if not silence_s:
            name = "codex exec, a command run and its output answered"
        elif waited < silence_s:
            failed = failed or f"it took {waited:.1f} s: nothing was silent"
        yield self._case("npm @openai/codex", model, name, failed)

    def _lines(self, tool: str, model: str, words: Sequence[str | Path]) -> Iterator[ClientCase]:
        said = [line for line in self._said(words).splitlines() if line.startswith('{"case"')]
        if not said:
            yield self._case(tool, model, "no case ran", "it printed none")
        for found in map(json.loads, said):
            yield self._case(tool, model, found["case"], found["failed"])

    def _case(
        self, tool: str, model: str, name: str, failed: str, skipped: bool = False
    ) -> ClientCase:
        return ClientCase(tool, self._version(tool), model, name, failed, skipped)

    def _version(self, tool: str) -> str:
        if tool.startswith("npm "):
            package = self.tools.folder / "node" / "node_modules" / tool.removeprefix("npm ")
            return str(json.loads((package / "package.json").read_text())["version"])
        return self.tools.version("litellm" if tool == "litellm" else "clients", tool)

    def _said(self, words: Sequence[str | Path]) -> str:
        done = self._run(words)
        if not done.stdout.strip():
            raise SystemExit(f"{words[0]} said nothing: {done.stderr[-2000:]}")
        return done.stdout

    def _run(
        self, words: Sequence[str | Path], cwd: Path | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        local = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "NO_PROXY": "127.0.0.1"}
        return subprocess.run(
            words,
            cwd=cwd or self.scratch,
            env={**os.environ, **local, **more},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )


def _of_ours(document: dict[str, Any], model: str) -> dict[str, Any]:
    """Return the document for our model alone, without what no server could meet.

    Its discriminators name schemas (`Message`) where its own constants are values (`message`), and
    its schema of a stream is that of an event's data, which Schemathesis holds against the event.
    """
    _asked_fields(document)["model"] = {"type": "string", "enum": [model]}
    replies = document["paths"]["/responses"]["post"]["responses"]
    replies["200"]["content"]["text/event-stream"] = {}
    return _without_discriminators(document)


def _asked_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    return document["components"]["schemas"]["CreateResponseBody"]["properties"]


def _without_discriminators(found: Any) -> Any:
    if isinstance(found, list):
        return [_without_discriminators(one) for one in found]
    if not isinstance(found, dict):
        return found
    return {
        name: _without_discriminators(one)
        for name, one in found.items()
        if not (name == "discriminator" and "propertyName" in one)
    }


def _only_honoured(document: dict[str, Any]) -> None:
    """Leave what every model of ours honours: text, limits, and labels."""
    fields = _asked_fields(document)
    kept = {name: fields[name] for name in HONOURED}
    said = {"type": "string", "pattern": "[a-z]"}
    turn = {"type": {"const": "message"}, "role": {"enum": ["user", "assistant"]}, "content": said}
    turns = {"type": "object", "required": [*turn], "properties": turn}
    turns["additionalProperties"] = False
    several = {"type": "array", "minItems": 1, "maxItems": 9, "items": turns}
    document["components"]["schemas"]["CreateResponseBody"] |= {
        "properties": {**kept, "input": {"oneOf": [said, several]}},
        "required": ["model", "input"],
        "additionalProperties": False,
    }


@contextmanager
def podium_serve(log_dir: Path, *words: str | Path) -> Generator[str]:
    """Yield the URL of a `podium serve` in a process of its own; it is stopped in good order."""
    command = [sys.executable, "-m", "podium", "serve", "--port", "0", "--log-dir", log_dir, *words]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            found = re.search(r"http://[\d.:]+\d", process.stdout.readline())
            if found is None:
                raise SystemExit(f"podium serve did not begin: {' '.join(map(str, words))}")
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)


def _fate(asked: Asked) -> Act:
    """Return what our provider does: `caller` calls a tool until it has a result."""
    if asked.model == "sleeper":
        return Act(text="All quiet.", wait_s=SILENCE_S)
    results = [turn["content"] for turn in asked.body["messages"] if turn["role"] == "tool"]
    if asked.model == "caller" and asked.body.get("tools") and not results:
        return Act(change=partial(_call, [tool["function"] for tool in asked.body["tools"]]))
    said = f"The tool says: {results[-1]}" if results else "Call a tool."
    return Act(text=PLAN if asked.model == "planner" else said)


def _call(tools: Sequence[Mapping[str, Any]], body: dict[str, Any]) -> dict[str, Any]:
    """Make a reply call a weather tool, or the shell of Codex."""
    weather = any(tool["name"] == "get_weather" for tool in tools)
    arguments = {"location": "San Francisco"} if weather else {"cmd": "expr 600 + 7"}
    name = "get_weather" if weather else "exec_command"
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": "call_1", "type": "function", "function": function}
    (choice,) = body["choices"]
    choice["finish_reason"] = "tool_calls"
    choice["message"] |= {"content": None, "tool_calls": [call]}
    return body


def _stub_pool(folder: Path, url: str, *names: str) -> Path:
    """Write a pool of some workers, and of the planner as its conductor; return its path."""
    workers = "".join(WORKER.format(name=name, url=url) for name in names)
    planner = WORKER.format(name="planner", url=url)
    planner = planner.replace('[[workers]]\nname = "planner"', "[conductor]")
    (folder / "book.toml").write_text(BOOK)
    path = folder / f"{names[-1]}.toml"
    path.write_text(POOL + workers + planner)
    return path


def _line(cases: Sequence[ClientCase]) -> str:
    """Return a row of the table: what passed, and each failure by its name."""
    first = cases[0]
    ran = [one for one in cases if not one.skipped]
    passed = [one for one in ran if not one.failed]
    failed = [f"{one.name} ({one.expected or 'UNEXPECTED'})" for one in ran if one.failed]
    skipped = [one.name for one in cases if one.skipped]
    told = [*failed, *(f"{name} (its suite skips it)" for name in skipped)]
    if first.tool in BY_COUNT:
        told += [f"passed: {one.name}" for one in passed]
    return (
        f"| {first.tool} | {first.version} | {first.model} | {len(passed)}/{len(ran)} | "
        f"{'; '.join(told)} |"
    )


def _show(cases: Sequence[ClientCase]) -> None:
    print("| tool | version | model | passed | what did not, and why |\n|---|---|---|---|---|")
    for _, group in groupby(cases, key=lambda one: (one.tool, one.model)):
        print(_line([*group]))
    for one in cases:
        if one.wrong:
            said = one.failed or f"passed, and was to fail: {one.expected}"
            print(f"\n{one.tool}, {one.model}, {one.name}: {said}")


def _asked(tools: Tools, scratch: Path) -> list[ClientCase]:
    """Start the servers, ask them everything, and stop them in good order."""
    systems = [f"--system={one.removeprefix('podium/')}" for one in (ALONE, PLANS)]
    with ExitStack() as stack:
        url = stack.enter_context(podium_serve(scratch / LOGS[0], *systems))
        provider = stack.enter_context(serve(_fate))
        pool = _stub_pool(scratch, provider.openai, "caller", "sleeper")
        words = ("--system=single", "--pool", pool)
        stub = stack.enter_context(podium_serve(scratch / LOGS[1], *words))
        pool = _stub_pool(scratch, provider.openai, "caller", "adviser")
        systems = [f"--system={one.removeprefix('podium/')}" for one in ACTING]
        words = (*systems, "--pool", pool)
        acting = stack.enter_context(podium_serve(scratch / LOGS[2], *words))
        return [*Conformance(tools, scratch, url, stub, acting).all()]


def _audited(log_dir: Path) -> ClientCase:
    """Hold what a server wrote down against itself: nothing is lost, nothing is unbilled."""
    served = len([*served_requests(log_dir)])
    name = f"{served:,} requests, each with its end, each call with its outcome"
    try:
        check_books(log_dir)
    except AssertionError as error:
        return ClientCase("podium audit", "", log_dir.name, name, str(error))
    return ClientCase("podium audit", "", log_dir.name, name)


def main() -> int:
    """Install, serve, ask, and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "conformance")
    folder: Path = parser.parse_args().folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tools = Tools(folder)
    tools.install()
    with tempfile.TemporaryDirectory(prefix="conformance-") as scratch:
        cases = _asked(tools, Path(scratch))
        cases += [_audited(Path(scratch, name)) for name in LOGS]
    _show(cases)
    return int(any(one.wrong for one in cases))


if __name__ == "__main__":
    sys.exit(main())
