"""Ctrl-C while a conductor is trained: once ends after the running step, twice ends at once.

The step here never ends, so that the second signal is what ends it; no torch is needed. That the
running step is saved and a resumed run goes on from it is test_training_runs.py.
"""

import signal
import subprocess
import sys

import pytest

ENDLESS = """
from functools import partial
from types import SimpleNamespace
import anyio
from podium.conductor.training.train import stopping

say, state = partial(print, flush=True), SimpleNamespace(asked_to_stop=False)

async def step():  # as workers are asked in one
    say("running")
    while True:
        await anyio.sleep(0.01)
        if state.asked_to_stop and not state.told:
            state.told = True
            say("goes on")

state.told = False
try:
    with stopping(state, say):
        anyio.run(step)
except KeyboardInterrupt:
    say("ended at once")
"""


@pytest.mark.slow
@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_lets_the_step_go_on_and_a_second_interrupt_ends_it(
    first: signal.Signals,
) -> None:
    words = [sys.executable, "-c", ENDLESS]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        process.send_signal(first)
        assert process.stdout.readline().startswith("Stopping after this step")
        assert process.stdout.readline() == "goes on\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "ended at once\n"
    assert process.returncode == 0
