"""The program of a job that is a file of this machine, such as `./fit`, which goes along with the job."""

import os
from collections.abc import Sequence
from pathlib import Path

from wms.errors import Rejected, shown
from wms.jobdesc.description import JobDescription


def brings_files(description: JobDescription) -> bool:
    """Return whether the description says where files of its job come from. Its program may be among them."""
    asked = description
    return bool(asked.input_sandbox or asked.inputs or asked.input_from or asked.input_parameters)


def program_to_send(description: JobDescription, carried: Sequence[str] = ()) -> Path | None:
    """Return the local file to send as the description's executable; None if none is to be sent.

    A file is sent if the executable is a relative path with a slash. `carried` are names of files that are sent in any case. Raise
    Rejected if the file is missing, lies outside the current directory, or is not executable.
    """
    name = description.executable
    if name.startswith("/") or "/" not in name:
        return None
    plain = os.path.normpath(name)
    if plain.split("/")[0] == "..":
        raise Rejected(
            "PROGRAM_OUTSIDE",
            f"{shown(name, 200)} lies outside this directory, and a job has nothing above its own",
            "go to its directory first, or send it as an input file and run ./its-name",
        )
    path = Path(plain)
    if plain in carried or (not path.exists() and description.input_sandbox):
        return None
    if not path.is_file():
        raise Rejected(
            "NO_SUCH_FILE",
            f"there is no program {shown(name, 200)} here to send along",
            "give a path from this directory, an absolute path at the site, or a bare name to look up there",
        )
    if not os.access(path, os.X_OK):
        raise Rejected(
            "NOT_EXECUTABLE",
            f"{shown(name, 200)} may not be executed",
            f"chmod +x {shown(name, 200)}, or send it as an input file and run it by its interpreter",
        )
    return path
