"""What descriptions can say and no agent carries out yet: it is refused, since a job without it would be another one."""

from wms.jobdesc.description import JobDescription
from wms.jobdesc.problem import Problem


def not_yet(description: JobDescription) -> list[Problem]:
    """Return a problem for each field that would be ignored."""
    said = {
        "inputs": ("are not fetched by URL yet", "send the files: wms submit --input"),
        "outputs": ("are not sent to URLs yet", "keep the files: wms submit --output"),
        "stdin": ("is not read yet", "let the program open the file: sh -c 'program < file'"),
    }
    return [
        Problem(place=field, message=message, remedy=remedy)
        for field, (message, remedy) in said.items()
        if getattr(description, field)
    ]
