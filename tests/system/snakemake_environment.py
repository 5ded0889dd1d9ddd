"""A Python with Snakemake, our plugin and all that the tests run with. It is made once, since Snakemake pins what other tools want newer."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).parent / "snakemake" / "requirements.txt"
PLUGIN = ROOT / "deploy" / "snakemake"
SECONDS = 600


def snakemake_bin() -> Path:
    """Return the directory with `snakemake` and its `python`."""
    files = [REQUIREMENTS, *sorted(PLUGIN.rglob("*.py")), PLUGIN / "pyproject.toml"]
    content = b"".join(each.read_bytes() for each in files) + sys.version.encode()
    place = ROOT / ".cache" / f"snakemake-{hashlib.sha256(content).hexdigest()[:16]}"
    place.parent.mkdir(exist_ok=True)
    with Path(f"{place}.lock").open("w") as lock:  # several processes run tests
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "made").exists():
            shutil.rmtree(place, ignore_errors=True)
            _make(place)
            (place / "made").touch()
    return place / "bin"


def _make(place: Path) -> None:
    _run(sys.executable, "-m", "venv", str(place))
    pip = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run(*pip, "--require-hashes", "--requirement", str(REQUIREMENTS))
    (packages,) = place.glob("lib/python*/site-packages")
    # The packages of this Python come after its own.
    (packages / "zz_wms.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    _run(*pip, "--no-deps", "--no-build-isolation", str(PLUGIN))


def _run(*argv: str) -> None:
    subprocess.run(argv, check=True, timeout=SECONDS)
