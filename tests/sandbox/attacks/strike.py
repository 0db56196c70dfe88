"""One attack on one box: run it between innocent programs, and say what became of it."""

import importlib
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from podium.sandbox import Box, Limits, Program, ProgramOutcome

HERE = Path(__file__).parent
MODULES = ("resources", "survivors", "knowledge", "supervisor", "kernel")
LIMITS = Limits(cpu_s=0.5, wall_s=1.8, memory_bytes=256 << 20, output_bytes=1 << 20, processes=24)
PATIENT = replace(LIMITS, cpu_s=2.0, wall_s=4.0)
"""For attacks that end by themselves, which a busy machine must not end before they have."""
BOUND_S = LIMITS.wall_s * 2 + 12
"""What an attack and the innocent programs around it may take: twice where it ends its box."""


@dataclass(frozen=True, slots=True)
class Attack:
    """An attack by its name."""

    module: str
    name: str
    tries: str
    """What it tries, in a sentence."""
    statuses: tuple[str, ...]
    """How its own run may end."""


@dataclass(frozen=True, slots=True)
class Struck:
    """What became of an attack."""

    ended: str
    replaced: bool
    """Whether its cell was thrown away."""
    faults: tuple[str, ...]
    """What it reached, if anything."""
    seconds: float


def attacks() -> Iterator[Attack]:
    """Yield every attack, in the order of their files."""
    for module in MODULES:
        inside = importlib.import_module("tests.sandbox.attacks.inside")
        inside.ATTACKS.clear()
        found = importlib.reload(importlib.import_module(f"tests.sandbox.attacks.{module}"))
        for name, function in list(inside.ATTACKS.items()):
            assert found
            yield Attack(module, name, function.__doc__ or "", inside.STATUSES[name])


def source(module: str | None) -> str:
    """Return a program: a module of attacks, or none, that does what its input says."""
    text = (HERE / "inside.py").read_text()
    if module:
        theirs = (HERE / f"{module}.py").read_text()
        text += theirs.replace("from tests.sandbox.attacks.inside import *\n", "")
    return f"{text}\n# {secret()}\nmain()\n"


def secret() -> str:
    """Return a word that no program should find but in its own source or input."""
    return f"SECRET-{secrets.token_hex(8)}"


def strike(box: Box, attack: Attack) -> Struck:
    """Attack a box between two looks by the same program, then look again by another."""
    began = time.monotonic()
    looking = f"look {secret()}\n".encode()
    text = source(attack.module).replace("\n# SECRET-", "\n# other-")
    inputs = [looking, f"{attack.name}\n".encode(), looking]
    limits = LIMITS if "time" in attack.statuses else PATIENT
    if attack.module == "knowledge":  # there is somebody to learn of
        list(box.run(Program(source(None)), [looking], limits))
    before, struck, same = box.run(Program(text), inputs, limits)
    (other,) = box.run(Program(source(None)), [looking], limits)
    seconds = time.monotonic() - began
    seen = [parsed(one) for one in (before, same, other)]
    faults = [*verdict(attack, struck), *compared(seen)]
    if seconds > BOUND_S:
        faults.append(f"it took {seconds:.0f} s")
    replaced = len({one.get("cell") for one in seen[:2]}) > 1
    return Struck(ended(struck), replaced, tuple(faults), seconds)


def verdict(attack: Attack, struck: ProgramOutcome) -> Iterator[str]:
    """Yield what is wrong with the end of the attacker's own run."""
    said = struck.stdout.split(b"\n")[0].decode(errors="replace")
    if struck.status not in attack.statuses:
        yield f"it ended as {ended(struck)}: {struck.stderr[-300:]!r}"
    if said.startswith("BROKEN"):
        yield said
    if struck.status == "exited" and struck.exit_code == 0 and not said.startswith("held"):
        yield f"it said {said!r}"


def compared(seen: list[dict[str, object]]) -> Iterator[str]:
    """Yield what innocent programs saw that they did not see before."""
    before = seen[0].get("state")
    if not isinstance(before, dict):
        yield f"the program failed before the attack: {seen[0]}"
        return
    for who, one in zip(("same", "other"), seen[1:], strict=True):
        after = one.get("state")
        if not isinstance(after, dict):
            yield f"the {who} program failed: {one}"
        elif after != before:
            keys = [key for key in before if before[key] != after.get(key)]
            yield f"the {who} program saw " + str({key: (before[key], after[key]) for key in keys})


def parsed(outcome: ProgramOutcome) -> dict[str, object]:
    """Return what an innocent program saw; what became of it where it failed."""
    with suppress(ValueError):
        return json.loads(outcome.stdout)
    return {"failed": replace(outcome, stdout=outcome.stdout[:100])}


def ended(outcome: ProgramOutcome) -> str:
    """Say how a run ended."""
    said = outcome.stdout.split(b"\n")[0].decode(errors="replace")
    how = outcome.status if outcome.status != "exited" else f"exit {outcome.exit_code}"
    return f"{how}, {said[5:].strip() or 'refused'}" if said.startswith("held:") else how
