"""What a table says of several epochs, of replies without an answer, and of other prompts."""

import csv
import json
from pathlib import Path

import pytest

from podium.harness.errors import UserError
from podium.harness.ledger.system_runs import load_runs
from podium.reports.blocks import ReportOptions
from podium.reports.derived import compare
from podium.reports.intervals import accuracy_interval
from tests.harness.runs import Crew, Exam, Heard, number, sit, steps, wrong
from tests.reports.small_reports import report, row_of, rows_of


def unsure(heard: Heard) -> str:
    """Know half of the answers always, and of the others every second time."""
    known = int(number(heard)) <= 3 or heard.epoch % 2
    return number(heard) if known else wrong(heard)


def test_the_interval_of_four_epochs_takes_the_question_as_the_unit(tmp_path: Path) -> None:
    exam = Exam(size=6)
    sit(tmp_path / "logs", "single:sage", crew=Crew(sage=unsure), exam=exam, epochs=4)
    row = row_of(rows_of(tmp_path), "single:sage")
    assert (row.epochs, row.n_asked, row.n_graded, row.accuracy) == (4, 24, 24, 0.75)
    values = {f"q{n}": [1.0, 1.0, 1.0, 1.0] if n <= 3 else [1.0, 0.0] * 2 for n in range(1, 7)}
    clustered = accuracy_interval(values)
    assert clustered is not None
    assert (row.ci_low, row.ci_high) == (clustered.low, clustered.high)
    alone = {f"{name} {at}": [one] for name, all_ in values.items() for at, one in enumerate(all_)}
    naive = accuracy_interval(alone)
    assert naive is not None
    assert clustered.high - clustered.low != pytest.approx(naive.high - naive.low)


def test_tables_say_avg_at_k_for_k_epochs(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", epochs=4)
    found = report(tmp_path)
    assert "acc: avg@4, the mean over epochs; intervals are clustered by question" in found.text
    text = found.files[0].read_text()
    assert "| difference | epochs | graded/asked |" in text
    assert "| reference | 4 | 16/16 | 0 |" in text


def test_rows_of_other_epochs_are_refused_and_compared_on_the_first_ones(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", exam=Exam(size=3), epochs=4, crew=Crew(sage=late))
    sit(tmp_path / "logs", "single:clerk", steps("clerk"), exam=Exam(size=3))
    with pytest.raises(UserError, match=r"epochs: single:clerk 1, single:sage 4\.") as refused:
        rows_of(tmp_path)
    advice = (
        "finish it with the same command. Otherwise add --epochs 1, which compares only the first"
    )
    assert advice in str(refused.value)
    system_runs, _ = load_runs([tmp_path / "logs"])
    rows = compare(system_runs, ReportOptions(epochs=1)).rows
    sage = row_of(rows, "single:sage")
    assert (sage.epochs, sage.n_asked, sage.n_graded, sage.accuracy) == (1, 3, 3, 0.0)
    assert (sage.usd_paid_low, row_of(rows, "single:clerk").n_asked) == (None, 3)
    note = "the first epoch of 4; the dollars paid are those of all epochs, see the spend"
    assert note in sage.notes
    assert row_of(rows, "single:clerk").paired_diff == 1.0


def late(heard: Heard) -> str:
    """Know no answer in the first epoch and all of them after it."""
    return wrong(heard) if heard.epoch == 1 else number(heard)


@pytest.mark.parametrize("epochs", [0, 3])
def test_more_epochs_than_there_are_cannot_be_chosen(tmp_path: Path, epochs: int) -> None:
    sit(tmp_path / "logs", "single:sage", exam=Exam(size=2), epochs=2)
    system_runs, _ = load_runs([tmp_path / "logs"])
    with pytest.raises(UserError, match=f"--epochs {epochs}: single:sage on numbers has 2"):
        compare(system_runs, ReportOptions(epochs=epochs))


def test_a_run_that_was_interrupted_while_it_raised_its_epochs_says_so(tmp_path: Path) -> None:
    logs, exam = tmp_path / "logs", Exam(size=3)
    sit(logs, "single:sage", exam=exam)
    sit(logs, "single:clerk", steps("clerk"), exam=exam)
    sit(logs, "single:sage", exam=exam, epochs=2)
    with pytest.raises(UserError, match=r"single:clerk 1, single:sage 2\. If a run that raised"):
        rows_of(tmp_path)


def test_a_long_list_of_systems_is_wrapped_and_not_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    mute = Crew(clerk=lambda heard: "no idea")
    names = [f"single:clerk-number-{n}-with-a-name" for n in range(5)]
    for name in names:
        sit(tmp_path / "logs", name, steps("clerk"), mute)
    text = report(tmp_path).text
    told = " ".join(text.partition("no answer found: ")[2].split())
    assert told.startswith(", ".join(f"{name} 4" for name in names))
    assert max(map(len, text.splitlines())) <= 80


def test_one_epoch_needs_no_word_on_it(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage")
    assert "avg@" not in report(tmp_path).text


def test_replies_without_an_answer_are_counted_in_every_table(tmp_path: Path) -> None:
    quiet = Crew(sage=lambda heard: number(heard) if "1" in heard.last else "no idea")
    sit(tmp_path / "logs", "single:sage", crew=quiet)
    sit(tmp_path / "logs", "single:clerk", steps("clerk"), Crew(clerk=wrong))
    found = report(tmp_path)
    (line,) = [line for line in found.text.splitlines() if line.startswith("single:sage")]
    assert line.split()[4:7] == ["reference", "4/4", "3"], "in a column of its own"
    assert "| reference | 1 | 4/4 | 3 |" in found.files[0].read_text()
    with found.files[1].open() as file:
        lines = [line for line in csv.DictReader(file) if not line["derived"]]
    told = {line["system"]: line["n_unparsed"] for line in lines}
    assert told == {"single:sage": "3", "single:clerk": "0"}


def test_two_prompts_are_two_blocks_with_a_reference_each(tmp_path: Path) -> None:
    for prompt in ("official", "paper"):
        home = tmp_path / "logs" / prompt
        sit(home, "single:sage", prompt=prompt)
        sit(home, "single:clerk", steps("clerk"), Crew(clerk=wrong), prompt=prompt)
    found = report(tmp_path)
    assert [(row.prompt, row.verdict) for row in found.rows] == [
        (prompt, verdict)
        for prompt in ("official", "paper")
        for verdict in ("reference", "inconclusive")
    ]
    assert "numbers, version 1-A (eval), live, pool" in found.text
    assert "numbers, version 1-A (eval), paper prompt, live, pool" in found.text
    text = found.files[0].read_text()
    assert "| **live**, paper prompt, pool" in text
    assert "| eval | numbers (eval), paper prompt | `single:sage` |" in text
    data = json.loads(found.files[2].read_text())
    told = [row["prompt"] for row in data["rows"] if not row["derived"]]
    assert told == ["official"] * 2 + ["paper"] * 2


def test_logs_in_one_directory_with_two_prompts_are_two_sittings(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", prompt="official")
    sit(tmp_path / "logs", "single:sage", steps("clerk"), prompt="paper", settings={"seed": 1})
    assert sorted(row.prompt for row in rows_of(tmp_path)) == ["official", "paper"]
