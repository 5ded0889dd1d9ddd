"""The files of a workflow's job when sites do not share the workflow's directory: inputs to send with it, and outputs to fetch."""

import glob
import os
import shutil
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from wms.client.files import files_below
from wms.errors import Rejected

PRINTED = ("stdout.txt", "stderr.txt")
"""The files with the standard streams that every job returns besides its outputs."""


def below(path: str, work: Path) -> str:
    """Return a path relative to the directory of the workflow; raise Rejected if it is outside of it."""
    name = PurePosixPath(os.path.normpath(path))
    if name.is_absolute() and name.is_relative_to(work):
        name = name.relative_to(work)
    if name.is_absolute() or ".." in name.parts:
        raise Rejected(
            "OUTSIDE_FILE",
            f"{path} is outside of the workflow's directory, and cannot go to a site",
            "move it below, or share the directory with the sites: --shared-fs-usage input-output ...",
        )
    return str(name)


def present(paths: Iterable[str], work: Path) -> dict[str, Path | bytes]:
    """Return the existing files at these paths, by their names in the job's directory.

    For a directory these are all files and empty directories below it.
    """
    found: dict[str, Path | bytes] = {}
    for name in sorted({below(str(path), work) for path in paths}):
        path = work / name
        if path.is_dir():
            found.update(files_below(path, name))
        elif path.is_file():
            found[name] = path
    return found


def patterns(paths: Iterable[object], work: Path) -> tuple[str, ...]:
    """Return the patterns of output sandboxes for outputs of Snakemake. A directory comes with all that is in it."""
    return tuple(glob.escape(below(str(path), work)) for path in paths)


def put(fetched: Path, work: Path) -> None:
    """Move fetched files into the directory of the workflow. Their times are set to now, because a site's clock may be wrong.

    The job's standard output and error are not moved.
    """
    for path in sorted(fetched.rglob("*")):
        if path.parent == fetched and path.name in PRINTED:
            continue
        place = work / path.relative_to(fetched)
        if path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            os.utime(path)
            shutil.move(path, place)
