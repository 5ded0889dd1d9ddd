"""Builds the job agent as one file: its own modules, and wheels for each Python from the hashed lock file.

The same sources and lock file give the same bytes.
"""

import hashlib
import importlib.metadata
import io
import json
import lzma
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import grimp
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy.agent_file.unpacking import CONTENT

PYTHONS = ("3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")
"""The processor architectures for which a file can be built, by their names in `uname -m`. Each file is for one."""
GLIBC = (2, 28)
PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014", "manylinux_2_12", "manylinux2010")
"""The platforms of the wheels that are taken, without the machine: all run with glibc 2.28."""
AGENT = "services.job_agent"
DIRECT = ("aiohttp", "aiokafka", "cramjam", "cryptography", "msgspec", "structlog")
"""The distributions that the agent imports by itself. Those that they need come with them."""
BYTES_LIMIT = 15_000_000
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all members. Zip files know no earlier one."""
_COMPRESSED = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 26}]
"""One window over all modules: those for three Pythons are much alike."""

Members = dict[str, bytes]


class Target(NamedTuple):
    """What wheels are chosen for: a version of Python, such as `3.11`, and a machine, one of `MACHINES`."""

    version: str
    machine: str


def build(
    tree: Path, to: Path, wheels: Path, pythons: Sequence[str] = PYTHONS, machine: str = MACHINES[0]
) -> int:
    """Write the file of the sources in `tree`, for these Pythons on this machine, to the path `to`, and return its size in bytes.

    Wheels are downloaded into the directory `wheels`, unless those that the lock file names are there. Raise ValueError if the file is over 15 MB, CalledProcessError if a
    wheel cannot be had.
    """
    names = closure(DIRECT)
    found = {version: _wheels(tree, wheels, Target(version, machine), names) for version in pythons}
    content = packed({**_merged(found), **{f"common/{name}": data for name, data in own(tree).items()}})
    facts = {
        "digest": hashlib.sha256(content).hexdigest(),
        "pythons": list(pythons),
        "machine": machine,
        "glibc": GLIBC,
    }
    here = Path(__file__).parent
    made = zipped(
        {
            "__main__.py": (here / "start.py").read_bytes(),
            "deploy/__init__.py": b"",
            "deploy/agent_file/__init__.py": b"",
            "deploy/agent_file/unpacking.py": (here / "unpacking.py").read_bytes(),
            "facts.json": json.dumps(facts, sort_keys=True).encode("ascii"),
            CONTENT: content,
        }
    )
    if len(made) > BYTES_LIMIT:
        raise ValueError(f"the file has {len(made):,} bytes, over the limit of {BYTES_LIMIT:,}")
    to.write_bytes(made)
    to.chmod(0o755)
    return len(made)


def closure(names: Iterable[str]) -> list[str]:
    """Return distributions with all that they need on Linux, without extras, sorted. They must be installed here."""
    found: set[str] = set()
    new = {canonicalize_name(name) for name in names}
    while new:
        found |= new
        needed = (need for name in new for need in importlib.metadata.requires(name) or ())
        new = {canonicalize_name(each.name) for each in map(Requirement, needed) if _holds(each)} - found
    return sorted(found)


def _holds(need: Requirement) -> bool:
    """Return whether a requirement holds for one of the Pythons."""
    marker = need.marker
    return marker is None or any(
        marker.evaluate({"extra": "", "python_version": version, "python_full_version": f"{version}.0"})
        for version in PYTHONS
    )


def locked(lock: str, names: Iterable[str]) -> str:
    """Return the lines of a lock file for these distributions, with their hashes. Raise ValueError if one is missing."""
    parts = re.split(r"\n(?=\S)", lock.strip())
    by_name: dict[str, str] = {
        canonicalize_name(re.split(r"[=\[ ;]", part, maxsplit=1)[0]): part for part in parts
    }
    missing = [name for name in names if name not in by_name]
    if missing:
        raise ValueError(f"the lock file has no {', '.join(missing)}")
    return "\n".join(by_name[name] for name in names) + "\n"


def _wheels(tree: Path, to: Path, target: Target, names: list[str]) -> Members:
    """Return the files of the wheels of these distributions for one Python on one machine, by their paths."""
    place = to / target.machine / target.version
    place.mkdir(parents=True, exist_ok=True)
    wanted = locked((tree / "requirements.lock").read_text(), names)
    complete = place / "complete.txt"
    if not complete.exists() or complete.read_text() != wanted:
        _download(place, wanted, target)
        complete.write_text(wanted)
    return {name: data for wheel in sorted(place.glob("*.whl")) for name, data in _files(wheel)}


def _download(place: Path, wanted: str, target: Target) -> None:
    """Download the wheels that these lines of a lock file name, in place of all that were there."""
    for old in place.iterdir():
        old.unlink()
    lines = place / "wanted.txt"
    lines.write_text(wanted)
    platforms = (f"--platform={name}_{target.machine}" for name in PLATFORMS)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
            *("--require-hashes", "--no-deps", "--only-binary=:all:", "--implementation=cp", *platforms),
            *(f"--python-version={target.version}", f"--requirement={lines}", f"--dest={place}"),
        ],
        check=True,
    )


def _files(wheel: Path) -> Iterable[tuple[str, bytes]]:
    """Yield what of a wheel is used on a node, or must go with it: modules, metadata and licences."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            path = PurePosixPath(name)
            about = path.parts[0].endswith(".dist-info")
            if (path.name != "RECORD" and not name.endswith("/")) if about else _is_module(path):
                yield name, archive.read(name)


def _is_module(path: PurePosixPath) -> bool:
    return path.suffix == ".py" or ".so" in path.suffixes


def _merged(by_version: Mapping[str, Members]) -> Members:
    """Return all files, below `common` if they are the same for all Pythons, else below a name for each, such as `cp311`."""
    merged: Members = {}
    for version, files in by_version.items():
        for name, data in files.items():
            same = all(others.get(name) == data for others in by_version.values())
            merged[f"{'common' if same else 'cp' + version.replace('.', '')}/{name}"] = data
    return merged


def own(tree: Path) -> Members:
    """Return the modules of this project that the agent may import, now or later, by their paths."""
    names = modules(AGENT)
    paths = (_source(tree, name) for name in names)
    return {str(path.relative_to(tree)): path.read_bytes() for path in paths}


def modules(package: str) -> set[str]:
    """Return the names of a package's modules, of all modules of this project that they import, and of the packages around those."""
    graph = grimp.build_graph("wms", "services")
    found: set[str] = set()
    new = {package, *graph.find_descendants(package)}
    while new:
        found |= new
        near = {each for name in new for each in graph.find_modules_directly_imported_by(name)}
        around = {name.rsplit(".", 1)[0] for name in new if "." in name}
        new = (near | around) - found
    return found


def _source(tree: Path, name: str) -> Path:
    path = tree.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def packed(members: Members) -> bytes:
    """Return a compressed tar file of these members. Equal members give equal bytes."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        # By their last names first, so that those for three Pythons stand side by side.
        for name in sorted(members, key=lambda name: (PurePosixPath(name).name.split(".")[0], name)):
            member = tarfile.TarInfo(name)
            member.size = len(members[name])
            archive.addfile(member, io.BytesIO(members[name]))
    return lzma.compress(target.getvalue(), format=lzma.FORMAT_XZ, filters=_COMPRESSED)


def zipped(members: Members) -> bytes:
    """Return an executable zip file of these members, which stay as they are. Equal members give equal bytes."""
    target = io.BytesIO()
    target.write(b"#!/usr/bin/env python3\n")
    with zipfile.ZipFile(target, "a") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), data)
    return target.getvalue()
