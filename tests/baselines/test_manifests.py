"""What systems say of themselves, held against what they do on the practice suites."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

import pytest

from podium import baselines, conductor
from podium.baselines.voting import best_of_n_system
from podium.cli import main
from podium.cli.list_commands import controls, whole_catalogue
from podium.harness.context import run_context
from podium.harness.errors import UserError
from podium.harness.inspect_adapters import system_of
from podium.harness.ledger.logs import find_logs, read_log
from podium.harness.ledger.runs import RunFacts, run_facts
from podium.harness.ledger.system_runs import load_runs
from podium.harness.pool_config import read_pool
from podium.harness.run.catalogue import NEEDS, RunRequest
from podium.harness.run.estimate import estimate
from podium.harness.run.forecast import counted_all
from podium.harness.run.preflight import missing_extra
from podium.harness.run.run import run
from podium.harness.run.run_request import RequestReader
from podium.harness.system import Calls, Need, SystemCard
from podium.reports.audit import audit
from podium.reports.derived import compare
from podium.reports.row import TableRow
from tests.harness.runs import Crew, sit, wrong

pytestmark = pytest.mark.slow

SYSTEMS = {**baselines.SYSTEMS, **conductor.SYSTEMS}


def has_its_conductor(manifest: SystemCard) -> bool:
    """Say whether a system brings no conductor along, or one whose checkpoint is released."""
    try:
        return not manifest.takes_name or bool(manifest.methods.arguments(""))
    except UserError:
        return False


ALONE = [
    name
    for name, one in SYSTEMS.items()
    if not one.learns and not one.needs - {"conductor"} and one.group != "frameworks"
    if name != "single:<worker>" and missing_extra(one) is None and has_its_conductor(one)
]
"""Systems that can sit any practice suite, with no train split and with what is installed here."""


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_manifest_says_where_its_system_is_from_and_where_it_deviates(name: str) -> None:
    manifest = SYSTEMS[name]
    assert manifest.name == name
    assert all((manifest.source, manifest.summary, manifest.calls))
    assert manifest.summary.endswith(".")
    assert len(set(manifest.deviations)) == len(manifest.deviations)
    labels = ("rehearsal", "recorded", "live")
    footnotes = filter(None, map(manifest.methods.footnote, labels))
    for said in (*manifest.deviations, *footnotes):
        assert said == said.strip()
        assert 10 < len(said) < 200
        assert not said.endswith(".")
        assert "\n" not in said
    assert all(prompt.strip() for prompt in manifest.prompts)
    extra = manifest.methods.extra
    assert extra is None or (extra.name and extra.modules)


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_manifests_solver_exists_and_takes_the_arguments_it_speaks_of(name: str) -> None:
    manifest, parts = SYSTEMS[name], whole_catalogue()
    taken = parts.parameters(manifest.solver)
    assert "pool" in taken
    assert manifest.k in {"", *taken}
    assert "worker" in taken or "best worker" not in manifest.traits
    assert {"learned", "sha256"} <= set(taken) or not manifest.learns


@pytest.mark.parametrize("name", [name for name, one in SYSTEMS.items() if one.calls.expected])
def test_expected_calls_are_a_range_and_follow_the_number_behind_the_at_sign(name: str) -> None:
    manifest = SYSTEMS[name]
    for workers in (1, 2, 7):
        span = manifest.calls.span(workers, {})
        assert span is not None
        assert 0 <= span[0] <= span[1]
        if manifest.k and manifest.calls.words.startswith(manifest.k):
            named = manifest.calls.span(workers, {manifest.k: 9})
            assert named is not None
            assert named[1] >= 9


def test_the_papers_mixture_makes_eight_calls_with_its_seven_workers() -> None:
    expected = SYSTEMS["moa-paper"].calls.span
    assert expected is not None
    assert expected(7, {}) == (8, 8)


def test_expected_calls_of_a_mixture_follow_its_arguments() -> None:
    expected = SYSTEMS["moa-3"].calls.span
    assert expected is not None
    assert expected(7, {}) == (15, 15)
    assert expected(7, {"layers": 4, "proposers": ["a", "b"]}) == (7, 7)
    assert expected(7, {"proposers": "a"}) == (3, 3)


def test_the_prompt_digest_changes_when_a_word_of_a_prompt_does() -> None:
    digests = {one.prompt_sha256 for one in SYSTEMS.values() if one.prompts}
    for manifest in SYSTEMS.values():
        assert bool(manifest.prompt_sha256) == bool(manifest.prompts)
        for at, prompt in enumerate(manifest.prompts):
            changed = (*manifest.prompts[:at], f"{prompt}!", *manifest.prompts[at + 1 :])
            assert replace(manifest, prompts=changed).prompt_sha256 not in digests


def test_where_prompts_are_cut_is_part_of_their_digest() -> None:
    one: dict[str, Any] = {"name": "n", "solver": "s", "summary": "S.", "source": "p"}
    whole, cut = (
        SystemCard(**one, calls=Calls("1"), prompts=parts) for parts in (("ab", "c"), ("a", "bc"))
    )
    assert whole.prompt_sha256 != cut.prompt_sha256


PLANNED = [
    name
    for name in ALONE
    if name != "oracle"
    and "conductor" not in SYSTEMS[name].needs
    and not SYSTEMS[name].methods.replaces("conductor")
]
"""Those whose calls a dry run can count: the oracle's plans and a conductor's are not there yet."""


@pytest.mark.parametrize("name", PLANNED)
def test_a_dry_run_counts_as_many_calls_as_the_manifest_says(name: str) -> None:
    manifest, parts, spec = SYSTEMS[name], whole_catalogue(), read_pool("rehearsal")
    args = {"worker": "sage", "chosen_on": "train", "n": 1} if name == "best-single" else {}
    with run_context(spec=spec):
        system = system_of(parts.solver(manifest.solver, {**args, "pool": spec.name}))
    question = parts.suites["practice-integer"].load("eval")[0].sealed()
    counted = counted_all(system, [(question, 1)], spec.names, spec)[0]
    span = manifest.calls.span(len(spec.names), args)
    assert span is not None
    assert span[0] <= len(counted) <= span[1]


def test_a_dry_run_knows_that_a_longer_reply_costs_more(tmp_path: Path) -> None:
    def most(system: str) -> Decimal:
        request = RunRequest(
            ("practice-integer",), (system,), "rehearsal", tmp_path / "run", limit=1
        )
        lines = estimate(RequestReader(request, whole_catalogue(), controls()).read()).lines
        (line,) = [one for one in lines if one.system == system]
        assert line.most.output is not None
        return line.most.output

    assert most("long-context") == 5 * most("best-single")


@pytest.fixture(scope="module")
def sat(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the logs of every system that needs no training, on one question each."""
    home = tmp_path_factory.mktemp("manifests")
    request = RunRequest(
        suites=("practice-integer",),
        systems=("single:sage", "self-consistency@2", *ALONE),
        pool="rehearsal",
        log_dir=home / "run",
        limit=1,
        selection_limit=1,
        display="none",
    )
    outcome = run(request, whole_catalogue(), controls())
    assert outcome.finished, outcome.trouble
    return home / "run"


@pytest.fixture(scope="module")
def rows(sat: Path) -> dict[str, TableRow]:
    """Return the rows of those logs, by system."""
    system_runs, _ = load_runs([sat])
    return {row.system: row for row in compare(system_runs).rows}


def test_every_system_makes_as_many_calls_as_its_manifest_says(rows: dict[str, TableRow]) -> None:
    assert {*ALONE, "single:sage", "self-consistency@2"} == rows.keys()
    for name, row in rows.items():
        manifest = SYSTEMS["single:<worker>" if ":" in name else name.partition("@")[0]]
        assert manifest.calls.expected is not None or not row.calls_expected
        if row.calls_expected:
            least, _, most = row.calls_expected.partition("-")
            assert row.calls_min is not None
            assert row.calls_max is not None
            assert int(least) <= row.calls_min <= row.calls_max <= int(most or least), name
        assert (row.source, row.prompt_sha256) == (manifest.source, manifest.prompt_sha256)
        assert row.deviations.count("; ") == max(len(manifest.deviations) - 1, 0)


def test_the_number_behind_the_at_sign_reaches_the_promise(rows: dict[str, TableRow]) -> None:
    assert rows["self-consistency"].calls_expected == "5"
    assert rows["self-consistency@2"].calls_expected == "2"


def test_the_audit_finds_the_promises_kept(sat: Path) -> None:
    (verdict,) = [one for one in audit(sat).verdicts if one.invariant == "I7"]
    assert (verdict.status, list(verdict.faults)) == ("pass", [])


def test_a_log_repeats_its_systems_manifest_and_keeps_deviations_out_of_its_notes(
    sat: Path,
) -> None:
    found: dict[str, RunFacts] = {}
    for path in find_logs([sat]):
        log = read_log(path)
        facts = run_facts(log, path) if log else None
        if facts and facts.purpose == "eval":
            found[facts.system] = facts
    mixture = found["moa-lite"]
    assert mixture.calls_expected == (9, 9)
    assert mixture.deviations == SYSTEMS["moa-lite"].deviations
    assert not {*mixture.deviations} & {*mixture.notes}


def test_an_unreadable_choice_is_counted_below_the_table(tmp_path: Path) -> None:
    sit(tmp_path, "best-of-n", best_of_n_system(n=2, judge="clerk"), Crew(clerk=wrong))
    system_runs, _ = load_runs([tmp_path])
    (row,) = compare(system_runs).rows
    assert "4 of 4 answers: a judge's choice could not be read" in row.notes


def test_the_table_holds_calls_against_manifests_and_lists_deviations(
    sat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(sat), "--out", str(tmp_path)]) == 0
    text = (tmp_path / "table.md").read_text()
    assert "| `moa-paper` (rehearsal) | 9 | 9 | 9 | 9.00 |" in text
    (line,) = [one for one in text.splitlines() if one.startswith("| `debate` | Du et al.")]
    assert "the prompt is in our own words" in line


def test_everything_a_system_may_need_has_words() -> None:
    assert set(get_args(Need)) == NEEDS.keys()


@pytest.mark.parametrize("name", SYSTEMS)
def test_all_of_a_manifest_can_be_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["systems", name]) == 0
    said, manifest = capsys.readouterr().out, SYSTEMS[name]
    flat = " ".join(said.split())
    for part in (manifest.source, manifest.solver, manifest.calls.words, *manifest.deviations):
        assert " ".join(part.split()) in flat
    assert (manifest.prompt_sha256 or "none of its own") in flat
    assert max(len(line) for line in said.splitlines()) <= 100


def test_systems_are_listed_a_line_each_under_their_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["systems"]) == 0
    lines = capsys.readouterr().out.splitlines()
    starts = [line.split()[0] for line in lines if line.strip()]
    assert [starts.count(name) for name in SYSTEMS] == [1] * len(SYSTEMS)
    headings = [line for line in lines if line and not line.startswith(" ")]
    assert headings == [
        one for one in ("contestants", "routers", "controls", "frameworks") if one in headings
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param("self-consistency@0", "whole number from 1 to 10,000", id="k"),
        pytest.param("oracle@3", "takes no number", id="no-k"),
        pytest.param("moa", "There is no system 'moa'; known systems:", id="old-name"),
        pytest.param("single:nobody", "nobody", id="worker"),
        pytest.param("retry", "'practice-integer' shows none", id="public-tests"),
    ],
)
def test_a_system_that_cannot_run_is_refused_in_a_sentence_and_nothing_is_written(
    words: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_dir = tmp_path / "run"
    asked = ["run", "--suite", "practice-integer", "--pool", "rehearsal", "--system", words]
    assert main([*asked, "--log-dir", str(log_dir)]) != 0
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
    assert not log_dir.exists()


def test_a_directory_with_a_system_nobody_knows_is_left_as_it_is(
    sat: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = (sat / "experiment.json").read_text().replace('"moa-3"', '"moa"')
    (tmp_path / "experiment.json").write_text(stored)
    asked = ["run", "--suite", "practice-integer", "--pool", "rehearsal", "--system", "debate"]
    assert main([*asked, "--log-dir", str(tmp_path)]) != 0
    assert "rows of 'moa', a system that this version does not know" in capsys.readouterr().err
    assert (tmp_path / "experiment.json").read_text() == stored
