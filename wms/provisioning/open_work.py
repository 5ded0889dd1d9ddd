"""Kinds of work of a plan, each with the number of its jobs that no pilot takes up yet."""

from wms.matching.clauses import serves_whom
from wms.provisioning.demand import WorkKind
from wms.site import PilotOwner


class OpenWork:
    """A kind of work; `left` counts its jobs that no pilot takes up yet."""

    __slots__ = ("elements", "kind", "left", "processors", "sent", "taken", "vo")

    def __init__(self, kind: WorkKind) -> None:
        self.kind = kind
        self.vo = kind.requirements.vo
        self.elements = kind.elements
        self.processors = kind.processors
        self.left = kind.jobs
        self.taken: dict[int, int] = {}
        """By element: jobs that pilots there take up."""
        self.sent: dict[int, int] = {}
        """By element: pilots ordered."""

    @property
    def pickiness(self) -> tuple[object, ...]:
        """Sort key: work that fewer pilots can serve comes first."""
        asked = self.kind.requirements
        return (
            len(self.elements),
            not self.kind.hosts,
            -asked.cpu_segment,
            -self.processors,
            -asked.min_ram_mb,
        )

    def asks(self, element: int) -> str:
        """Return the name of the pilot class that it needs at an element; empty if any pilot there would do."""
        hosts = self.kind.hosts.get(element)
        return hosts.name if hosts else ""

    def takes(self, owner: PilotOwner | None) -> bool:
        """Tell whether its jobs may go to the private pilots of an owner; None: to generic pilots."""
        asked = self.kind.requirements
        return serves_whom(asked, owner) if owner or asked.pilot_types else True
