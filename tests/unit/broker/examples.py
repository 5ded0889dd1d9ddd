"""Jobs and candidates that tests of the broker start from."""

from datetime import UTC, datetime
from typing import Any

from wms.broker.candidate import Candidate
from wms.broker.job_to_place import JobToPlace
from wms.matching.grouping import Requirements
from wms.site import ComputingElement

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def requirements(**more: Any) -> Requirements:
    given: dict[str, Any] = {
        "owner": "ada",
        "owner_group": "users",
        "vo": "lhcb",
        "setup": "default",
        "cpu_segment": 500,
    }
    return Requirements(**given | more)


def job(**more: Any) -> JobToPlace:
    given: dict[str, Any] = {"requirements": requirements(), "executable": "simulate"}
    return JobToPlace(**given | more)


def element(site: str = "umea", ce: str = "batch", **more: Any) -> ComputingElement:
    given: dict[str, Any] = {
        "site": site,
        "ce": ce,
        "slots": 10,
        "max_cpu_time": 100_000,
        "setup": "default",
        "memory_mb": 2000,
    }
    return ComputingElement(**given | more)


def place(site: str = "umea", ce: str = "batch", **more: Any) -> Candidate:
    given: dict[str, Any] = {"element": element(site, ce), "slots": 10}
    return Candidate(**given | more)
