"""EMI's activity descriptions, as ARC reads them."""

import pytest

from tests.unit.jobdesc.languages.reading import fates, one
from wms.jobdesc import InvalidDescription
from wms.jobdesc.languages.adl import looks_like, read
from wms.jobdesc.languages.translation import LocalFile

WHOLE = """<?xml version="1.0" encoding="UTF-8"?>
<ActivityDescription xmlns="http://www.eu-emi.eu/es/2010/12/adl" xmlns:ng="http://www.nordugrid.org/es/2011/12/nordugrid-adl">
  <ActivityIdentification><Name>analysis</Name><Type>single</Type><Annotation>for people</Annotation></ActivityIdentification>
  <Application>
    <Executable><Path>run.sh</Path><Argument>-n</Argument><Argument> 10 </Argument>
      <FailIfExitCodeNotEqualTo>3</FailIfExitCodeNotEqualTo></Executable>
    <Input>cards</Input><Output>out</Output><Error>err</Error>
    <Environment><Name>MODE</Name><Value>fast</Value></Environment>
    <Notification><Protocol>email</Protocol></Notification>
    <ng:DryRun>false</ng:DryRun>
  </Application>
  <Resources>
    <RuntimeEnvironment><Name>ROOT</Name><Version>6.28</Version></RuntimeEnvironment>
    <Platform>x86_64</Platform>
    <SlotRequirement><NumberOfSlots>4</NumberOfSlots><ExclusiveExecution>true</ExclusiveExecution><SlotsPerHost>4</SlotsPerHost></SlotRequirement>
    <IndividualPhysicalMemory>2147483648</IndividualPhysicalMemory>
    <DiskSpaceRequirement>1</DiskSpaceRequirement>
    <TotalCPUTime>3600</TotalCPUTime><WallTime>900.4</WallTime>
    <QueueName>long</QueueName>
  </Resources>
  <DataStaging>
    <ClientDataPush>true</ClientDataPush>
    <InputFile><Name>run.sh</Name><IsExecutable>true</IsExecutable></InputFile>
    <InputFile><Name>data</Name><Source><URI>https://a/data</URI></Source><Source><URI>https://b/data</URI></Source></InputFile>
    <OutputFile><Name>log</Name></OutputFile>
    <OutputFile><Name>result</Name><Target><URI>davs://c/result</URI><MandatoryFlag>false</MandatoryFlag></Target></OutputFile>
  </DataStaging>
</ActivityDescription>"""


def test_a_whole_activity_is_read() -> None:
    assert one(read, WHOLE) == {
        "name": "analysis",
        "executable": "./run.sh",
        "arguments": ["-n", " 10 "],
        "success_exit_codes": [3],
        "stdin": "cards",
        "stdout": "out",
        "stderr": "err",
        "environment": {"MODE": "fast"},
        "requirements": (
            '(member("ROOT-6.28", other.GlueHostApplicationSoftwareRunTimeEnvironment)) && '
            '(other.GlueHostArchitecturePlatformType == "x86_64")'
        ),
        "processors": 4,
        "whole_node": True,
        "memory_mb": 8_192,
        "disk_mb": 1,
        "cpu_time": 3_600,
        "wall_time": 900,
        "grid_ces": ["long"],
        "inputs": [{"name": "data", "sources": ["https://a/data", "https://b/data"]}],
        "output_sandbox": ["log"],
        "outputs": [{"name": "result", "targets": ["davs://c/result"], "optional": True}],
    }
    assert read(WHOLE.encode()).local_files == (
        (LocalFile("run.sh", "run.sh", executable=True), LocalFile("cards", "cards")),
    )


def test_each_element_has_its_fate_and_line() -> None:
    found = fates(read, WHOLE)
    assert found["Path"] == ("kept", 5)
    assert found["Annotation"] == ("omitted", 3)
    assert found["Notification"] == ("omitted", 9)
    assert found["ng:DryRun"] == ("kept", 10)
    assert found["SlotsPerHost"] == ("omitted", 15)


def activity(application: str = "", resources: str = "", staging: str = "") -> str:
    return (
        f"<ActivityDescription><Application><Executable><Path>/a</Path></Executable>{application}</Application>"
        f"<Resources>{resources}</Resources><DataStaging>{staging}</DataStaging></ActivityDescription>"
    )


def test_cpu_time_and_memory_are_of_each_slot() -> None:
    slots = "<SlotRequirement><NumberOfSlots>8</NumberOfSlots></SlotRequirement>"
    each = "<IndividualCPUTime>3600</IndividualCPUTime><IndividualPhysicalMemory>2097152000</IndividualPhysicalMemory>"
    found = one(read, activity(resources=each + slots))
    assert (found["memory_mb"], found["cpu_time"]) == (16_000, 28_800)
    assert one(read, activity(resources=f"{slots}<TotalCPUTime>60</TotalCPUTime>"))["cpu_time"] == 60


def test_files_of_the_submitter_come_back() -> None:
    text = "<OutputFile><Name>r</Name><Target><URI>file:///home/me/r</URI></Target></OutputFile>"
    found = one(read, activity(staging=text))
    assert found["output_sandbox"] == ["r"]
    assert "outputs" not in found


@pytest.mark.parametrize(
    "text",
    [
        activity("<DryRun>true</DryRun>"),
        activity("<PreExecutable><Path>x</Path></PreExecutable>"),
        activity(
            resources="<RuntimeEnvironment><Name>ENV/SINGULARITY</Name><Option>i</Option></RuntimeEnvironment>"
        ),
        activity(resources="<Bogus/>"),
    ],
)
def test_what_would_be_another_activity_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        read(text.encode()).jobs()


def test_several_activities() -> None:
    text = (
        "<ActivityDescriptions>"
        + "<ActivityDescription><Application><Executable><Path>a</Path></Executable></Application></ActivityDescription>"
        * 2
    )
    assert len(read((text + "</ActivityDescriptions>").encode()).jobs(lenient=True)) == 2


def test_an_activity_without_a_program_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="no program is named"):
        read(b"<ActivityDescription/>").jobs(lenient=True)


def test_an_activity_is_recognised() -> None:
    assert looks_like(WHOLE.encode())
    assert not looks_like(b"<JobDefinition/>")
    assert not looks_like(b"ActivityDescription = 1")
