"""Conversion between the versions of GLUE: between shares of a service (2.0) and the computing element of their queue (1.x).

A GLUE 1.x element is one queue at one endpoint. ARC publishes each queue as several shares over the same slots: one of the queue
itself and one for each VO that may use it. They become one element with the access rules of all. No number is counted twice: the
slots are the manager's, and the free slots are those of the queue's shares, but never more than the manager has free.
"""

import re
from collections.abc import Iterable, Sequence

from wms.glue import glue2
from wms.glue.endpoints import endpoints_of, environments_of, host_of, manager_of, serving_state
from wms.glue.glue1 import GlueComputingElement, GlueHosts
from wms.glue.glue1 import StorageBinding as Binding1
from wms.glue.glue2 import (
    Application,
    Benchmark,
    Endpoint,
    Environment,
    Manager,
    Service,
    Share,
    ToStorageService,
)
from wms.glue.quantity import UNKNOWN, Quantity, known, least
from wms.ids import slug

_ID = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]*")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
STATUS = {"production": "Production", "queueing": "Queueing", "draining": "Draining", "closed": "Closed"}
"""The queue states of GLUE 1.x, by the corresponding states of GLUE 2.0."""
_STATE = {status.casefold(): state for state, status in STATUS.items()}
_HEPSPEC_TYPES = frozenset(
    {"hepspec", "hep-spec06", "hepspec06", "hepscore", "hepscore23", "bmk:hep-spec06", "hs06"}
)
SI00, SF00 = "specint2000", "specfp2000"


def elements(service: Service) -> list[GlueComputingElement]:
    """Return the GLUE 1.x elements of a service: one for each combination of queue, manager and endpoint host."""
    return [
        _element(service, queue, shares)
        for queue, all_shares in sorted(glue2.by_queue(service.shares).items())
        for _, shares in sorted(_apart(service, all_shares).items())
    ]


def _apart(service: Service, shares: Sequence[Share]) -> dict[tuple[str, str], list[Share]]:
    """Return the shares of one queue in groups, by their manager and the host of their endpoint."""
    found: dict[tuple[str, str], list[Share]] = {}
    for each in shares:
        doors = endpoints_of(service, [each])
        host = host_of(doors[0].url) if doors else ""
        found.setdefault((manager_of(service, [each]).id, host), []).append(each)
    return found


def _element(service: Service, queue: str, shares: Sequence[Share]) -> GlueComputingElement:
    """Return the GLUE 1.x element of a queue, given its shares at one manager and host."""
    own = min(shares, key=lambda share: (bool(share.rules), share.id))
    manager = manager_of(service, shares)
    endpoints = endpoints_of(service, shares)
    endpoint = next(iter(endpoints), Endpoint(id=""))
    host = host_of(endpoint.url)
    state = serving_state(shares, endpoints)
    free = _free(service, manager, shares)
    running = _plus(own.running_jobs, own.local_running_jobs)
    waiting = _plus(own.waiting_jobs, own.local_waiting_jobs)
    return GlueComputingElement(
        id=f"{host or service.id}/{manager.product_name or 'batch'}-{queue}",
        name=queue,
        hosting_cluster=host.partition(":")[0],
        implementation_name=endpoint.implementation_name,
        implementation_version=endpoint.implementation_version,
        host_name=host,
        contact=endpoint.url,
        contacts=tuple(dict.fromkeys(each.url for each in endpoints if each.url)),
        lrms_type=manager.product_name,
        lrms_version=manager.product_version,
        total_cpus=manager.total_slots,
        application_dir=manager.application_dir,
        status=STATUS.get(state, state),
        running_jobs=running,
        waiting_jobs=waiting,
        total_jobs=_plus(running, waiting) if known(waiting) is not None else own.total_jobs,
        estimated_response_seconds=own.average_wait_seconds,
        worst_response_seconds=own.worst_wait_seconds,
        free_cpus=free,
        free_job_slots=free,
        max_wall_seconds=own.max_wall_seconds,
        max_cpu_seconds=own.max_cpu_seconds,
        max_running_jobs=own.max_running_jobs,
        max_waiting_jobs=own.max_waiting_jobs,
        max_total_jobs=own.max_total_jobs,
        max_slots_per_job=own.max_slots_per_job,
        preemption=own.preemption,
        access_rules=_rules1(rule for share in shares for rule in share.rules),
        hosts=_hosts(service, shares),
        storage=tuple(
            Binding1(storage_element=each.storage_service or each.id, mount_point=each.local_path)
            for each in service.storage
        ),
    )


def _plus(grid: Quantity, local: Quantity) -> Quantity:
    """Return the sum of grid jobs and local jobs, which GLUE 1.x does not count separately.

    `UNKNOWN` if the number of grid jobs is.
    """
    ours, others = known(grid), known(local)
    return UNKNOWN if ours is None else ours + (others or 0)


def _free(service: Service, manager: Manager, shares: Sequence[Share]) -> Quantity:
    seen = max((free for each in shares if (free := known(each.free_slots)) is not None), default=None)
    left = manager.free_slots if len(service.managers) > 1 else glue2.free_slots(service)
    told = [each for each in (seen, left) if each is not None]
    return min(told) if told else UNKNOWN


def _hosts(service: Service, shares: Sequence[Share]) -> GlueHosts:
    """Return the common properties of the environments (machines) of a queue. A number is the least in any of them."""
    found = environments_of(service, shares) or list(service.environments)
    if not found:
        return GlueHosts(applications=_applications(service))
    example = min(found, key=lambda each: known(each.memory_mb) or 0)
    return GlueHosts(
        id=example.id,
        name=example.name,
        logical_cpus=_cpus(found),
        smp_size=_least(each.logical_cpus for each in found),
        platform_type=_platform1(example.platform),
        processor_vendor=example.cpu_vendor,
        processor_model=example.cpu_model,
        clock_mhz=_least(each.cpu_clock_mhz for each in found),
        memory_mb=_least(each.memory_mb for each in found),
        virtual_memory_mb=_least(each.virtual_memory_mb for each in found),
        os_name=example.os_name,
        os_release=example.os_version,
        si00=_whole(_benchmark(found, {SI00})),
        sf00=_whole(_benchmark(found, {SF00})),
        hepspec06=_benchmark(found, _HEPSPEC_TYPES),
        inbound=_all(each.inbound for each in found),
        outbound=_all(each.outbound for each in found),
        applications=_applications(service),
    )


def _applications(service: Service) -> tuple[str, ...]:
    return tuple(sorted({each.text for each in service.applications if each.text}))


def _cpus(environments: Sequence[Environment]) -> Quantity:
    """Return the number of processors of all machines of the environments; unknown if one does not publish its own."""
    total = 0
    for each in environments:
        machines, cpus = known(each.total_instances), known(each.logical_cpus)
        if machines is None or cpus is None:
            return UNKNOWN
        total += machines * cpus
    return total or UNKNOWN


def _least(quantities: Iterable[Quantity]) -> Quantity:
    found = least(quantities)
    return UNKNOWN if found is None else found


def _all(flags: Iterable[bool | None]) -> bool | None:
    told = [each for each in flags if each is not None]
    return all(told) if told else None


def _benchmark(environments: Sequence[Environment], types: Iterable[str]) -> float | None:
    """Return the least result of a benchmark whose type is in `types` (lower case); None if there is none.

    A result of 1.0 or less is a placeholder and ignored.
    """
    results = [
        each.value
        for environment in environments
        for each in environment.benchmarks
        if each.type.casefold() in types and each.value is not None and each.value > 1.0
    ]
    return min(results, default=None)


def _whole(number: float | None) -> Quantity:
    return UNKNOWN if number is None else int(number)


def _platform1(platform: str) -> str:
    return {"amd64": "x86_64"}.get(platform, platform)


def _platform2(platform: str) -> str:
    return {"x86_64": "amd64"}.get(platform, platform)


def _rules1(rules: Iterable[str]) -> tuple[str, ...]:
    """Return access rules in the form of GLUE 1.x: `vo:` becomes `VO:`; others (VOMS:, DNs) stay unchanged."""
    return tuple(dict.fromkeys(f"VO:{rule[3:]}" if rule.startswith("vo:") else rule for rule in rules))


def _rules2(rules: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"vo:{rule[3:]}" if rule.startswith("VO:") else rule for rule in rules)


def services(found: Iterable[GlueComputingElement]) -> list[Service]:
    """Return GLUE 2.0 services for GLUE 1.x computing elements, one for each cluster."""
    clusters: dict[str, list[GlueComputingElement]] = {}
    for each in found:
        clusters.setdefault(_cluster(each), []).append(each)
    return [service(each) for each in clusters.values()]


def _cluster(element: GlueComputingElement) -> str:
    return element.hosting_cluster or element.host_name or element.id


def service(found: Sequence[GlueComputingElement], *, name: str = "") -> Service:
    """Return a GLUE 2.0 service whose shares are the queues of one cluster.

    `found` has the GLUE 1.x elements of these queues, at least one. `name` is the name of the service; empty: that of the cluster.
    """
    first = found[0]
    root = _identifier("urn:wms", _cluster(first))
    manager = f"{root}:manager"
    door = f"{root}:endpoint"
    return Service(
        id=f"{root}:service",
        name=name or first.hosting_cluster,
        capabilities=("executionmanagement.jobexecution",),
        type="org.wms.computing",
        quality_level="production",
        endpoints=(
            Endpoint(
                id=door,
                url=first.contact or _identifier("urn:wms", first.host_name or "unknown"),
                capabilities=("executionmanagement.jobcreation",),
                interface_name="org.wms.pilot",
                implementation_name=first.implementation_name,
                implementation_version=first.implementation_version,
                quality_level="production",
                health_state="ok",
                serving_state=_STATE.get(first.status.casefold(), glue2.PRODUCTION),
                shares=tuple(_share_id(root, each) for each in found),
            ),
        ),
        shares=tuple(_share(root, door, each) for each in found),
        managers=(
            Manager(
                id=manager,
                product_name=first.lrms_type,
                product_version=first.lrms_version,
                total_slots=_most(each.total_cpus for each in found),
                application_dir=first.application_dir,
            ),
        ),
        environments=tuple(_environment(root, manager, each) for each in found),
        applications=_installed(root, manager, found),
        storage=_bound(root, found),
    )


def _identifier(root: str, *words: str) -> str:
    """Return an identifier made of `root` and `words` in the few characters that the schema allows.

    Different words give different identifiers.
    """
    return ":".join((root, *(word if _PLAIN.fullmatch(word) else slug(word) for word in words)))


def _as_id(name: str) -> str:
    """Return the identifier of an entity named by another system: this name if the schema allows it, else one made of the name."""
    return name if _ID.fullmatch(name) else _identifier("urn:wms", name)


def _share_id(root: str, element: GlueComputingElement) -> str:
    return _identifier(root, "share", element.name)


def _share(root: str, door: str, element: GlueComputingElement) -> Share:
    return Share(
        id=_share_id(root, element),
        name=element.name,
        queue=element.name,
        max_wall_seconds=element.max_wall_seconds,
        max_cpu_seconds=element.max_cpu_seconds,
        max_total_jobs=element.max_total_jobs,
        max_running_jobs=element.max_running_jobs,
        max_waiting_jobs=element.max_waiting_jobs,
        max_slots_per_job=element.max_slots_per_job,
        preemption=element.preemption,
        serving_state=_STATE.get(element.status.casefold(), glue2.PRODUCTION),
        total_jobs=element.total_jobs,
        running_jobs=element.running_jobs,
        waiting_jobs=element.waiting_jobs,
        average_wait_seconds=element.estimated_response_seconds,
        worst_wait_seconds=element.worst_response_seconds,
        free_slots=element.free_job_slots if known(element.free_job_slots) is not None else element.free_cpus,
        endpoints=(door,),
        environments=(_identifier(root, "environment", element.name),),
        rules=_rules2(element.access_rules),
    )


def _environment(root: str, manager: str, element: GlueComputingElement) -> Environment:
    hosts = element.hosts
    cpus, each = known(hosts.logical_cpus), known(hosts.smp_size)
    return Environment(
        id=_identifier(root, "environment", element.name),
        name=hosts.name,
        platform=_platform2(hosts.platform_type),
        total_instances=cpus // each if cpus is not None and each and cpus % each == 0 else UNKNOWN,
        logical_cpus=hosts.smp_size,
        cpu_vendor=hosts.processor_vendor,
        cpu_model=hosts.processor_model,
        cpu_clock_mhz=hosts.clock_mhz,
        memory_mb=hosts.memory_mb,
        virtual_memory_mb=hosts.virtual_memory_mb,
        os_family="linux",
        os_name=hosts.os_name,
        os_version=hosts.os_release,
        inbound=hosts.inbound,
        outbound=hosts.outbound,
        manager=manager,
        shares=(_share_id(root, element),),
        benchmarks=_benchmarks(root, element),
    )


def _benchmarks(root: str, element: GlueComputingElement) -> tuple[Benchmark, ...]:
    hosts = element.hosts
    results = {SI00: known(hosts.si00), SF00: known(hosts.sf00), "hep-spec06": hosts.hepspec06}
    return tuple(
        Benchmark(id=_identifier(root, "benchmark", element.name, type_), type=type_, value=float(result))
        for type_, result in results.items()
        if result is not None
    )


def _installed(root: str, manager: str, found: Sequence[GlueComputingElement]) -> tuple[Application, ...]:
    names = sorted({name for each in found for name in each.hosts.applications})
    return tuple(
        Application(id=_identifier(root, "application", name), app_name=name, manager=manager)
        for name in names
    )


def _bound(root: str, found: Sequence[GlueComputingElement]) -> tuple[ToStorageService, ...]:
    mounts = {each.storage_element: each.mount_point for element in found for each in element.storage}
    return tuple(
        ToStorageService(
            id=_identifier(root, "storage", name), local_path=mount, storage_service=_as_id(name)
        )
        for name, mount in mounts.items()
    )


def _most(quantities: Iterable[Quantity]) -> Quantity:
    numbers = [number for each in quantities if (number := known(each)) is not None]
    return max(numbers, default=UNKNOWN)
