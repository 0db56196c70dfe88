"""No live worker is asked before its user has seen what that can cost and has agreed to it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import podium
from podium.cli import main
from podium.cli.consent import Maximum
from podium.cli.list_commands import whole_catalogue
from podium.harness.errors import UserError
from podium.harness.pool_config import read_pool
from podium.harness.run.experiment import AGREED, NEW, read_experiment
from podium.harness.run.preflight import why_not_live
from podium.reports.audit import audit
from podium.reports.power import smallest_difference
from tests.providers import CLIENTS_WARN, Server, serve, write_pool

pytestmark = CLIENTS_WARN


@contextmanager
def typing(text: str | None) -> Iterator[None]:
    """Have a terminal at which a user types something; None: there is no terminal."""
    user, terminal = os.pipe() if text is None else os.openpty()
    if text is not None:
        os.write(user, f"{text}\n".encode())
    with os.fdopen(terminal) as stdin, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        yield
    os.close(user)


def ran(folder: Path, server: Server, *words: str) -> int:
    """Run two questions of one live worker; return the exit code."""
    named = ["--suite", "practice-integer", "--pool", write_pool(folder, server)]
    where = ["--log-dir", str(folder / "run"), "--display", "none"]
    with typing(None):
        return copy_context().run(main, ["run", *named, *where, *(words or ONE)])


ONE = ("--system", "single:olive", "--limit", "2")


def test_a_live_run_says_what_it_costs_and_can_show_and_asks_nobody_without_consent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve() as server:
        assert ran(tmp_path, server) == 2
        assert ran(tmp_path, server, *ONE, "--dry-run") == 0
        assert server.bill.lines == []
    bill, shows, refusal = capsys.readouterr().err.splitlines()
    assert bill == "This run makes up to 2 calls: at most $0.01, likely unknown (book)."
    points = round(smallest_difference(2, 1))
    assert shows.startswith(
        f"practice-integer: 2 questions x 1 epoch cannot detect less than {points}"
    )
    assert shows.endswith(" points (podium power); 8 epochs cost at most $0.01.")
    assert refusal.endswith("there is no terminal to ask. Add --max-usd USD to limit it, or --yes.")
    assert not (tmp_path / "run").exists()


def test_a_live_run_without_systems_is_refused_and_says_which_to_ask_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve() as server:
        assert ran(tmp_path, server, "--yes") == 2
        assert server.bill.lines == []
    said = capsys.readouterr().err
    assert "Pool 'pool' is live, so name the systems that run on it: --system single," in said
    assert "(all, contestants, routers, controls, frameworks)" in said


@pytest.mark.parametrize(("typed", "code", "calls"), [("y", 0, 1), ("n", 2, 0), ("", 2, 0)])
def test_a_terminal_is_asked(
    typed: str, code: int, calls: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve() as server:
        words = ["run", "--suite", "practice-integer", "--pool", write_pool(tmp_path, server)]
        words += ["--system", "single:olive", "--limit", "1", "--log-dir", str(tmp_path / "run")]
        with typing(typed):
            assert copy_context().run(main, words) == code
        assert len(server.bill.lines) == calls
    said = capsys.readouterr().err
    assert said.index("at most $") < said.index("Go on? [y/N]")
    assert ("You did not agree, so no model was called." in said) == (not calls)


def test_a_resume_within_what_was_agreed_asks_no_more_and_beyond_it_does(tmp_path: Path) -> None:
    with serve() as server:
        assert ran(tmp_path, server, *ONE, "--yes") == 0
        (agreed,) = (tmp_path / "run" / AGREED).read_text().splitlines()
        assert ran(tmp_path, server) == 0
        assert ran(tmp_path, server, *ONE, "--epochs", "2") == 2
        assert len(server.bill.lines) == 2
        assert ran(tmp_path, server, *ONE, "--epochs", "2", "--max-usd", "1") == 0
        assert ran(tmp_path, server, *ONE, "--epochs", "2") == 0
        assert len(server.bill.lines) == 4
    assert '"usd": "0.0' in agreed
    assert len((tmp_path / "run" / AGREED).read_text().splitlines()) == 2
    assert audit(tmp_path / "run").ok


@pytest.mark.parametrize(
    ("agreed", "wanted", "covered"),
    [
        (Maximum(Decimal(2), 9), Maximum(Decimal(2), 99), True),
        (Maximum(Decimal(2), 9), Maximum(Decimal(3), 9), False),
        (Maximum(Decimal(2), 9), Maximum(None, 9), False),
        (Maximum(None, 9), Maximum(None, 9), True),
        (Maximum(None, 9), Maximum(Decimal(5), 9), True),
        (Maximum(None, 9), Maximum(None, 10), False),
    ],
    ids=["within", "dearer", "without a bound", "as before", "bounded now", "larger"],
)
def test_what_nothing_bounds_is_told_apart_by_its_size(
    agreed: Maximum, wanted: Maximum, covered: bool
) -> None:
    assert agreed.covers(wanted) == covered


def test_a_run_in_python_is_agreed_to_by_an_argument(tmp_path: Path) -> None:
    with serve() as server:
        pool, logs = write_pool(tmp_path, server), tmp_path / "run"
        with pytest.raises(
            UserError, match=r"Pass max_usd=Decimal\(...\) to limit it, or yes=True"
        ):
            podium.run("practice-integer", "single:olive", pool=pool, log_dir=logs, limit=1)
        assert server.bill.lines == []
        agreed = copy_context().run(
            lambda: podium.run(
                "practice-integer", "single:olive", pool=pool, log_dir=logs, limit=1, yes=True
            )
        )
        assert agreed.finished


def test_a_limit_in_python_may_be_a_float(tmp_path: Path) -> None:
    with serve() as server:
        where: dict[str, Any] = {"pool": write_pool(tmp_path, server), "log_dir": tmp_path / "run"}
        stopped = copy_context().run(
            lambda: podium.run("practice-integer", "single:olive", **where, max_usd=1e-9)
        )
    assert not stopped.finished
    assert "--max-usd" in stopped.trouble[0]
    assert server.bill.lines == []


@pytest.mark.parametrize("amount", [0, -1.0, "much", float("nan"), True])
def test_a_limit_in_python_is_an_amount(tmp_path: Path, amount: Any) -> None:
    with pytest.raises(UserError, match="max_usd must be an amount in US dollars above 0, not"):
        podium.run("practice-integer", "single:pip", log_dir=tmp_path / "run", max_usd=amount)
    with pytest.raises(UserError, match="max_usd must be an amount in US dollars above 0, not"):
        podium.RewardSettings(max_usd=amount)


LIVE = """
label = "live"
prices = "{folder}/prices.toml"
[[workers]]
name = "only"
model = "openai/only"
knowledge_cutoff = "unknown"
config = {{ max_tokens = 1000 }}
args = {{ base_url = "https://127.0.0.1:9", api_key = "test" }}
"""
PRICES = """
date = "2026-01-01"
source = "made up for a test"
[usd_per_mtok."openai/only"]
input = "1"
output = "2"
"""
ABLATIONS = """
config = "practice-cpu"
reference = "unablated"
[all]
pool.name = "{folder}/live.toml"
[ablations.unablated]
says = "As it is."
"""


@pytest.fixture
def live(tmp_path: Path) -> Path:
    """A folder with `live.toml`, a pool whose worker cannot be reached."""
    for name, text in (("live", LIVE), ("prices", PRICES), ("ablations", ABLATIONS)):
        (tmp_path / f"{name}.toml").write_text(text.format(folder=tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("words", "bill"),
    [
        (("train", "practice-cpu", "--set", "pool.name='{0}/live.toml'"), "Its plans make up to "),
        (
            ("ablate", "--file", "{0}/ablations.toml"),
            "Trainings (each evaluation asks separately) make up to ",
        ),
    ],
    ids=["train", "ablate"],
)
def test_trainings_on_live_workers_are_agreed_to(
    words: tuple[str, ...], bill: str, live: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [word.format(live) for word in words]
    with typing(None):
        assert main([*command, "--out", str(live / "out")]) == 2
    line, refusal = capsys.readouterr().err.splitlines()
    assert bill in line
    assert "at most $" in line
    assert refusal.endswith("Add --max-usd USD to limit it, or --yes.")
    assert not (live / "out").exists()


def test_other_machines_are_not_let_in_without_limits_or_consent(
    live: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["serve", "--system", "single:only", "--pool", f"{live}/live.toml", "--host", "0.0.0.0"]
    words += ["--log-dir", str(live / "log"), "--keys", str(live / "keys.toml")]
    with typing(None):
        assert main(words) == 2
        said = capsys.readouterr().err
        assert "Clients of 0.0.0.0 can spend without limit" in said
        assert (
            "This has no maximum cost, and there is no terminal to ask. Add --max-usd USD" in said
        )
        assert not (live / "log").exists()
        for more in (["--max-usd", "5"], ["--yes"]):
            assert main([*words, *more]) == 2
            assert "keys.toml" in capsys.readouterr().err  # consent was not what it lacked


def test_a_conductor_that_knows_no_card_begins_no_live_run_and_goes_on_with_an_old_one(
    tmp_path: Path,
) -> None:
    known, spec = whole_catalogue(), read_pool("paper-constrained")
    words = "run --suite practice-integer --system conductor-adaptive --limit 1 --display none"
    assert main([*words.split(), "--log-dir", str(tmp_path / "run")]) == 0
    begun = read_experiment(tmp_path / "run")
    assert why_not_live("conductor-adaptive", known, spec, begun) is None
    said = str(why_not_live("conductor-adaptive", known, spec, read_experiment(NEW)))
    assert said.startswith("conductor-adaptive knows no card of pool 'paper-constrained'")
    assert "Use conductor-prompted" in said
    assert why_not_live("conductor-adaptive", known, read_pool("rehearsal"), None) is None


def test_a_conductor_that_knows_some_cards_says_whose(
    live: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = LIVE.format(folder=live)
    second = text[text.index("[[workers]]") :].replace('"only"', '"fast"', 1)
    card = 'name = "fast"\ncard = "Fast and cheap."'
    (live / "live.toml").write_text(text + second.replace('name = "fast"', card))
    words = ["run", "--suite", "practice-integer", "--system", "conductor-adaptive", "--limit", "1"]
    with typing(None):
        assert main([*words, "--pool", f"{live}/live.toml", "--log-dir", f"{live}/run"]) == 2
    said = capsys.readouterr().err
    assert "podium: conductor-adaptive tells workers apart by the first word of a card and" in said
    assert "Writes, here fast. It does not know the card of only, so it chooses among these" in said
