"""The files by URL of jobs that are sent directly: moved by their element's middleware, under the site's rules, or refused."""

from collections.abc import Iterator

from wms.dispatch.direct import DirectDispatcher, StagedFiles, StagedInput, StagedOutput, StagingDispatcher
from wms.dispatch.port import Dispatcher
from wms.errors import Rejected
from wms.jobdesc.description import JobDescription
from wms.jobdesc.staged_file import InputFile, OutputFile
from wms.transfer import selects
from wms.transfer.access_rules import AccessRules
from wms.transfer.file_url import FileUrl

NOT_STAGED = "nothing moves files by URL there for a job that is sent directly"


def direct_fault(description: JobDescription, dispatcher: Dispatcher, access: AccessRules) -> str:
    """Return why a job cannot be sent directly through a dispatcher, or why its files by URL cannot be moved; empty if it can.

    `description` is that of this one job, with the values of a job array filled in. `access` are the site's rules on URLs.
    """
    if not isinstance(dispatcher, DirectDispatcher):
        return "no jobs are sent there directly"
    try:
        staged_files(description, dispatcher, access)
    except Rejected as fault:
        return fault.message
    return ""


def staged_files(description: JobDescription, dispatcher: Dispatcher, access: AccessRules) -> StagedFiles:
    """Return the files by URL that the dispatcher's middleware is to move for a job.

    For each input, the first replica that the middleware can fetch is chosen. Raise Rejected (URL_REFUSED) if a file cannot be
    moved, or the site's rules (`access`) exclude its URL.
    """
    if not description.inputs and not description.outputs:
        return StagedFiles()
    if not isinstance(dispatcher, StagingDispatcher):
        raise _refused(NOT_STAGED)
    return StagedFiles(
        inputs=tuple(_input(each, dispatcher, access) for each in description.inputs),
        outputs=tuple(
            one for each in description.outputs for one in _outputs(each, description, dispatcher, access)
        ),
        success_exit_codes=tuple(description.success_exit_codes),
    )


def _input(file: InputFile, dispatcher: StagingDispatcher, access: AccessRules) -> StagedInput:
    faults = {url: _fault(file.name, url, file.checksum, dispatcher, access) for url in file.sources}
    url = next((url for url, fault in faults.items() if not fault), None)
    if url is None:
        raise _refused(f"its input {file.name}: {'; '.join(faults.values())}")
    return StagedInput(
        name=file.name, url=url, size=file.size, checksum=file.checksum, executable=file.executable
    )


def _outputs(
    file: OutputFile, description: JobDescription, dispatcher: StagingDispatcher, access: AccessRules
) -> Iterator[StagedOutput]:
    kept = any(selects(each, file.name) for each in description.output_sandbox)
    if file.optional:
        raise _refused(
            f"its output {file.name} is optional, and the middleware there fails a job that lacks it"
        )
    for url in file.targets:
        if fault := _fault(file.name, url, "", dispatcher, access):
            raise _refused(f"its output {file.name}: {fault}")
        yield StagedOutput(name=file.name, url=url, kept=kept)


def _fault(name: str, url: str, checksum: str, dispatcher: StagingDispatcher, access: AccessRules) -> str:
    try:
        access.check(FileUrl.parse(url))
    except Rejected as fault:
        return fault.message
    return dispatcher.staging_fault(name, url, checksum)


def _refused(text: str) -> Rejected:
    return Rejected("URL_REFUSED", text, "put the files into the sandboxes, or leave out `dispatch`")
