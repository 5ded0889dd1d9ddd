"""Directories for sockets are short enough for the kernel, wherever the data and the temporary files are."""

import socket
import stat
import tempfile
from pathlib import Path

import pytest

from wms.embedded.sockets import remove_socket_directory, socket_directory

LONG = "a-directory-with-a-long-name/" * 5


@pytest.mark.parametrize("temporary", ["", LONG], ids=["short TMPDIR", "long TMPDIR"])
@pytest.mark.parametrize("data", ["", LONG], ids=["short data", "long data"])
def test_a_socket_can_be_made_there(
    data: str, temporary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (data_dir := tmp_path / "data" / data, other := tmp_path / "tmp" / temporary):
        each.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    directory = socket_directory(data_dir)
    assert directory == socket_directory(data_dir), "the same at each start"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(directory / "0123456789abcdef.sock"))
    remove_socket_directory(data_dir)
    assert directory.exists() == directory.is_relative_to(data_dir)
