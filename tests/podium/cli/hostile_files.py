"""Hostile contents for every file that a user hands over, and the commands that read each.

`prepared(folder)` makes a real run and one valid file of every kind; `cases(...)` yields, for one
seed, which file is replaced by what; `Fuzzer` runs the command that reads it, in a child process
that is kept, with limits on memory and time. Counted are tracebacks, exit codes other than 0, 1 and
2, and cases that take a second of processor time more than the valid file does: the child runs
every command on it first, so interpreter start and imports are in no figure.
"""

import contextlib
import io
import itertools
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import struct
import time
import traceback
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from podium.cli import main
from podium.harness.ledger.join import rows_of
from podium.harness.ledger.runs import system_runs_below
from tests.reports.audit import invoice_exports

MEMORY = 6 << 30
LIMIT_S = 60
SECOND = 1.0
FORMATS = tuple(invoice_exports.EXPORTS)

PAPERS = ("I", "II")
BOOK = 'date = "2026-01-01"\nsource = "a test"\n[usd_per_mtok."rehearsal/abacus"]\n' + (
    'input = "1"\noutput = "2"\n'
)
CHECKPOINT = Path("conductor/released/adaptive")


Found = tuple[float, object, str]
"""Seconds, exit code or traceback, and what was said."""


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of file: where it lies, and the commands that read it."""

    name: str
    path: str
    commands: tuple[str, ...]
    """Arguments with `{d}` for the folder of all files, `{f}` for this one, `{n}` for the case."""


@dataclass(frozen=True, slots=True)
class Case:
    """One replaced file and one command."""

    target: Target
    content: str
    """Its name."""
    command: str
    seed: int


@dataclass(slots=True)
class Tally:
    """What a fuzz run came to."""

    inputs: int = 0
    codes: dict[str, int] = field(default_factory=dict[str, int])
    tracebacks: list[str] = field(default_factory=list[str])
    wrong_codes: list[str] = field(default_factory=list[str])
    slow: list[str] = field(default_factory=list[str])
    many_lines: list[str] = field(default_factory=list[str])


def prepared(folder: Path) -> None:
    """Make a run and one valid file of each kind."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "book.toml").write_text(BOOK)
    (folder / "pool.toml").write_text(_pool("rehearsal/abacus", "rehearsal", f"{folder}/book.toml"))
    run = ["run", "--suite", "practice-integer", "--system", "single:ada", "--limit", "2"]
    more = ["--pool", f"{folder}/pool.toml", "--log-dir", f"{folder}/run", "--time-scale", "0"]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        assert main([*run, *more, "--display", "none"]) == 0
        assert main(["record", f"{folder}/run", "--out", f"{folder}/tape.jsonl"]) == 0
    _graded(folder)
    rows = [
        replace(row, label="live", model="openai/gpt-5", billable="yes")
        for files in system_runs_below(folder / "run")
        for row in rows_of(files)
    ]
    for format in FORMATS:
        invoice_exports.write(rows, format, folder / f"invoice-{format}")
    shutil.copytree(CHECKPOINT, folder / "checkpoint")
    (folder / "config.toml").write_text('base = "practice-cpu"\n[run]\nseed = 1\n')
    (folder / "matrix.csv").write_text(_matrix())
    _others(folder)


def _others(folder: Path) -> None:
    """Write verdicts and a batch as other tools do."""
    both = [(n, model) for n in range(4) for model in ("one", "two")]
    lines = [f"{n},sums,{model},What is {n}?,{n % 2},0.1" for n, model in both]
    heads = "instance_id,scenario,model,input,score,cost"
    (folder / "table.csv").write_text("\n".join([heads, *lines]) + "\n")
    for model in ("one", "two"):
        (folder / "lm" / model).mkdir(parents=True)
        rows = [
            {
                "doc_id": n,
                "doc_hash": f"{n}",
                "arguments": {"gen_args_0": {"arg_0": f"What is {n}?"}},
            }
            | {"filter": "none", "metrics": ["acc"], "acc": float(n % 2)}
            for n in range(4)
        ]
        path = folder / "lm" / model / "samples_sums_2026-11-27T05-00-00.000000.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    body = {"model": "m", "messages": [{"role": "user", "content": "What is 1 + 1?"}]}
    asked = {"custom_id": "a", "url": "/v1/chat/completions", "body": body}
    (folder / "batch-in.jsonl").write_text(json.dumps(asked) + "\n")
    said = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "2"}}
    reply = {"id": "r", "object": "chat.completion", "created": 1, "model": "m", "choices": [said]}
    told = {"custom_id": "a", "response": {"status_code": 200, "body": reply}, "error": None}
    (folder / "batch-out.jsonl").write_text(json.dumps(told) + "\n")


def _pool(model: str, label: str, prices: str) -> str:
    worker = f'[[workers]]\nname = "ada"\nmodel = "{model}"\ncard = "adds up"\n'
    return f'label = "{label}"\nprices = "{prices}"\n{worker}config = {{ temperature = 0.5 }}\n'


def _graded(folder: Path) -> None:
    """Write replies and problems as `podium grade` takes them."""
    problems = [
        {"id": f"p-{n}", "problem": f"What is {n} + 1?", "answer": n + 1} for n in range(30)
    ]
    (folder / "problems.jsonl").write_text("".join(json.dumps(one) + "\n" for one in problems))
    lines = ["id,problem,answer", *(f"p-{n},What is {n} + 1?,{n + 1}" for n in range(30))]
    (folder / "problems.csv").write_text("\n".join(lines) + "\n")
    replies = [
        {"question_id": f"aime25-{PAPERS[n // 15]}-{n % 15 + 1}", "reply": f"\\boxed{{{n + 1}}}"}
        for n in range(30)
    ]
    (folder / "replies.jsonl").write_text("".join(json.dumps(one) + "\n" for one in replies))


def _matrix() -> str:
    heads = "sample_id,prompt,eval_name,m-1,m-1|total_cost,m-2,m-2|total_cost"
    rows = (f"mmlu.val.{n},What is {n}?,mmlu,{n % 2},0.1,{(n + 1) % 2},0.2" for n in range(12))
    return "\n".join([heads, *rows]) + "\n"


GRADE = "grade --suite aime25 --out {d}/verdicts-{n}.jsonl --problems"
RUN = "run --dry-run --suite practice-integer --limit 2 --time-scale 0"
BATCH = "record {d}/batch-out.jsonl --out {d}/tape-{n}.jsonl"
READING_LOGS = (
    "report {d}/run --out {d}/report-{n}",
    "audit {d}/run",
    "audit {d}/run --query practice-integer-eval-0001",
    "record {f} --out {d}/tape-{n}.jsonl",
    "redact {d}/run --out {d}/copies-{n}",
    "reprice {d}/run --book {d}/book.toml",
    "ledger export {d}/run --out {d}/export-{n} --format jsonl",
    "regrade {d}/run --unscored",
    "manifest verify {d}/run",
)
TARGETS = (
    Target("pool", "pool.toml", ("workers --pool {f}", "doctor --pool {f}")),
    Target(
        "book",
        "book.toml",
        (
            "prices verify {f}",
            "prices list {f}",
            "prices diff {f} {f}",
            "reprice {d}/run --book {f}",
        ),
    ),
    Target("config", "config.toml", ("train {f} --dry-run --out {d}/trained",)),
    Target(
        "cassette",
        "tape.jsonl",
        ("doctor --pool {d}/tape.toml", f"{RUN} --log-dir {{d}}/new --pool {{d}}/tape.toml"),
    ),
    Target("recorded pool", "tape.toml", ("doctor --pool {f}", "workers --pool {f}")),
    Target("replies", "replies.jsonl", (f"{GRADE} {{d}}/problems.jsonl --replies {{f}}",)),
    Target("problems", "problems.jsonl", (f"{GRADE} {{f}} --replies {{d}}/replies.jsonl",)),
    Target("problems csv", "problems.csv", (f"{GRADE} {{f}} --replies {{d}}/replies.jsonl",)),
    *(
        Target(f"invoice {one}", f"invoice-{one}", ("audit {d}/run --invoice {f}",))
        for one in FORMATS
    ),
    Target(
        "experiment",
        "run/experiment.json",
        (
            f"{RUN} --log-dir {{d}}/run --pool {{d}}/pool.toml",
            "manifest verify {d}/run",
            "manifest write {d}/run",
        ),
    ),
    Target(
        "manifest",
        "run/MANIFEST.json",
        ("manifest verify {d}/run", "manifest write {d}/run", "audit {d}/run"),
    ),
    Target("log", "run/*.eval", READING_LOGS),
    Target("journal", "run/ledger/*/*.jsonl", (*READING_LOGS[:3], *READING_LOGS[4:])),
    Target(
        "checkpoint",
        "checkpoint/podium.json",
        (f"{RUN} --system conductor@{{d}}/checkpoint --log-dir {{d}}/new",),
    ),
    Target("verdicts", "matrix.csv", ("route routerbench:{f} --split folds:2",)),
    Target("table", "table.csv", ("route table:{f} --split folds:2",)),
    Target("lm-eval", "lm/one/*.jsonl", ("route lm-eval:{d}/lm --split folds:2",)),
    Target("batch in", "batch-in.jsonl", (f"{BATCH} --requests {{f}}",)),
    Target("batch out", "batch-out.jsonl", (f"{BATCH} --requests {{d}}/batch-in.jsonl",)),
)


def _deep(opening: str, closing: str, inside: str = "1") -> bytes:
    return (opening * 100_000 + inside + closing * 100_000).encode()


def _bomb(_: bytes, at: random.Random) -> bytes:
    """Return an archive of some kilobytes that unpacks to a hundred thousand times as much."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b'{"eval": {}}')
        archive.writestr("samples/q_epoch_1.json", b"0" * (80 << 20))
    content = bytearray(made.getvalue())
    if at.random() < 0.5:  # it says that it is small
        size = struct.pack("<I", 80 << 20)
        content = bytearray(bytes(content).replace(size, struct.pack("<I", 1000)))
    return bytes(content)


Content = Callable[[bytes, random.Random], bytes]
CONTENTS: dict[str, Content] = {
    "valid": lambda valid, at: valid,
    "empty": lambda valid, at: b"",
    "NUL": lambda valid, at: b"\0" * 64,
    "NUL inside": lambda valid, at: valid[: len(valid) // 2] + b"\0" + valid[len(valid) // 2 :],
    "BOM": lambda valid, at: b"\xef\xbb\xbf" + valid,
    "UTF-16": lambda valid, at: valid.decode("latin-1").encode("utf-16"),
    "invalid UTF-8": lambda valid, at: valid[:20] + b"\xff\xfe\x80" + valid[20:],
    "surrogate": lambda valid, at: b'{"a": "\\ud800", "question_id": "\\ud800"}\n' + valid,
    "deep arrays": lambda valid, at: _deep("[", "]"),
    "deep tables": lambda valid, at: _deep('{"a":', "}"),
    "deep toml": lambda valid, at: b"a = " + _deep("[", "]"),
    "deep in toml table": lambda valid, at: valid + b"\nconfig.stop_seqs = " + _deep("[", "]"),
    "dotted key": lambda valid, at: ".".join(["a"] * 200_000).encode() + b" = 1\n",
    "long integer": lambda valid, at: valid.replace(b"1", b"1" * 5000),
    "only a long integer": lambda valid, at: b"9" * 5000,
    "huge exponent": lambda valid, at: valid.replace(b"1", b"1e999999", 3),
    "quoted exponent": lambda valid, at: valid.replace(b'"1"', b'"1e999999"'),
    "tiny exponent": lambda valid, at: valid.replace(b'"1"', b'"1e-999999"'),
    "overflowing": lambda valid, at: valid.replace(b"1", b"1e99999999999999999999", 3),
    "NaN": lambda valid, at: valid.replace(b"1", b"NaN", 3),
    "nan": lambda valid, at: valid.replace(b"1", b"nan", 3),
    "Infinity": lambda valid, at: valid.replace(b"1", b"-Infinity", 3),
    "negative": lambda valid, at: valid.replace(b"1", b"-1"),
    "long field": lambda valid, at: valid + b"x" * 131_073 + b",1,2\n",
    "long quoted field": lambda valid, at: valid + b'"' + b"x" * 200_000 + b'",1\n',
    "long line": lambda valid, at: b'{"a": "' + b"x" * (3 << 20) + b'"}\n',
    "escapes": lambda valid, at: valid.replace(b"a", b"\x1b[31m\x07a", 5),
    "escaped escapes": lambda valid, at: valid.replace(b'"', b'"\\u001b[2J', 5),
    "null": lambda valid, at: b"null\n",
    "a list": lambda valid, at: b"[]\n",
    "a number": lambda valid, at: b"7\n",
    "a text": lambda valid, at: b'"text"\n',
    "an object": lambda valid, at: b"{}\n",
    "objects": lambda valid, at: b"{}\n" * 100,
    "a zip": lambda valid, at: _bomb(valid, at),
    "gzip": lambda valid, at: b"\x1f\x8b\x08\x00" + at.randbytes(200),
    "noise": lambda valid, at: at.randbytes(at.choice((1, 30, 5000))),
    "cut": lambda valid, at: valid[: at.randrange(max(1, len(valid)))],
    "doubled": lambda valid, at: valid + valid,
    "bytes": lambda valid, at: _mutated(valid, at),
    "bytes again": lambda valid, at: _mutated(valid, at),
    "values": lambda valid, at: _revalued(valid, at),
    "values again": lambda valid, at: _revalued(valid, at),
}
"""Name -> what a valid file becomes."""

SPECIAL = ("directory", "pipe", "loop", "zero", "nowhere", "unreadable")
"""What is no regular file."""
JUNK = (None, True, -1, 0, 2**70, 1e308, "", "x", "\x1b[31m", "\ud800", [], {}, [[]], {"a": None})


def _mutated(valid: bytes, at: random.Random) -> bytes:
    """Return a file with some bytes cut, doubled, changed or swapped."""
    content = bytearray(valid)
    for _ in range(at.randint(1, 8)):
        place, length = at.randrange(len(content) + 1), at.choice((1, 2, 8, 60))
        piece = at.choice((b"", at.randbytes(length), bytes(content[place : place + length]) * 2))
        content[place : place + length] = piece
    return bytes(content)


def _revalued(valid: bytes, at: random.Random) -> bytes:
    """Return JSON, or JSON lines, in which one value of one kind is another; else mutated bytes."""
    try:
        lines = [json.loads(line) for line in valid.splitlines()]
    except ValueError:
        try:
            lines = [json.loads(valid)]
        except ValueError:
            return _mutated(valid, at)
    _change(lines, at, at.choice(JUNK))
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def _change(value: Any, at: random.Random, junk: object) -> None:
    """Replace one value somewhere below."""
    keys = list(value.keys()) if isinstance(value, dict) else list(range(len(value)))
    key = at.choice(keys) if keys else None
    if key is None:
        return
    if isinstance(value[key], dict | list) and value[key] and at.random() < 0.8:
        _change(value[key], at, junk)
    else:
        value[key] = junk


def log_changed(valid: bytes, at: random.Random, change: Content) -> bytes:
    """Return an Inspect log in which one member is changed; the archive itself is sound."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(valid)) as old, zipfile.ZipFile(made, "w") as new:
        names = old.namelist()
        chosen = at.choice([*names, "header.json"])
        for name in names:
            content = old.read(name)
            new.writestr(name, change(content, at) if name == chosen else content)
    return made.getvalue()


def cases(seed: int, targets: tuple[Target, ...] = TARGETS) -> Iterator[Case]:
    """Yield every kind of file with every content, each with one of its commands."""
    at = random.Random(seed)
    for target in targets:
        for content in (*CONTENTS, *SPECIAL):
            yield Case(target, content, at.choice(target.commands), at.randrange(1 << 30))


def put(path: Path, case: Case) -> None:
    """Put a case's content at a path."""
    valid, at = path.read_bytes(), random.Random(case.seed)
    if case.content in SPECIAL:
        path.unlink()
        _SPECIAL[case.content](path)
        return
    change = CONTENTS[case.content]
    inside = case.target.name == "log" and case.content != "a zip" and at.random() < 0.7
    path.write_bytes(log_changed(valid, at, change) if inside else change(valid, at))


_SPECIAL: dict[str, Callable[[Path], object]] = {
    "directory": Path.mkdir,
    "pipe": os.mkfifo,
    "loop": lambda path: path.symlink_to(path.name),
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "nowhere": lambda path: path.symlink_to(path.name + "-nowhere"),
    "unreadable": lambda path: path.touch(0),
}


def carried_out(folder: Path, case: Case, number: int) -> Found:
    """Return seconds, exit code (or the traceback's last line) and what was said, of one case."""
    path = next(iter(sorted(folder.glob(case.target.path))))
    kept = folder.parent / "kept"
    shutil.copyfile(path, kept)
    others = {one: one.read_bytes() for one in folder.glob("run/*.json")}
    logs = {*folder.rglob("*.eval")}
    put(path, case)
    words = [word.format(d=folder, f=path, n=number) for word in case.command.split()]
    out, err = io.StringIO(), io.StringIO()
    started = time.process_time()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = _code(words)
    seconds = time.process_time() - started
    _restored(folder, path, kept, others, logs)
    return seconds, code, out.getvalue() + err.getvalue()


def _code(words: list[str]) -> object:
    try:
        return main(words)
    except SystemExit as done:
        return done.code
    except BaseException:
        return traceback.format_exc()


def _restored(
    folder: Path, path: Path, kept: Path, others: dict[Path, bytes], logs: set[Path]
) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    for one in {*folder.rglob("*.eval")} - logs:
        one.unlink(missing_ok=True)
    for one, content in others.items():
        one.unlink(missing_ok=True)
        one.write_bytes(content)
    shutil.copyfile(kept, path)
    for pattern in ("report-*", "copies-*", "export-*", "verdicts-*", "tape-*", "new", "trained"):
        for one in folder.glob(pattern):
            shutil.rmtree(one) if one.is_dir() else one.unlink()


def child(folder: Path, pipe: Connection) -> None:
    """Carry out cases until None comes; send what the valid file came to, then what the case did.

    A command that comes for the first time is carried out on valid files, and again where that
    took long: what it imports is not counted.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    usual: dict[str, Found] = {}
    for number in itertools.count(1):
        case: Case | None = pipe.recv()
        if case is None:
            return
        if case.command not in usual:
            valid = Case(case.target, "valid", case.command, 0)
            usual[case.command] = carried_out(folder, valid, 0)
            if usual[case.command][0] > SECOND / 2:
                usual[case.command] = carried_out(folder, valid, 0)
        pipe.send((usual[case.command], carried_out(folder, case, number)))


@dataclass(slots=True)
class Fuzzer:
    """A child process that carries out cases; one that hangs is ended, and another one begins."""

    folder: Path
    _child: Any = None
    _pipe: Any = None

    def run(self, case: Case) -> tuple[Found, Found]:
        """Return what the valid file came to, and what the case did."""
        if self._child is None:
            self._begin()
        self._pipe.send(case)
        try:
            if self._pipe.poll(LIMIT_S):
                return self._pipe.recv()
        except EOFError:
            pass
        if self._child is not None:
            self._child.kill()
            self._child.join()
        self._child = None
        return (0.0, 0, ""), (float(LIMIT_S), "hung", "")

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        shutil.rmtree(self.folder, ignore_errors=True)
        prepared(self.folder)
        self._child = context.Process(target=child, args=(self.folder, other), daemon=True)
        self._child.start()
        other.close()

    def end(self) -> None:
        """End the child."""
        if self._child is not None:
            with contextlib.suppress(OSError):
                self._pipe.send(None)
            self._child.join()


def fuzz(folder: Path, wanted: Iterator[Case], say: Callable[[str], object] = str) -> Tally:
    """Carry out cases and count."""
    tally, fuzzer = Tally(), Fuzzer(folder)
    try:
        for case in wanted:
            valid, found = fuzzer.run(case)
            if valid[1] not in (0, 1):
                tally.wrong_codes.append(f"valid: {case.command}: {valid[1]}: {valid[2][-300:]}")
            for kind, said in _wrong(case, valid, found):
                getattr(tally, kind).append(said)
                say(said)
            tally.inputs += 1
            code = str(found[1])[:4]
            tally.codes[code] = tally.codes.get(code, 0) + 1
    finally:
        fuzzer.end()
    return tally


def _wrong(case: Case, valid: Found, found: Found) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with what a case came to, by the tally that counts it."""
    seconds, code, said = found
    what = f"{case.target.name} <- {case.content}: {case.command} (seed {case.seed})"
    if isinstance(code, str) and code.startswith("Traceback"):
        yield "tracebacks", f"{what}\n{code[-1500:]}"
    elif code not in (0, 1, 2):
        yield "wrong_codes", f"{what}: {code}"
    if seconds > SECOND + valid[0]:
        yield "slow", f"{seconds:.1f} s: {what}: {said[-200:]}"
    if code == 2 and len(said.strip().splitlines()) > 1:
        yield "many_lines", f"{what}: {said}"
