"""Attacks on every box that isolates: each is run between innocent programs, which must not notice.

What each tries is written in attacks/; `python tests/sandbox/attacks/list.py` prints the table.
"""

import os
from collections.abc import Generator
from contextlib import closing

import pytest

from podium.sandbox import Box, Program, open_box
from tests.sandbox.attacks.strike import Attack, attacks, strike
from tests.sandbox.boxes import BWRAP, ISOLATING, needs
from tests.sandbox.test_bwrap import OrdinaryBox, python_for_somebody

pytestmark = pytest.mark.slow

ORDINARY = "bwrap, ordinary user"
BOXES = [*ISOLATING, pytest.param(ORDINARY)]
PAIRS = [
    pytest.param(box.values[0], attack, marks=box.marks, id=f"{box.values[0]}-{attack.name}")
    for box in BOXES
    for attack in attacks()
    # limits do not depend on who starts bwrap
    if (box.values[0], attack.module) != (ORDINARY, "resources")
]


@pytest.fixture(scope="module")
def box(request: pytest.FixtureRequest) -> Generator[Box]:
    """Each box with one sandbox only, so that an innocent program meets the attacker's."""
    if request.param != ORDINARY:
        opened = open_box(needs(request.param), 1)
    else:
        needs(BWRAP)
        if os.geteuid() != 0:
            pytest.skip("bwrap is started by an ordinary user anyway")
        python_for_somebody()
        opened = OrdinaryBox(1)
    with closing(opened):
        yield opened


@pytest.mark.parametrize(("box", "attack"), PAIRS, indirect=["box"])
def test_an_attack_gains_nothing_and_leaves_nothing(box: Box, attack: Attack) -> None:
    assert strike(box, attack).faults == ()


@pytest.mark.parametrize("box", BOXES, indirect=True)
def test_sandboxes_started_one_after_another_do_not_share_their_users(box: Box) -> None:
    users = {
        outcome.stdout
        for _ in range(3)
        for outcome in box.run(Program("import os; print(os.getuid())"), [b"", b""])
    }
    assert len(users) == (1 if isinstance(box, OrdinaryBox) else 6)


@pytest.mark.parametrize("box", BOXES, indirect=True)
def test_what_an_attack_looks_for_is_found_where_it_is(box: Box) -> None:
    secret = "SECRET-" + "0123456789abcdef"
    source = (
        f"import gc, re\nx = {secret!r}\nprint(re.search('SECRET-[0-9a-f]+', repr(globals()))[0])"
    )
    (outcome,) = box.run(Program(source), [b""])
    assert outcome.stdout.decode().strip() == secret
