"""docs/compatibility.md holds: forms are those of the code, and no name of before has gone.

`python -m tests.test_compatibility` writes the names of today; do so at a release alone.
"""

import json
import re
from dataclasses import fields
from typing import get_type_hints

import pytest

import podium
from podium import _registry
from podium.cli.commands import build_parser
from podium.cli.completion import every_action
from podium.conductor.checkpoint import CheckpointInfo
from podium.harness import grade_file
from podium.harness.ledger import details, journal, ledger_tables, manifest
from podium.harness.ledger.call import Call
from podium.harness.ledger.queries import QueryRow
from podium.harness.run.experiment import Experiment
from podium.reports import against, paper, report, routes
from podium.reports.audit import audit_report, routerarena_audit
from podium.reports.row import COLUMNS
from podium.reports.site import build
from tests import ROOT
from tests.release import main, versions

NAMES = ROOT / "tests" / "written_before" / "names.json"
PAGE = ROOT / "docs" / "compatibility.md"
FORMS = {
    "table.json": report.SCHEMA,
    "table.parquet": paper.PARQUET,
    "podium audit --json": audit_report.SCHEMA,
    "--routerarena": routerarena_audit.SCHEMA,
    "against.json": against.SCHEMA,
    "export.json": ledger_tables.SCHEMA,
    "--query": details.SCHEMA,
    "ledger/*/*.jsonl": journal.SCHEMA,
    "MANIFEST.json": manifest.SCHEMA,
    "route.json": routes.SCHEMA,
    "site.json": build.SCHEMA,
    "podium grade": grade_file.VerdictOrigin.model_fields["format"].default,
}


def names() -> dict[str, list[str]]:
    """Return what others may name, by kind."""
    options = {
        f"{command} {option}"
        for command, action in every_action(build_parser())
        for option in action.option_strings
        if option.startswith("--")
    }
    solvers = (*vars(_registry.baselines), *_registry.SOLVERS, *vars(_registry.conductor))
    return {
        "python": sorted(podium.__all__),
        "options": sorted(options),
        "systems": sorted(podium.systems),
        "suites": sorted(podium.suites),
        "solvers": sorted(name for name in solvers if not name.startswith("_")),
        "table columns": sorted(COLUMNS),
        "call columns": sorted(get_type_hints(Call)),
        "query columns": sorted(get_type_hints(QueryRow)),
        "checkpoint fields": sorted(field.name for field in fields(CheckpointInfo)),
        "experiment fields": sorted(field.name for field in fields(Experiment)),
    }


@pytest.mark.parametrize("kind", names())
def test_what_0_2_had_is_still_there(kind: str) -> None:
    then: dict[str, list[str]] = json.loads(NAMES.read_text())
    assert sorted({*then[kind]} - {*names()[kind]}) == []


@pytest.mark.parametrize("file", FORMS)
def test_the_page_states_the_form_of_each_file(file: str) -> None:
    (line,) = (
        line for line in PAGE.read_text().splitlines() if line.startswith("| ") and file in line
    )
    assert f"`{FORMS[file]}`" in line.split("|")[2]


def test_forms_of_before_that_are_read_as_well_are_on_the_page() -> None:
    text = PAGE.read_text()
    assert all(f"| `{older}` |" in text for older in (journal.OLDER, manifest.OLDER))


def test_every_form_in_the_code_is_on_the_page() -> None:
    source = "\n".join(
        path.read_text()
        for room in ("podium", "harness", "conductor", "reports")
        for path in (ROOT / room).rglob("*.py")
    )
    forms = set(re.findall(r'"(podium-[a-z]+-\d)"', source))
    assert forms
    assert [form for form in sorted(forms) if f"`{form}`" not in PAGE.read_text()] == []


def test_a_release_is_one_version_everywhere() -> None:
    assert len({*versions().values()}) == 1, versions()


def test_a_tag_of_another_version_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"v{versions()['pyproject.toml']}") == 0
    assert main("v9.9.9") == 1
    assert "v9.9.9 is no release of CITATION.cff" in capsys.readouterr().err


if __name__ == "__main__":
    NAMES.write_text(json.dumps(names(), indent=1) + "\n")
