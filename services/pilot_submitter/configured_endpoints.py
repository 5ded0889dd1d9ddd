"""Makes the endpoints of computing elements from the configuration: one dispatcher for this machine, and one for each other element."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from services.pilot_submitter.ce_endpoints import CeEndpoint, CeEndpoints, EndpointSettings
from services.pilot_submitter.config import (
    ArcSettings,
    BatchSystemSettings,
    Config,
    ElementSettings,
    HTCondorSettings,
    LsfSettings,
    MappingScriptSettings,
    PbsSettings,
    PilotFactorySettings,
    SlurmSettings,
)
from services.pilot_submitter.gateway_access import store_access
from services.pilot_submitter.script_answers import SandboxedScript, ScriptAnswers
from wms.dispatch.agent_file import AgentFile
from wms.dispatch.bubblewrap import Bubblewrap
from wms.dispatch.confinement import SECRETS, Confinement, own_programs
from wms.dispatch.forwarding import HostRequestTerms
from wms.dispatch.htcondor import CondorPool, HTCondorDispatcher
from wms.dispatch.local import LocalDispatcher, agent_argv
from wms.dispatch.lsf import LsfCluster, LsfDispatcher
from wms.dispatch.mapping import Kind
from wms.dispatch.mapping_script import ANSWER_LIMIT, MappingScript
from wms.dispatch.pbs import PbsDispatcher, PbsServer
from wms.dispatch.port import Dispatcher
from wms.dispatch.slurm import Cluster, SlurmDispatcher
from wms.errors import Rejected
from wms.ids import CeId

PROXIES = ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy")
"""The environment variables that name the proxy by which a machine reaches the gateway."""
PASSED_ON = (
    "PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "CUDA_VISIBLE_DEVICES", "WMS_SYSTEM", "WMS_AGENT_CACHE", *PROXIES
)  # fmt: skip
"""The environment variables that pilots on this machine inherit from the service."""
LSF_PROFILE = ("LSF_ENVDIR", "LSF_SERVERDIR", "LSF_BINDIR", "LSF_LIBDIR", "LD_LIBRARY_PATH")
"""The environment variables of LSF's profile, which its tools need."""
PASSED_TO_TOOLS = ("PATH", "HOME", "LANG", "LC_ALL", "USER", "LOGNAME", "CONDOR_CONFIG", *LSF_PROFILE)
"""The environment variables that a batch system's tools inherit from the service. Pilots that they submit inherit them too."""


def configured_endpoints_of(config: Config, environment: Mapping[str, str]) -> CeEndpoints:
    """Return the endpoints of all configured computing elements; `environment` has the environment variables of this process.

    Raise Rejected if an element is configured twice, or if a mapping script cannot run in a sandbox.
    """
    passed = {name: environment[name] for name in PASSED_ON if name in environment}
    place = Path(config.pilots.directory)
    agent = _shared_agent([], config.pilots, place)
    local = LocalDispatcher(place, agent, passed, confinement_of(config, agent))
    endpoints = list(_configured(config, environment))
    places = [endpoint.place for endpoint in endpoints]
    if twice := next((place for place in places if places.count(place) > 1), None):
        raise Rejected("CONFIG_INVALID", f"the element {twice[1]} of {twice[0]} is configured twice")
    terms = EndpointSettings(direct_trusted=tuple(config.pilots.direct_trusted))
    return CeEndpoints(
        local, time.monotonic, endpoints, local_sites=config.pilots.local_sites, local_terms=terms
    )


def confinement_of(config: Config, agent: Sequence[str]) -> Confinement:
    """Return the confinement of pilots on this machine, whose command line is `agent`.

    It hides all pilots' directories, the keys, the sandbox store and directories with credentials. Pilots that use Kafka reach
    more than that, so they are trusted and not confined.
    """
    pilots, store = config.pilots, urlsplit(config.sandboxes.url)
    secrets = [str(Path.home() / name) for name in SECRETS]
    hidden = [*pilots.hidden, pilots.directory, pilots.keys, *secrets]
    if store.scheme == "file":
        hidden.append(unquote(store.path))
    transfers = config.transfers
    identity, s3 = transfers.identity, transfers.s3
    files = [
        transfers.catalogue,
        identity.proxy_file,
        identity.token_file,
        identity.authorities,
        s3.credentials_file,
    ]
    return Confinement(
        mode=pilots.isolation if pilots.link == "gateway" else "none",
        hidden=tuple(str(Path(each).absolute()) for each in hidden),
        shown=tuple(
            each
            for each in (*own_programs(), *agent, *files)
            if Path(each).is_absolute() and Path(each).exists()
        ),
        shared=tuple(transfers.access.directories),
        lifeline=pilots.lifeline,
    )


def _configured(config: Config, environment: Mapping[str, str]) -> Iterator[CeEndpoint]:
    for slurm in config.slurm:
        terms = _terms("slurm", slurm, constraint=slurm.constraint, gres=slurm.gres)
        yield _endpoint(slurm, _slurm(slurm, environment), terms)
    for arc in config.arc:
        yield _endpoint(arc, _arc(arc), _terms("arc", arc))
    for htcondor in config.htcondor:
        terms = _terms("htcondor", htcondor, constraint=htcondor.constraint)
        yield _endpoint(htcondor, _htcondor(htcondor, environment), terms)
    for pbs in config.pbs:
        terms = _terms("pbs" if pbs.flavour == "torque" else "pbspro", pbs, constraint=pbs.constraint)
        yield _endpoint(pbs, _pbs(pbs, environment), terms._replace(kind="pbs"))
    for lsf in config.lsf:
        terms = _terms("lsf", lsf, constraint=lsf.constraint, gres=lsf.resources)
        yield _endpoint(lsf, _lsf(lsf, environment), terms)


def _endpoint(settings: ElementSettings, dispatcher: Dispatcher, terms: EndpointSettings) -> CeEndpoint:
    place = CeId(settings.site, settings.ce)
    return CeEndpoint(
        place, dispatcher, time.monotonic, terms, _script_answers(place, settings.mapping_script)
    )


def _script_answers(place: CeId, settings: MappingScriptSettings | None) -> ScriptAnswers | None:
    """Return an object that runs the mapping script of element `place` and caches its answers; None without settings for one.

    Raise Rejected if the script cannot run in a sandbox.
    """
    if settings is None:
        return None
    reads = tuple(Path(each).absolute() for each in settings.reads)
    sandbox = Bubblewrap(Path(settings.path).absolute(), reads, settings.seconds, ANSWER_LIMIT)
    if fault := sandbox.fault():
        raise Rejected(
            "CONFIG_INVALID",
            f"the mapping script of {'/'.join(place)} {fault}",
            "install bubblewrap, or leave `mapping_script` out: what it is for is then looked at on the nodes",
        )
    return ScriptAnswers(SandboxedScript(place, sandbox), time.monotonic)


def _terms(
    kind: Kind, settings: ElementSettings, *, constraint: str = "", gres: str = ""
) -> EndpointSettings:
    asks = HostRequestTerms(
        kind=kind,
        rules=settings.mapping,
        walltime_seconds=int(settings.lifetime_seconds + settings.drain_seconds),
        constraint=constraint,
        gres=gres,
        attributes=settings.attributes,
        script=_script(settings.mapping_script),
    )
    return EndpointSettings(
        kind=kind,
        lifetime_seconds=settings.lifetime_seconds,
        sandboxes=(
            store_access(settings.sandboxes_url, settings.sandboxes_authorities)
            if settings.sandboxes_url
            else None
        ),
        asks=asks,
        software=settings.software,
        transfers=settings.transfers,
        follow_every_seconds=settings.follow_every_seconds,
        link=settings.link,
        direct_trusted=tuple(settings.direct_trusted),
    )


def _script(settings: MappingScriptSettings | None) -> MappingScript | None:
    if settings is None:
        return None
    return MappingScript(attributes=tuple(settings.attributes), options=tuple(settings.options))


def _slurm(settings: SlurmSettings, environment: Mapping[str, str]) -> SlurmDispatcher:
    cluster = Cluster(settings.configuration, settings.partition, settings.account)
    place = Path(settings.directory)
    agent = _shared_agent(settings.agent, settings, place)
    return SlurmDispatcher(cluster, place, agent, _for_tools(settings, environment))


def _htcondor(settings: HTCondorSettings, environment: Mapping[str, str]) -> HTCondorDispatcher:
    pool = CondorPool(settings.pool, settings.schedd)
    agent, carried = _carried_agent(settings)
    return HTCondorDispatcher(
        pool, Path(settings.directory), agent, _for_tools(settings, environment), carried
    )


def _pbs(settings: PbsSettings, environment: Mapping[str, str]) -> PbsDispatcher:
    server = PbsServer(
        settings.flavour, settings.server, settings.queue, settings.account, settings.name_length
    )
    place = Path(settings.directory)
    agent = _shared_agent(settings.agent, settings, place)
    return PbsDispatcher(server, place, agent, _for_tools(settings, environment))


def _lsf(settings: LsfSettings, environment: Mapping[str, str]) -> LsfDispatcher:
    cluster = LsfCluster(settings.configuration, settings.queue, settings.project)
    place = Path(settings.directory)
    agent = _shared_agent(settings.agent, settings, place)
    return LsfDispatcher(cluster, place, agent, _for_tools(settings, environment))


def _for_tools(settings: BatchSystemSettings, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of an element's tools. Their directory goes before the PATH, since some tools start others."""
    passed = {name: environment[name] for name in PASSED_TO_TOOLS if name in environment}
    if not settings.tools:
        return passed
    return {**passed, "PATH": f"{settings.tools}:{environment.get('PATH', os.defpath)}"}


def _arc(settings: ArcSettings) -> Dispatcher:
    from wms.dispatch.arc import ArcDispatcher
    from wms.dispatch.arc_rest import ArcEndpoint

    element = ArcEndpoint(
        url=settings.url,
        queue=settings.queue,
        proxy=settings.proxy,
        token=settings.token,
        authorities=settings.authorities,
    )
    agent, carried = _carried_agent(settings)
    return ArcDispatcher(element, agent, carried, stages=settings.staging)


def _shared_agent(
    agent: list[str], settings: ElementSettings | PilotFactorySettings, directory: Path
) -> list[str]:
    """Return the command line of a job agent on nodes that share `directory` with this machine.

    It runs the configured agent file, which is copied to `directory`; without one, `agent`, or else this installation's agent.
    """
    if settings.agent_file:
        return AgentFile(Path(settings.agent_file), settings.python).shared_argv(directory)
    return agent or agent_argv()


def _carried_agent(settings: ElementSettings) -> tuple[list[str], Path | None]:
    """Return the command line of a job agent on nodes that share no directory, and the agent file sent with each pilot.

    The file is None if none is configured: then the command is the configured one, or that of this installation.
    """
    if not settings.agent_file:
        return settings.agent or agent_argv(), None
    file = AgentFile(Path(settings.agent_file), settings.python)
    file.check()
    return file.argv, file.path
