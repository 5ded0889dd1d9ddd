"""Checksums as they are written, and of files."""

from pathlib import Path

import pytest

from wms.errors import Rejected
from wms.transfer.checksum import Checksum, checksum_of


@pytest.mark.parametrize(
    "said",
    [
        "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "MD5:900150983CD24FB0D6963F7D28E17F72",
        "adler32:24d0127",
        "adler32:024d0127",
    ],
)
def test_checksums_of_a_file(said: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    wanted = Checksum.parse(said)
    assert checksum_of(tmp_path / "a", wanted.algorithm) == wanted


@pytest.mark.parametrize(
    "text", ["", "abc", "sha1:00", "md5:12", "md5:" + "g" * 32, "adler32:", "adler32:123456789"]
)
def test_what_is_no_checksum_is_refused(text: str) -> None:
    with pytest.raises(Rejected, match="is no checksum"):
        Checksum.parse(text)
