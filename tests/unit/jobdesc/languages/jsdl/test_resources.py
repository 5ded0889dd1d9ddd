from typing import Any

import pytest

from tests.unit.jobdesc.languages.jsdl.documents import document, fates, only
from wms.jobdesc.languages.jsdl.definition import read_jsdl

GIB = 2**30


def resources(text: str) -> bytes:
    return document(parts=f"<Resources>{text}</Resources>")


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("<CandidateHosts><HostName>ce.x</HostName></CandidateHosts>", "grid_ces", ("ce.x",)),
        ("<ExclusiveExecution>1</ExclusiveExecution>", "whole_node", True),
        ("<TotalCPUCount><Exact>4</Exact></TotalCPUCount>", "processors", 4),
        (
            "<IndividualCPUCount><LowerBoundedRange>2</LowerBoundedRange></IndividualCPUCount>",
            "min_processors",
            2,
        ),
        (f"<TotalPhysicalMemory><Exact>{GIB}</Exact></TotalPhysicalMemory>", "memory_mb", 1024),
        (
            f"<IndividualDiskSpace><LowerBoundedRange>{GIB}</LowerBoundedRange></IndividualDiskSpace>",
            "disk_mb",
            1024,
        ),
        ("<TotalCPUTime><UpperBoundedRange>90</UpperBoundedRange></TotalCPUTime>", "cpu_time", 90),
        (
            "<IndividualCPUTime><Exact>90</Exact></IndividualCPUTime><TotalCPUCount><Exact>4</Exact></TotalCPUCount>",
            "cpu_time",
            360,
        ),
        (
            "<CPUArchitecture><CPUArchitectureName>x86_64</CPUArchitectureName></CPUArchitecture>",
            "requirements",
            '(other.GlueHostArchitecturePlatformType == "x86_64")',
        ),
        (
            "<IndividualCPUSpeed><LowerBoundedRange>2e9</LowerBoundedRange></IndividualCPUSpeed>",
            "requirements",
            "(other.GlueHostProcessorClockSpeed >= 2000)",
        ),
    ],
)
def test_what_a_job_asks_for(text: str, field: str, value: Any) -> None:
    assert getattr(only(resources(text)), field) == value


@pytest.mark.parametrize(
    "text",
    [
        "<TotalResourceCount><Exact>2</Exact></TotalResourceCount>",
        "<IndividualNetworkBandwidth><Exact>2</Exact></IndividualNetworkBandwidth>",
        "<TotalPhysicalMemory><UpperBoundedRange>2</UpperBoundedRange></TotalPhysicalMemory>",
        "<TotalPhysicalMemory><Exact>NaN</Exact></TotalPhysicalMemory>",
    ],
)
def test_what_no_resource_tells_is_impossible(text: str) -> None:
    assert "impossible" in [fate for fate, _ in fates(read_jsdl(resources(text))).values()]


def test_linux_needs_no_requirement() -> None:
    name = "<OperatingSystemType><OperatingSystemName>LINUX</OperatingSystemName></OperatingSystemType>"
    assert only(resources(f"<OperatingSystem>{name}</OperatingSystem>")).requirements == ""
    other = name.replace("LINUX", "Solaris")
    assert "Solaris" in only(resources(f"<OperatingSystem>{other}</OperatingSystem>")).requirements


def test_a_mounted_file_system_stands_before_its_paths() -> None:
    system = '<Resources><FileSystem name="HOME"><MountPoint>/home/x</MountPoint></FileSystem></Resources>'
    found = only(document('<p:Executable filesystemName="HOME">bin/y</p:Executable>', parts=system))
    assert found.executable == "/home/x/bin/y"
