"""What a real ARC element and a BDII published, and the schema of GLUE 2.0."""

from pathlib import Path

from lxml import etree

from wms.glue import glue1, glue2, ldif
from wms.glue.glue2_xml import read_xml

DATA = Path(__file__).parents[2] / "data" / "glue"


SCHEMA = etree.XMLSchema(etree.parse(DATA / "glue2.xsd"))


def arc() -> glue2.Service:
    """Return what ARC 6.17 with Slurm behind it published: 320 slots, two queues."""
    [service] = read_xml((DATA / "arc.xml").read_bytes())
    return service


def bdii() -> glue1.GlueComputingElement:
    """Return the one element of a site of a BDII."""
    [element] = ldif.glue1_elements(ldif.read_ldif((DATA / "bdii.ldif").read_bytes())[0])
    return element
