"""A command on a machine that has nothing optional, and who may run one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.testbed import bare_machine


def bare(*command: str) -> "subprocess.CompletedProcess[str]":
    ran = subprocess.run(
        [sys.executable, "-m", "deploy.testbed.bare_machine", *command],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    if ran.returncode == os.EX_UNAVAILABLE and "NOTHING CAN BE HIDDEN" in ran.stderr:
        pytest.skip(ran.stderr)
    return ran


def test_what_is_optional_is_hidden_from_the_command_alone() -> None:
    there = [each for each in bare_machine.OPTIONAL if list(bare_machine.places(each))]
    ask = "from deploy.testbed import packages as p; from deploy.testbed.bare_machine import OPTIONAL as o, NEEDED"
    told = bare(
        sys.executable,
        "-c",
        f"{ask}; print([e for e in o if e not in NEEDED and not p.missing({{e: o[e]}})])",
    )
    assert told.stdout.strip() == "[]", told.stderr
    assert [each for each in bare_machine.OPTIONAL if list(bare_machine.places(each))] == there


def test_the_exit_code_is_the_commands() -> None:
    assert bare("sh", "-c", "exit 7").returncode == 7
