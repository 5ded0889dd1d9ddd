"""Input files of a submission: files for all jobs of a description, and files for single jobs of an array."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from wms.cli.printing import note

if TYPE_CHECKING:
    from wms.client import Client
    from wms.client.job_inputs import Members
    from wms.jobdesc import JobDescription, SandboxRef

NOTES = 3


class Inputs(msgspec.Struct, frozen=True):
    """The input files of the jobs of one description: those of all its jobs, and those of single jobs."""

    shared: "Members"
    """The files that all jobs get, by their names in the job's directory."""
    own: "list[tuple[str, ...]]"
    """For each job of an array, the paths of the files that only this job gets; empty if no job has any."""

    def names(self) -> set[str]:
        """Return the names of all input files, shared or of single jobs."""
        return {*self.shared, *(path for paths in self.own for path in paths)}


def inputs_of(
    descriptions: "Sequence[JobDescription]", paths: list[str], files: "Sequence[Members]" = ()
) -> list[Inputs]:
    """Return the input files of each description. `paths` are given by options for all descriptions, `files` by the document of each.

    A job's program is among its files if it is a local file. Raise Rejected if a file is missing.
    """
    from wms.cli.job_descriptions import local_namesake, unknown_placeholders
    from wms.client.files import members
    from wms.client.job_inputs import is_own, paths_of_jobs
    from wms.client.sent_program import program_to_send

    odd = dict.fromkeys(filter(None, map(unknown_placeholders, descriptions)))
    for each_note in list(odd)[:NOTES]:
        note(each_note)
    packed = dict[tuple[str, ...], "Members"]()
    programs = dict[tuple[str, bool], Path | None]()
    found = []
    for each, named in zip(descriptions, files or [{}] * len(descriptions), strict=True):
        own = tuple(path for path in paths if is_own(path, each)) if paths else ()
        common = tuple(path for path in paths if path not in own)
        if common not in packed:
            packed[common] = members(common)
        key = (each.executable, bool(each.input_sandbox))
        if key not in programs:
            programs[key] = program_to_send(each, [*packed[common], *named])
            if warning := local_namesake(each):
                note(warning)
        shared = packed[common] if (path := programs[key]) is None else {**packed[common], str(path): path}
        shared = {**shared, **named} if named else shared
        found.append(Inputs(shared, paths_of_jobs(own, each) if own else []))
    return found


async def with_inputs(
    client: "Client", descriptions: "Sequence[JobDescription]", inputs: Sequence[Inputs]
) -> "list[JobDescription]":
    """Upload the input files, each distinct archive once. Return the descriptions with references to their archives."""
    from msgspec.structs import replace

    from wms.client.job_inputs import with_archives

    own = await _upload_own(client, [paths for each in inputs for paths in each.own])
    refs = dict[tuple[tuple[str, Path | bytes], ...], "SandboxRef"]()
    ready = []
    for description, each in zip(descriptions, inputs, strict=True):
        names = tuple(each.shared.items())
        if names and names not in refs:
            refs[names] = await client.upload(each.shared)
        if names:
            description = replace(description, input_sandbox=(*description.input_sandbox, refs[names]))  # noqa: PLW2901
        ready.append(
            with_archives(description, [own[paths] for paths in each.own]) if each.own else description
        )
    return ready


async def _upload_own(
    client: "Client", paths: "list[tuple[str, ...]]"
) -> "dict[tuple[str, ...], SandboxRef]":
    from wms.cli.progress import count_bar

    with count_bar("uploading input files", len(set(paths))) as step:
        return await client.upload_each(paths, lambda _done, _total: step())
