"""From which byte a transfer may go on."""

from pathlib import Path

from wms.transfer.file_url import FileUrl
from wms.transfer.part_file import PartFile

A, B = FileUrl.parse("http://a/f"), FileUrl.parse("http://b/f")


def begun(path: Path, *, is_verified: bool, validator: str = "") -> PartFile:
    part = PartFile(path / "part", is_verified=is_verified)
    with part.open(A, 0, validator) as file:
        part.append(file, b"1234")
    return part


def test_without_a_checksum_only_the_same_content_goes_on(tmp_path: Path) -> None:
    part = begun(tmp_path, is_verified=False, validator='"tag"')
    assert (part.offset_for(A), part.offset_for(B)) == (4, 0)
    part = begun(tmp_path, is_verified=False)
    assert part.offset_for(A) == 0


def test_with_a_checksum_any_replica_goes_on(tmp_path: Path) -> None:
    part = begun(tmp_path, is_verified=True)
    assert (part.offset_for(B), part.is_mixed) == (4, False)
    with part.open(B, 2) as file:
        part.append(file, b"xy")
    assert (part.path.read_bytes(), part.is_mixed) == (b"12xy", True)
    part.discard()
    assert (part.size, part.is_mixed, part.offset_for(B)) == (0, False, 0)
