"""An issuer for the tests of one module."""

import pytest

from tests.unit.auth.issuer import Issuer


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Issuer:
    return Issuer(tmp_path_factory.mktemp("keys"))
