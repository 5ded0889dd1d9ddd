"""The jobs of a `queue` statement: what each command says in each job, and groups of jobs that one array can describe.

A command whose value differs from job to job is a template if its field may have placeholders, and the values change no structure (no
blanks, quotes or commas). Otherwise jobs are grouped by its values: each group becomes a description of its own.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from wms.jobdesc.array import INDEX, PLACEHOLDER
from wms.jobdesc.expansion import Expansion
from wms.jobdesc.languages.condor_macros import MacroError, MacroExpansion, calls, names_in
from wms.jobdesc.languages.condor_text import QueueStatement
from wms.jobdesc.languages.submit_machine import SubmitMachine
from wms.jobdesc.series import NUMBER_BYTES

GROUPS_LIMIT: Final = 1_000
"""How many descriptions a `queue` statement may become."""
BEGIN, END = "\ue000", "\ue001"
"""The characters around the name of a column in a template."""

PROCESS: Final = ":process"
"""The column of `$(Process)`. Variables of items have no colon in their names."""
_MARK = re.compile(f"{BEGIN}([^{BEGIN}{END}]*){END}")
_SAFE = re.compile(r"[A-Za-z0-9_./+:@%~^=-]+")
_INDEX_NAMES: Final = ("process", "procid")
OWN_NAMES: Final = frozenset({*_INDEX_NAMES, "step", "row", "itemindex"})
"""The names of the macros that HTCondor itself defines for each job."""
_CLUSTER: Final = ("cluster", "clusterid")
_TOLD: Final[Mapping[str, Callable[[SubmitMachine], str]]] = {
    **dict.fromkeys((*_CLUSTER, "submit_time"), lambda machine: str(machine.number)),
    "year": lambda machine: f"{machine.now:%Y}",
    "month": lambda machine: f"{machine.now:%m}",
    "day": lambda machine: f"{machine.now:%d}",
}
"""The macros that HTCondor itself defines, the same for all jobs."""
_FOREIGN: Final = frozenset(
    {
        "arch",
        "opsys",
        "opsysandver",
        "opsysver",
        "opsysmajorver",
        "spool",
        "submit_file",
        "node",
        "taskid",
        "jobid",
        "joblistid",
    }
    | {"islinux", "iswindows", "dagmanjobid", "request_cpus", "request_memory", "vm_memory", "vm_vcpus"}
)
"""The macros that HTCondor itself defines otherwise, unless the document does."""


class QueuedJobs:
    """The jobs of one `queue` statement. `first` is the number, `$(Process)`, of its first job in the document.

    `expansion` is what the document may still expand to: each value of a single job counts.
    """

    def __init__(
        self, queue: QueueStatement, machine: SubmitMachine | None, first: int, expansion: Expansion
    ) -> None:
        self.queue = queue
        self.count = queue.jobs
        self.first = first
        self._machine = machine
        self.expansion = expansion
        self._variables = {name.lower(): at for at, name in enumerate(queue.items.names)}
        self._columns = dict[str, Sequence[str]]()
        self._by_call = dict[str, str]()
        self._closures = dict[str, frozenset[str]]()

    # --- what a macro is in one job --------------------------------------------------------------------------------

    def _own(self, name: str, job: int) -> str | None:
        """Return the value in one job of a macro that differs from job to job; None for any other macro."""
        if (at := self._variables.get(name)) is not None:
            return self.queue.items.rows[job // self.queue.count][at]
        match name:
            case "process" | "procid":
                return str(self.first + job)
            case "step":
                return str(job % self.queue.count)
            case "row" | "itemindex":
                return str(self.queue.items.numbers[job // self.queue.count])
        return None

    def _common(self, name: str) -> str | None:
        found = self.queue.commands.get(name)
        if name in _FOREIGN and found is None:
            raise MacroError(f"$({name}) is known to HTCondor alone")
        if name not in _TOLD or (found is not None and name not in _CLUSTER):
            return None if found is None else found.value
        if self._machine is None:
            raise MacroError(f"$({name}) depends on the machine on which the document is submitted")
        return _TOLD[name](self._machine)

    def value(self, text: str, job: int) -> str:
        """Return a text with all macros replaced as in one job. Raise MacroError if one cannot be."""
        self.expansion.take(1, len(text))

        def lookup(name: str) -> str | None:
            own = self._own(name, job)
            return self._common(name) if own is None else own

        return MacroExpansion(lookup, self._machine).expand(text)

    def varies(self, text: str) -> bool:
        """Return whether a text uses, by any way, a macro that may differ from job to job."""
        return any(self._is_own(each) for each in self._closure(text))

    def _is_own(self, name: str) -> bool:
        return name in self._variables or name in OWN_NAMES or name.isupper()

    def _closure(self, text: str) -> frozenset[str]:
        if text not in self._closures:
            found, ahead = set[str](), [text]
            while ahead:
                new = names_in(ahead.pop()) - found
                found |= new
                ahead += [self.queue.commands[name].value for name in new if name in self.queue.commands]
            self._closures[text] = frozenset(found)
        return self._closures[text]

    # --- templates -------------------------------------------------------------------------------------------------

    def template(self, text: str) -> str:
        """Return a text with all macros replaced: one that differs from job to job by a mark that names its column of values."""
        if self.count == 1:
            return self.value(text, 0)
        return MacroExpansion(self._common, self._machine, self._column).expand(text)

    def _column(self, macro: str) -> str | None:
        """Return the mark of the column of a macro's values; None if the macro is the same in all jobs, or consists of others."""
        call = calls(macro)
        assert call is not None
        name = call.body.lower()
        is_plain = not call.function and call.default is None
        if is_plain and self._is_own(name):
            column = self._variables.get(name)
            key = (
                PROCESS
                if column is None and name in _INDEX_NAMES
                else name
                if column is None
                else self.queue.items.names[column]
            )
        elif (is_plain and name in self.queue.commands) or not self.varies(macro):
            return None
        elif set(self._closure(macro)) & {"RANDOM_CHOICE", "RANDOM_INTEGER"}:
            # Each use draws anew.
            key = f"value:{len(self._columns) + 1}"
        else:
            key = self._by_call.setdefault(macro, f"value:{len(self._columns) + 1}")
        if key not in self._columns:
            self._columns[key] = self._values(macro, name if is_plain else "")
        return mark(key)

    def _values(self, macro: str, name: str) -> Sequence[str]:
        """Return the values of a macro in all jobs. `name` is that of a macro which each job has itself, if the macro is no other."""
        own = list[str | None]()
        if self._is_own(name):
            self.expansion.take(2 * self.count, NUMBER_BYTES * self.count)
            own = [self._own(name, job) for job in range(self.count)]
        if own and not any("$" in (value or "") for value in own):
            return [value or "" for value in own]
        return [self.value(macro, job) for job in range(self.count)]

    def is_template(self, text: str) -> bool:
        """Return whether a text with marks has the same structure in all jobs, whatever their values."""
        return all(
            each == PROCESS or all(map(_SAFE.fullmatch, self._columns[each])) for each in columns_of(text)
        )

    def filled(self, text: str, job: int) -> str:
        """Return a text with its marks replaced by the values of one job."""
        return _MARK.sub(lambda found: self._columns[found[1]][job], text)

    def columns(self, names: Sequence[str], jobs: Sequence[int]) -> Mapping[str, Sequence[str]]:
        """Return the values of these columns in these jobs."""
        return {name: [self._columns[name][job] for job in jobs] for name in names}


def mark(column: str) -> str:
    """Return the mark of a column in a template."""
    return f"{BEGIN}{column}{END}"


def columns_of(text: str) -> Iterator[str]:
    """Yield the names of the columns of which a text has marks."""
    return (found[1] for found in _MARK.finditer(text))


def parameter_names(columns: Iterable[str], *, is_whole: bool) -> Mapping[str, str]:
    """Return names of parameters for columns, all different.

    If `is_whole` is True, `$(Process)` is the index of a job in its array.
    """
    found = dict[str, str]()
    for column in sorted(columns):
        name = "Process" if column == PROCESS else re.sub(r"[^A-Za-z0-9_]", "_", column)
        while name == INDEX or name in found.values():
            name += "_"
        found[column] = INDEX if is_whole and column == PROCESS else name
    return found


def with_placeholders(text: str, names: Mapping[str, str]) -> str:
    """Return a text with each mark as the placeholder of a parameter. `names` are those of parameters by those of columns.

    Braces of the author that would be taken for a placeholder are doubled, so that they stay.
    """
    known = {*names.values(), INDEX}
    text = PLACEHOLDER.sub(
        lambda found: f"{{{found[0]}}}" if (found[1] or found[2]) in known else found[0], text
    )
    return _MARK.sub(lambda found: f"{{{names[found[1]]}}}", text)


def groups(keys: Sequence[Callable[[int], object]], count: int) -> Mapping[tuple[object, ...], Sequence[int]]:
    """Return the jobs, grouped by the values of all these functions of a job's number. Raise MacroError if there are too many groups."""
    if not keys:
        return {(): range(count)}
    found = dict[tuple[object, ...], list[int]]()
    for job in range(count):
        found.setdefault(tuple(key(job) for key in keys), []).append(job)
        if len(found) > GROUPS_LIMIT:
            raise MacroError(f"queues jobs that need more than {GROUPS_LIMIT:,} descriptions")
    return found
