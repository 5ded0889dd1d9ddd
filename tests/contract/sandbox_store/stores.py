"""The kinds of sandbox store, each with what its tests do to it behind its back."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import boto3
from botocore.config import Config
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from tests.contract.transfer.storages import free_port
from wms.transfer import SandboxStore, open_store
from wms.transfer.s3_settings import S3Settings
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
        path = self._root / name
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))

    def litter(self, name: str) -> None:
        (self._root / name).write_bytes(b"x")


class S3Server:
    """A server of S3 in this process."""

    def __init__(self, place: Path) -> None:
        self._server = ThreadedMotoServer("127.0.0.1", free_port(), verbose=False)
        self._server.start()
        self.endpoint = f"http://127.0.0.1:{self._server._port}"
        self.credentials = place / "credentials"
        self.credentials.write_text("[default]\naws_access_key_id = us\naws_secret_access_key = ours\n")
        self.client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id="us",
            aws_secret_access_key="ours",
            config=Config(s3={"addressing_style": "path"}),
        )

    @property
    def settings(self) -> S3Settings:
        return S3Settings(endpoint=self.endpoint, credentials_file=str(self.credentials))

    def stop(self) -> None:
        self._server.stop()


class S3Ground:
    """A bucket of its own, below a prefix."""

    def __init__(self, server: S3Server, bucket: str) -> None:
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
        for backends in s3_backends.values():
            for backend in backends.values():
                if self.bucket in backend.buckets:
                    key = backend.buckets[self.bucket].keys[f"kept/here/{name}"]
                    key.last_modified -= timedelta(seconds=seconds)

    def litter(self, name: str) -> None:
        self.server.client.put_object(Bucket=self.bucket, Key=f"kept/here/{name}", Body=b"x")
