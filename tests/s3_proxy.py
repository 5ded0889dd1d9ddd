"""A real S3 server for tests: S3Proxy, whose jars Maven fetches once, run by Java. Objects are files of a directory.

It checks the signature of each request (AWS Signature V4) and of each signed URL.
"""

import asyncio
import signal
from functools import cached_property
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from wms.embedded.java_program import JavaProgram, java_command
from wms.embedded.process import Child
from wms.embedded.server import LOOPBACK, Server, settle_port
from wms.transfer.s3_settings import S3Settings

FILES = Path(__file__).parent / "data" / "s3proxy"
S3_PROXY = JavaProgram("S3Proxy", FILES / "pom.xml", "s3proxy.version")
ACCESS_KEY, SECRET_KEY = "us", "ours"
HEAP_MIB = 256


class S3Proxy(Server):
    """An S3 server on a TCP port of 127.0.0.1 with one user, who has `ACCESS_KEY` and `SECRET_KEY`."""

    stop_signals = (signal.SIGKILL,)

    def __init__(self, data_dir: Path) -> None:
        super().__init__(data_dir, name="s3proxy", ready_within=60.0)
        self.port = 0

    @property
    def endpoint(self) -> str:
        """The server's URL."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def settings(self) -> S3Settings:
        """The settings of a store or a mover that uses the server."""
        return self.settings_with(self.data_dir, SECRET_KEY)

    def settings_with(self, directory: Path, secret_key: str) -> S3Settings:
        """Return such settings with another secret key, which is written to a file in the directory."""
        file = directory / "credentials"
        file.write_text(
            f"[default]\naws_access_key_id = {ACCESS_KEY}\naws_secret_access_key = {secret_key}\n"
        )
        return S3Settings(endpoint=self.endpoint, credentials_file=str(file))

    @cached_property
    def client(self) -> Any:
        """A client of another library than the tested one, for what a test does past the store."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            config=Config(s3={"addressing_style": "path"}, signature_version="s3v4"),
        )

    def file_of(self, bucket: str, key: str) -> Path:
        """Return the file that is the object with this key. Its time of modification is the object's."""
        return self._objects / bucket / key

    @property
    def _objects(self) -> Path:
        return self.data_dir / "objects"

    async def _launch(self) -> Child:
        jars = await S3_PROXY.fetch()
        self.port = settle_port(self.data_dir, 0)
        self._objects.mkdir(exist_ok=True)
        self._write_settings()
        argv = java_command(
            jars, "org.gaul.s3proxy.Main", "--properties", str(self.data_dir / "s3proxy.conf"),
            heap_mib=HEAP_MIB, log_settings=f"logback.configurationFile={FILES / 'logback.xml'}",
        )  # fmt: skip
        return await Child.start(argv, log_path=self.log_path)

    def _write_settings(self) -> None:
        settings = {
            "s3proxy.endpoint": self.endpoint,
            "s3proxy.authorization": "aws-v4",
            "s3proxy.identity": ACCESS_KEY,
            "s3proxy.credential": SECRET_KEY,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": str(self._objects),
        }
        lines = [f"{key}={value}\n" for key, value in settings.items()]
        (self.data_dir / "s3proxy.conf").write_text("".join(lines))

    async def _is_ready(self) -> bool:
        try:
            _, writer = await asyncio.open_connection(LOOPBACK, self.port)
        except OSError:
            return False
        writer.close()
        return True
