"""The confinement of pilots on this machine: whose account they have."""

import os
from pathlib import Path

import pytest

from wms.dispatch.confinement import FIRST_ID, Confinement, Mode, own_programs


@pytest.mark.parametrize(
    ("mode", "uid", "owner"),
    [("auto", 0, FIRST_ID), ("required", 0, FIRST_ID), ("none", 0, None), ("auto", 1000, None)],
)
def test_roots_pilots_have_an_account_of_their_own(
    monkeypatch: pytest.MonkeyPatch, mode: Mode, uid: int, owner: int | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert Confinement(mode=mode).owner == owner


def test_a_pilot_needs_this_python_and_this_program() -> None:
    assert all(Path(each).is_dir() for each in own_programs())
    assert (Path(own_programs()[-1]) / "services" / "job_agent").is_dir()
