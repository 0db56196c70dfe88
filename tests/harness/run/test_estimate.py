"""A dry run says what a run will ask and cost; it asks nobody, and writes nothing."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from podium.baselines.mixture import moa_system
from podium.baselines.voting import self_consistency_system
from podium.cli import main
from podium.cli.commands import build_parser
from podium.conductor.policy import conductor_system
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import system_of
from podium.harness.ledger.call import TEMPLATE
from podium.harness.pool_config import read_pool
from podium.harness.prices import read_book
from podium.harness.records import Question
from podium.harness.run.catalogue import RunRequest
from podium.harness.run.estimate import (
    Estimate,
    EstimateLine,
    duration_text,
    estimate,
    estimate_text,
)
from podium.harness.run.forecast import (
    UNKNOWN_CALL,
    CountedCall,
    Estimator,
    PastRuns,
    Unplannable,
    counted_all,
)
from podium.harness.run.run_request import RequestReader
from tests.harness.toy_run import CONTROLS, Toy, calls, toy_catalogue, toy_pool, toy_run
from tests.suites.toy_suites import JudgedToy, VariedToy

QUESTION = Question(id="q1", text="Wie groß?", kind="integer")  # 10 bytes, 9 characters
CREW = ("ada", "bob")
LIMITED = """
label = "live"
prices = "{prices}"
[[workers]]
name = "ada"
model = "toy/ada"
args = {{ notes = "{notes}" }}
config = {{ max_tokens = {tokens} }}
[[workers]]
name = "bob"
model = "toy/bob"
args = {{ notes = "{notes}" }}
config = {{ max_tokens = {tokens} }}
"""


def limited_pool(log_dir: Path, tokens: int = 50) -> Path:
    """Write the toy's pool with a limit on replies: 100 dollars per million tokens."""
    path = toy_pool(log_dir)
    book = log_dir.with_name(f"{log_dir.name}-prices.toml")
    path.write_text(LIMITED.format(prices=book, notes=log_dir, tokens=tokens))
    return path


def asked(log_dir: Path, suite: Toy | None = None, **changes: Any) -> RunRequest:
    request = {
        "suites": ((suite or Toy()).name,),
        "systems": ("single:ada",),
        "pool": str(log_dir.with_name(f"{log_dir.name}-pool.toml")),
        "log_dir": log_dir,
    }
    return RunRequest(**{**request, **changes})


def dry(log_dir: Path, *like: Path, suite: Toy | None = None, **changes: Any) -> Estimate:
    reader = RequestReader(asked(log_dir, suite, **changes), toy_catalogue(suite), CONTROLS)
    return estimate(reader.read(), like)


def line(found: Estimate, system: str) -> EstimateLine:
    return next(one for one in found.lines if one.system == system)


def test_the_requests_of_a_plan_are_counted_without_asking_anybody() -> None:
    found = counted_all(moa_system(), [(QUESTION, 1)], CREW)[0]
    assert [call.worker for call in found] == ["ada", "bob", "ada"]
    assert [call.reads for call in found] == [(), (), (0, 1)]
    assert found[0].prompt_bytes == 10
    assert found[2].prompt_bytes > 600  # the authors' prompt, replies not included


def test_a_vote_and_a_read_reply_need_no_reply_to_be_counted() -> None:
    assert len(counted_all(self_consistency_system("bob", 5), [(QUESTION, 1)], CREW)[0]) == 5


def test_a_plan_that_a_model_writes_cannot_be_counted(tmp_path: Path) -> None:
    spec = read_pool("rehearsal")
    with pytest.raises(Unplannable) as stop:
        counted_all(conductor_system(), [(QUESTION, 1)], spec.names, spec)[0]
    assert stop.value.first.worker == "conductor"
    assert stop.value.first.prompt_bytes > 1000


def test_at_most_is_every_byte_a_token_and_every_reply_at_its_limit(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    spec = read_pool(str(limited_pool(log_dir)))
    estimator = Estimator(spec, read_book(spec.prices), PastRuns(), "toy")
    take = estimator.at_most([CountedCall("ada", 30), CountedCall("bob", 10, (0,))])
    assert (take.calls, take.input, take.output) == (2, 30 + 10 + 50, 100)
    assert take.usd == (30 + 10 + 50 + 100 + 2 * TEMPLATE) * Decimal("0.0001")


def test_a_first_dry_run_goes_by_the_plan_and_the_limits(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir)
    found = dry(log_dir)
    (one,) = found.lines
    text = sum(len(question.text.encode()) for question in Toy().load())
    assert (one.left, one.most.calls) == (12, 12)
    assert one.most.input == text
    assert one.most.usd == (text + 12 * (50 + TEMPLATE)) * Decimal("0.0001")
    assert (one.expected.calls, one.expected.input, one.expected.usd) == (12, None, None)
    assert one.most.usd is not None
    assert one.basis == "its plan; no past call of ada"
    assert estimate_text(found).splitlines()[1].split()[2:7] == ["12", "12", "-", "-", "-"]
    enough = one.most.usd.quantize(Decimal("0.01"), rounding="ROUND_UP")
    assert f"--max-usd {enough} would be enough without HTTP retries." in estimate_text(found)
    assert not log_dir.exists()
    assert calls(log_dir) == []


def test_a_pool_that_states_its_rate_says_how_long_replies_take(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    pool = limited_pool(log_dir)
    assert duration_text(dry(log_dir, limit=2)) == ""
    pool.write_text(f"tokens_per_second = 0.01\n{pool.read_text()}")
    forecast = dry(log_dir, limit=2)
    told = "At 0.01 output tokens a second (pool file), replies take at most 2.8 h."
    assert duration_text(forecast) == told, "two replies of 50 tokens"
    assert told in estimate_text(forecast)
    unknown = replace(forecast.lines[0], most=UNKNOWN_CALL)
    both = replace(forecast, lines=(*forecast.lines, unknown))
    assert duration_text(both).endswith("2.8 h, and more for systems whose calls are unknown.")


def test_a_run_with_the_safe_limit_finishes_and_costs_no_more(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir, tokens=100)
    found = dry(log_dir, systems=("moa-lite",))
    enough = found.most.usd
    assert enough is not None
    assert toy_run(log_dir, systems=("moa-lite",), max_usd=enough + Decimal("0.01")).finished
    assert dry(log_dir, systems=("moa-lite",)).already <= enough


def test_past_answers_of_the_same_system_say_what_the_next_will_take(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=5)
    found = dry(log_dir, limit=12)
    (one,) = found.lines
    assert one.left == 7
    assert one.expected.calls == 7
    assert (one.expected.input, one.expected.output) == (7 * 60, 7 * 40)
    assert one.expected.usd == Decimal("0.07")  # 100 tokens at $100 / Mtok each
    assert one.basis == "5 past answers of the same system"
    assert found.already == Decimal("0.05")
    assert one.most.usd is None
    assert "Unknown: ada sets no max_tokens." in estimate_text(found)
    assert "No --max-usd is known to be enough" in estimate_text(found)


def test_other_runs_of_the_same_workers_are_learned_from(tmp_path: Path) -> None:
    before, log_dir = tmp_path / "before", tmp_path / "run"
    toy_pool(before)
    toy_pool(log_dir)
    toy_run(before, limit=3)
    found = dry(log_dir, before, systems=("single:ada", "self-consistency"), split="train")
    assert line(found, "single:ada").basis == "3 past answers of the same system"
    voting = line(found, "self-consistency")
    assert voting.basis == "its plan, at its workers' past calls"
    assert voting.expected.output == 12 * 5 * 40
    with pytest.raises(UserError, match="name a directory that `podium run` wrote"):
        dry(log_dir, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"There is no run in .*empty"):
        dry(log_dir, tmp_path / "empty")


def test_a_finished_run_has_nothing_left(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir)
    (one,) = dry(log_dir).lines
    assert (one.left, one.expected.usd, one.basis) == (0, 0, "nothing left")


def test_every_entry_of_a_directory_is_finished_by_the_next_run_so_it_is_estimated(
    tmp_path: Path,
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=5)
    found = dry(log_dir, limit=8, systems=("single:bob",))
    assert {one.system: one.left for one in found.lines} == {"single:ada": 3, "single:bob": 8}


@pytest.mark.slow
def test_choosing_the_best_single_is_estimated_and_named(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir)
    found = dry(log_dir, systems=("best-single",), limit=4)
    assert [(one.system, one.left) for one in found.lines] == [
        ("choosing best-single: single:ada", 12),
        ("choosing best-single: single:bob", 12),
        ("best-single", 4),
    ]
    assert found.lines[-1].basis.startswith("mean and dearest of 2 workers")
    toy_run(log_dir, systems=("best-single",), limit=4)
    assert [one.left for one in dry(log_dir, systems=("best-single",), limit=4).lines] == [0]


def test_a_best_single_in_hindsight_asks_every_worker(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir)
    found = dry(log_dir, suite=Toy(splits=("eval",)), systems=("best-single",))
    assert [one.system for one in found.lines] == ["best-single", "single:ada", "single:bob"]


def test_each_epoch_is_counted_as_it_is_asked(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    limited_pool(log_dir)
    suite = VariedToy()
    (one,) = dry(log_dir, suite=suite, limit=3).lines
    first = sum(len(question.text) for question in suite.load()[:3])
    assert one.left == 12
    assert one.most.input == 4 * first + 9 * len(" (epoch 2)")


def test_a_worker_without_a_price_leaves_dollars_unknown_and_is_named(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    pool = limited_pool(log_dir)
    pool.write_text(pool.read_text().replace('name = "bob"', 'name = "bob"\nprice = "acme/new"'))
    found = dry(log_dir, systems=("single:ada", "single:bob"))
    assert line(found, "single:ada").most.usd is not None
    assert line(found, "single:bob").most.usd is None
    assert found.most.usd is None
    assert any(one.startswith("bob has no price (acme/new is not in") for one in found.unknown)


def test_a_judge_whose_prompts_nobody_knows_has_unknown_dollars(tmp_path: Path) -> None:
    log_dir = tmp_path / "run"
    pool = limited_pool(log_dir)
    grader = f'[grader]\nmodel = "toy/ada"\nargs = {{ notes = "{log_dir}" }}\n'
    pool.write_text(pool.read_text() + grader)
    found = dry(log_dir, suite=JudgedToy())
    assert line(found, "grader of single:ada").left == 12
    assert found.expected.usd is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"systems": ("nope",)}, "no system 'nope'", id="system"),
        pytest.param({"systems": ("single:zeus",)}, "no worker 'zeus'", id="worker"),
        pytest.param({"limit": 0}, "--limit must be at least 1", id="limit"),
        pytest.param({"epochs": 0}, "--epochs must be at least 1", id="epochs"),
        pytest.param({"split": "validation"}, "has no 'validation' split", id="split"),
        pytest.param(
            {"seed": 5}, "holds a run with other settings: its seed", id="another-experiment"
        ),
    ],
)
def test_what_a_run_refuses_a_dry_run_refuses(
    changes: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    log_dir = tmp_path / "run"
    toy_pool(log_dir)
    toy_run(log_dir, limit=1)
    with pytest.raises(UserError, match=reason):
        dry(log_dir, **changes)


def test_the_command_needs_no_key_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    words = ["run", "--suite", "practice-integer", "--pool", "paper-constrained", "--limit", "2"]
    log_dir = tmp_path / "new"
    assert main([*words, "--system", "moa-lite", "--log-dir", str(log_dir), "--dry-run"]) == 0
    said = capsys.readouterr()
    assert "moa-lite" in said.out
    assert "would be enough" in said.out
    assert said.err == ""
    assert list(tmp_path.iterdir()) == []
    assert main([*words, "--system", "nope", "--log-dir", str(log_dir), "--dry-run"]) == 2


def test_like_is_a_directory_and_may_be_repeated() -> None:
    words = ["run", "--suite", "x", "--log-dir", "d", "--dry-run", "--like", "a", "--like", "b"]
    assert build_parser().parse_args(words).like == [Path("a"), Path("b")]


def test_a_solver_that_is_not_ours_has_no_system() -> None:
    from inspect_ai.solver import generate

    with pytest.raises(LookupError, match="not made by as_solver"):
        system_of(generate())
