"""`wms convert`: job descriptions from one language into another, with a report on what was kept, translated or lost."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from wms.cli.options import Flag
from wms.cli.printing import note, show_json
from wms.cli.session import OK

if TYPE_CHECKING:
    from wms.jobdesc.loss_report import LossReport

Target = Literal["toml", "json", "jsdl", "xrsl"]


def convert(
    file: Annotated[str, Parameter(help="a file of job descriptions, or - for standard input")],
    /,
    *,
    to: Target = "toml",
    lenient: Annotated[
        Flag, Parameter(help="leave out what cannot be converted, though it may change the job")
    ] = False,
    json: Annotated[Flag, Parameter(help="print document and report as JSON")] = False,
) -> int:
    """Convert job descriptions into another language.

    The source's language is recognised by its content: JSDL, the JDL of DIRAC and gLite, xRSL, activity descriptions, HTCondor's submit files, TOML or JSON. The document goes to standard output. A table on standard error lists what was translated or left out, with its line. What cannot be converted and may change the job is refused.

    For example:
      wms convert job.jsdl
      wms convert job.jdl --to jsdl > job.jsdl
      wms convert job.sub --to json --lenient
      wms convert jobs.toml --to xrsl --json
    """
    import sys

    from wms.cli.description_files import jobs_of, translation_of, with_files
    from wms.cli.job_descriptions import bytes_of
    from wms.jobdesc.languages import catalogue

    source = translation_of(file, bytes_of(file))
    written = with_files(catalogue.write(jobs_of(file, source, lenient=lenient), to), source)
    text = written.whole(lenient=lenient)
    if json:
        show_json(_record(source.language, to, text, source.report, written.report))
        return OK
    sys.stdout.write(text)
    sys.stdout.flush()
    _note(file, source.report, written.report, to)
    return OK


def _record(language: str, to: str, text: str, read: "LossReport", written: "LossReport") -> dict[str, Any]:
    return {"from": language, "to": to, "document": text, "read": read.entries, "written": written.entries}


def _note(file: str, read: "LossReport", written: "LossReport", to: str) -> None:
    from wms.cli.description_files import note_entries

    for what, report in ((file, read), (f"as {to}", written)):
        if report.changes:
            note(f"{what}: {report.in_short()}")
            note_entries(report.changes)
