"""A client speaks to its gateway or its broker, and loads what takes long for no other."""

import subprocess
import sys

import msgspec
import pytest

CODE = """
import msgspec, sys
from wms.client.chosen_channel import channel_of
from wms.client.settings import ClientSettings
channel = channel_of(msgspec.json.decode(sys.argv[1], type=ClientSettings))
print(type(channel).__name__, *[each for each in ("aiohttp", "numpy") if each in sys.modules])
"""
ADDRESSES = {
    "GatewayChannel": ({"gateway": {"url": "https://gateway.example.org"}}, ["aiohttp"]),
    "Exchange": ({"kafka": {"bootstrap": "kafka.example.org:9092"}}, []),
}


@pytest.mark.parametrize("kind", ADDRESSES)
def test_the_settings_choose_and_only_what_is_chosen_is_loaded(kind: str) -> None:
    address, loaded = ADDRESSES[kind]
    settings = msgspec.json.encode({"auth": {"token_file": "token"}, **address})
    done = subprocess.run([sys.executable, "-c", CODE, settings], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [kind, *loaded]
