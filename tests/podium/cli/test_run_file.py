"""One file is the whole run: it is read as it was saved, typed options win, mistakes are named."""

import hashlib
from argparse import Namespace
from contextvars import copy_context
from dataclasses import replace
from pathlib import Path

import pytest

from podium.cli import main
from podium.cli.commands import build_parser
from podium.cli.run_commands import run_request
from podium.cli.run_file import KEYS, save_run_file, take_run_file
from podium.harness.ledger.system_runs import load_runs
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.experiment import read_experiment

EVERY = """--suite practice-integer --suite {0}/own.py@suite --system moa-lite --pool {0}/mine.toml
--log-dir {0}/runs --limit 3 --epochs 2 --seed 4 --split train --prompt paper --time-scale 0.5
--max-usd 0.1 --max-usd-per-query 0.01 --rpm openai=9 --box docker --max-sandboxes 2 -T rows=[1]
--suite-limit practice-integer=2
--train-calls 5 --train-on practice-choice --profile {0}/before
--match moa-lite --headline moa-lite --grace 3 --worker-cards hidden
--display none --fresh-draws --equal calls=9 --shards 2 --launcher slurm --address local
--gate {0}/gate.toml -S moa-lite.layers=2 -S k=3"""
TINY = 'suites = ["practice-integer"]\nsystems = ["single:sage"]\nlog_dir = "runs"\nlimit = 2\n'


def typed(*words: str) -> Namespace:
    args = build_parser().parse_args(["run", *words])
    if args.file:
        take_run_file(args)
    return args


def test_every_field_is_read_as_it_was_saved(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    args = typed(*EVERY.format(tmp_path).split(), "--save-run", str(path))
    request: RunRequest = replace(run_request(args), selection_limit=7)
    assert request.system_options == {"moa-lite": {"layers": 2}, "": {"k": 3}}
    save_run_file(args, request)
    keys = {line.partition(" = ")[0] for line in path.read_text().splitlines()[1:]}
    assert keys == {*KEYS} - {"report"}
    placed = {'log_dir = "runs"', 'profile = "before"', 'pool = "mine.toml"'}
    assert placed < {*path.read_text().splitlines()}
    again = typed(str(path))
    assert run_request(again) == request
    assert (again.shards, again.launcher, again.address) == (2, "slurm", "local")
    typed_too = run_request(typed(str(path), "-S", "moa-lite.layers=4"))
    assert typed_too.system_options == {"moa-lite": {"layers": 4}, "": {"k": 3}}, "options win"


@pytest.mark.slow
def test_a_file_is_run_examined_and_reported_and_options_win(tmp_path: Path) -> None:
    path, log_dir = tmp_path / "run.toml", tmp_path / "runs"
    path.write_text(f"{TINY}[report]\nderived = true\n")
    for words in (["doctor", str(path)], ["run", str(path), "--limit", "1"]):
        assert copy_context().run(main, words) == 0
    stated = {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "options": ["limit"]}
    (only,), stored = load_runs([log_dir])[0], read_experiment(log_dir)
    assert (only.facts.run_file, only.asked) == (stated, 1)
    assert stored is not None
    assert stored.run_file == stated
    assert (log_dir / "report" / "table.md").exists()


MISTAKES = {
    "suties = []": "Did you mean 'suites'? There is no key 'suties'; ",
    'limit = "5"': "limit has a wrong value. Input should be a valid integer.",
    "seed = -1": "seed has a wrong value. '-1' is not a whole number from 0 to 4294967295.",
    "rpm = { openai = 0 }": "rpm has a wrong value. '0' is not a whole number above 0",
    'log_dir = ""': "log_dir has a wrong value. It names no place. Correct it.",
    'log_dir = "a\\u0000b"': "log_dir has a wrong value. It names no place. Correct it.",
    "[report]\nvss = 1": "Did you mean 'vs'? There is no key 'vss'; ",
    "limit = 1": "The run has no --suite. Add it, or use a run file that has it.",
}


@pytest.mark.parametrize("content", MISTAKES)
def test_a_mistake_is_one_sentence(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "run.toml").write_text(content)
    assert main(["run", str(path), "--log-dir", str(tmp_path / "runs")]) == 2
    assert MISTAKES[content] in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [path]
