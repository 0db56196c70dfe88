"""Use a machine with a GPU from its first minute: each stage is kept when it ends.

Here, with a package index:  python tests/benchmarks/gpu_session.py --collect wheels
There, without a network:    python tests/benchmarks/gpu_session.py --wheels wheels --out session
On a CPU, at tiny sizes:     python tests/benchmarks/gpu_session.py --rehearse --out session
Here again, what came back:  python tests/benchmarks/gpu_session.py --join session

There are Python 3.12, torch, transformers, accelerate and peft; wheels are unpacked beside the
output. SUMMARY in the output folder has a line per stage; a stage that no time is left for is said.
Weights are random: speed does not depend on them, and none have to be brought. Real ones, where a
folder has some: --model FOLDER.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from statistics import fmean
from time import monotonic
from typing import Any

ROOT = Path(__file__).parents[2]
SUMMARY = "summary.jsonl"
PIECE = 15 << 20  # bytes of a file that leaves such a machine whole
LARGE_MB = 4.0  # a wheel above goes into large/: such a machine mostly has it (pandas, pyarrow)
NEEDS = (
    *("trl", "datasets", "dill", "multiprocess", "xxhash", "pandas", "pyarrow", "python-dateutil"),
    *("six", "pytz", "tzdata", "requests", "urllib3", "certifi", "charset-normalizer", "httpx"),
    *("httpcore", "h11", "idna", "anyio", "sniffio", "aiohttp", "aiosignal", "aiohappyeyeballs"),
    *("frozenlist", "multidict", "propcache", "yarl", "attrs", "inspect-ai", "pydantic", "boto3"),
    *("pydantic-core", "annotated-types", "typing-inspection", "botocore", "s3transfer", "s3fs"),
    *("jmespath", "aiobotocore", "aioitertools", "wrapt", "docstring-parser", "ijson", "jsonlines"),
    *("jsonpatch", "jsonpointer", "mmh3", "nest-asyncio2", "platformdirs", "pygments", "rich"),
    *("markdown-it-py", "mdurl", "python-dotenv", "semver", "shortuuid", "tenacity", "textual"),
    *(
        "mdit-py-plugins",
        "linkify-it-py",
        "uc-micro-py",
        "zipp",
        "jsonschema",
        "rpds-py",
        "debugpy",
    ),
    *("jsonschema-specifications", "referencing", "beautifulsoup4", "soupsieve", "cloudpickle"),
    *("jsonref", "frontmatter", "python-frontmatter", "exceptiongroup", "universal-pathlib"),
    *("pathlib-abc", "zipfile-zstd", "zstandard", "orjson", "scipy", "starlette", "threadpoolctl"),
    *("agent-client-protocol", "gguf", "click", "psutil", "docker", "tiktoken", "regex"),
)
"""What training imports and a machine with torch, transformers and peft may lack."""
PYTHON = ("--python-version", "3.12", "--implementation", "cp", "--only-binary", ":all:")

CONFIG = """
base = "practice-cpu"
title = "a session on a GPU: 135 million random weights"
[model.from_scratch]
hidden = 576
intermediate = 1536
layers = 30
heads = 9
kv_heads = 3
vocab = 1024
embeddings = 49152
context = 2048
initializer_range = 0.02
[warm_start]
steps = 300
learning_rate = 5e-4
[grpo]
generation_batch_size = 256
num_generations = 8
per_device_train_batch_size = 32
max_completion_length = 128
learning_rate = 4e-5
bf16 = true
gradient_checkpointing = true
[validation]
every = 1000
questions = 8
[run]
device = "gpu"
save_every = 1000
tensorboard = false
"""
TINY = (
    *("model.from_scratch.hidden=32", "model.from_scratch.intermediate=64"),
    *("model.from_scratch.layers=1", "model.from_scratch.heads=2", "model.from_scratch.kv_heads=1"),
    *("model.from_scratch.embeddings=2048", "run.device=cpu", "grpo.max_completion_length=48"),
    *("grpo.num_generations=4", "grpo.generation_batch_size=8"),
    "grpo.per_device_train_batch_size=4",
)
SEVEN = (
    *("grpo.use_vllm=false", "grpo.vllm_enable_sleep_mode=false", "lora.r=16", "lora.alpha=32"),
    *("grpo.num_generations=8", "grpo.generation_batch_size=8", "grpo.max_completion_length=128"),
    *("grpo.per_device_train_batch_size=2", "grpo.cache_implementation=static"),
    "grpo.generation_kwargs.max_cache_len=512",
)
STATIC = ("grpo.cache_implementation=static", "grpo.generation_kwargs.max_cache_len=512")
SEVEN_GB = (
    70.0  # of a card: 7.6 billion frozen weights in bfloat16 take 15 GB, then what updates take
)


@dataclass(frozen=True, slots=True)
class Stage:
    """A training with what differs in it; the first also makes the warm start of the others."""

    name: str
    config: str
    settings: tuple[str, ...]
    least_s: float  # that must be left for it to begin


STAGES = (
    Stage("eager", "", ("grpo.cache_implementation=dynamic", "reward.ahead=false"), 150),
    Stage("ahead", "", ("grpo.cache_implementation=dynamic",), 60),
    Stage("static", "", STATIC, 90),
    Stage("slow-workers", "", (*STATIC, "reward.time_scale=0.2"), 60),
    Stage("adapters", "", (*STATIC, "lora.r=16", "lora.alpha=32"), 90),
    Stage("seven", "paper-7b-random", SEVEN, 150),
)


class Session:
    """What has been done, within a budget of seconds."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Unpack wheels, and write the configuration that most stages train."""
        self.args, self.started = args, monotonic()
        self.out: Path = args.out.resolve()
        self.out.mkdir(parents=True, exist_ok=True)
        self.config = self.out / "session.toml"
        self.config.write_text(CONFIG)
        named = name_entry_points(self.out / "entry_points")
        self.paths = [str(ROOT), str(named), *_unpacked(args.wheels, self.out / "site")]
        self.start: Path | None = args.model

    @property
    def left_s(self) -> float:
        return self.args.minutes * 60 - (monotonic() - self.started)

    def note(self, stage: str, **found: Any) -> None:
        """Keep what a stage came to, at once: the machine may be gone in the next minute."""
        line = {"stage": stage, "at_s": round(monotonic() - self.started, 1), **found}
        with (self.out / SUMMARY).open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(json.dumps(line), flush=True)

    def run(self, name: str, words: Sequence[str]) -> tuple[int, str]:
        """Run Python within what is left of the time; return its code and what it said."""
        more = os.pathsep.join([*self.paths, os.environ.get("PYTHONPATH", "")])
        log = self.out / f"{name}.log"
        with log.open("w") as file:
            try:
                code = subprocess.run(
                    [sys.executable, *words],
                    env={**os.environ, "PYTHONPATH": more, "HF_HUB_OFFLINE": "1"},
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    timeout=max(1.0, self.left_s),
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                code = 124
        return code, log.read_text(errors="replace")


def name_entry_points(folder: Path) -> Path:
    """Write what an installed podium tells other packages; return the folder, for Python's path.

    From a path alone Inspect finds no provider of rehearsal workers.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    about = folder / f"{project['name']}-0.dist-info"
    about.mkdir(parents=True, exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n")
    groups = {**project["entry-points"], "console_scripts": project["scripts"]}
    lines = [
        line
        for group, points in groups.items()
        for line in (f"[{group}]", *(f"{name} = {place}" for name, place in points.items()), "")
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))
    return folder


def split_large(folder: Path, piece: int = PIECE) -> list[Path]:
    """Put files that are larger than a piece into pieces beside them; return the pieces."""
    made: list[Path] = []
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        if path.stat().st_size <= piece:
            continue
        with path.open("rb") as file:
            for number, part in enumerate(iter(lambda: file.read(piece), b"")):
                made.append(path.with_name(f"{path.name}.part-{number:03d}"))
                made[-1].write_bytes(part)
        path.unlink()
    return made


def join_pieces(folder: Path) -> list[Path]:
    """Put pieces together again; return the files. A gap in their numbers ends it."""
    pieces = sorted(folder.rglob("*.part-[0-9][0-9][0-9]"))
    files: dict[Path, list[Path]] = {}
    for part in pieces:
        files.setdefault(part.with_suffix(""), []).append(part)
    for path, parts in files.items():
        numbers = [int(part.suffix.removeprefix(".part-")) for part in parts]
        if numbers != [*range(len(parts))]:
            sys.exit(f"A piece of {path} is missing: bring it, and join again.")
        path.write_bytes(b"".join(part.read_bytes() for part in parts))
        for part in parts:
            part.unlink()
    return [*files]


def _unpacked(wheels: Path | None, site: Path) -> list[str]:
    """Unpack the wheels of what is not there; return where they lie."""
    if wheels is None:
        return []
    for wheel in sorted(wheels.rglob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            tops = {name.partition("/")[0] for name in archive.namelist()}
            names = {top.partition(".")[0] for top in tops if ".dist-info" not in top}
            if not any(name.isidentifier() and util.find_spec(name) for name in names):
                archive.extractall(site)
    return [str(site)]


def collect(folder: Path) -> None:
    """Download the wheels that a machine with torch may lack, the large ones apart."""
    (folder / "large").mkdir(parents=True, exist_ok=True)
    platform = [word for one in ("2_28", "2_17", "2014") for word in ("--platform", _tag(one))]
    for name in NEEDS:
        words = ["download", "-q", "--no-deps", *PYTHON, *platform, "-d", str(folder), name]
        if subprocess.run([sys.executable, "-m", "pip", *words], check=False).returncode:
            print(f"not had: {name}")
    for wheel in folder.glob("*.whl"):
        _trim(wheel)
        if wheel.stat().st_size > LARGE_MB * 1e6:
            wheel.rename(folder / "large" / wheel.name)
    for part in (folder, folder / "large"):
        sizes = [wheel.stat().st_size for wheel in part.glob("*.whl")]
        print(f"{part}: {len(sizes)} wheels, {sum(sizes) / 1e6:.1f} MB")


def _trim(wheel: Path) -> None:
    """Leave out pages and programs that no training needs: of Inspect's wheel nine tenths."""
    part = wheel.with_suffix(".part")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            if name.endswith(".py") or not re.search(r"/(_view|binaries)/|^botocore/data/", name):
                new.writestr(name, old.read(name))
    part.rename(wheel)


def _tag(glibc: str) -> str:
    return f"manylinux{glibc}_x86_64" if glibc == "2014" else f"manylinux_{glibc}_x86_64"


MACHINE = """
import importlib.metadata as m, json, shutil, sys, torch
gpu = torch.cuda.is_available()
names = ("torch", "transformers", "accelerate", "peft", "trl", "datasets", "inspect-ai", "triton")
versions = {}
for name in names:
    try: versions[name] = m.version(name)
    except m.PackageNotFoundError: versions[name] = None
from podium.conductor.training import trainer, probe
from podium.cli import main
print(json.dumps({
    "python": sys.version.split()[0], "versions": versions,
    "gpu": torch.cuda.get_device_name() if gpu else None,
    "gpu_gb": torch.cuda.get_device_properties(0).total_memory / 1e9 if gpu else 0.0,
    "compiler": shutil.which("cc") or shutil.which("gcc"),
}))
"""


def stage_words(session: Session, stage: Stage) -> list[str]:
    """Return how a stage trains: on the first one's warm start, once there is one."""
    config, out = session.config, session.out / stage.name
    settings = [f"grpo.max_steps={session.args.steps}", "grpo.warmup_steps=1", *stage.settings]
    if stage.config:
        settings[:2] = ["grpo.max_steps=1"]
    settings += TINY if session.args.rehearse else ()
    if session.args.rehearse:
        settings += ["warm_start.steps=30"] if not stage.config else []
    if session.start and not stage.config:
        config = session.out / f"{stage.name}.toml"
        bare = re.sub(r"\[model.from_scratch\].*?(?=\n\[)", "", CONFIG, flags=re.DOTALL)
        config.write_text(bare + f'[model]\npath = "{session.start}"\n')
        settings = [one for one in settings if not one.startswith(("model.", "warm_start."))]
        settings.append("warm_start.kind=none")
    sets = [word for one in settings for word in ("--set", one)]
    return ["-m", "podium", "train", stage.config or str(config), "--out", str(out), *sets]


def run_stage(session: Session, stage: Stage) -> None:
    """Estimate a stage, train it, and hold both against one another."""
    words = stage_words(session, stage)
    said, estimate = None, ""
    if not stage.config:
        _, estimate = session.run(f"{stage.name}-estimate", [*words, "--dry-run"])
        found = re.search(r"([\d.e+-]+) s a step: writing", estimate)
        said = float(found[1]) if found else None
    code, text = session.run(stage.name, words)
    if (session.out / stage.name / "start").is_dir() and session.start is None and not stage.config:
        session.start = session.out / stage.name / "start"
    path = session.out / stage.name / "metrics.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    steps = [line for line in lines if line["step"]]
    steady = steps[2:] or steps  # graphs are recorded in the first
    keys = ("seconds", "generation_seconds", "ahead_seconds", "reward_seconds", "update_seconds")
    means = {key: round(fmean(one[key] for one in steady), 3) for key in keys} if steady else {}
    peak = max((line.get("peak_gpu_memory_gib", 0.0) for line in steps), default=0.0)
    last = steady[-1] if steady else {}
    split_large(session.out / stage.name / "last")  # later stages begin with its `start`
    session.note(
        stage.name,
        code=code,
        steps=len(steps),
        **means,
        first_seconds=steps[0]["seconds"] if steps else None,
        said_seconds=said,
        said_over_measured=round(said / means["seconds"], 2) if said and means else None,
        peak_gpu_gib=peak,
        parsed=last.get("parsed"),
        tokens=last.get("tokens"),
        estimate=next((line for line in estimate.splitlines() if line.startswith("hours")), ""),
        error="" if code == 0 else text[-800:],
    )


def main() -> int:
    """Collect, or make the stages that there is time for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collect", type=Path)
    parser.add_argument("--join", type=Path, help="put pieces of large files together again")
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--out", type=Path, default=Path("session"))
    parser.add_argument("--model", type=Path, help="a folder with real weights, for all but seven")
    parser.add_argument("--minutes", type=float, default=13.0)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--stages", nargs="+", default=[stage.name for stage in STAGES])
    parser.add_argument("--rehearse", action="store_true", help="tiny sizes on a CPU")
    args = parser.parse_args()
    if args.collect:
        collect(args.collect)
        return 0
    if args.join:
        print(*join_pieces(args.join), sep="\n")
        return 0
    session = Session(args)
    code, text = session.run("machine", ["-c", MACHINE])
    machine = json.loads(text.splitlines()[-1]) if code == 0 else {}
    session.note("machine", code=code, **machine, error="" if code == 0 else text[-800:])
    if code:
        return 1
    for stage in STAGES:
        if stage.name not in args.stages:
            continue
        small = stage.config and machine["gpu_gb"] < SEVEN_GB and not args.rehearse
        if small or session.left_s < stage.least_s:
            session.note(stage.name, left_out="the card is small" if small else "no time is left")
            continue
        run_stage(session, stage)
    return 0


if __name__ == "__main__":
    sys.exit(main())
