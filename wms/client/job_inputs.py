"""Input files that differ from job to job of an array, as `data/{sample}.root` does.

Each distinct set of files becomes one archive in the sandbox store. The array stays one description: its parameter
`wms_input` names the archive of each job.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from wms.client.files import members
from wms.errors import Rejected
from wms.jobdesc.array import INDEX, PLACEHOLDER, as_value, filler, is_array, jobs_in
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.transfer import Objects, upload

PARAMETER = "wms_input"
ARCHIVES_LIMIT = 20_000
BYTES_LIMIT = 20 * 1024**3
UPLOADS_AT_ONCE = 4

Members: TypeAlias = dict[str, Path]
"""Files to pack, by their names in the archive."""
Progress: TypeAlias = Callable[[int, int], None]
"""The callback for upload progress, with the number of uploaded archives and the number of all archives."""


def is_own(path: str, description: JobDescription) -> bool:
    """Return whether the path depends on the job: whether it has a placeholder for a parameter or the index of the array."""
    known = {*description.parameters, INDEX} if is_array(description) else set[str]()
    return any(name in known for _, name in PLACEHOLDER.findall(path))


def paths_of_jobs(paths: Sequence[str], description: JobDescription) -> list[tuple[str, ...]]:
    """Return the paths of each job of the description, in the order of the jobs, with all placeholders replaced."""
    lists = description.parameters
    fillers = (
        filler(n, {name: values[n] for name, values in lists.items()}) for n in range(jobs_in(description))
    )
    return [tuple(map(fill, paths)) for fill in fillers]


def archives(paths: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], Members]:
    """Return the files to pack for each distinct tuple of paths.

    Raise Rejected if a file is missing, or if the archives together are too many or too large.
    """
    distinct = dict.fromkeys(paths)
    if len(distinct) > ARCHIVES_LIMIT:
        raise Rejected(
            "TOO_MANY_INPUTS",
            f"the jobs have {len(distinct):,} different inputs, more than {ARCHIVES_LIMIT:,}",
            "submit in several parts, or give several jobs one input file",
        )
    packed = {each: members(each) for each in distinct}
    size = sum(path.stat().st_size for files in packed.values() for path in files.values())
    if size > BYTES_LIMIT:
        raise Rejected(
            "INPUTS_TOO_LARGE",
            f"the input files of all jobs are {size:,} bytes, more than {BYTES_LIMIT:,}",
            "keep them where the sites can read them, or submit in several parts",
        )
    return packed


async def upload_archives(
    store: Objects, paths: Iterable[tuple[str, ...]], progress: Progress | None
) -> dict[tuple[str, ...], SandboxRef]:
    """Upload one archive for each distinct tuple of paths, and return the references by tuple.

    `progress` is called after each upload with the number of uploaded archives and the number of all (None: not called). Raise
    Rejected, and upload nothing, if a file is missing, or if the archives together are too many or too large.
    """
    packed = await asyncio.to_thread(archives, paths)
    gate = asyncio.Semaphore(UPLOADS_AT_ONCE)
    refs = dict[tuple[str, ...], SandboxRef]()

    async def one(key: tuple[str, ...], files: Members) -> None:
        async with gate:
            refs[key] = await upload(store, files)
        if progress is not None:
            progress(len(refs), len(packed))

    await asyncio.gather(*(one(*each) for each in packed.items()))
    return refs


def with_archives(description: JobDescription, refs: Sequence[SandboxRef]) -> JobDescription:
    """Return the description of an array with one of the archives `refs` for each job, in the order of the jobs.

    Raise Rejected if the description is no array, or has a parameter of the name `wms_input`.
    """
    if PARAMETER in description.parameters:
        raise Rejected("NAME_TAKEN", f"the parameter {PARAMETER} is wms's own", "rename yours")
    if not is_array(description):
        raise Rejected("NOT_A_SWEEP", "the description makes one job", "put the archive into input_sandbox")
    return msgspec.structs.replace(
        description,
        parameters={**description.parameters, PARAMETER: tuple(map(as_value, refs))},
        input_parameters=(*description.input_parameters, PARAMETER),
    )
