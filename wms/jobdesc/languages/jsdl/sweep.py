"""Parameter sweeps: assignments of values to nodes of an XML document. Each combination of values is a job.

At each step of a sweep, all its assignments take their next values. For each step, the sweeps within it are run through completely, one
after another. The number of jobs is computed before any value is made.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from wms.jobdesc.conflicts import ARRAY_LIMIT, PARAMETERS_LIMIT
from wms.jobdesc.languages.hardened_xml import XmlNode, children, local, namespace, text_of_node
from wms.jobdesc.languages.jsdl.namespaces import FUNCTIONS, SWEEPS
from wms.jobdesc.languages.jsdl.node_path import PathBudget, PathTarget, find
from wms.jobdesc.languages.jsdl.number import whole

CELLS_LIMIT = 5_000_000
"""How many values all jobs of a document may have together, counting each assigned node of each job."""

Row: TypeAlias = Mapping[PathTarget, str]
"""The values of one job, by the XML nodes to which they are assigned."""


class SweepFault(Exception):  # noqa: N818 - a fault of a document
    """The error for a sweep that is unsupported, malformed or too large. `node` is the XML element for the error message."""

    def __init__(self, node: XmlNode, message: str) -> None:
        super().__init__(message)
        self.node = node


class SweepLoop(NamedTuple):
    """The whole numbers from `start` to `end`, both included, in steps of `step`, without those in `left_out`."""

    start: int
    end: int
    step: int
    left_out: frozenset[int] = frozenset()

    @property
    def length(self) -> int:
        """How many numbers the loop has, computed without making them."""
        return max(0, (self.end - self.start) // self.step + 1) - len(self.left_out)

    def values(self) -> Iterator[str]:
        """Yield the numbers of the loop as texts."""
        return (str(each) for each in range(self.start, self.end + 1, self.step) if each not in self.left_out)


class SweepAssignment(NamedTuple):
    """The values that a sweep assigns to the same nodes, one value at each step."""

    targets: tuple[PathTarget, ...]
    values: Sequence[str] | SweepLoop

    @property
    def length(self) -> int:
        """The number of values that the assignment has."""
        return self.values.length if isinstance(self.values, SweepLoop) else len(self.values)

    @property
    def width(self) -> int:
        """The number of characters of the longest value."""
        if isinstance(self.values, SweepLoop):
            return max(len(str(self.values.start)), len(str(self.values.end)))
        return max(map(len, self.values), default=0)


class ParsedSweep(NamedTuple):
    """A sweep: its assignments, which step together, and the inner sweeps, which are run through at each step."""

    assignments: tuple[SweepAssignment, ...]
    inner: tuple["ParsedSweep", ...] = ()

    @property
    def jobs(self) -> int:
        """The number of jobs that the sweep makes."""
        return self.assignments[0].length * (sum(each.jobs for each in self.inner) or 1)


class SweepPlan(NamedTuple):
    """All sweeps of a document, the XML nodes to which they assign values, and the number of jobs."""

    sweeps: tuple[ParsedSweep, ...]
    targets: tuple[PathTarget, ...]
    jobs: int

    def rows(self) -> Iterator[Row]:
        """Yield for each job its values, by XML node."""
        return itertools.chain.from_iterable(_rows(each) for each in self.sweeps)


def plan_of(root: XmlNode, nodes: Sequence[XmlNode]) -> SweepPlan:
    """Return the plan of the Sweep elements `nodes` of the document below `root`.

    Raise SweepFault if a sweep is malformed or unsupported, or if the sweeps make too many jobs or values.
    """
    budget = PathBudget()
    sweeps = tuple(_sweep(root, node, budget) for node in nodes)
    assignments = [each for sweep in sweeps for each in _assignments(sweep)]
    targets = tuple(dict.fromkeys(target for each in assignments for target in each.targets))
    if len({each.node for each in targets}) < len(targets):
        raise SweepFault(nodes[0], "assigns several parts of one text, which would move each other")
    jobs = sum(each.jobs for each in sweeps)
    size = jobs * sum(each.width * len(each.targets) for each in assignments)
    if jobs > ARRAY_LIMIT or jobs * len(targets) > CELLS_LIMIT or size > 4 * PARAMETERS_LIMIT:
        raise SweepFault(nodes[0], f"makes {jobs:,} jobs, which are too many or have too long values")
    return SweepPlan(sweeps, targets, jobs)


def _assignments(sweep: ParsedSweep) -> Iterator[SweepAssignment]:
    yield from sweep.assignments
    for inner in sweep.inner:
        yield from _assignments(inner)


def _rows(sweep: ParsedSweep) -> Iterator[Row]:
    lists = [
        each.values.values() if isinstance(each.values, SweepLoop) else iter(each.values)
        for each in sweep.assignments
    ]
    for step in zip(*lists, strict=True):
        row = {
            target: value
            for each, value in zip(sweep.assignments, step, strict=True)
            for target in each.targets
        }
        if not sweep.inner:
            yield row
        for inner in sweep.inner:
            for below in _rows(inner):
                yield {**row, **below}


def _sweep(root: XmlNode, node: XmlNode, budget: PathBudget) -> ParsedSweep:
    assignments, inner = list[SweepAssignment](), list[ParsedSweep]()
    for each in children(node):
        if namespace(each) in SWEEPS and local(each) == "Assignment":
            assignments.append(_assignment(root, each, budget))
        elif namespace(each) in SWEEPS and local(each) == "Sweep":
            inner.append(_sweep(root, each, budget))
        else:
            raise SweepFault(each, "is no part of a sweep")
    if not assignments:
        raise SweepFault(node, "assigns nothing")
    if len({each.length for each in assignments}) > 1:
        raise SweepFault(node, "assigns lists of unequal length, which cannot change together")
    return ParsedSweep(tuple(assignments), tuple(inner))


def _assignment(root: XmlNode, node: XmlNode, budget: PathBudget) -> SweepAssignment:
    targets, values = list[PathTarget](), None
    for each in children(node):
        if namespace(each) in FUNCTIONS:
            values = _values(each)
        elif local(each) in ("Parameter", "DocumentNode"):
            targets += _targets(root, each, budget)
        else:
            raise SweepFault(each, "is no part of an assignment")
    if values is None:
        raise SweepFault(node, "has no values")
    made = SweepAssignment(tuple(targets), values)
    if not made.length:
        raise SweepFault(node, "has no values")
    return made


def _targets(root: XmlNode, node: XmlNode, budget: PathBudget) -> list[PathTarget]:
    path, prefixes = text_of_node(node), dict(node.nsmap)
    for each in children(node):
        if local(each) == "Match":
            path = text_of_node(each)
        elif local(each) == "NamespaceBinding":
            prefixes[each.get("prefix")] = each.get("ns", "")
    try:
        found = find(root, path, prefixes, budget)
    except ValueError as fault:
        raise SweepFault(node, str(fault)) from None
    if not found:
        raise SweepFault(node, "leads to no node of this document")
    return found


def _values(node: XmlNode) -> Sequence[str] | SweepLoop:
    if local(node) == "Values":
        return tuple(text_of_node(each) for each in children(node) if local(each) == "Value")
    if local(node) != "Loop":
        raise SweepFault(node, "a function that is not known here")
    try:
        start, end, step = (whole(_attribute(node, *named)) for named in _LOOP)
        left_out = (whole(_attribute(each, "value", "")) for each in children(node))
        made = SweepLoop(start, end, _forwards(step))
        within = range(start, end + 1, step)
        return made._replace(left_out=frozenset(each for each in left_out if each in within))
    except ValueError as fault:
        raise SweepFault(node, str(fault)) from None


def _forwards(step: int) -> int:
    if step < 1:
        raise ValueError("is no step forwards")
    return step


_LOOP = (("start", ""), ("end", ""), ("step", "1"))


def _attribute(node: XmlNode, name: str, default: str) -> str:
    # The schema wants these attributes in its namespace, documents mostly have them without.
    found = node.get(name)
    return str(found if found is not None else node.get(f"{{{namespace(node)}}}{name}", default))
