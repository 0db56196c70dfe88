"""What several test files share."""

import pytest
from installed import Installed, install


@pytest.fixture(scope="session")
def podium_wheel(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("wheel"))
