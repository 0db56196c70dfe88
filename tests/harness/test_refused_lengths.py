"""Refusals for length through `podium run`: graded wrong, counted apart, billed nothing."""

import csv
import json
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest

from podium.cli import main
from podium.cli.list_commands import whole_catalogue
from podium.harness.context_length import DIALECTS, LOOKALIKES
from podium.harness.ledger.system_runs import load_runs
from podium.harness.ledger.totals import QuestionResult, SystemRun, system_totals
from podium.harness.model_judge import remade_dir
from tests.harness.faulty_run import ONE_TRY, Left, run_pool
from tests.providers import CLIENTS_WARN, Act, Server, ok, serve
from tests.providers.dialect import Asked

pytestmark = CLIENTS_WARN

SUITE = "practice-integer"
ASKED = whole_catalogue().suites[SUITE].load("eval")
RIGHT, VAGUE = "right", "vague"
ALIKE = tuple(one for one in LOOKALIKES if one.status != 429)  # which is tried again, after seconds
MIXED = (*DIALECTS, *ALIKE, RIGHT, VAGUE)
"""What becomes of each question, in order."""
BOOK = """\
date = "2026-01-02"
source = "made up for tests"

[usd_per_mtok]
"openai-api/local/gemma" = { input = "1", output = "2" }
"openai/gpt-4o-mini" = { input = "1", output = "2" }
"""


def pool(folder: Path, model: str = "openai-api/local/gemma") -> Callable[[Server], str]:
    """Return how to write a pool of one worker, at one try a request."""

    def write(server: Server) -> str:
        (folder / "book.toml").write_text(BOOK)
        path = folder / "pool.toml"
        path.write_text(
            'label = "live"\nprices = "book.toml"\n[[workers]]\nname = "olive"\n'
            f'model = "{model}"\nconfig = {{ {ONE_TRY.replace("= 0", "= 1")} }}\n'
            f'args = {{ base_url = "{server.openai}", api_key = "test-olive" }}\n'
        )
        return str(path)

    return write


def refusing(status: int, words: str, **more: object) -> Act:
    """Refuse with these words, as OpenAI's dialect has them."""
    body = {"error": {"message": words, "type": "invalid_request_error", **more}}
    return Act(status=status, content=json.dumps(body).encode())


def act_of(asked: Asked) -> Act:
    """Return what becomes of a request: by which question it is about."""
    (at,) = (at for at, one in enumerate(ASKED) if one.text in asked.prompt)
    fate = MIXED[at]
    if fate == RIGHT:
        return ok(f"ANSWER: {ASKED[at].target}")
    if fate == VAGUE:
        return ok("Who knows?")
    assert not isinstance(fate, str)
    return refusing(fate.status, fate.words)


@dataclass(frozen=True, slots=True)
class Ran:
    """A run in which every server refuses once."""

    left: Left
    results: Mapping[str, QuestionResult]

    def of(self, at: int) -> QuestionResult:
        return self.results[ASKED[at].id]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("refused")
    left = run_pool(folder, act_of, pool(folder), "single:olive", len(MIXED))
    main(["report", str(left.folder)])
    (found,) = load_runs([left.folder])[0]
    return Ran(left, {one.question: one for one in found.attempts})


@pytest.mark.slow
@pytest.mark.parametrize("at", range(len(DIALECTS)), ids=[one.server for one in DIALECTS])
def test_a_refusal_for_length_is_a_wrong_answer_with_its_reason(at: int, ran: Ran) -> None:
    found = ran.of(at)
    assert (found.value, found.too_long, found.parsed) == (0.0, True, False)


@pytest.mark.parametrize(
    "at",
    range(len(DIALECTS), len(DIALECTS) + len(ALIKE)),
    ids=[f"{one.server} {one.status} {one.about}" for one in ALIKE],
)
def test_a_refusal_about_something_else_stays_unanswered(at: int, ran: Ran) -> None:
    found = ran.of(at)
    assert (found.value, found.too_long) == (None, False)
    assert "gave no reply" in found.reason


def test_every_request_is_sent_once_also_where_the_server_answers_500(ran: Ran) -> None:
    assert len(ran.left.bill.lines) == len(MIXED)
    assert 500 in {line.status for line in ran.left.bill.lines}


def test_refused_requests_cost_nothing_and_are_no_doubt(ran: Ran) -> None:
    refused = [row for row in ran.left.rows if row.stop == "model_length"]
    assert len(refused) == len(DIALECTS)
    assert {(row.usd, row.usd_high, row.billable, row.error) for row in refused} == {
        (Decimal(0), Decimal(0), "no", None)
    }
    assert ran.left.failing == set()


def test_tables_count_them_in_a_column_of_their_own(
    ran: Ran, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ran.left.folder / "report"
    (row,) = csv.DictReader((out / "table.csv").read_text().splitlines())
    assert (row["n_graded"], row["n_unparsed"]) == (str(len(DIALECTS) + 2), "1")
    assert row["n_too_long"] == str(len(DIALECTS))
    (row,) = json.loads((out / "table.json").read_text())["rows"]
    assert row["n_too_long"] == len(DIALECTS)
    assert "| no answer | too long |" in (out / "table.md").read_text()
    main(["report", str(ran.left.folder), "--columns", "n_unparsed,n_too_long"])
    told = " ".join(capsys.readouterr().out.split())
    assert f"longer than the worker's context: single:olive {len(DIALECTS)}" in told


def test_the_ledger_of_questions_says_why(ran: Ran, tmp_path: Path) -> None:
    assert (
        main(["ledger", "export", str(ran.left.folder), "--out", str(tmp_path), "--format", "csv"])
        == 0
    )
    queries = [*csv.DictReader((tmp_path / "queries.csv").read_text().splitlines())]
    refused = [row for row in queries if row["too_long"].lower() == "true"]
    assert len(refused) == len(DIALECTS)
    assert {row["verdict"] for row in refused} == {"wrong"}
    (one,) = [row for row in refused if row["question"] == ASKED[0].id]
    assert one["reason"] == f"The request was refused for its length. {DIALECTS[0].words}"


def test_graded_again_they_stay_what_they_are(ran: Ran) -> None:
    (found,) = remade_dir(ran.left.folder, whole_catalogue().suites, None)
    assert (found.same, found.others) == (len(DIALECTS) + 2, [])
    assert main(["regrade", "--all", str(ran.left.folder)]) == 0
    (again,) = load_runs([ran.left.folder])[0]
    assert system_totals(again).n_too_long == len(DIALECTS)


def test_openais_own_code_is_the_same_answer(tmp_path: Path) -> None:
    words = "Ihre Frage ist zu lang."
    act = refusing(400, words, code="context_length_exceeded")
    left = run_pool(tmp_path, [act], pool(tmp_path, "openai/gpt-4o-mini"), "single:olive")
    (found,) = load_runs([left.folder])[0]
    assert (found.attempts[0].value, found.attempts[0].too_long) == (0.0, True)


@pytest.mark.slow
def test_a_vote_of_refusals_is_missing_and_one_reply_among_them_is_the_answer(
    tmp_path: Path,
) -> None:
    refused = refusing(DIALECTS[3].status, DIALECTS[3].words)
    said = ok(f"ANSWER: {ASKED[1].target}")
    acts = {
        f"gemma: {ASKED[0].text}": [refused] * 3,
        f"gemma: {ASKED[1].text}": [refused, said, refused],
    }
    left = run_pool(tmp_path, acts, pool(tmp_path), "self-consistency@3", 2)
    (found,) = [one for one in load_runs([left.folder])[0] if "@3" in one.facts.system]
    pairs = {one.question: (one.value, one.too_long) for one in found.attempts}
    assert pairs == {ASKED[0].id: (0.0, True), ASKED[1].id: (1.0, False)}


def resumed(folder: Path, between: Callable[[Path], None]) -> tuple[Path, SystemRun]:
    """Leave a directory as versions before this one began it, and go on with it."""
    refused = refusing(DIALECTS[3].status, DIALECTS[3].words)
    home = folder / "run"
    with serve([Act(status=403, content=b"{}"), refused]) as server:
        words = ["run", "--suite", SUITE, "--system", "single:olive", "--limit", "1"]
        words += ["--pool", pool(folder)(server), "--log-dir", str(home), "--yes"]
        assert copy_context().run(main, words) == 1
        record = home / "experiment.json"
        known = json.loads(record.read_text())
        assert known.pop("overflows") == "wrong"
        record.write_text(json.dumps(known, indent=1) + "\n")
        between(home)
        copy_context().run(main, words)
    assert len(server.bill.lines) == 2
    (found,) = load_runs([home])[0]
    return home, found


def test_a_directory_that_was_begun_before_keeps_its_reading_and_its_bytes(tmp_path: Path) -> None:
    kept: list[bytes] = []
    home, found = resumed(
        tmp_path, lambda home: kept.append((home / "experiment.json").read_bytes())
    )
    (attempt,) = found.attempts
    assert (attempt.value, attempt.too_long) == (None, False)
    assert found.facts.overflows == "unanswered"
    assert [(home / "experiment.json").read_bytes()] == kept


def test_graded_again_whole_such_a_directory_takes_the_new_reading(tmp_path: Path) -> None:
    def between(home: Path) -> None:
        assert main(["regrade", "--all", str(home)]) == 0

    home, found = resumed(tmp_path, between)
    (attempt,) = found.attempts
    assert (attempt.value, attempt.too_long) == (0.0, True)
    assert found.facts.overflows == "wrong"
    assert json.loads((home / "experiment.json").read_text())["overflows"] == "wrong"
