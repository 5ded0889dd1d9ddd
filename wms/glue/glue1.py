"""GLUE 1.x: a computing element (a queue at an endpoint), the hosts of its sub-cluster, and its close storage.

The names are those of the LDAP realisation of GLUE 1.3, which the ClassAds of gLite flatten into one ad. Limits of time are
published in minutes and held here in seconds. Sizes of memory are in MB.
"""

from collections.abc import Sequence

from msgspec import Struct

from wms.glue.attribute import Attribute as A  # noqa: N817 - a letter for a table of many lines
from wms.glue.attribute import Texts, fields, placeholders, required
from wms.glue.attribute import ValueKind as K
from wms.glue.quantity import UNKNOWN, Quantity

PRODUCTION = "Production"


class GlueHosts(Struct, frozen=True, kw_only=True, gc=False):
    """The common properties of the machines of a computing element (GLUE 1.x: sub-cluster, host)."""

    id: str = ""
    name: str = ""
    physical_cpus: Quantity = UNKNOWN
    logical_cpus: Quantity = UNKNOWN
    smp_size: Quantity = UNKNOWN
    """The number of processors of one machine."""
    platform_type: str = ""
    processor_vendor: str = ""
    processor_model: str = ""
    processor_version: str = ""
    clock_mhz: Quantity = UNKNOWN
    memory_mb: Quantity = UNKNOWN
    virtual_memory_mb: Quantity = UNKNOWN
    os_name: str = ""
    os_release: str = ""
    os_version: str = ""
    si00: Quantity = UNKNOWN
    """The SPECint 2000 benchmark of a processor."""
    sf00: Quantity = UNKNOWN
    hepspec06: float | None = None
    """The HEP-SPEC06 benchmark of one core.

    Sites have published it since 2009 as `Benchmark=` in the attribute that describes the processor.
    """
    inbound: bool | None = None
    outbound: bool | None = None
    applications: tuple[str, ...] = ()
    """The names of the installed run-time environments."""


HOSTS = (
    A("id", "GlueSubClusterUniqueID"),
    A("name", "GlueSubClusterName"),
    A("physical_cpus", "GlueSubClusterPhysicalCPUs", K.SIZE),
    A("logical_cpus", "GlueSubClusterLogicalCPUs", K.SIZE),
    A("smp_size", "GlueHostArchitectureSMPSize", K.SIZE),
    A("platform_type", "GlueHostArchitecturePlatformType"),
    A("processor_vendor", "GlueHostProcessorVendor"),
    A("processor_model", "GlueHostProcessorModel"),
    A("processor_version", "GlueHostProcessorVersion"),
    A("clock_mhz", "GlueHostProcessorClockSpeed", K.SIZE),
    A("memory_mb", "GlueHostMainMemoryRAMSize", K.SIZE),
    A("virtual_memory_mb", "GlueHostMainMemoryVirtualSize", K.SIZE),
    A("os_name", "GlueHostOperatingSystemName"),
    A("os_release", "GlueHostOperatingSystemRelease"),
    A("os_version", "GlueHostOperatingSystemVersion"),
    A("si00", "GlueHostBenchmarkSI00", K.SIZE),
    A("sf00", "GlueHostBenchmarkSF00", K.SIZE),
    A("inbound", "GlueHostNetworkAdapterInboundIP", K.FLAG),
    A("outbound", "GlueHostNetworkAdapterOutboundIP", K.FLAG),
    A("applications", "GlueHostApplicationSoftwareRunTimeEnvironment", K.TEXTS),
)
OTHER_DESCRIPTION = "GlueHostProcessorOtherDescription"
_HEPSPEC = "-HEP-SPEC06"


class StorageBinding(Struct, frozen=True, kw_only=True, gc=False):
    """A storage element close to a computing element, and its mount point on the machines (GLUE 1.x: CE-SE binding)."""

    storage_element: str
    mount_point: str = ""


class GlueComputingElement(Struct, frozen=True, kw_only=True, gc=False):
    """A computing element: a queue at an endpoint, with its present state and its policy."""

    id: str
    name: str = ""
    """The name of the queue."""
    site: str = ""
    hosting_cluster: str = ""
    implementation_name: str = ""
    implementation_version: str = ""
    capabilities: tuple[str, ...] = ()
    host_name: str = ""
    gatekeeper_port: Quantity = UNKNOWN
    job_manager: str = ""
    contact: str = ""
    contacts: tuple[str, ...] = ()
    """All published contact strings of the queue, the one in use first."""
    lrms_type: str = ""
    lrms_version: str = ""
    total_cpus: Quantity = UNKNOWN
    application_dir: str = ""
    data_dir: str = ""
    default_storage: str = ""
    status: str = ""
    running_jobs: Quantity = UNKNOWN
    waiting_jobs: Quantity = UNKNOWN
    total_jobs: Quantity = UNKNOWN
    estimated_response_seconds: Quantity = UNKNOWN
    worst_response_seconds: Quantity = UNKNOWN
    free_cpus: Quantity = UNKNOWN
    free_job_slots: Quantity = UNKNOWN
    max_wall_seconds: Quantity = UNKNOWN
    max_cpu_seconds: Quantity = UNKNOWN
    max_obtainable_wall_seconds: Quantity = UNKNOWN
    max_obtainable_cpu_seconds: Quantity = UNKNOWN
    max_running_jobs: Quantity = UNKNOWN
    max_waiting_jobs: Quantity = UNKNOWN
    max_total_jobs: Quantity = UNKNOWN
    max_slots_per_job: Quantity = UNKNOWN
    assigned_job_slots: Quantity = UNKNOWN
    priority: Quantity = UNKNOWN
    preemption: bool | None = None
    access_rules: tuple[str, ...] = ()
    """The rules that name the users with access: `VO:lhcb`, `VOMS:/lhcb/Role=production`, or a certificate's DN."""
    hosts: GlueHosts = GlueHosts()
    storage: tuple[StorageBinding, ...] = ()
    published: tuple[tuple[str, int], ...] = ()
    """The numbers that the site published in place of unknown values, each with its attribute. Only users' expressions read them."""


ELEMENT = (
    A("id", "GlueCEUniqueID"),
    A("name", "GlueCEName"),
    A("hosting_cluster", "GlueCEHostingCluster"),
    A("implementation_name", "GlueCEImplementationName"),
    A("implementation_version", "GlueCEImplementationVersion"),
    A("capabilities", "GlueCECapability", K.TEXTS),
    A("host_name", "GlueCEInfoHostName"),
    A("gatekeeper_port", "GlueCEInfoGatekeeperPort", K.SIZE),
    A("job_manager", "GlueCEInfoJobManager"),
    A("contact", "GlueCEInfoContactString"),
    A("lrms_type", "GlueCEInfoLRMSType"),
    A("lrms_version", "GlueCEInfoLRMSVersion"),
    A("total_cpus", "GlueCEInfoTotalCPUs", K.COUNT),
    A("application_dir", "GlueCEInfoApplicationDir"),
    A("data_dir", "GlueCEInfoDataDir"),
    A("default_storage", "GlueCEInfoDefaultSE"),
    A("status", "GlueCEStateStatus"),
    A("running_jobs", "GlueCEStateRunningJobs", K.COUNT),
    A("waiting_jobs", "GlueCEStateWaitingJobs", K.COUNT),
    A("total_jobs", "GlueCEStateTotalJobs", K.COUNT),
    A("estimated_response_seconds", "GlueCEStateEstimatedResponseTime", K.WAIT),
    A("worst_response_seconds", "GlueCEStateWorstResponseTime", K.WAIT),
    A("free_cpus", "GlueCEStateFreeCPUs", K.COUNT),
    A("free_job_slots", "GlueCEStateFreeJobSlots", K.COUNT),
    A("max_wall_seconds", "GlueCEPolicyMaxWallClockTime", K.MINUTES),
    A("max_cpu_seconds", "GlueCEPolicyMaxCPUTime", K.MINUTES),
    A("max_obtainable_wall_seconds", "GlueCEPolicyMaxObtainableWallClockTime", K.MINUTES),
    A("max_obtainable_cpu_seconds", "GlueCEPolicyMaxObtainableCPUTime", K.MINUTES),
    A("max_running_jobs", "GlueCEPolicyMaxRunningJobs", K.LIMIT),
    A("max_waiting_jobs", "GlueCEPolicyMaxWaitingJobs", K.LIMIT),
    A("max_total_jobs", "GlueCEPolicyMaxTotalJobs", K.LIMIT),
    A("max_slots_per_job", "GlueCEPolicyMaxSlotsPerJob", K.LIMIT),
    A("assigned_job_slots", "GlueCEPolicyAssignedJobSlots", K.COUNT),
    A("priority", "GlueCEPolicyPriority", K.COUNT),
    A("preemption", "GlueCEPolicyPreemption", K.FLAG),
    A("access_rules", "GlueCEAccessControlBaseRule", K.TEXTS),
)


def element(ce: Texts, hosts: Texts, bindings: Sequence[Texts], *, site: str = "") -> GlueComputingElement:
    """Return the computing element that entries of an information system describe.

    `ce` has the texts of the element's own entry, `hosts` those of its sub-cluster, `bindings` those of each storage binding. Raise
    Rejected if the element has no identifier.
    """
    required(ce, "GlueCEUniqueID", "a computing element")
    return GlueComputingElement(
        **fields(ELEMENT, ce),
        site=site,
        hosts=GlueHosts(**fields(HOSTS, hosts), hepspec06=_hepspec(hosts)),
        storage=tuple(binding for each in bindings for binding in _storage(each)),
        published=placeholders(ELEMENT, ce) + placeholders(HOSTS, hosts),
    )


_BINDING = (
    A("storage_element", "GlueCESEBindSEUniqueID"),
    A("mount_point", "GlueCESEBindMountInfo"),
    A("access_point", "GlueCESEBindCEAccesspoint"),
)


def _storage(texts: Texts) -> list[StorageBinding]:
    said = fields(_BINDING, texts)
    if not said["storage_element"]:
        return []
    mount = said["mount_point"] or said["access_point"]
    # «n.a» is what sites publish of storage that is not mounted.
    point = "" if mount.casefold().rstrip(".") in ("n.a", "n/a") else mount
    return [StorageBinding(storage_element=said["storage_element"], mount_point=point)]


def _hepspec(hosts: Texts) -> float | None:
    """Return the HEP-SPEC06 number in the description of hosts, published as `Benchmark=12.5-HEP-SPEC06`; None if there is none.

    The form is that of WLCG's rules for installed capacity (2009).
    """
    for name, values in hosts.items():
        if name.casefold() != OTHER_DESCRIPTION.casefold():
            continue
        for part in ",".join(values).split(","):
            key, _, value = part.strip().partition("=")
            if key == "Benchmark" and value.endswith(_HEPSPEC):
                return _decimal(value.removesuffix(_HEPSPEC))
    return None


def _decimal(text: str) -> float | None:
    whole, _, fraction = text.partition(".")
    return float(text) if (whole + fraction).isdecimal() and len(text) < 20 else None
