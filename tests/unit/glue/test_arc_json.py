"""GLUE 2.0 in the JSON that ARC writes."""

import pytest
from lxml import etree

from tests.unit.glue.published import DATA, SCHEMA, arc
from wms.errors import Rejected
from wms.glue.arc_json import read_arc_json
from wms.glue.glue2_xml import write_xml


def test_arcs_json_is_its_xml():
    assert read_arc_json((DATA / "arc.json").read_bytes()) == [arc()]


def test_states_that_the_model_does_not_know_are_not_published():
    document = b"""{"ComputingService": {"ID": "urn:s", "QualityLevel": "Production",
        "ComputingShare": [{"ID": "urn:a", "ServingState": "on fire"}]}}"""
    [service] = read_arc_json(document)
    assert (service.quality_level, service.shares[0].serving_state) == ("production", "")
    SCHEMA.assertValid(etree.fromstring(write_xml([service])))


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (b"[" * 100_000, "GLUE_TOO_LARGE"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "GLUE_TOO_LARGE"),
        (b"{", "GLUE_INVALID"),
        (b"\xff", "GLUE_INVALID"),
        (b'{"ComputingService":{"Name":"no id"}}', "GLUE_INVALID"),
        (b'"' + b"x" * 200_000 + b'"', "GLUE_TOO_LARGE"),
    ],
)
def test_hostile_json_is_refused(document: bytes, code: str):
    with pytest.raises(Rejected) as refused:
        read_arc_json(document, limit=150_000)
    assert refused.value.code == code
