"""The training that several files compare with."""

from pathlib import Path

import pytest

from tests.conductor.training.tiny_training import tiny_config, trained_here


@pytest.fixture(scope="session")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_config(tmp_path_factory.mktemp("config"))


@pytest.fixture(scope="session")
def whole(config: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nobody interrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    trained_here(config, out)
    return out
