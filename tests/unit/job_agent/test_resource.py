"""What a pilot reports of itself as a resource."""

import shutil
from pathlib import Path
from typing import Any

import msgspec

from services.job_agent.resource import describe, promises_containers, proved
from wms.runtime.pilot_config import PilotConfig


def pilot_config(directory: Path, slots: int = 4, **resource: Any) -> PilotConfig:
    pilot = {"pilot_id": "p", "site": "s", "ce": "c", "vo": "v", "slots": slots}
    more = {"token_file": "t", "directory": str(directory)}
    told = {"pilot": pilot | more, "sandboxes": {"url": "file:///s"}, "resource": resource}
    return msgspec.convert(told, PilotConfig)


def test_a_pilot_tells_its_free_disk_in_two_digits_without_what_it_promised(tmp_path: Path) -> None:
    free = shutil.disk_usage(tmp_path).free // 2**20
    config = pilot_config(tmp_path)
    whole = describe(config, free=4, memory_taken_mb=0, seconds_left=60).disk_mb
    assert free * 0.85 < whole <= free
    assert not str(whole)[2:].strip("0")
    less = describe(config, free=3, memory_taken_mb=0, disk_taken_mb=free // 2, seconds_left=60).disk_mb
    assert less < 0.6 * whole
    assert describe(config, free=3, memory_taken_mb=0, disk_taken_mb=10**9, seconds_left=60).disk_mb == 1
    gone = pilot_config(tmp_path / "nowhere")
    assert describe(gone, free=4, memory_taken_mb=0, seconds_left=60).disk_mb == 0


def test_a_pilot_that_runs_something_has_no_whole_node_to_give(tmp_path: Path) -> None:
    config = pilot_config(tmp_path, tags=["WholeNode", "gpu"])
    assert describe(config, free=4, memory_taken_mb=0, seconds_left=60).tags == ("WholeNode", "gpu")
    assert describe(config, free=3, memory_taken_mb=0, seconds_left=60).tags == ("gpu",)


def test_a_pilot_offers_what_was_tried_on_its_node_alone(tmp_path: Path) -> None:
    config = pilot_config(tmp_path, tags=["container", "privatenetwork", "gpu"])
    assert promises_containers(config)
    assert not promises_containers(pilot_config(tmp_path, tags=["any"]))
    tags = [
        proved(config, runs_containers=images, cuts_network=network).resource.tags
        for images, network in ((True, True), (True, False), (False, True), (False, False))
    ]
    assert tags == [
        ["container", "privatenetwork", "gpu"],
        ["container", "gpu"],
        ["privatenetwork", "gpu"],
        ["gpu"],
    ]
