"""The section of table.md that sets our token counts against Inspect's own totals."""

from dataclasses import replace
from pathlib import Path

from inspect_ai.log import EvalStats, write_eval_log

from harness.ledger.system_runs import load_runs
from reports.report import reconciliation
from tests.harness.runs import Crew, failing_on, number, sit, steps
from tests.providers.scripted import Heard
from tests.reports.small_reports import EXAM, report


def lines_of(logs: Path) -> tuple[str, ...]:
    system_runs, _ = load_runs([logs])
    return reconciliation(system_runs)


def test_the_table_ends_with_our_totals_against_those_of_inspect(tmp_path: Path) -> None:
    sit(tmp_path / "logs", "single:sage", exam=EXAM)
    sit(tmp_path / "logs", "single:clerk", steps("clerk"), exam=EXAM)
    text = report(tmp_path).files[0].read_text()
    section = text.split("## Reconciliation\n\n")[1]
    assert "- numbers (eval), live: 12 calls, 24 tokens in, 12 out; equal to Inspect's" in section
    assert "## " not in section


def test_choosing_has_a_line_of_its_own(logs: Path) -> None:
    first, second = lines_of(logs)
    assert first.startswith("numbers (eval), live: ")
    assert second.startswith("numbers (train), live, choosing: 6 calls, ")


def test_failed_attempts_are_a_named_difference(tmp_path: Path) -> None:
    sit(tmp_path, "pair", steps("sage", "clerk"), Crew(clerk=failing_on("Say 2")))
    (line,) = lines_of(tmp_path)
    assert line.endswith("Inspect counts also failed attempts (2 tokens in, 1 out).")


def test_a_resumed_run_still_has_no_unexplained_difference(tmp_path: Path) -> None:
    pair = steps("sage", "clerk")
    sit(tmp_path, "pair", pair, Crew(clerk=failing_on("Say 2")))
    sit(tmp_path, "pair", pair)
    (line,) = lines_of(tmp_path)
    assert line.endswith("Inspect counts also failed attempts (2 tokens in, 1 out).")


def test_graders_that_are_models_are_a_named_difference(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage", ask_grader=True)
    (line,) = lines_of(tmp_path)
    assert "Inspect counts also score-phase calls (" in line


def test_calls_that_a_retry_forgot_are_a_named_difference(tmp_path: Path) -> None:
    tries: list[str] = []

    def once(heard: Heard) -> str:
        tries.append(heard.last)
        if heard.last == "Say 2" and tries.count("Say 2") == 1:
            raise RuntimeError("provider down")
        return number(heard)

    pair = steps("sage", "clerk")
    sit(tmp_path, "pair", pair, Crew(clerk=once), settings={"retry_on_error": 1})
    (line,) = lines_of(tmp_path)
    assert line.endswith("Inspect counts also attempts not in this log (2 tokens in, 1 out).")


def test_an_attempt_that_a_later_log_made_again_in_full_is_in_neither_total(tmp_path: Path) -> None:
    sit(tmp_path / "one", "single:sage", seed=1)
    sit(tmp_path / "two", "single:sage", seed=1)
    (older,) = load_runs([tmp_path / "one"])[0]
    (newer,) = load_runs([tmp_path / "two"])[0]
    replaced = {
        kind._replace(counted=False, newest=False): sums for kind, sums in older.spend.items()
    }
    both = replace(newer, spend={**newer.spend, **replaced})
    (line,) = reconciliation([both])
    assert (
        line == "numbers (eval), live: 4 calls, 8 tokens in, 4 out; equal to Inspect's own totals."
    )


def test_a_killed_run_has_no_totals_to_compare_with(tmp_path: Path) -> None:
    (log,) = sit(tmp_path, "single:sage")
    log.status, log.stats = "started", EvalStats()
    write_eval_log(log, log.location)
    (line,) = lines_of(tmp_path)
    assert line == ("numbers (eval), live: not compared: unfinished logs without totals: 1.")


def test_what_no_cause_explains_is_called_unexplained(tmp_path: Path) -> None:
    sit(tmp_path, "single:sage")
    (system_run,) = load_runs([tmp_path])[0]
    ((kind, sums),) = system_run.spend.items()
    more = replace(sums, input=sums.input + 3, output=sums.output + 6)
    (line,) = reconciliation([replace(system_run, spend={kind: more})])
    assert line.endswith("UNEXPLAINED: they differ by 3 tokens in, 6 out.")
