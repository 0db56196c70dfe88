"""`podium run --worker-cards`: prompted conductors are shown who is who, or bare numbers."""

from pathlib import Path

import pytest
from inspect_ai.log import read_eval_log

from podium.cli import main
from podium.harness.ledger.logs import find_logs


def asked(folder: Path, *more: str) -> int:
    words = ("--suite", "practice-integer", "--system", "conductor-prompted", "--pool", "rehearsal")
    command = ["run", *words, "--limit", "1", "--log-dir", str(folder), "--display", "none"]
    return main([*command, *more])


def shown(folder: Path) -> str:
    """Return the models as the conductor was shown them."""
    (path,) = find_logs([folder])
    (sample,) = read_eval_log(path, resolve_attachments=True).samples or []
    event = next(one for one in sample.events if one.event == "model" and one.role == "conductor")
    return event.input[0].text.split("AVAILABLE LANGUAGE MODELS:\n")[1]


def test_cards_are_hidden_on_request_and_stay_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden, usual = tmp_path / "hidden", tmp_path / "usual"
    assert asked(hidden, "--worker-cards", "hidden") == 0
    assert all(line == f"Model {at}" for at, line in enumerate(shown(hidden).splitlines()))
    assert asked(usual) == 0
    assert all(len(line) > len("Model 1: ") for line in shown(usual).splitlines())
    capsys.readouterr()
    assert asked(hidden, "--worker-cards", "shown") == 2
    assert "with worker cards hidden, not shown: name another --log-dir." in capsys.readouterr().err
    assert asked(hidden) == 0
