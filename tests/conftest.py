"""What several test files share."""

import pytest
from installed import Installed, install

from harness.errors import UserError
from suites.import_saturn import saturn_cassette


@pytest.fixture(scope="session")
def podium_wheel(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("wheel"))


@pytest.fixture
def recorded_aime25() -> str:
    """Return the name of the recorded pool; skip where its data is absent."""
    try:
        saturn_cassette()
    except UserError as error:
        pytest.skip(str(error))
    return "recorded-aime25"
