"""A scenario: the sites, shares, limits, draw law, pilots and failures with which a workload is simulated."""

from collections.abc import Iterable
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct
from msgspec.structs import replace

from wms.matching.draw_law import Law
from wms.matching.grouping import Requirements
from wms.matching.limits import LimitRule
from wms.matching.shares import GroupShare, VoGroup
from wms.provisioning.plan import PilotCaps
from wms.simulation.workload import CE, DAY_SECONDS, Workload, element_of, elements_for
from wms.site import ComputingElement

Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=1e9)]
Period: TypeAlias = Annotated[float, Meta(gt=0, le=1e9)]
Chance: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
Speed: TypeAlias = Annotated[float, Meta(ge=1e-3, le=1e3)]

ONE_VO = "all"


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table in the TOML file of a scenario. Keys that have no field here are errors."""


class SiteRules(_Section, frozen=True, kw_only=True):
    """What a scenario changes at a site of the workload, or a new site. A site of the workload keeps its values for fields that are None."""

    site: str
    slots: Annotated[int, Meta(ge=0, le=10_000_000)] | None = None
    """How many slots the site has; 0 removes the site."""
    speed: Speed | None = None
    """How fast the site's machines are: at speed 2 a job runs half as long as the workload says."""
    failure: Chance | None = None
    """The fraction of attempts, from 0 to 1, that fail because the site loses them."""
    max_cpu_time: Annotated[int, Meta(gt=0)] | None = None
    vos: tuple[str, ...] | None = None
    cores: Annotated[int, Meta(ge=1, le=1_024)] | None = None
    """How many processors one pilot at the site has."""
    memory_mb: Annotated[int, Meta(ge=0)] | None = None
    tags: tuple[str, ...] | None = None


class LimitRules(LimitRule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A limit on jobs in a scenario. With `*` as site, computing element or value, each of them has a limit of its own."""

    def __post_init__(self) -> None:
        fault = "jobs come as they came: a limit on waiting ones changes nothing here"
        if self.kind == "waiting" or (fault := self.fault() or ""):
            raise ValueError(f"{self.text()}: {fault}")


class PilotRules(_Section, frozen=True, kw_only=True):
    """How pilots behave in a scenario. They are planned by the pilot submitter's functions, but less often than in the real system."""

    plan_every_seconds: Period = 60.0
    latency_seconds: Seconds = 60.0
    """How many seconds pass from the order of a pilot until it asks for jobs."""
    idle_seconds: Seconds = 300.0
    """After how many seconds without a job a pilot ends."""
    lifetime_seconds: Period = 4 * DAY_SECONDS
    """For how many seconds after its start a pilot takes jobs. It takes only jobs whose CPU time fits into the seconds left."""
    most: Annotated[int, Meta(ge=0)] = 0
    """How many pilots there may be at a time at all sites together; 0 for as many as the sites allow."""

    @property
    def caps(self) -> PilotCaps:
        """The bounds on pilots, in the form that the planner of pilots takes."""
        return PilotCaps(orders=1_000_000, pilots=self.most)


class Scenario(_Section, frozen=True, kw_only=True):
    """The conditions under which a workload is simulated, as read from a TOML file."""

    name: str = "default"
    draw: Law = "dirac"
    placement: Literal["traced", "anywhere"] = "traced"
    """Where jobs may run: `traced`, at the sites that they require or where they ran; or `anywhere`, at any site of their VO."""
    one_vo: bool = False
    """Whether the workload's VOs become groups of one VO, so that any pilot serves all of them, by their shares."""
    load: Annotated[float, Meta(ge=1e-3, le=1e3)] = 0.5
    """Which fraction of the slots the workload keeps busy at sites whose number of slots is unknown. It determines that number."""
    speed: Speed = 1.0
    failure: Chance = 0.0
    attempts: Annotated[int, Meta(ge=1, le=100)] = 3
    """After how many attempts that sites lost a job fails."""
    seed: Annotated[int, Meta(ge=0)] = 1
    shares: dict[str, dict[str, GroupShare]] = {}
    """The shares of groups, by VO and group. With `one_vo` the VO is "all" and its groups are the workload's VOs."""
    limits: tuple[LimitRules, ...] = ()
    """Limits on running jobs and on the rate of starts, by site or computing element and job attribute, as `wms limits set` takes them."""
    pilots: PilotRules = PilotRules()
    sites: tuple[SiteRules, ...] = ()

    def __post_init__(self) -> None:
        once = set()
        for limit in self.limits:
            if (limit.kind, limit.key) in once:
                raise ValueError(
                    f"{limit.text()}: there is another limit of this kind on the same jobs; keep one"
                )
            once.add((limit.kind, limit.key))

    @property
    def groups(self) -> dict[VoGroup, GroupShare]:
        """The shares by VO and group, in the form that the queue index takes."""
        return {(vo, group): share for vo, groups in self.shares.items() for group, share in groups.items()}

    def asked(self, requirements: Requirements) -> Requirements:
        """Return the requirements of a job as this scenario changes them."""
        if self.placement == "anywhere":
            requirements = replace(requirements, sites=())
        if self.one_vo:
            requirements = replace(requirements, vo=ONE_VO, owner_group=requirements.vo)
        return requirements


class SimulatedElement(Struct, frozen=True):
    """A computing element of a simulation, its speed (1 is the workload's), and the fraction of attempts that it loses."""

    element: ComputingElement
    speed: float
    failure: float


def places(scenario: Scenario, workload: Workload) -> list[SimulatedElement]:
    """Return the computing elements of a scenario, in the order of their names: those of the workload, changed by its rules, and new ones.

    Elements without slots are left out.
    """
    rules = {each.site: each for each in scenario.sites}
    known = elements_for(workload, scenario.load)
    there = [_changed(each, rules.get(each.site)) for each in known]
    sites = {each.site for each in known}
    there += [_changed(element_of(name, 1, 1), rule) for name, rule in rules.items() if name not in sites]
    if scenario.one_vo:
        there = [replace(each, vos=()) for each in there]
    life = int(scenario.pilots.lifetime_seconds)
    return [
        SimulatedElement(
            replace(each, max_cpu_time=min(each.max_cpu_time, life)),
            *_manners(scenario, rules.get(each.site)),
        )
        for each in _sorted(there)
        if each.slots > 0
    ]


def _sorted(elements: Iterable[ComputingElement]) -> list[ComputingElement]:
    return sorted(elements, key=lambda each: each.ce_id)


def _manners(scenario: Scenario, rule: SiteRules | None) -> tuple[float, float]:
    speed = rule.speed if rule and rule.speed is not None else scenario.speed
    failure = rule.failure if rule and rule.failure is not None else scenario.failure
    return speed, failure


def _changed(element: ComputingElement, rule: SiteRules | None) -> ComputingElement:
    if rule is None:
        return element
    slots = element.slots if rule.slots is None else rule.slots
    cores = min(rule.cores or element.cores_per_pilot, max(1, slots))
    return replace(
        element,
        ce=element.ce or CE,
        slots=slots // cores * cores,
        max_pilots=0,
        max_cpu_time=rule.max_cpu_time or element.max_cpu_time,
        vos=element.vos if rule.vos is None else rule.vos,
        cores_per_pilot=cores,
        slots_per_pilot=cores,
        memory_mb=element.memory_mb if rule.memory_mb is None else rule.memory_mb,
        tags=element.tags if rule.tags is None else rule.tags,
    )
