"""Conflicts between the fields of a description about files by URL, preferences and placement."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from msgspec import convert, structs

from wms.jobdesc.array import is_array, jobs_in
from wms.jobdesc.description import JobDescription
from wms.jobdesc.preferences import JobPreferences
from wms.jobdesc.rules import Finding
from wms.jobdesc.staged_file import Inputs, Outputs

TOGETHER_LIMIT = 20
"""How many jobs of an array may be co-allocated, that is start at the same time."""


def typed(description: JobDescription) -> JobDescription:
    """Return the description with structs in its fields `inputs`, `outputs` and `preferences`, where it has plain tables (dicts).

    Only a Python program may have put such tables there; readers of documents make structs. Raise ValidationError for a malformed table.
    """
    if description.preferences is None and not description.inputs and not description.outputs:
        return description
    return structs.replace(
        description,
        inputs=convert(description.inputs, Inputs),
        outputs=convert(description.outputs, Outputs),
        preferences=convert(description.preferences, JobPreferences | None),
    )


def _doubled_names(description: JobDescription) -> Iterator[Finding]:
    yield from _doubled("inputs", (each.name for each in description.inputs))
    yield from _doubled("outputs", (each.name for each in description.outputs))


def _doubled(field: str, names: Iterable[str]) -> Iterator[Finding]:
    for name, count in Counter(names).items():
        if count > 1:
            yield (f".{field}", f'names the file "{name}" {count} times', "name each file once")


def _start_window(description: JobDescription) -> Iterator[Finding]:
    wanted = description.preferences
    if wanted is None:
        return
    for end in ("earliest_start", "latest_start"):
        if getattr(wanted, end) is not None and getattr(wanted, f"{end}_after") is not None:
            yield (f".preferences.{end}_after", f"stands beside {end}", "say one of them")
    if wanted.earliest_start and wanted.latest_start and wanted.earliest_start > wanted.latest_start:
        yield (".preferences.latest_start", "is before earliest_start", "say a later time")


def _coallocation(description: JobDescription) -> Iterator[Finding]:
    if not description.coallocate:
        return
    if not is_array(description):
        yield (".coallocate", "is said of a single job", "say how many jobs start together: array = 3")
    elif not 2 <= jobs_in(description) <= TOGETHER_LIMIT:
        yield (".coallocate", f"is said of {jobs_in(description):,} jobs", f"say 2 to {TOGETHER_LIMIT}")
    if description.preferences is None:
        yield (".coallocate", "is said without preferences", "add them: reserved slots start together")
    elif not description.preferences.reservation:
        yield (".coallocate", "needs reservations", "leave preferences.reservation out")
    if description.retries:
        yield (
            ".retries",
            "stands beside coallocate: one job cannot start again with the others",
            "leave one out",
        )


BROKERING: tuple[Callable[[JobDescription], Iterator[Finding]], ...] = (
    _doubled_names,
    _start_window,
    _coallocation,
)
