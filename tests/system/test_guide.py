"""The user guide is true: its examples run against a whole system, and print what the pages show."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.system import guide_page
from tests.system.guide_page import examples, is_shown
from tests.system.snakemake_environment import snakemake_bin
from wms.embedded.system import System

GUIDE = Path(__file__).parents[2] / "docs" / "guide"
PAGES = sorted(page for page in GUIDE.glob("*.md") if examples(page.read_text("utf-8")))


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def environment(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, str]]:
    """Yield what a user has set who has a system up, of this Python."""
    async with System(tmp_path_factory.mktemp("guide"), durable=False, log_level="warning") as system:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        yield {"WMS_DATA": str(system.layout.root), "PATH": path}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
async def test_examples_print_what_the_page_shows(
    page: Path, tmp_path: Path, environment: dict[str, str]
) -> None:
    if page.stem == "snakemake":
        environment = {**environment, "PATH": f"{snakemake_bin()}:{environment['PATH']}"}
    faults = guide_page.run(page, tmp_path, environment)
    assert not faults, "\n\n".join(faults)


def test_an_output_is_compared_by_lines() -> None:
    assert is_shown("a\n...\nb...d\n", "a\nx\ny\nbcd\n")
    assert is_shown("...\nb\n", "b\n")
    assert not is_shown("a\n", "a\nb\n")
    assert not is_shown("a\n...\nc\n", "a\nb\n")


def test_blocks_are_found_with_what_they_print() -> None:
    page = "# A\n\n```sh\ntrue\n```\n\n```text\nx\n```\n\n```sh not-run\nno\n```\n\n```python\npass\n```\n"
    assert [(each.language, each.code, each.shown, each.line) for each in examples(page)] == [
        ("sh", "true\n", "x\n", 3),
        ("python", "pass\n", "", 15),
    ]
