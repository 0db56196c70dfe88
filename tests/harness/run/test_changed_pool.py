"""A pool that changed between two runs of one directory."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from podium.cli import main
from tests.providers import CLIENTS_WARN, Act, failing, serve

pytestmark = CLIENTS_WARN


def run(folder: Path, fates: Sequence[Act] = (), tokens: int = 100, price: str = "10.0") -> int:
    with serve({"sage": [*fates]}) as server:
        pool = folder / "mine.toml"
        pool.write_text(
            'label = "live"\n[[workers]]\nname = "sage"\nmodel = "openai-api/acme/sage"\n'
            f"price = {{ input = 1.25, output = {price} }}\n"
            f"config = {{ max_tokens = {tokens}, max_retries = 0 }}\n"
            f'args = {{ base_url = "{server.openai}", api_key = "test-sage" }}\n'
        )
        words = ["--suite", "practice-integer", "--limit", "1", "--system", "single"]
        return main(["run", *words, "--pool", str(pool), "--yes", "--log-dir", str(folder / "run")])


def test_once_answered_every_changed_field_is_named_with_both_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 0
    assert run(tmp_path, tokens=200, price="12.5") == 2
    said = capsys.readouterr().err
    assert "config.max_tokens of worker 'sage' was 100, and is 200" in said
    assert "price.output of worker 'sage' was 10.0, and is 12.5" in said
    assert "price.input" not in said
    assert "Undo the change, or name another --log-dir." in said


def test_until_something_is_answered_the_pool_may_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, [failing(404)] * 3) == 1
    before = (tmp_path / "run" / "MANIFEST.json").read_bytes()
    assert run(tmp_path, tokens=200, price="12.5") == 0
    folder = str(tmp_path / "run")
    aside = tmp_path / "run.unanswered-1"
    assert (
        f"before any question was answered: {tmp_path / 'run'} starts again"
        in capsys.readouterr().out
    )
    assert (aside / "MANIFEST.json").read_bytes() == before
    assert main(["manifest", "verify", str(aside)]) == 0
    assert main(["audit", folder]) == 0, capsys.readouterr().out
    assert main(["report", folder]) == 0
    assert main(["manifest", "verify", folder]) == 0
    assert run(tmp_path, tokens=300) == 2  # by now it matters


def test_a_cheaper_pool_leaves_what_was_agreed_about_the_dearer_one_with_its_run(
    tmp_path: Path,
) -> None:
    assert run(tmp_path, [failing(404)] * 3) == 1
    agreed = (tmp_path / "run" / "agreed.jsonl").read_bytes()
    assert run(tmp_path, price="5.0") == 0
    aside = tmp_path / "run.unanswered-1"
    assert (aside / "agreed.jsonl").read_bytes() == agreed
    assert main(["manifest", "verify", str(aside)]) == 0
    assert main(["manifest", "verify", str(tmp_path / "run")]) == 0
