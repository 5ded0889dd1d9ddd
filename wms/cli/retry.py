"""`wms submit --retry-of`: new jobs from the descriptions of old ones."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wms.cli.inputs import Inputs

if TYPE_CHECKING:
    from wms.client import Client
    from wms.jobdesc import JobDescription

OF_SWEEPS = ("array", "parameters")


def check(words: Sequence[str], flags: Mapping[str, Any]) -> None:
    """Raise Rejected if a command with --retry-of also has words, or has options that it cannot have. `flags` are fields set by options."""
    from wms.errors import Rejected

    if words:
        raise Rejected(
            "BAD_OPTION", "--retry-of says already what to run", "leave out the program or the file"
        )
    if any(name in flags for name in OF_SWEEPS):
        raise Rejected(
            "BAD_OPTION",
            "--retry-of submits one job for each old one, and no sweep",
            "leave out --array, --parameter and --table",
        )


async def descriptions_of(
    client: "Client", jobs: Sequence[str], flags: Mapping[str, Any]
) -> "list[JobDescription]":
    """Return a new description for each of the old jobs `jobs`. Fields that options set, `flags`, replace those of the old job."""
    from wms.cli.job_descriptions import over
    from wms.client.selector import select

    found = await client.descriptions(select(jobs))
    return [over(each, flags) for each in found]


def inputs_beside(descriptions: "Sequence[JobDescription]", paths: Sequence[str]) -> list[Inputs]:
    """Return for each new job the input files from `paths`, which it gets in addition to those of the old job.

    Raise Rejected if a file is missing.
    """
    from wms.client.files import members

    shared = members(paths) if paths else {}
    return [Inputs(shared, []) for _ in descriptions]
