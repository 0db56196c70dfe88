"""`podium pool new`: a pool file from flags or from a terminal, drilled as doctor does."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from decimal import Decimal
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.pool_config import read_pool
from podium.harness.prices.book import newest_list
from tests.providers import CLIENTS_WARN, Server, failing, serve

pytestmark = CLIENTS_WARN
KEY = "sk-acme-0123456789"
GEMINI = "google/gemini-2.5-pro"


@pytest.fixture(autouse=True)
def own_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ACME_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)


@contextmanager
def typing(answers: Sequence[str] | None) -> Iterator[None]:
    """Have a terminal at which a user types answers; None: there is no terminal."""
    user, terminal = os.pipe() if answers is None else os.openpty()
    for answer in answers or ():
        os.write(user, f"{answer}\n".encode())
    with os.fdopen(terminal) as stdin, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        yield
    os.close(user)


def made(*words: str, answers: Sequence[str] | None = None) -> int:
    with typing(answers):
        try:
            return copy_context().run(main, ["pool", "new", *words])
        except SystemExit as refused:
            return int(refused.code or 0)


def two_workers(server: Server) -> list[str]:
    names = ["--worker", "small=acme/small", "--worker", "large=large:70b", "--conductor", "large"]
    place = ["--base-url", server.openai, "--key-variable", "ACME_API_KEY"]
    return [*names, *place, "--price", "0.1,0.2", "--price", "large=1,2.50,0.25"]


def test_flags_make_a_pool_that_is_drilled_and_can_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve() as server:
        assert made(*two_workers(server), "--yes") == 0
        assert [line.model for line in server.bill.lines].count("acme/small") == 1
        assert {line.key for line in server.bill.lines} == {KEY}
        said = capsys.readouterr()
        words = said.out.partition("at no cost: podium ")[2].split()
        assert copy_context().run(main, words) == 0
        assert len(server.bill.lines) == 3
    assert "A drill sends one question to 3 models: at most $0.00" in said.err
    assert "mine.toml is written, with 2 workers; it holds no key.\n" in said.out
    assert "Pool 'mine' (live): ready.\n" in said.out
    assert KEY not in Path("mine.toml").read_text()
    spec = read_pool("mine.toml")
    small, large = spec.workers
    assert (small.model, large.model) == ("openai-api/acme/acme/small", "openai-api/acme/large:70b")
    assert spec.conductor is not None
    assert spec.conductor.model == large.model
    price = spec.book().price(large.model)
    assert price is not None
    assert (price.input, price.output, price.cache_read) == (1, Decimal("2.5"), Decimal("0.25"))


def test_a_terminal_is_asked_and_what_is_wrong_is_asked_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve() as server:
        first = ["opnai", server.openai, KEY, "ACME_API_KEY", "", "small", "", "cheap", "0.1,0.2"]
        monkeypatch.setenv("GOOGLE_API_KEY", "any")
        second = ["y", "google", "gemini-2.5-pro", "small", "gemini", "n", "smal", "small"]
        assert made(answers=[*first, *second, "n"]) == 0  # the drill is not agreed to
        assert server.bill.lines == []
    said = capsys.readouterr().err
    for sentence in (
        "Did you mean 'openai'? There is no provider 'opnai'",
        "Give the name of an environment variable, in capitals",
        "'' is not a model id",
        "'cheap' is not a price. Give US dollars per million tokens, IN,OUT",
        "The name 'small' is taken",
        "Did you mean 'small'? There is no worker 'smal'",
    ):
        assert sentence in said
    assert KEY not in said
    assert said.count("Call these models? [y/N]") == 1
    assert [worker.name for worker in read_pool("mine.toml").workers] == ["small", "gemini"]


def test_a_price_is_the_newest_book_s_which_the_file_names() -> None:
    assert (
        made("new/sub.toml", "--worker", f"big={GEMINI}", "--no-drill") == 1
    )  # its key is not set
    book = newest_list()
    text = Path("new/sub.toml").read_text()
    assert f"# Price of {book.date}, from book {book.name}, in US dollars per million" in text
    assert "price = { input = 1.25, output = 10, cache_read = 0.125, tiers = [{ above = 200" in text
    stated, listed = read_pool("new/sub.toml").book().price(GEMINI), book.price(GEMINI)
    assert stated is not None
    assert listed is not None
    assert (stated.base, stated.tiers, stated.services) == (
        listed.base,
        listed.tiers,
        listed.services,
    )


def test_a_model_that_cannot_be_asked_is_named_and_the_file_is_kept(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serve([failing(404)] * 3) as server:
        assert made(*two_workers(server), "--yes") == 1
    out = capsys.readouterr().out
    assert "- Worker 'small' (openai-api/acme/acme/small) cannot be asked: its id is unknown" in out
    assert out.endswith("Then: podium doctor --pool mine.toml --drill\n")
    assert Path("mine.toml").exists()


def test_a_file_that_is_there_stays_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    Path("mine.toml").write_text("mine")
    assert made("--worker", f"a={GEMINI}", "--no-drill") == 2
    said = capsys.readouterr().err
    assert said == "podium: mine.toml already exists and is not overwritten. Use another FILE.\n"
    assert Path("mine.toml").read_text() == "mine"


A, URL = ("--worker", "a=m", "--no-drill"), ("--base-url", "http://127.0.0.1:9/v1")
VARIABLE, PRICE = ("--key-variable", "ACME_API_KEY"), ("--price", "1,2")
REFUSALS: dict[str, tuple[Sequence[str], str]] = {
    "nothing": ((), "Add --worker NAME=MODEL for each model"),
    "no worker": (URL, "Add --worker NAME=MODEL for each model"),
    "no consent": (("--worker", f"a={GEMINI}"), "no terminal to ask. Add --yes, or --no-drill."),
    "no file": (("pool.txt", *A), "pool.txt is not a valid pool file name"),
    "a directory": (("dir.toml", *A), "dir.toml is a directory; name another FILE."),
    "no provider": (
        A,
        "'m' has no provider. Write PROVIDER/MODEL; for a server of your own add",
    ),
    "a typo": (("--worker", "a=opnai/m", "--no-drill"), "Did you mean 'openai'?"),
    "ours": (("--worker", "a=rehearsal/sage", "--no-drill"), "There is no provider 'rehearsal'"),
    "no model": (("--worker", "a", "--no-drill"), "argument --worker: 'a' is not NAME=MODEL"),
    "a bad name": (("--worker", "a b=openai/m", "--no-drill"), "'a b' is not a valid worker name"),
    "a role": (("--worker", "grader=openai/m", "--no-drill"), "The name 'grader' is taken"),
    "twice": ((*A, "--worker", "a=n"), "The name 'a' is taken"),
    "no price": ((*A, *URL, *VARIABLE), "openai-api/acme/m. Add --price a=IN,OUT, in US dollars"),
    "half a price": ((*A, *URL, *VARIABLE, "--price", "1"), "'1' is not a price. Give US dollars"),
    "a price below 0": ((*A, *URL, *VARIABLE, "--price", "a=-1,2"), "'-1,2' is not a price"),
    "a price too many": ((*A, *URL, *VARIABLE, "--price", "1,2,3,4"), "'1,2,3,4' is not a price"),
    "whose price": ((*A, *URL, *VARIABLE, "--price", "b=1,2"), "There is no worker 'b'"),
    "no variable": ((*A, *URL, *PRICE), "--base-url needs --key-variable VARIABLE"),
    "a key": ((*A, *URL, *PRICE, "--key-variable", KEY), "Do not give the key itself."),
    "no URL": (
        (*A, "--base-url", "localhost:80", *VARIABLE, *PRICE),
        "is not a base URL such as http://localhost:8000/v1",
    ),
    "a query": ((*A, "--base-url", f"http://h/v1?k={KEY}"), "Leave user, key and query out."),
    "a quote": ((*A, *URL, *VARIABLE, *PRICE, "--worker", 'b=m"'), "is not a model id"),
    "a port": (
        (*A, "--base-url", "http://h:x", *VARIABLE, *PRICE),
        "is not a base URL such as http://localhost:8000/v1",
    ),
    "a password": ((*A, "--base-url", f"http://a:{KEY}@h/v1"), "Leave user, key and query out."),
    "another's key": (
        ("--worker", "a=openai/m", "--no-drill", *VARIABLE, *PRICE),
        "The key for openai/m is not read from ACME_API_KEY. Leave it out",
    ),
    "no conductor": (
        ("--worker", f"a={GEMINI}", "--no-drill", "--conductor", "b"),
        "There is no worker 'b'",
    ),
    "two prices": (
        (*A, "--worker", "b=m", *URL, *VARIABLE, *PRICE, "--price", "b=3,4"),
        "two prices for openai-api/acme/m",
    ),
}


@pytest.mark.parametrize(("words", "sentence"), REFUSALS.values(), ids=REFUSALS)
def test_what_is_wrong_is_one_sentence_and_nothing_is_written(
    words: Sequence[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("dir.toml").mkdir()
    assert made(*words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line
    assert KEY not in line
    assert [one.name for one in Path().iterdir()] == ["dir.toml"]


def test_a_terminal_that_ends_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert made(answers=["openai", "\x04"]) == 2
    assert "The input ended before the last answer" in capsys.readouterr().err
    assert not Path("mine.toml").exists()


@pytest.mark.slow
def test_the_installed_command_talks_to_a_pseudo_terminal(tmp_path: Path) -> None:
    with serve() as server:
        answers = [server.openai, "ACME_API_KEY", "small", "", "0,0", "n", "small", "y"]
        user, terminal = os.openpty()
        command = [Path(sys.executable).with_name("podium"), "pool", "new"]
        process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal)
        os.close(terminal)
        shown = b""
        while chunk := _read(user):
            shown += chunk
            if answers and shown.endswith((b": ", b"[y/N] ")):
                os.write(user, f"{answers.pop(0)}\n".encode())
        assert process.wait() == 0, shown.decode()
        assert len(server.bill.lines) == 2, shown.decode()
    assert b"Drill: 2 models asked once, $0.000000 spent." in shown
    assert read_pool(str(tmp_path / "mine.toml")).names == ("small",)


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux's way to say that the other side has closed
        return b""
