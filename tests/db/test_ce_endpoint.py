"""How computing elements are reached, as who sends pilots writes it down."""

from wms.db import ce_endpoint
from wms.db.ce_endpoint import EndpointRow
from wms.db.database import Transaction
from wms.ids import CeId

ONE = EndpointRow("A", "one", "glueminram,disks", '{"kind": "slurm"}')
TWO = EndpointRow("B", "two", "", "{}")


async def test_what_is_written_is_read_by_element(tx: Transaction) -> None:
    await ce_endpoint.write(tx, [ONE, TWO])
    assert await ce_endpoint.forwards(tx) == {CeId("A", "one"): ("glueminram", "disks"), CeId("B", "two"): ()}
    assert await ce_endpoint.terms(tx) == {CeId("A", "one"): '{"kind": "slurm"}', CeId("B", "two"): "{}"}


async def test_what_is_written_next_replaces_all_of_it(tx: Transaction) -> None:
    await ce_endpoint.write(tx, [ONE, TWO])
    await ce_endpoint.write(tx, [TWO._replace(forwards="gpus", terms='{"kind": "arc"}')])
    assert await ce_endpoint.forwards(tx) == {CeId("B", "two"): ("gpus",)}
    assert await ce_endpoint.terms(tx) == {CeId("B", "two"): '{"kind": "arc"}'}
    await ce_endpoint.write(tx, [])
    assert await ce_endpoint.terms(tx) == {}


async def test_elements_of_one_name_at_two_sites_are_two(tx: Transaction) -> None:
    await ce_endpoint.write(tx, [ONE, ONE._replace(site="B")])
    await ce_endpoint.write(tx, [ONE._replace(site="B")])
    assert list(await ce_endpoint.terms(tx)) == [CeId("B", "one")]
