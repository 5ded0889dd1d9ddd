"""File systems of a JSDL document: where the paths lie that name one."""

import posixpath
from collections.abc import Mapping
from typing import Final

JOB_DIRECTORY: Final = ("WORKINGDIR", "WORKDIR", "WORKING")
"""Names that mean the job's own directory."""
OUTSIDE: Final = ("HOME", "SCRATCH", "TMP")
"""Names that mean another place at the site, which only a mount point tells."""


class UnknownFileSystem(ValueError):  # noqa: N818 - a fault of a document
    """The error of a path on a file system whose place is not known."""


class FileSystems:
    """The file systems that a document describes."""

    def __init__(self, mounts: Mapping[str, str] | None = None) -> None:
        self._mounts = {"ROOT": "/"} | dict(mounts or {})

    def path(self, name: str | None, path: str) -> str:
        """Return a path on the file system of that name, as seen from the job's directory. Raises UnknownFileSystem."""
        if name is None or name.upper() in JOB_DIRECTORY:
            return path
        mount = self._mounts.get(name)
        if mount is None or (not mount and name.upper() in OUTSIDE):
            raise UnknownFileSystem(f"lies on the file system {name}, of which no mount point is known")
        return posixpath.join(mount, path.lstrip("/")) if mount else path
