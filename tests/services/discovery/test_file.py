"""An index that is a file."""

from pathlib import Path

from tests.services.discovery.index_servers import IndexServers, queue
from tests.services.discovery.questions import Clock, discovery, outcomes, sites
from wms.discovery.address import address


async def test_an_index_leads_to_no_files_of_ours(
    servers: IndexServers, clock: Clock, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(queue("secret"))
    servers.answers["i"] = f"u={(tmp_path / 'secret').as_uri()} t=archery.group".encode()
    async with discovery(clock) as finder:
        found = await finder.find([servers.index("i")])
    assert (sites(found), outcomes(found)) == ([], {"i": "answered", "secret": "refused"})


async def test_an_index_may_be_a_file_and_lead_to_others(
    servers: IndexServers, clock: Clock, tmp_path: Path
) -> None:
    servers.describes("i", "web")
    (tmp_path / "top").write_text(f"u=below%20here t=archery.group\nu={servers.url('i')} t=archery.group\n")
    (tmp_path / "below here").write_bytes(queue("filed"))
    async with discovery(clock) as finder:
        found = await finder.find([address((tmp_path / "top").as_uri(), "index")])
    assert sites(found) == ["filed", "web"]
