"""Installs DIRAC's class and a MariaDB below the project's `.cache`, where nothing else sees them.

MariaDB and the headers to build two Python packages are Debian's, downloaded and unpacked, not installed: no root, no
service, no change to the system.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
PLACE = HERE.parents[2] / ".cache" / "peers" / "dirac"
DEBS = (
    "mariadb-server-core", "mariadb-server", "mariadb-client-core", "libmariadb3", "libmariadb-dev", "libaio1", "libnuma1",
    "liburing2", "libssl3", "libssl-dev",
)  # fmt: skip
LIBRARIES = PLACE / "root" / "usr" / "lib" / "x86_64-linux-gnu"


def python() -> Path:
    """Return the interpreter that has DIRAC."""
    return PLACE / "venv" / "bin" / "python"


def prefix() -> Path:
    """Return the directory that MariaDB was unpacked into."""
    return PLACE / "root" / "usr"


def environment() -> dict[str, str]:
    """Return the variables under which both find their libraries."""
    return {**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES), "PYTHONDONTWRITEBYTECODE": "1"}


def install() -> None:
    """Install what is not there yet."""
    wanted = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(HERE.glob("*.txt")))).hexdigest()
    stamp = PLACE / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    shutil.rmtree(PLACE, ignore_errors=True)
    _unpack_mariadb()
    _install_dirac()
    stamp.write_text(wanted)


def _unpack_mariadb() -> None:
    debs = PLACE / "debs"
    debs.mkdir(parents=True)
    _run(["apt-get", "download", "--quiet", *DEBS], debs, remedy="on Debian 12; run `apt-get update` first")
    for package in debs.glob("*.deb"):
        _run(["dpkg-deb", "--extract", str(package), str(PLACE / "root")], debs)
    shutil.rmtree(debs)
    for archive in LIBRARIES.glob("*.a"):
        archive.unlink()  # so that extensions are linked with the shared libraries


def _install_dirac() -> None:
    _run([sys.executable, "-m", "venv", str(PLACE / "venv")], PLACE)
    root = prefix()
    pip = [str(python()), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    building = {
        "PATH": f"{PLACE / 'venv' / 'bin'}:{os.environ['PATH']}",
        "MYSQLCLIENT_CFLAGS": f"-I{root}/include/mariadb",
        "MYSQLCLIENT_LDFLAGS": f"-L{LIBRARIES} -lmariadb",
        "OPENSSL_PATH": str(root),
        "CFLAGS": f"-I{root}/include -I{root}/include/x86_64-linux-gnu",
        "LDFLAGS": f"-L{LIBRARIES}",
    }
    remedy = "needs a C compiler, and a package index"
    _run([*pip, "-r", str(HERE / "build.txt")], PLACE, building, remedy=remedy)
    _run([*pip, "-r", str(HERE / "requirements.txt")], PLACE, building, remedy=remedy)
    _run(
        [*pip, "--no-build-isolation", "-r", str(HERE / "m2crypto.txt")],
        PLACE,
        building,
        remedy=remedy,
    )


def _run(
    argv: Sequence[str], at: Path, variables: Mapping[str, str] | None = None, *, remedy: str = ""
) -> None:
    done = subprocess.run(
        argv, cwd=at, env={**os.environ, **(variables or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(argv[:4])} failed ({remedy}):\n{(done.stdout + done.stderr)[-2_000:]}")


if __name__ == "__main__":
    install()
