"""Variants of a worker: rows, roles and settings of their own, which only their names ask."""

import hashlib
from contextvars import copy_context
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.harness.pool_config import POOLS, parse_pool, read_pool

POOL = """label = "rehearsal"
prices = "rehearsal"
[[workers]]
name = "sage"
model = "rehearsal/sage"
config = { max_tokens = 900 }
variants = { low = { reasoning_effort = "low" }, brief = { max_tokens = 90 } }
"""
VARIANTS = POOL.splitlines()[-1].partition(" = ")[2]


def test_variants_are_rows_of_their_own_and_nobody_else_asks_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "mine.toml").write_text(POOL)
    words = f"--pool {path} --suite practice-integer --limit 2 --log-dir {tmp_path}/run".split()
    names = ["--system", "single:sage@low,brief", "--system", "moa-lite", "--system", "single"]
    assert copy_context().run(main, ["run", *words, *names]) == 0
    runs = {one.facts.system: one for one in load_runs([tmp_path / "run"])[0]}
    alone = ("single:sage", "single:sage@low", "single:sage@brief")
    assert runs.keys() == {*alone, "moa-lite"}
    asked = {name: {kind.role for kind in one.spend} for name, one in runs.items()}
    assert asked == {**{name: {name[7:]} for name in alone}, "moa-lite": {"sage"}}
    workers = runs["moa-lite"].facts.workers
    assert workers["sage@low"].config == {"max_tokens": 900, "reasoning_effort": "low"}
    assert workers["sage@brief"].config == {"max_tokens": 90}
    assert main(["run", *words, "--system", "single:sage@lo"]) == 2
    assert "There is no variant 'lo'; worker 'sage' has: low, brief." in capsys.readouterr().err


MISTAKES = {
    "{ low = { max_tokens = 900 } }": "variant 'low' equals the worker itself: change a setting",
    "{ a = { seed = 1 }, b = { seed = 1 } }": "variant 'b' equals variant 'a': change a setting",
    "{ a = { tempreature = 1 } }": "Did you mean 'temperature'? There is no setting 'tempreature'",
    '{ a = { reasoning_effort = "lo" } }': "variants.a.reasoning_effort: Input should be ",
    '{ "a,b" = { seed = 1 } }': "variants.a,b.[key]: String should match pattern",
    f'{VARIANTS}\n[[workers]]\nname = "sage@low"\nmodel = "rehearsal/sage"': "workers.1.name: ",
    f'{{}}\n[conductor]\nmodel = "rehearsal/sage"\nvariants = {VARIANTS}': "only workers have ",
}


@pytest.mark.parametrize("variants", MISTAKES)
def test_a_mistake_is_named_with_its_place(variants: str) -> None:
    with pytest.raises(UserError) as refusal:
        parse_pool(POOL.replace(VARIANTS, variants).encode(), Path("mine.toml"))
    assert MISTAKES[variants] in str(refusal.value)


def test_a_pool_without_variants_is_what_it_was() -> None:
    pool = read_pool("rehearsal")
    assert pool.sha256 == hashlib.sha256((POOLS / "rehearsal.toml").read_bytes()).hexdigest()
    assert pool.slots == (*pool.workers, *(slot for _, slot in pool.roles()))
