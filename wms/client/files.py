"""A user's files and sandboxes: the names of input files in a sandbox, and the directories of fetched outputs."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import msgspec

from wms.errors import Rejected
from wms.messages.replies import JobDetail
from wms.transfer import Objects, download

MEMBERS_LIMIT = 10_000


class Fetched(msgspec.Struct, frozen=True, kw_only=True):
    """The output sandbox of one job, as fetched into a directory."""

    job_id: int
    directory: str
    files: int
    bytes: int


def members(paths: Iterable[str | Path]) -> dict[str, Path]:
    """Return the files to pack for these files and directories, by their names in the sandbox.

    A relative path keeps its name, so that a command line that works here works in the job. Any other path is named by its
    last component. Raise Rejected if a file is missing, two would have the same name, or there are too many.
    """
    found: dict[str, Path] = {}
    for given in paths:
        path = Path(given)
        for name, each in files_below(path, _name(path)):
            if found.setdefault(name, each) != each:
                raise Rejected("TWO_FILES", f"{found[name]} and {each} would both be {name}", "rename one")
            if len(found) > MEMBERS_LIMIT:
                raise Rejected(
                    "TOO_MANY_FILES", f"more than {MEMBERS_LIMIT:,} files to send along", "pack them into one"
                )
    return found


def _name(path: Path) -> str:
    name = PurePosixPath(os.path.normpath(path))
    if name.is_absolute() or ".." in name.parts:
        name = PurePosixPath(path.resolve().name)
    return str(name)


def files_below(path: Path, name: str) -> Iterable[tuple[str, Path]]:
    """Return a file with its name, or all files and empty directories below a directory, which gets the name.

    Links are followed, but not one to a directory that it lies in. Raise Rejected if there is none.
    """
    if not path.exists():
        raise Rejected("NO_SUCH_FILE", f"there is no file {path}", "give the path of one that is there")
    if not path.is_dir():
        yield name, path
        return
    above: dict[str, frozenset[str]] = {str(path): frozenset()}
    for directory, below, files in os.walk(path, followlinks=True):
        here = above.pop(directory) | {os.path.realpath(directory)}
        below[:] = sorted(each for each in below if os.path.realpath(Path(directory, each)) not in here)
        above |= {os.path.join(directory, each): here for each in below}  # noqa: PTH118 - as os.walk has it
        for each in sorted(files) or ([] if below else ["."]):
            whole = Path(directory, each)
            yield os.path.normpath(f"{name}/{whole.relative_to(path)}"), whole


def output_of(job: JobDetail) -> str:
    """Return the digest of the output sandbox of the job's last attempt that has one. Raise Rejected if no attempt has one."""
    kept = [attempt.output_sha256 for attempt in job.attempts if attempt.output_sha256]
    if kept:
        return kept[-1]
    asked = job.description.get("output_sandbox")
    why = (
        f"it is {job.job.state}, and none of its attempts has stored any"
        if asked
        else "it asked to keep no files"
    )
    raise Rejected(
        "NO_OUTPUT",
        f"job {job.job.job_id} has no output sandbox: {why}",
        "" if asked else "submit with --output PATTERN; `wms logs` shows what it printed",
    )


async def fetch(store: Objects, job_id: int, digest: str, dest: Path, *, overwrite: bool) -> Fetched:
    """Unpack a job's output sandbox into the directory `dest`, all its files or none, and return what was fetched.

    If `dest` exists and `overwrite` is True, files of the same names are replaced and all others kept. Raise Rejected if
    `dest` exists and `overwrite` is False, or if it cannot be written.
    """
    with _aside(dest, overwrite=overwrite) as whole:
        size = await download(store, digest, whole)
        files = await asyncio.to_thread(_move, whole, dest)
    return Fetched(job_id=job_id, directory=str(dest), files=files, bytes=size)


@contextlib.contextmanager
def _aside(dest: Path, *, overwrite: bool) -> Iterator[Path]:
    if dest.exists() and not (overwrite and dest.is_dir()):
        raise Rejected("OUTPUT_EXISTS", f"{dest} is there already", "--overwrite replaces its files")
    try:
        dest.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{dest.name}.", dir=dest.parent) as aside:
            whole = Path(aside, "output")
            whole.mkdir()
            yield whole
    except OSError as error:
        raise Rejected(
            "OUTPUT_NOT_WRITTEN", f"cannot write {dest}: {error.strerror}", "choose another directory"
        ) from None


def _move(whole: Path, dest: Path) -> int:
    files = sum(len(names) for _, _, names in os.walk(whole))
    if dest.exists():
        shutil.copytree(whole, dest, dirs_exist_ok=True)
    else:
        whole.replace(dest)
    return files
