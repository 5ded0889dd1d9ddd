"""Storages that tests start: real servers, each with the files that it keeps looked at from outside."""

import os
import pwd
import socket
import subprocess
import time
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from deploy.testbed import packages
from tests.s3_proxy import S3Proxy
from wms.transfer.access_rules import AccessRules
from wms.transfer.movers import TransferSettings
from wms.transfer.transfer_limits import TransferLimits

HERE = ["localhost", "127.0.0.1"]
LIMITS = TransferLimits(
    file_seconds=60, stall_seconds=1.0, least_rate=1_000, tries=2, pause_seconds=0.05, file_bytes=2**30
)


class Storage(Protocol):
    """A storage that runs."""

    name: str
    settings: TransferSettings

    def url(self, path: str) -> str:
        """Return the URL of a file."""

    def write(self, path: str, data: bytes) -> None:
        """Keep a file, past the movers."""

    def read(self, path: str) -> bytes | None:
        """Return a file that is kept, past the movers; None if it is not."""

    def names(self) -> list[str]:
        """Return the names of all files that are kept."""

    def stop(self) -> None:
        """End the server."""


def settings(**access: Any) -> TransferSettings:
    return TransferSettings(access=AccessRules(inner_hosts=HERE, **access), limits=LIMITS)


class _Files:
    """A storage whose files lie in a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, data: bytes) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    def read(self, path: str) -> bytes | None:
        place = self.root / path
        return place.read_bytes() if place.exists() else None

    def names(self) -> list[str]:
        return sorted(str(each.relative_to(self.root)) for each in self.root.rglob("*") if each.is_file())


class Directory(_Files):
    """A directory of this machine."""

    name = "file"

    def __init__(self, root: Path) -> None:
        super().__init__(root / "files")
        self.root.mkdir()
        self.settings = settings(directories=[str(self.root)])

    def url(self, path: str) -> str:
        return (self.root / path).as_uri()

    def stop(self) -> None:
        pass


_NGINX = """
pid {place}/pid; error_log {place}/log; daemon off; master_process off; {user}
events {{ }}
http {{
  access_log off; client_body_temp_path {place}/body; client_max_body_size 200m;
  proxy_temp_path {place}/p; fastcgi_temp_path {place}/f; uwsgi_temp_path {place}/u; scgi_temp_path {place}/s;
  server {{
    listen 127.0.0.1:{port};
    root {root};
    dav_methods PUT DELETE MKCOL COPY MOVE; create_full_put_path on; dav_access user:rw group:rw all:r;
    location /full/ {{ return 507; }}
    location /busy/ {{ return 503; }}
    location /closed/ {{ return 403; }}
    location /elsewhere/ {{ rewrite ^/elsewhere/(.*)$ /$1 redirect; }}
    location /loop/ {{ return 302 /loop/again; }}
    location /inside/ {{ return 302 http://169.254.169.254/latest/meta-data; }}
    location /away/ {{ return 302 file:///etc/passwd; }}
    location /slow/ {{ alias {root}/; limit_rate 200; }}
  }}
}}
"""


class Nginx(_Files):
    """WebDAV by nginx."""

    name = "webdav"

    def __init__(self, place: Path, scheme: str = "http") -> None:
        _need("nginx")
        super().__init__(place / "files")
        self.root.mkdir()
        self.port, self._scheme = free_port(), scheme
        user = "user root;" if os.geteuid() == 0 else ""
        text = _NGINX.format(place=place, root=self.root, port=self.port, user=user)
        (place / "nginx.conf").write_text(text)
        argv = ["nginx", "-c", str(place / "nginx.conf"), "-p", str(place), "-e", str(place / "log")]
        self._process = _started(argv, self.port)
        self.settings = settings()

    def url(self, path: str) -> str:
        return f"{self._scheme}://localhost:{self.port}/{path}"

    def stop(self) -> None:
        _ended(self._process)


class S3:
    """A bucket of the session's S3 server."""

    name = "s3"
    bucket = "data"

    def __init__(self, server: S3Proxy) -> None:
        self.client = server.client
        # Progress is counted by parts of 8 MiB; one may take more than a second on a busy machine.
        limits = msgspec.structs.replace(LIMITS, stall_seconds=20.0)
        self.settings = TransferSettings(
            access=AccessRules(inner_hosts=HERE), limits=limits, s3=server.settings
        )
        self.client.create_bucket(Bucket=self.bucket)

    def url(self, path: str) -> str:
        return f"s3://{self.bucket}/{path}"

    def signed(self, path: str, method: str = "get_object") -> str:
        """Return a URL that needs no credentials."""
        signed: str = self.client.generate_presigned_url(method, Params={"Bucket": self.bucket, "Key": path})
        return signed

    def write(self, path: str, data: bytes) -> None:
        self.client.put_object(Bucket=self.bucket, Key=path, Body=data)

    def read(self, path: str) -> bytes | None:
        try:
            data: bytes = self.client.get_object(Bucket=self.bucket, Key=path)["Body"].read()
        except self.client.exceptions.NoSuchKey:
            return None
        return data

    def names(self) -> list[str]:
        found = self.client.list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return sorted(each["Key"] for each in found)

    def stop(self) -> None:
        pass


_XROOTD = """
xrd.port {port}
xrd.network nodnr
oss.localroot {root}
all.export /
all.adminpath {place}/admin
all.pidpath {place}/admin
xrootd.chksum adler32
ofs.persist off
"""


class Xrootd(_Files):
    """XRootD, which does not run as root."""

    name = "xrootd"

    def __init__(self, place: Path) -> None:
        _need("xrootd", "xrdcp")
        super().__init__(place / "files")
        self.root.mkdir()
        self.port = free_port()
        (place / "xrootd.cf").write_text(_XROOTD.format(place=place, root=self.root, port=self.port))
        argv = ["xrootd", "-l", str(place / "log"), "-c", str(place / "xrootd.cf")]
        if os.geteuid() == 0:
            argv = ["setpriv", "--reuid", "xrootd", "--regid", "xrootd", "--clear-groups", *argv]
            for each in (place, self.root):
                os.chown(each, pwd.getpwnam("xrootd").pw_uid, pwd.getpwnam("xrootd").pw_gid)
            for each in (place, *place.parents):
                if each != Path("/tmp") and each.is_relative_to("/tmp"):
                    each.chmod(0o755)
        self._process = _started(argv, self.port)
        self.settings = settings(schemes=["root"])

    def write(self, path: str, data: bytes) -> None:
        super().write(path, data)
        (self.root / path).chmod(0o644)

    def url(self, path: str) -> str:
        return f"root://localhost:{self.port}//{path}"

    def stop(self) -> None:
        _ended(self._process)


STORAGES: dict[str, type[Any]] = {each.name: each for each in (Directory, Nginx, Xrootd)}
"""Those that a directory is enough for."""


def free_port() -> int:
    with socket.socket() as each:
        each.bind(("127.0.0.1", 0))
        port: int = each.getsockname()[1]
        return port


def _need(*programs: str) -> None:
    if missing := packages.missing({name: packages.STORAGE[name] for name in programs}):
        pytest.skip(f"STORAGE NOT TESTED: this machine lacks packages {' '.join(missing)}")


def _started(argv: list[str], port: int) -> subprocess.Popen[bytes]:
    """Start a server and wait until it listens."""
    process = subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()[0].decode()
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return process
    _ended(process)
    raise AssertionError(f"{argv[0]} does not listen")


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    process.communicate(timeout=20)
