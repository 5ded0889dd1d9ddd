"""GLUE in LDIF."""

import re

import pytest

from tests.unit.glue.published import DATA
from wms.discovery.document import read_index
from wms.errors import Rejected
from wms.glue import ldif, versions


def test_ldif_is_read_with_its_foreign_keys():
    [service] = ldif.glue2_services(ldif.read_ldif((DATA / "arc.ldif").read_bytes())[0])
    by_name = {share.name: share for share in service.shares}
    assert by_name.keys() == {"main", "main_celab", "short", "short_celab"}
    assert by_name["main_celab"].rules == by_name["short_celab"].rules == ("vo:celab",)
    assert by_name["main"].max_wall_seconds == 604_800
    assert [manager.total_slots for manager in service.managers] == [320]
    assert {each.name: each.logical_cpus for each in service.environments} == {"execenv0": 8, "execenv1": 8}


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (b"dn x\n", "GLUE_INVALID"),
        (b"dn:: ?\n", "GLUE_INVALID"),
        (b"dn:: \xff\n", "GLUE_INVALID"),
        (b"dn: x\n" * 500, "GLUE_TOO_LARGE"),
    ],
)
def test_hostile_ldif_is_refused(document: bytes, code: str):
    with pytest.raises(Rejected) as refused:
        ldif.read_ldif(document, limit=2_000)
    assert refused.value.code == code


def test_links_of_ldif_are_read():
    lines = []
    for name, host in (("e1", "ce01"), ("e2", "ce02")):
        lines += [
            f"dn: GLUE2EndpointID={name}",
            "objectClass: GLUE2ComputingEndpoint",
            f"GLUE2EndpointID: {name}",
        ]
        lines += [f"GLUE2EndpointURL: condor://{host}/q", "GLUE2EndpointServiceForeignKey: s"]
        lines += ["GLUE2EndpointCapability: executionmanagement.jobcreation", ""]
    lines += ["dn: GLUE2ServiceID=s", "objectClass: GLUE2ComputingService", "GLUE2ServiceID: s", ""]
    lines += ["dn: GLUE2ShareID=q", "objectClass: GLUE2ComputingShare", "GLUE2ShareID: q"]
    lines += ["GLUE2ComputingShareMappingQueue: q", "GLUE2ShareServiceForeignKey: s"]
    lines += ["GLUE2ComputingShareComputingEndpointForeignKey: e2", ""]
    (read,) = ldif.glue2_services(ldif.read_ldif("\n".join(lines).encode())[0])
    (queue,) = versions.elements(read)
    assert queue.contact == "condor://ce02/q"


BDII = (DATA / "bdii.ldif").read_bytes()


BROKEN = b"\ndn: GlueCEUniqueID=broken\nobjectClass: GlueCE\nno colon here\nGlueCEUniqueID: broken\n"


@pytest.mark.parametrize("line", [b"no colon here", b"GlueCEName:: ?"])
def test_a_bad_line_of_ldif_loses_its_entry_alone_and_is_told(line: bytes):
    entries, faults = ldif.read_ldif(BDII + BROKEN.replace(b"no colon here", line))
    number = BDII.count(b"\n") + 4
    assert [each.id for each in ldif.glue1_elements(entries)] == [
        each.id for each in ldif.glue1_elements(ldif.read_ldif(BDII)[0])
    ]
    (fault,) = faults
    assert f"line {number} is not" in fault
    assert fault.endswith("GlueCEUniqueID=broken")
    told = read_index(BDII + BROKEN, "file:///x.ldif")
    assert len(told.elements) == 1
    assert told.passed_over[0][1].startswith("line")
    with pytest.raises(Rejected, match="line 3 is not LDIF"):
        ldif.read_ldif(BROKEN.lstrip())


def test_ids_of_ldif_are_compared_without_regard_to_case():
    (plain,) = ldif.glue1_elements(ldif.read_ldif(BDII)[0])
    shouting = re.sub(rb"(GlueForeignKey: GlueClusterUniqueID=|GlueCEHostingCluster: )(\S+)", _upper, BDII)
    assert shouting != BDII
    (read,) = ldif.glue1_elements(ldif.read_ldif(shouting)[0])
    assert (read.hosts, read.site, read.storage) == (plain.hosts, plain.site, plain.storage)


def _upper(match: re.Match[bytes]) -> bytes:
    return match.group(1) + match.group(2).upper()


def test_an_element_whose_class_is_said_again_is_one():
    entry = b"dn: GlueCEUniqueID=ce/q\n" + b"objectClass: GlueCE\n" * 9 + b"GlueCEUniqueID: ce/q\n"
    assert len(ldif.glue1_elements(ldif.read_ldif(entry)[0])) == 1
