"""JSDL documents for tests, of parts."""

from wms.jobdesc import JobDescription
from wms.jobdesc.languages.jsdl.definition import read_jsdl
from wms.jobdesc.languages.translation import Translation

SPACES = (
    'xmlns="http://schemas.ggf.org/jsdl/2005/11/jsdl" xmlns:p="http://schemas.ggf.org/jsdl/2005/11/jsdl-posix" '
    'xmlns:s="http://schemas.ogf.org/jsdl/2007/01/jsdl-sweep" xmlns:f="http://schemas.ogf.org/jsdl/2007/01/jsdl-sweep/functions" '
    'xmlns:wms="urn:wms:jsdl:1" xmlns:m="http://schemas.ogf.org/jsdl/2007/02/jsdl-spmd"'
)


def document(
    program: str = "<p:Executable>/bin/x</p:Executable>", *, parts: str = "", beside: str = ""
) -> bytes:
    """Return a document with the parts of a POSIX application, further parts of the job, and what stands beside it."""
    text = f"""<JobDefinition {SPACES}><JobDescription><Application>
<p:POSIXApplication>{program}</p:POSIXApplication></Application>
{parts}</JobDescription>
{beside}</JobDefinition>"""
    return text.encode()


def fates(found: Translation) -> dict[str, tuple[str, int | None]]:
    """Return fate and line of each element."""
    return {each.element: (each.fate, each.line) for each in found.report.entries}


def only(data: bytes) -> JobDescription:
    """Return the only description of a document."""
    [found] = read_jsdl(data).jobs(lenient=True)
    return found
