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
    <ng:DryRun/>
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
        "memory_mb": 2_048,
        "disk_mb": 1,
        "cpu_time": 3_600,
        "wall_time": 900,
        "grid_ces": ["long"],
        "inputs": [{"name": "data", "sources": ["https://a/data", "https://b/data"]}],
        "output_sandbox": ["log"],
        "outputs": [{"name": "result", "targets": ["davs://c/result"], "optional": True}],
    }
    assert read(WHOLE.encode()).local_files == ((LocalFile("run.sh", "run.sh", executable=True),),)


def test_each_element_has_its_fate_and_line() -> None:
    found = fates(read, WHOLE)
    assert found["Path"] == ("kept", 5)
    assert found["Annotation"] == ("translated", 3)
    assert found["Notification"] == ("impossible", 9)
    assert found["ng:DryRun"] == ("impossible", 10)
    assert found["SlotsPerHost"] == ("impossible", 15)


def test_several_activities() -> None:
    text = (
        "<ActivityDescriptions>"
        + "<ActivityDescription><Application><Executable><Path>a</Path></Executable></Application></ActivityDescription>"
        * 2
    )
    assert len(read((text + "</ActivityDescriptions>").encode()).jobs(strict=False)) == 2


def test_an_activity_without_a_program_is_refused() -> None:
    with pytest.raises(InvalidDescription, match="no program is named"):
        read(b"<ActivityDescription/>").jobs(strict=False)


def test_an_activity_is_recognised() -> None:
    assert looks_like(WHOLE.encode())
    assert not looks_like(b"<JobDefinition/>")
    assert not looks_like(b"ActivityDescription = 1")
