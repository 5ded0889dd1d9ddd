"""Addresses and elements of a small grid."""

from wms.discovery.address import Address, address
from wms.discovery.server_answers import FoundElement
from wms.glue.glue1 import GlueComputingElement

BASE = "https://index.example.org/grid/top.txt"


def index(name: str) -> Address:
    return address(f"https://{name}.example.org/", "index")


def element(site: str, *rules: str, name: str = "main") -> FoundElement:
    return FoundElement(
        site=site, glue=GlueComputingElement(id=f"{site}/{name}", name=name, access_rules=rules)
    )
