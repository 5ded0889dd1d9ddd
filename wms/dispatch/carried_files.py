"""The files of a job that is sent directly to nodes without a shared file system: one archive of inputs, and one of what the job left.

A lease that is renewed cannot be passed on to such a job. When its lease is lost, the job is cancelled. If the cancelling does not
reach it, the job runs to its end, and its report under the old epoch has no effect.
"""

import tarfile
from pathlib import Path

from wms.dispatch.direct import BEGAN, ENDED, EXIT, STDERR, STDOUT, USAGE, WORK, DirectPayload
from wms.dispatch.direct_script import direct_script
from wms.errors import Rejected

THERE, BACK = "work.tar", "out.tar"
"""The names of two archives: of the input files, and of all files that the job left."""
BACK_LIMIT = 2 * 2**30
"""How many bytes the archive of a job's output may have, packed or unpacked."""
MEMBERS_LIMIT = 100_000
_BEFORE = f"touch {BACK}\nmkdir -p {WORK} && tar -xf {THERE} -C {WORK} || exit 70\n"
_LEFT = f"{WORK} {STDOUT} {STDERR} {EXIT} {BEGAN} {USAGE} $(ls {ENDED} 2>/dev/null)"
# The element keeps the files of jobs that end well; how the program ended is among them.
_END = "set -- 0\n    "


def carried_script(
    name: str, payload: DirectPayload, *, preparation: str = "", conclusion: str = "", left_out: str = ""
) -> str:
    """Return the script of a job that unpacks its input archive where it starts, and packs its output at the end.

    `name` is written into the script for people. `preparation` are shell lines that follow the unpacking. `conclusion` are shell
    lines that follow the end of the program, whose exit code is `$1`. `left_out` names a file in the job's directory that lists
    what the output does not include; empty: nothing is left out.
    """
    excluded = f" -X {left_out}" if left_out else ""
    after = f"tar -cf {BACK}{excluded} {_LEFT}\n    {conclusion}{_END}"
    return direct_script(name, payload, leased=False, before=_BEFORE + preparation, after=after)


def pack_inputs(inputs: Path, archive: Path) -> None:
    """Write the files in the directory `inputs` into an uncompressed tar file. The call blocks."""
    with tarfile.open(archive, "w") as tar:
        for path in sorted(inputs.iterdir()):
            tar.add(path, path.name)


def unpack_outputs(archive: Path, to: Path) -> None:
    """Unpack the archive of a job's output into the directory `to`; only files and directories below it are made. The call blocks.

    Raise Rejected for an archive that is too large, damaged or unsafe.
    """
    to.mkdir(parents=True, exist_ok=True)
    size = 0
    try:
        with tarfile.open(archive, "r:") as tar:
            for number, member in enumerate(tar, start=1):
                size += member.size
                if number > MEMBERS_LIMIT or size > BACK_LIMIT:
                    raise Rejected(
                        "OUTPUT_FAILED", "the job left more files, or more bytes, than are fetched"
                    )
                if member.isreg() or member.isdir():
                    tar.extract(member, to, filter="data")
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise Rejected("OUTPUT_FAILED", f"what the job left cannot be unpacked: {error}") from None
