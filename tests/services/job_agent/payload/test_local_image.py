"""Which files of the node are images, and of what kind."""

import os
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.job_agent.payload.local_image import ImageKind, image_path, kind_of
from tests.services.job_agent.payload.image_archives import docker_archive, oci_archive
from wms.errors import Rejected


@pytest.fixture
def public() -> Iterator[Path]:
    """A directory that every user can reach; those of pytest are their owner's alone."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        yield Path(directory)


def test_the_kind_is_told_from_the_content(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "sif").write_bytes(b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC\0")
    (tmp_path / "squashfs").write_bytes(b"hsqs" + bytes(100))
    (tmp_path / "text").write_text("text")
    assert kind_of(str(root)) is ImageKind.DIRECTORY
    assert kind_of(str(tmp_path / "sif")) is ImageKind.PACKED
    assert kind_of(str(tmp_path / "squashfs")) is ImageKind.PACKED
    assert kind_of(str(docker_archive(root, tmp_path / "docker"))) is ImageKind.DOCKER_ARCHIVE
    assert kind_of(str(oci_archive(root, tmp_path / "oci"))) is ImageKind.OCI_ARCHIVE
    assert kind_of(str(tmp_path / "text")) is ImageKind.DOCKER_ARCHIVE


@pytest.mark.parametrize("size", [2**60, 2**80, -1_024, 10_000_000_000])
def test_a_size_that_a_header_only_says_is_not_read(size: int, tmp_path: Path) -> None:
    header = tarfile.TarInfo("any")
    header.type = tarfile.XHDTYPE
    block = bytearray(header.tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = (size + (256**12 if size < 0 else 0x80 << 88)).to_bytes(12, "big")
    block[148:156] = b"%06o\0 " % tarfile.calc_chksums(bytes(block))[0]  # type: ignore[attr-defined] # not in the stubs
    (tmp_path / "tar").write_bytes(block * 2)
    assert kind_of(str(tmp_path / "tar")) is ImageKind.DOCKER_ARCHIVE


def test_what_is_not_there_is_no_image(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="cannot be read"):
        kind_of(str(tmp_path / "none"))


def test_an_image_is_what_every_user_may_read(public: Path) -> None:
    image = public / "a.sif"
    image.touch(mode=0o644)
    (public / "link").symlink_to(image)
    assert image_path(str(public / "link"), ()) == os.path.realpath(image)
    image.chmod(0o600)
    with pytest.raises(Rejected, match="every user"):
        image_path(str(image), ())


def test_an_image_is_neither_below_nor_above_what_is_hidden(public: Path) -> None:
    (public / "a").touch(mode=0o644)
    for hidden in (public, public / "a" / "b"):
        with pytest.raises(Rejected, match="keeps it from payloads"):
            image_path(str(public / "a"), (os.path.realpath(hidden),))
