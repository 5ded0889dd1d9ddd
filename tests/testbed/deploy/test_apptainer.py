"""A command where Apptainer is installed: what it finds there, and that this machine stays as it is."""

import subprocess
from pathlib import Path

import pytest

from deploy.testbed import apptainer

pytestmark = pytest.mark.testbed


@pytest.fixture(autouse=True, scope="module")
def possible() -> None:
    if why := apptainer.lack():
        pytest.skip(f"APPTAINER NOT TESTED: this machine lacks {why}")


def ran(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(apptainer.entering(command), capture_output=True, text=True, check=False)


def test_the_command_finds_apptainer_and_this_machine_does_not() -> None:
    mounts = Path("/proc/mounts").read_text()
    found = ran("apptainer", "--version")
    assert found.stdout.startswith("apptainer version 1."), found.stderr
    assert Path("/proc/mounts").read_text() == mounts


def test_its_exit_code_is_the_commands_and_its_words_are_not_read_again() -> None:
    done = ran("sh", "-c", 'echo "$1"; exit 7', "sh", '$(id) "b  c')
    assert (done.returncode, done.stdout) == (7, '$(id) "b  c\n')


def test_every_user_may_mount_by_fuse_there() -> None:
    assert ran("stat", "-c", "%a %t", "/dev/fuse").stdout == "666 a\n"
