"""What tests of the audit share."""

from pathlib import Path

import pytest

from podium.harness.ledger.manifest import write_manifest
from tests.reports.audit.tampered_run import journal


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a run's directory with one journal and its manifest."""
    home = tmp_path / "run"
    journal(home, "single:sage", calls=1)
    (home / "experiment.json").write_text("{}\n")
    write_manifest(home)
    return home
