"""The kinds of sandbox store, each with what its tests do to it behind its back."""

import os
from pathlib import Path
from typing import Protocol

from tests.s3_proxy import S3Proxy
from wms.transfer import SandboxStore, open_store
from wms.transfer.stored_object import MAX_OBJECT


class StoreGround(Protocol):
    """A store that is there to be tested."""

    def open(self, max_object: int = MAX_OBJECT) -> SandboxStore:
        """Return the store, as another process would open it."""

    def names(self) -> list[str]:
        """Return the places of all that is kept, below the store."""

    def damage(self, sha256: str, data: bytes) -> None:
        """Replace the bytes of an object."""

    def age(self, name: str, seconds: float) -> None:
        """Let what is at this place be so much older."""

    def litter(self, name: str) -> None:
        """Leave a file at this place that is no object."""


def place_of(sha256: str) -> str:
    return f"{sha256[:2]}/{sha256[2:]}"


def _age(file: Path, seconds: float) -> None:
    then = file.stat().st_mtime - seconds
    os.utime(file, (then, then))


class DirectoryGround:
    """A directory."""

    def __init__(self, root: Path) -> None:
        self._root = root / "store"

    def open(self, max_object: int = MAX_OBJECT) -> SandboxStore:
        return open_store(self._root.as_uri(), max_object=max_object)

    def names(self) -> list[str]:
        files = (each for each in self._root.rglob("*") if each.is_file() and each.name != ".lock")
        return sorted(str(each.relative_to(self._root)) for each in files)

    def damage(self, sha256: str, data: bytes) -> None:
        (self._root / place_of(sha256)).write_bytes(data)

    def age(self, name: str, seconds: float) -> None:
        _age(self._root / name, seconds)

    def litter(self, name: str) -> None:
        (self._root / name).write_bytes(b"x")


class S3Ground:
    """A bucket of its own, below a prefix."""

    def __init__(self, server: S3Proxy, bucket: str) -> None:
        self.server = server
        self.bucket = bucket
        server.client.create_bucket(Bucket=bucket)

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/kept/here"

    def open(self, max_object: int = MAX_OBJECT) -> SandboxStore:
        return open_store(self.url, self.server.settings, max_object=max_object)

    def names(self) -> list[str]:
        listed = self.server.client.list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return sorted(each["Key"].removeprefix("kept/here/") for each in listed)

    def damage(self, sha256: str, data: bytes) -> None:
        self.server.client.put_object(Bucket=self.bucket, Key=f"kept/here/{place_of(sha256)}", Body=data)

    def age(self, name: str, seconds: float) -> None:
        _age(self.server.file_of(self.bucket, f"kept/here/{name}"), seconds)

    def litter(self, name: str) -> None:
        self.server.client.put_object(Bucket=self.bucket, Key=f"kept/here/{name}", Body=b"x")
