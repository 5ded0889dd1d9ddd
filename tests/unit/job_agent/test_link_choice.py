"""A pilot's configuration chooses its link, and its token file must fit that link."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from services.job_agent.kafka_link import KafkaLink
from services.job_agent.link_choice import chosen_link
from wms.errors import Rejected
from wms.runtime.pilot_config import PilotConfig


def config(tmp_path: Path, **more: Any) -> PilotConfig:
    pilot = {
        "pilot_id": "p-1",
        "site": "A",
        "ce": "a1",
        "vo": "v",
        "slots": 1,
        "token_file": "",
        "directory": str(tmp_path),
    }
    return msgspec.convert({"pilot": pilot, "sandboxes": {"url": "file:///x"}, **more}, PilotConfig)


async def test_without_a_gateway_a_pilot_speaks_kafka(tmp_path: Path) -> None:
    link = await chosen_link(config(tmp_path), "a.b.c " + "00" * 32)
    assert isinstance(link, KafkaLink)
    assert not link.is_open


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({}, "00" * 32),
        ({}, ""),
        ({"gateway": {"url": "https://h"}}, "a.b.c " + "00" * 32),
        ({"gateway": {"url": "https://h"}}, ""),
    ],
)
async def test_a_token_file_of_another_link_is_refused(tmp_path: Path, more: Any, text: str) -> None:
    with pytest.raises(Rejected, match="NO_TOKEN"):
        await chosen_link(config(tmp_path, **more), text)


async def test_a_secret_goes_to_no_address_in_clear(tmp_path: Path) -> None:
    with pytest.raises(Rejected, match="BAD_GATEWAY"):
        await chosen_link(config(tmp_path, gateway={"url": "http://wms.example.org"}), "00" * 32)
