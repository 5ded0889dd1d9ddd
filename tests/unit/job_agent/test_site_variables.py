"""What a payload is told of its site."""

from services.job_agent.site_variables import site_variables
from wms.matching.ads import advertised
from wms.runtime.pilot_config import PilotConfig, PilotSettings, ResourceSettings, SandboxSettings


def told(ad: str) -> dict[str, str]:
    pilot = PilotSettings(pilot_id="p", site="S", ce="ce", vo="v", slots=1, token_file="t", directory="d")
    return site_variables(
        PilotConfig(pilot=pilot, sandboxes=SandboxSettings(url="file:///s"), resource=ResourceSettings(ad=ad))
    )


def test_the_element_and_what_its_ad_says_for_jobs() -> None:
    said = {"StationNames": ["cab", "clued0"], "MonitoringDatabaseURL": "https://xml.example.org", "Cores": 3}
    assert told(advertised(said, {}, "", "")) == {
        "WMS_CE": "ce",
        "WMS_STATIONS": "cab,clued0",
        "WMS_MONITORING_DATABASE": "https://xml.example.org",
    }


def test_an_ad_without_them_says_none() -> None:
    assert told("") == told(advertised({"Cores": 3}, {}, "", "")) == {"WMS_CE": "ce"}
    assert told(advertised({"StationNames": 3}, {}, "", "")) == {"WMS_CE": "ce"}
