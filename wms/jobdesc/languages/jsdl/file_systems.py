"""File systems of a JSDL document, and the paths on them."""

import posixpath
from collections.abc import Mapping
from typing import Final

JOB_DIRECTORY: Final = ("WORKINGDIR", "WORKDIR", "WORKING")
"""Names of file systems that mean the job's own directory. It is the scratch space that a job has, too."""
OUTSIDE: Final = ("HOME", "TMP")
"""Names of file systems that are elsewhere at the site. The document must give a mount point for them."""


class UnknownFileSystem(ValueError):  # noqa: N818 - a fault of a document
    """The error for a path on a file system for which the document gives no mount point."""


class FileSystems:
    """The file systems that a document describes: mount points by name."""

    def __init__(self, mounts: Mapping[str, str] | None = None) -> None:
        self._mounts = {"ROOT": "/"} | dict(mounts or {})

    def path(self, name: str | None, path: str) -> str:
        """Return a path on the file system of that name (None: the job's directory), as seen from the job's directory.

        Raise UnknownFileSystem if the file system has no known mount point.
        """
        mount = self._mounts.get(name or "")
        if name is None or name.upper() in JOB_DIRECTORY or (name.upper() == "SCRATCH" and not mount):
            return path
        if mount is None or (not mount and name.upper() in OUTSIDE):
            raise UnknownFileSystem(f"lies on the file system {name}, of which no mount point is known")
        return posixpath.join(mount, path.lstrip("/")) if mount else path
