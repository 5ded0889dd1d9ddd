"""A site with elements of processes, for each test."""

from pathlib import Path

import pytest

from tests.services.pilot_submitter.elements import Site
from tests.services.world import World


@pytest.fixture
def site(the_world: World, tmp_path: Path) -> Site:
    return Site(the_world, tmp_path)
