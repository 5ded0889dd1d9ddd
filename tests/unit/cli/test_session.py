"""What a command says of a system that does not answer."""

from pathlib import Path

import pytest

from wms.cli import session
from wms.cli.options import CommonOptions
from wms.embedded.supervisor import LOCK_FILE
from wms.errors import Unavailable


async def _silent() -> int:
    raise Unavailable("no broker answers at unix:/x")


def _said(place: Path) -> Unavailable:
    with pytest.raises(Unavailable) as fault:
        session._run(CommonOptions(data=place), _silent())
    return fault.value


def test_a_system_that_does_not_run_is_told_with_what_starts_it(tmp_path: Path) -> None:
    (tmp_path / LOCK_FILE).touch()
    said = _said(tmp_path)
    assert said.message == f"the system in {tmp_path} does not run"
    assert said.remedy == "`wms up` starts it"


def test_a_system_elsewhere_that_does_not_answer_is_told_as_it_is(tmp_path: Path) -> None:
    assert _said(tmp_path).message == "no broker answers at unix:/x"
