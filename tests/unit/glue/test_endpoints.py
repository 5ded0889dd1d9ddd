"""Services of several endpoints and managers: which of them a queue is reached by, and whether it takes jobs."""

import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from wms.glue import versions
from wms.glue.ad import attributes
from wms.glue.arc_json import read_arc_json
from wms.glue.glue1 import GlueComputingElement
from wms.glue.glue2 import Endpoint, Environment, Manager, Service, Share
from wms.glue.glue2_xml import read_xml, write_xml
from wms.glue.offer import takes_jobs

DATA = Path(__file__).parents[2] / "data" / "glue"


MAKES = ("executionmanagement.jobcreation",)


def of_endpoints(document: str, **states: str) -> str:
    """Return ARC's document with other states of its endpoints; those of its shares are as they were."""

    def other(match: re.Match[str]) -> str:
        text = match.group(0)
        for name, state in states.items():
            text = re.sub(rf"<{name}>\w+</{name}>", f"<{name}>{state}</{name}>", text)
        return text

    return re.sub(r"<ComputingEndpoint .*?</ComputingEndpoint>", other, document, flags=re.DOTALL)


@pytest.mark.parametrize(
    ("serving", "health", "status"),
    [
        ("production", "ok", "Production"),
        ("production", "warning", "Production"),
        ("production", "unknown", "Production"),
        ("queueing", "ok", "Queueing"),
        ("draining", "ok", "Draining"),
        ("closed", "ok", "Closed"),
        ("production", "critical", "Closed"),
    ],
)
def test_an_endpoints_states_hold_beside_its_shares(serving: str, health: str, status: str):
    text = of_endpoints((DATA / "arc.xml").read_text(), ServingState=serving, HealthState=health)
    queues = [each for service in read_xml(text.encode()) for each in versions.elements(service)]
    assert [each.status for each in queues] == [status, status]
    assert takes_jobs(queues[0]) == (status in ("Production", "Queueing"))


def endpoint(name: str, host: str, **of: str) -> Endpoint:
    said = {"url": f"condor://{host}/q", "health_state": "ok", "serving_state": "production"} | of
    return Endpoint(id=name, capabilities=MAKES, **said)  # type: ignore[arg-type] # as said


def a_service() -> Service:
    """Return a service of two batch systems behind two hosts; the second is also reached by a third."""
    return Service(
        id="urn:s",
        endpoints=(endpoint("e1", "ce01"), endpoint("e2", "ce02"), endpoint("e3", "ce03")),
        shares=(
            Share(id="s1", name="long", queue="long", endpoints=("e1",), environments=("x1",)),
            Share(id="s2", name="long", queue="long", endpoints=("e2", "e3"), environments=("x2",)),
            Share(id="s3", name="short", queue="short", endpoints=("e3",), environments=("x2",)),
        ),
        managers=(
            Manager(id="m1", product_name="condor", total_slots=10),
            Manager(id="m2", product_name="slurm", total_slots=20),
        ),
        environments=(
            Environment(id="x1", manager="m1", memory_mb=1_000),
            Environment(id="x2", manager="m2", memory_mb=2_000),
        ),
    )


def reached(queues: list[GlueComputingElement]) -> list[tuple[str, str, str, object]]:
    return [(each.name, each.contact, each.lrms_type, each.total_cpus) for each in queues]


LINKED = [
    ("long", "condor://ce01/q", "condor", 10),
    ("long", "condor://ce02/q", "slurm", 20),
    ("short", "condor://ce03/q", "slurm", 20),
]


def test_each_share_goes_with_the_endpoints_and_the_manager_that_it_is_linked_to():
    queues = versions.elements(a_service())
    assert reached(queues) == LINKED
    assert [each.hosts.memory_mb for each in queues] == [1_000, 2_000, 2_000]
    assert [each.hosting_cluster for each in queues] == ["ce01", "ce02", "ce03"]
    assert queues[1].contacts == ("condor://ce02/q", "condor://ce03/q")
    assert len({each.id for each in queues}) == 3


def test_of_several_endpoints_the_first_that_works_is_used_and_all_are_kept():
    service = a_service()
    for broken in ({"health_state": "critical"}, {"serving_state": "draining"}, {"health_state": "unknown"}):
        first = endpoint("e2", "ce02", **broken)
        queues = versions.elements(
            replace(service, endpoints=(service.endpoints[0], first, service.endpoints[2]))
        )
        (long,) = (each for each in queues if each.lrms_type == "slurm" and each.name == "long")
        assert long.contacts == ("condor://ce03/q", "condor://ce02/q")
        assert long.status == "Production", "one of them takes jobs"
        assert attributes(long)["ContactStrings"] == list(long.contacts)


def test_links_of_xml_are_read():
    (read,) = read_xml(write_xml([a_service()]))
    assert reached(versions.elements(read)) == LINKED


def test_links_of_json_are_read():
    text = (DATA / "arc.json").read_text().replace("localhost:18443", "ce.example.org")
    queues = [each for service in read_arc_json(text.encode()) for each in versions.elements(service)]
    assert {each.contact for each in queues} == {"https://ce.example.org/arex"}
