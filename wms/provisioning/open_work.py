"""A kind of waiting work while a plan is made: which of its jobs are not yet assigned to any pilot."""

from wms.matching.clauses import serves_whom
from wms.provisioning.demand import WorkKind
from wms.site import PilotOwner


class OpenWork:
    """A kind of waiting work in a plan. `left` is how many of its jobs are not yet assigned to any pilot."""

    __slots__ = ("elements", "kind", "left", "processors", "sent", "taken", "vo")

    def __init__(self, kind: WorkKind) -> None:
        self.kind = kind
        self.vo = kind.requirements.vo
        self.elements = kind.elements
        self.processors = kind.processors
        self.left = kind.jobs
        self.taken: dict[int, int] = {}
        """How many jobs are assigned to existing pilots, by the element's index in the plan."""
        self.sent: dict[int, int] = {}
        """How many pilots are ordered for the work, by the element's index in the plan."""

    @property
    def pickiness(self) -> tuple[object, ...]:
        """A sort key: work that fewer pilots can run comes first."""
        asked = self.kind.requirements
        return (
            len(self.elements),
            not self.kind.hosts,
            -asked.cpu_segment,
            -self.processors,
            -asked.min_ram_mb,
        )

    def asks(self, element: int) -> str:
        """Return the name of the pilot class that the work needs at an element, or an empty name if any pilot will do. `element` is an index."""
        hosts = self.kind.hosts.get(element)
        return hosts.name if hosts else ""

    def takes(self, owner: PilotOwner | None) -> bool:
        """Return whether private pilots of this owner may run the jobs; for None, whether generic pilots may."""
        asked = self.kind.requirements
        return serves_whom(asked, owner) if owner or asked.pilot_types else True
