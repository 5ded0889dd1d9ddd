"""One job, or an array of jobs alike, of a submit file: its commands with all macros replaced, and the draft that they fill."""

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from wms.jobdesc.languages.condor_text import Command
from wms.jobdesc.languages.draft import JobDraft
from wms.jobdesc.languages.submit_machine import SubmitMachine
from wms.jobdesc.loss_report import Fate, Origin


class CondorJob(msgspec.Struct, frozen=True):
    """The commands of a job by their names in the catalogue, and its draft."""

    draft: JobDraft
    commands: Mapping[str, Command]
    machine: SubmitMachine | None = None

    def text(self, name: str) -> str:
        """Return the value of a command; empty if the job has none."""
        found = self.commands.get(name)
        return "" if found is None else found.value

    def is_in_container(self) -> bool:
        """Return whether the job runs in the container of an image."""
        return any(map(self.text, ("container_image", "docker_image", "my.singularityimage")))


Handler: TypeAlias = Callable[[CondorJob, Command], None]


class CatalogueEntry(msgspec.Struct, frozen=True):
    """What is done with a command: `fate` if its value can be carried out, `how` in words for the guide, and the function that does it."""

    fate: Fate
    how: str
    handler: Handler
    names: tuple[str, ...] = ()
    """Other names of the command."""


def origin_of(command: Command) -> Origin:
    """Return the element of the document that the command is."""
    return Origin(command.name, command.line)


def limit_wall_time(job: CondorJob, command: Command, seconds: int) -> None:
    """Put a limit of the wall time into the draft. The shortest of several limits holds."""
    least = min(seconds, job.draft.get("wall_time", seconds))
    job.draft.put("wall_time", least, origin_of(command), f"becomes a wall time of {seconds:,} s")


def omitted(why: str, *names: str) -> CatalogueEntry:
    """Return the entry of a command that cannot change what the job computes, reads, writes or needs."""
    return CatalogueEntry(
        "omitted", why, lambda job, command: job.draft.omitted(origin_of(command), why), names
    )


def refused(why: str, *names: str) -> CatalogueEntry:
    """Return the entry of a command that cannot be carried out, whatever its value."""
    return CatalogueEntry(
        "impossible", why, lambda job, command: job.draft.impossible(origin_of(command), why), names
    )


def only(values: tuple[str, ...], why: str, *names: str) -> CatalogueEntry:
    """Return the entry of a command that is carried out if its value is one of these, in lower case, and cannot be otherwise."""

    def handler(job: CondorJob, command: Command) -> None:
        if command.value.strip().strip('"').lower() in values:
            job.draft.kept(origin_of(command))
        else:
            job.draft.impossible(origin_of(command), why)

    told = " or ".join(f"`{each}`" for each in values if each)
    return CatalogueEntry("kept", f"{told} alone; else refused: {why}", handler, names)
