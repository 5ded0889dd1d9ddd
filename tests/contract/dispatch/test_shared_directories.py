"""Leases and ends of jobs in directories that this machine shares with their nodes."""

from pathlib import Path

from wms.dispatch.direct import EXIT, LEASE
from wms.dispatch.pilot_directories import Places
from wms.dispatch.shared_directories import SharedDirectories
from wms.ids import PilotId

NAME = PilotId("p-1")


class Jobs(SharedDirectories):
    """The directories of jobs below one."""

    def __init__(self, directory: Path) -> None:
        self._places = Places(directory)


async def test_a_lease_is_a_number_and_whole_seconds(tmp_path: Path) -> None:
    place = tmp_path / NAME
    place.mkdir()
    await Jobs(tmp_path).extend(NAME, 12, 79.9)
    assert (place / LEASE).read_text() == "12 79\n"
    await Jobs(tmp_path).extend(NAME, 13, -4.0)
    assert (place / LEASE).read_text() == "13 0\n"
    assert [each.name for each in place.iterdir()] == [LEASE]


async def test_a_job_without_a_directory_is_extended_in_vain(tmp_path: Path) -> None:
    await Jobs(tmp_path).extend(NAME, 1, 1.0)
    assert list(tmp_path.iterdir()) == []
    assert (await Jobs(tmp_path).collect(NAME)).exit_code is None


async def test_an_end_is_found_in_the_directory(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / EXIT).write_text("0\n")
    end = await Jobs(tmp_path).collect(NAME)
    assert (end.directory, end.exit_code) == (tmp_path / NAME, 0)
