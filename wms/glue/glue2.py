"""GLUE 2.0: a computing service with its endpoints, shares, managers, environments, applications and storage bindings.

The model is OGF GFD-R-P.147. The XML schema prescribes the order of the attributes. Times are in seconds, sizes of memory in
MB, as in the model.

Several shares use the same slots of their manager, so `FreeSlots` of shares must never be added up. `free_slots` returns the
free slots of a service.
"""

from collections.abc import Sequence

from msgspec import Struct

from wms.glue.attribute import NOWHERE
from wms.glue.attribute import Attribute as A  # noqa: N817 - a letter for a table of many lines
from wms.glue.attribute import ValueKind as K
from wms.glue.quantity import NOT_KNOWN, UNKNOWN, Quantity, known

PRODUCTION = "production"
_MUST_NUMBER = str(NOT_KNOWN)
_MUST_TEXT = "UNDEFINEDVALUE"
_QUALITY = frozenset({"development", "pre-production", "production", "testing"})
_HEALTH = frozenset({"critical", "ok", "other", "unknown", "warning"})
_SERVING = frozenset({"closed", "draining", "production", "queueing"})
_MULTIPLICITY = frozenset(
    f"{cpus}cpu-{cores}core" for cpus in ("single", "multi") for cores in ("single", "multi")
)


class Endpoint(Struct, frozen=True, kw_only=True):
    """An endpoint of a computing service: its address, interface and state."""

    id: str
    name: str = ""
    url: str = ""
    capabilities: tuple[str, ...] = ()
    technology: str = ""
    interface_name: str = ""
    interface_versions: tuple[str, ...] = ()
    implementation_name: str = ""
    implementation_version: str = ""
    quality_level: str = ""
    health_state: str = ""
    serving_state: str = ""
    shares: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """The rules of the endpoint's access policies, each of which admits users: `vo:lhcb`, a certificate's DN, ..."""


ENDPOINT = (
    A("name", "Name"),
    A("url", "URL", placeholder=NOWHERE),
    A("capabilities", "Capability", K.TEXTS),
    A("technology", "Technology"),
    A("interface_name", "InterfaceName", placeholder=_MUST_TEXT),
    A("interface_versions", "InterfaceVersion", K.TEXTS),
    A("implementation_name", "ImplementationName"),
    A("implementation_version", "ImplementationVersion"),
    A("quality_level", "QualityLevel", placeholder="testing", among=_QUALITY),
    A("health_state", "HealthState", placeholder="unknown", among=_HEALTH),
    A("serving_state", "ServingState", placeholder=PRODUCTION, among=_SERVING),
)


class Share(Struct, frozen=True, kw_only=True):
    """A share of the resources under one policy: in practice a batch queue, or a batch queue for one VO."""

    id: str
    name: str = ""
    other_info: tuple[str, ...] = ()
    description: str = ""
    queue: str = ""
    max_wall_seconds: Quantity = UNKNOWN
    min_wall_seconds: Quantity = UNKNOWN
    default_wall_seconds: Quantity = UNKNOWN
    max_cpu_seconds: Quantity = UNKNOWN
    """The limit of CPU time in seconds for each slot of a job."""
    max_total_cpu_seconds: Quantity = UNKNOWN
    """The limit of CPU time in seconds for all slots of a job together."""
    min_cpu_seconds: Quantity = UNKNOWN
    default_cpu_seconds: Quantity = UNKNOWN
    max_total_jobs: Quantity = UNKNOWN
    max_running_jobs: Quantity = UNKNOWN
    max_waiting_jobs: Quantity = UNKNOWN
    max_user_running_jobs: Quantity = UNKNOWN
    max_slots_per_job: Quantity = UNKNOWN
    max_memory_mb: Quantity = UNKNOWN
    max_virtual_memory_mb: Quantity = UNKNOWN
    preemption: bool | None = None
    serving_state: str = ""
    total_jobs: Quantity = UNKNOWN
    running_jobs: Quantity = UNKNOWN
    local_running_jobs: Quantity = UNKNOWN
    waiting_jobs: Quantity = UNKNOWN
    local_waiting_jobs: Quantity = UNKNOWN
    suspended_jobs: Quantity = UNKNOWN
    local_suspended_jobs: Quantity = UNKNOWN
    staging_jobs: Quantity = UNKNOWN
    pre_lrms_waiting_jobs: Quantity = UNKNOWN
    average_wait_seconds: Quantity = UNKNOWN
    worst_wait_seconds: Quantity = UNKNOWN
    free_slots: Quantity = UNKNOWN
    free_slots_with_duration: str = ""
    """Groups `n[:seconds]`: n slots are free for that many seconds, or if none are given for the share's longest run time."""
    used_slots: Quantity = UNKNOWN
    requested_slots: Quantity = UNKNOWN
    tags: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    """The rules of the share's mapping policies, each of which admits users: `vo:lhcb`, a certificate's DN, ..."""


SHARE = (
    A("name", "Name"),
    A("other_info", "OtherInfo", K.TEXTS),
    A("description", "Description"),
    A("queue", "MappingQueue"),
    A("max_wall_seconds", "MaxWallTime", K.SECONDS),
    A("min_wall_seconds", "MinWallTime", K.SECONDS),
    A("default_wall_seconds", "DefaultWallTime", K.SECONDS),
    A("max_cpu_seconds", "MaxCPUTime", K.SECONDS),
    A("max_total_cpu_seconds", "MaxTotalCPUTime", K.SECONDS),
    A("min_cpu_seconds", "MinCPUTime", K.SECONDS),
    A("default_cpu_seconds", "DefaultCPUTime", K.SECONDS),
    A("max_total_jobs", "MaxTotalJobs", K.LIMIT),
    A("max_running_jobs", "MaxRunningJobs", K.LIMIT),
    A("max_waiting_jobs", "MaxWaitingJobs", K.LIMIT),
    A("max_user_running_jobs", "MaxUserRunningJobs", K.LIMIT),
    A("max_slots_per_job", "MaxSlotsPerJob", K.LIMIT),
    A("max_memory_mb", "MaxMainMemory", K.SIZE),
    A("max_virtual_memory_mb", "MaxVirtualMemory", K.SIZE),
    A("preemption", "Preemption", K.FLAG),
    A("serving_state", "ServingState", placeholder=PRODUCTION, among=_SERVING),
    A("total_jobs", "TotalJobs", K.COUNT),
    A("running_jobs", "RunningJobs", K.COUNT),
    A("local_running_jobs", "LocalRunningJobs", K.COUNT),
    A("waiting_jobs", "WaitingJobs", K.COUNT),
    A("local_waiting_jobs", "LocalWaitingJobs", K.COUNT),
    A("suspended_jobs", "SuspendedJobs", K.COUNT),
    A("local_suspended_jobs", "LocalSuspendedJobs", K.COUNT),
    A("staging_jobs", "StagingJobs", K.COUNT),
    A("pre_lrms_waiting_jobs", "PreLRMSWaitingJobs", K.COUNT),
    A("average_wait_seconds", "EstimatedAverageWaitingTime", K.WAIT),
    A("worst_wait_seconds", "EstimatedWorstWaitingTime", K.WAIT),
    A("free_slots", "FreeSlots", K.COUNT),
    A("free_slots_with_duration", "FreeSlotsWithDuration"),
    A("used_slots", "UsedSlots", K.COUNT),
    A("requested_slots", "RequestedSlots", K.COUNT),
    A("tags", "Tag", K.TEXTS),
)


class Manager(Struct, frozen=True, kw_only=True):
    """The batch system of a computing service (GLUE 2.0: computing manager)."""

    id: str
    name: str = ""
    product_name: str = ""
    product_version: str = ""
    reservation: bool | None = None
    bulk_submission: bool | None = None
    total_physical_cpus: Quantity = UNKNOWN
    total_logical_cpus: Quantity = UNKNOWN
    """The number of logical CPUs. ARC sums it over the queues, and so counts CPUs several times; `total_slots` is more reliable."""
    total_slots: Quantity = UNKNOWN
    slots_used_by_local_jobs: Quantity = UNKNOWN
    slots_used_by_grid_jobs: Quantity = UNKNOWN
    homogeneous: bool | None = None
    working_area_total_gb: Quantity = UNKNOWN
    working_area_free_gb: Quantity = UNKNOWN
    application_dir: str = ""

    @property
    def free_slots(self) -> int | None:
        """The number of free slots; None if one of the numbers that it is computed from is unknown."""
        total, local, grid = map(
            known, (self.total_slots, self.slots_used_by_local_jobs, self.slots_used_by_grid_jobs)
        )
        if total is None or local is None or grid is None:
            return None
        return max(0, total - local - grid)


MANAGER = (
    A("name", "Name"),
    A("product_name", "ProductName", placeholder=_MUST_TEXT),
    A("product_version", "ProductVersion"),
    A("reservation", "Reservation", K.FLAG),
    A("bulk_submission", "BulkSubmission", K.FLAG),
    A("total_physical_cpus", "TotalPhysicalCPUs", K.COUNT),
    A("total_logical_cpus", "TotalLogicalCPUs", K.COUNT),
    A("total_slots", "TotalSlots", K.COUNT),
    A("slots_used_by_local_jobs", "SlotsUsedByLocalJobs", K.COUNT),
    A("slots_used_by_grid_jobs", "SlotsUsedByGridJobs", K.COUNT),
    A("homogeneous", "Homogeneous", K.FLAG),
    A("working_area_total_gb", "WorkingAreaTotal", K.COUNT),
    A("working_area_free_gb", "WorkingAreaFree", K.COUNT),
    A("application_dir", "ApplicationDir"),
)


class Benchmark(Struct, frozen=True, kw_only=True):
    """A benchmark result of the machines of an environment; results such as HEP-SPEC06 are for one core."""

    id: str
    type: str = ""
    value: float | None = None


BENCHMARK = (A("type", "Type", placeholder=_MUST_TEXT), A("value", "Value", K.REAL, placeholder="0"))


class Environment(Struct, frozen=True, kw_only=True):
    """The machines of one kind in a computing service (GLUE 2.0: execution environment)."""

    id: str
    name: str = ""
    platform: str = ""
    virtual_machine: bool | None = None
    total_instances: Quantity = UNKNOWN
    used_instances: Quantity = UNKNOWN
    unavailable_instances: Quantity = UNKNOWN
    physical_cpus: Quantity = UNKNOWN
    logical_cpus: Quantity = UNKNOWN
    cpu_multiplicity: str = ""
    cpu_vendor: str = ""
    cpu_model: str = ""
    cpu_clock_mhz: Quantity = UNKNOWN
    cpu_time_scaling: float | None = None
    wall_time_scaling: float | None = None
    memory_mb: Quantity = UNKNOWN
    virtual_memory_mb: Quantity = UNKNOWN
    os_family: str = ""
    os_name: str = ""
    os_version: str = ""
    inbound: bool | None = None
    outbound: bool | None = None
    manager: str = ""
    shares: tuple[str, ...] = ()
    benchmarks: tuple[Benchmark, ...] = ()


ENVIRONMENT = (
    A("name", "Name"),
    A("platform", "Platform", placeholder=_MUST_TEXT),
    A("virtual_machine", "VirtualMachine", K.FLAG),
    A("total_instances", "TotalInstances", K.COUNT),
    A("used_instances", "UsedInstances", K.COUNT),
    A("unavailable_instances", "UnavailableInstances", K.COUNT),
    A("physical_cpus", "PhysicalCPUs", K.SIZE),
    A("logical_cpus", "LogicalCPUs", K.SIZE),
    A("cpu_multiplicity", "CPUMultiplicity", among=_MULTIPLICITY),
    A("cpu_vendor", "CPUVendor"),
    A("cpu_model", "CPUModel"),
    A("cpu_clock_mhz", "CPUClockSpeed", K.SIZE),
    A("cpu_time_scaling", "CPUTimeScalingFactor", K.REAL),
    A("wall_time_scaling", "WallTimeScalingFactor", K.REAL),
    A("memory_mb", "MainMemorySize", K.SIZE, placeholder=_MUST_NUMBER),
    A("virtual_memory_mb", "VirtualMemorySize", K.SIZE),
    A("os_family", "OSFamily", placeholder=_MUST_TEXT),
    A("os_name", "OSName"),
    A("os_version", "OSVersion"),
    A("inbound", "ConnectivityIn", K.FLAG, placeholder="undefined"),
    A("outbound", "ConnectivityOut", K.FLAG, placeholder="undefined"),
)


class Application(Struct, frozen=True, kw_only=True):
    """An installed software package (GLUE 2.0: application environment)."""

    id: str
    app_name: str = ""
    app_version: str = ""
    state: str = ""
    manager: str = ""

    @property
    def text(self) -> str:
        """The name of the application in GLUE 1.x and job descriptions: `name-version`, or the name if it has no version."""
        return f"{self.app_name}-{self.app_version}" if self.app_version else self.app_name


APPLICATION = (
    A("app_name", "AppName", placeholder=_MUST_TEXT),
    A("app_version", "AppVersion"),
    A("state", "State"),
)


class ToStorageService(Struct, frozen=True, kw_only=True):
    """A storage service that is mounted on the machines (GLUE 2.0: ToStorageService)."""

    id: str
    local_path: str = ""
    remote_path: str = ""
    storage_service: str = ""


STORAGE_BINDING = (
    A("local_path", "LocalPath", placeholder="/UNDEFINEDPATH"),
    A("remote_path", "RemotePath", placeholder="/UNDEFINEDPATH"),
)


class Service(Struct, frozen=True, kw_only=True):
    """A computing service with its endpoints, shares, managers, environments, applications and storage services."""

    id: str
    name: str = ""
    capabilities: tuple[str, ...] = ()
    type: str = ""
    quality_level: str = ""
    total_jobs: Quantity = UNKNOWN
    running_jobs: Quantity = UNKNOWN
    waiting_jobs: Quantity = UNKNOWN
    staging_jobs: Quantity = UNKNOWN
    suspended_jobs: Quantity = UNKNOWN
    pre_lrms_waiting_jobs: Quantity = UNKNOWN
    endpoints: tuple[Endpoint, ...] = ()
    shares: tuple[Share, ...] = ()
    managers: tuple[Manager, ...] = ()
    environments: tuple[Environment, ...] = ()
    applications: tuple[Application, ...] = ()
    storage: tuple[ToStorageService, ...] = ()


SERVICE = (
    A("name", "Name"),
    A("capabilities", "Capability", K.TEXTS),
    A("type", "Type", placeholder=_MUST_TEXT),
    A("quality_level", "QualityLevel", placeholder="testing", among=_QUALITY),
    A("total_jobs", "TotalJobs", K.COUNT),
    A("running_jobs", "RunningJobs", K.COUNT),
    A("waiting_jobs", "WaitingJobs", K.COUNT),
    A("staging_jobs", "StagingJobs", K.COUNT),
    A("suspended_jobs", "SuspendedJobs", K.COUNT),
    A("pre_lrms_waiting_jobs", "PreLRMSWaitingJobs", K.COUNT),
)


def free_slots(service: Service) -> int | None:
    """Return the number of free slots of a service; None if unknown.

    It is the sum over the service's managers. If a manager does not publish it, it is the largest number that any share publishes.
    """
    counted = [manager.free_slots for manager in service.managers]
    if counted and None not in counted:
        return sum(each for each in counted if each is not None)
    return max(
        (free for share in service.shares if (free := known(share.free_slots)) is not None), default=None
    )


def by_queue(shares: Sequence[Share]) -> dict[str, list[Share]]:
    """Return the shares of each batch queue, by the queue's name.

    ARC publishes one share for the queue itself, and one for each VO that may use it.
    """
    queues: dict[str, list[Share]] = {}
    for share in shares:
        queues.setdefault(share.queue or share.name or share.id, []).append(share)
    return queues
