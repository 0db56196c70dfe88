"""A provider that quotes the key it was sent: no file and no line on the screen has it."""

import contextlib
import io
import zipfile
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path

import pytest

from podium.cli import main
from podium.harness.api_keys import NAMED, known_keys, note_keys, shown, without_keys
from podium.harness.errors import UserError
from podium.harness.pool_config import read_pool
from podium.harness.text import say
from tests.providers import Act, serve, write_pool
from tests.providers.pool_files import BOOK, MODELS
from tests.providers.server import Server

Write = Callable[[Path, Server], str]
KEYS = {"olive": "test-olive", "plum": "test-plum", "quince": "test-quince"}
HEADER = "header-secret-2271"
ENVIRONMENT = {
    "OPENAI_API_KEY": "sk-environment-openai-0001",
    "ANTHROPIC_API_KEY": "sk-environment-anthropic-0002",
    "GOOGLE_API_KEY": "sk-environment-google-0003",
}


def refusing(status: int) -> dict[str, list[Act]]:
    """Let every model refuse every request, and quote the key."""
    acts = [Act(status=status, echoes=True)] * 40
    return {"gpt-5-mini": acts, "claude-sonnet-5": acts, "gemini-2.5-pro": acts}


def said(*words: str) -> str:
    """Return all output of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        copy_context().run(main, words)
    return out.getvalue() + err.getvalue()


def everything(folder: Path) -> dict[str, bytes]:
    """Return all bytes below a folder, members of archives unpacked."""
    found: dict[str, bytes] = {}
    for path in folder.rglob("*"):
        if path.suffix == ".eval":
            with zipfile.ZipFile(path) as archive:
                found |= {f"{path.name}/{name}": archive.read(name) for name in archive.namelist()}
        elif path.is_file():
            found[path.name] = path.read_bytes()
    return found


def from_environment(folder: Path, server: Server) -> str:
    """Write a pool whose keys are in the environment."""
    path = Path(write_pool(folder, server, SETTINGS))
    text = path.read_text()
    for key in KEYS.values():
        text = text.replace(f'api_key = "{key}", ', "").replace(f', api_key = "{key}"', "")
    path.write_text(text)
    return str(path)


def chat_pool(folder: Path, server: Server) -> str:
    """Write a pool of one worker of the chat dialect, with a header of its own."""
    (folder / "book.toml").write_text(BOOK)
    (folder / "pool.toml").write_text(
        'label = "live"\nprices = "book.toml"\n[[workers]]\nname = "olive"\n'
        f'model = "openai-api/local/gpt-5-mini"\nprice = "{MODELS["olive"]}"\n'
        f"config = {{ {SETTINGS} }}\n"
        f'args = {{ base_url = "{server.openai}", api_key = "test-olive", '
        f'default_headers = {{ "x-team-token" = "{HEADER}" }} }}\n'
    )
    return str(folder / "pool.toml")


SETTINGS = "max_tokens = 64, max_retries = 0, attempt_timeout = 20"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "keys"),
    [
        (lambda folder, server: write_pool(folder, server, SETTINGS), tuple(KEYS.values())),
        (from_environment, tuple(ENVIRONMENT.values())),
        (chat_pool, ("test-olive", HEADER)),
    ],
    ids=["pool", "environment", "chat-and-a-header"],
)
@pytest.mark.parametrize("status", [401, 400], ids=str)
def test_a_key_that_a_provider_quotes_is_in_no_file_and_on_no_screen(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write: Write,
    keys: tuple[str, ...],
    status: int,
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    run, home = tmp_path / "run", tmp_path / "home"
    home.mkdir()
    with serve(refusing(status)) as server:
        pool = write(home, server)
        asked = ["run", "--suite", "practice-integer", "--system", "single", "--limit", "1"]
        shown = said(*asked, "--yes", "--pool", pool, "--log-dir", str(run))
    assert {line.key for line in server.bill.lines} & {*keys, "test-olive"}
    shown += said("report", str(run), "--out", str(tmp_path / "report"))
    shown += said("audit", str(run)) + said(
        "audit", str(run), "--query", "practice-integer-eval-0001"
    )
    for form in ("jsonl", "csv", "md"):
        out = str(tmp_path / f"as-{form}")
        shown += said("ledger", "export", str(run), "--out", out, "--format", form)
    shown += said("workers", "--pool", pool) + said("doctor", "--pool", pool)
    shown += said("redact", str(run), "--out", str(tmp_path / "copies"))
    (home / "pool.toml").unlink()
    texts = {"the screen": shown.encode(), **everything(tmp_path)}
    assert any(b"[key " in text for text in texts.values())
    for name, text in texts.items():
        for key in keys:
            assert key.encode() not in text, (
                name,
                text[max(0, text.find(key.encode()) - 300) :][:600],
            )


def test_names_of_keys_are_told_from_names_of_settings() -> None:
    keys = (
        "OPENAI_API_KEY",
        "api_key",
        "x-api-key",
        "Authorization",
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
    )
    others = (
        "max_tokens",
        "token_limit",
        "keyboard",
        "monkey",
        "service_tier",
        "base_url",
        "cassette",
    )
    assert all(NAMED.search(name) for name in keys)
    assert not any(NAMED.search(name) for name in others)


def test_the_longest_key_is_replaced_first_and_short_values_are_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("A_API_KEY", "sk-12345678")
    monkeypatch.setenv("B_API_KEY", "sk-12345678-and-more")
    monkeypatch.setenv("C_API_KEY", "EMPTY")
    assert "EMPTY" not in known_keys()
    assert without_keys("it is sk-12345678-and-more") == "it is [key B_API_KEY]"


def test_settings_are_shown_without_what_is_a_key_by_its_name() -> None:
    note_keys("ada", {"headers": {"Authorization": "Bearer abcdefghijk"}})
    given = {
        "api_key": "x",
        "service_tier": "flex",
        "headers": {"Authorization": "y", "a": "abcdefghijk"},
    }
    expected = {"service_tier": "flex", "headers": {"a": "[key ada.Authorization]"}}
    assert shown(given) == expected


def test_a_sentence_of_ours_has_no_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefgh")
    say("refused: sk-abcdefgh")
    assert capsys.readouterr().out == "refused: [key OPENAI_API_KEY]\n"


def test_a_key_among_settings_that_inspect_writes_down_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pool.toml"
    path.write_text(
        'label = "live"\nprices = "none"\n[[workers]]\nname = "a"\nmodel = "openai/gpt-5"\n'
        'config = { extra_headers = { Authorization = "Bearer abcdefgh" } }\n'
    )
    with pytest.raises(UserError, match=r"Authorization is a key.*default_headers") as found:
        read_pool(str(path))
    assert "abcdefgh" not in str(found.value)
