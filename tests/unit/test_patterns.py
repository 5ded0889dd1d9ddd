"""Regular expressions mean the same to every Python that runs this."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GROUP_WITHOUT_RETURN = re.compile(r"(?<!\()\)[*+?]\+|\(\?>")


@pytest.mark.parametrize("package", ["wms", "services"])
def test_no_group_is_repeated_without_return(package: str) -> None:
    """Python before 3.11.5 loses what such a group captured, or matches less; of a single character it is right."""
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if GROUP_WITHOUT_RETURN.search(line)
    ]
    assert found == []
