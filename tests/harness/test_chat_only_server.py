"""A server that has /chat/completions only, asked as `openai/` and as `openai-api/`."""

from pathlib import Path

import pytest

from podium.cli import main
from tests.providers import CLIENTS_WARN, Act, failing, serve

pytestmark = CLIENTS_WARN
CHAT_BODY = {"choices": [{"message": {"role": "assistant", "content": "4"}}], "usage": {}}
ANSWERS = {"404": failing(404), "other": Act(change=lambda body: CHAT_BODY)}


@pytest.mark.slow
@pytest.mark.parametrize("answer", ANSWERS)
def test_openai_s_other_api_is_named_with_the_fix(
    answer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = tmp_path / "mine.toml"
    with serve([ANSWERS[answer]] * 4) as server:
        pool.write_text(
            'label = "live"\n[[workers]]\nname = "sage"\nmodel = "openai/sage"\n'
            "price = { input = 1, output = 1 }\nconfig = { max_tokens = 100, max_retries = 0 }\n"
            f'args = {{ base_url = "{server.openai}", api_key = "k", responses_api = true }}\n'
        )
        words = ["--suite", "practice-integer", "--limit", "1", "--system", "single"]
        out = str(tmp_path / "run")
        assert main(["run", *words, "--pool", str(pool), "--yes", "--log-dir", out]) == 1
        said = capsys.readouterr().err
        assert f"the server at {server.openai} does not answer /responses" in said
        assert f"openai-api/NAME/sage and set NAME_BASE_URL={server.openai}" in said
        assert "NoneType" not in said or answer == "other"
        assert main(["doctor", "--pool", str(pool), "--drill", "--yes"]) == 1
        assert "Name the model openai-api/NAME/sage" in capsys.readouterr().out
