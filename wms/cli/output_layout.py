"""Where fetched outputs go on this machine: a directory for each job, or paths made from a pattern."""

import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from wms.errors import Rejected, shown
from wms.jobdesc.array import PLACEHOLDER

if TYPE_CHECKING:
    from wms.client import Client
    from wms.client.files import Fetched
    from wms.messages.replies import JobDetail


class OutputLayout:
    """Fetches outputs into the directory `to`, and chooses the path of each file. Two files never get the same path.

    Without a pattern, each job has a directory named by its id. With `flat`, `/` in file names becomes `_`. The pattern is that of
    `wms output --pattern`, with placeholders such as {id} and {file}. `overwrite` allows existing files to be replaced. Only files
    whose paths in the output match one of the patterns `only` are kept; empty: all.
    """

    def __init__(
        self, to: Path, pattern: str, *, flat: bool, overwrite: bool, only: Sequence[str] = ()
    ) -> None:
        self._to = to
        self._pattern = pattern
        self._flat = flat
        self._only = only
        self._overwrite = overwrite
        self._taken: dict[Path, int] = {}
        """For each path that was written, the id of the job whose file it is."""

    async def fetch(self, client: "Client", job_id: int) -> "Fetched":
        """Fetch one job's files, all or none.

        Raise Rejected if the job has no output, or if a path is invalid, leads out of the directory, or belongs to another file.
        """
        if not (self._pattern or self._only):
            return await client.output(job_id, self._to / str(job_id), overwrite=self._overwrite)
        from msgspec.structs import replace

        detail = await client.show(job_id)
        self._to.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{job_id}.", dir=self._to) as aside:
            whole = Path(aside, "output")
            fetched = await client.output(job_id, whole)
            targets = self._targets(detail, whole)
            size = sum(source.stat().st_size for source in targets)
            for source, target in targets.items():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(source, target)
        return replace(fetched, directory=str(self._to), files=len(targets), bytes=size)

    def _targets(self, detail: "JobDetail", whole: Path) -> dict[Path, Path]:
        """Return the target path of each file that was fetched into the directory `whole`, by the file's present path.

        Raise Rejected if two files would get the same path, or a path is invalid or exists.
        """
        files = sorted(Path(folder, name) for folder, _, names in os.walk(whole) for name in names)
        pattern = self._pattern or "{id}/{file}"
        names = {file: str(file.relative_to(whole)) for file in files}
        found = {
            file: target_of(self._to, pattern, detail, name, flat=self._flat)
            for file, name in names.items()
            if not self._only or any(fnmatchcase(name, each) for each in self._only)
        }
        if not found:
            raise Rejected("NO_OUTPUT", f"job {detail.job.job_id} kept no file of {', '.join(self._only)}")
        for target in found.values():
            other = self._taken.setdefault(target, detail.job.job_id)
            if other != detail.job.job_id or len(set(found.values())) < len(found):
                raise Rejected(
                    "TWO_FILES", f"several files would be {target}", "put {id} and {file} into --pattern"
                )
            if target.exists() and not self._overwrite:
                raise Rejected("OUTPUT_EXISTS", f"{target} is there already", "--overwrite replaces it")
        return found


def target_of(to: Path, pattern: str, detail: "JobDetail", file: str, *, flat: bool = False) -> Path:
    """Return the path below `to` at which a job's output file is stored. `file` is its path within the output.

    If `flat` is True, `/` in `file` becomes `_`. Raise Rejected if the pattern names a field that the job lacks, or leads out of `to`.
    """
    values: Mapping[str, str] = {
        **{name: _part(value) for name, value in detail.parameters.items()},
        "id": str(detail.job.job_id),
        "name": _part(detail.job.name),
        "group": _part(detail.job.job_group),
        "n": str(detail.array_index or 0),
        "file": file.replace("/", "_") if flat else file,
    }
    unknown = [name for _, name in PLACEHOLDER.findall(pattern) if name and name not in values]
    if unknown:
        raise Rejected(
            "BAD_OPTION",
            f"--pattern: job {detail.job.job_id} has no {{{shown(unknown[0], 60)}}}",
            f"it has {', '.join(f'{{{name}}}' for name in sorted(values))}",
        )
    path = os.path.normpath(PLACEHOLDER.sub(lambda found: values.get(found[2], found[0]), pattern))
    if path.startswith(("/", "../")) or path in (".", ".."):
        raise Rejected(
            "BAD_OPTION", f"--pattern leads out of {to}: {shown(path, 200)}", "begin it with a name"
        )
    return to / path


def _part(value: str) -> str:
    """Return a text as one component of a path. `/` and unprintable characters become `_`, as do an empty text, `.` and `..`."""
    plain = "".join("_" if c == "/" or not c.isprintable() else c for c in value)
    return plain if plain not in ("", ".", "..") else "_"
