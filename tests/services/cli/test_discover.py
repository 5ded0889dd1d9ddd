"""`wms sites --discover`, against real index servers."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from lxml import etree

from tests.services.discovery.index_servers import ARC_XML, Held, IndexServers, index_servers, queue
from tests.unit.glue.published import SCHEMA
from wms.cli.__main__ import run
from wms.glue.classad import read_classad
from wms.glue.glue2_xml import read_xml
from wms.glue.versions import elements

pytestmark = pytest.mark.asyncio(loop_scope="session")

Captured = pytest.CaptureFixture[str]


@pytest_asyncio.fixture(loop_scope="session")
async def servers() -> AsyncIterator[IndexServers]:
    async with index_servers() as running:
        running.lists("top", indexes=("umea", "gone"), elements=("arex",))
        running.describes("umea", "umea", "VO:atlas")
        running.answers["arex/rest/1.0/info"] = ARC_XML
        yield running


async def wms(*words: str) -> int:
    """Run a command, while the servers answer here."""
    return await asyncio.to_thread(run, ["sites", *words])


async def test_what_an_index_leads_to_is_shown_with_who_did_not_answer(
    servers: IndexServers, capsys: Captured
) -> None:
    assert await wms("--discover", servers.url("top")) == 0
    out, err = capsys.readouterr()
    lines = [line.split() for line in out.splitlines() if line]
    assert [line[:2] for line in lines[1:4]] == [
        ["umea", "main"],
        ["127.0.0.1", "main"],
        ["127.0.0.1", "short"],
    ]
    assert [line[0] for line in lines[5:]] == ["answered", "answered", "failed", "answered"]
    assert "404" in out
    assert "1 of 4 servers did not answer" in err


async def test_programs_get_it_as_json(servers: IndexServers, capsys: Captured) -> None:
    assert await wms("--discover", servers.url("top"), "--for-vo", "atlas", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert ("umea", "main") in {(each["site"], each["ce"]) for each in told["elements"]}
    assert told["elements"][0]["attributes"]["GlueCEInfoTotalCPUs"] == 64
    assert [each["outcome"] for each in told["servers"]] == ["answered", "answered", "failed", "answered"]
    assert await wms("--discover", servers.url("umea"), "--for-vo", "lhcb", "--json") == 0
    assert json.loads(capsys.readouterr().out)["elements"] == []


async def test_what_is_found_is_printed_in_glue(servers: IndexServers, capsys: Captured) -> None:
    assert await wms("--discover", servers.url("top"), "--glue", "xml") == 0
    told = capsys.readouterr()
    SCHEMA.assertValid(etree.fromstring(told.out.encode()))
    found = [each for service in read_xml(told.out.encode()) for each in elements(service)]
    assert sorted(each.name for each in found) == ["main", "main", "short"]
    assert "1 of 4 servers did not answer" in told.err
    assert await wms("--discover", servers.url("top"), "--glue", "classad") == 0
    read = [read_classad(line).element for line in capsys.readouterr().out.splitlines()]
    assert sorted(each.name for each in read) == ["main", "main", "short"]
    assert {each.total_cpus for each in read} >= {64}


async def test_who_is_late_is_said_when_the_time_is_over(servers: IndexServers, capsys: Captured) -> None:
    servers.answers["gone"] = Held()
    assert await wms("--discover", servers.url("top"), "--timeout", "1", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["outcome"] for each in told["servers"]][2] in ("late", "failed")
    assert len(told["elements"]) == 3


async def test_an_index_may_be_a_file_here(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my index").write_bytes(queue("umea"))
    assert await wms("--discover", "my index", "--json") == 0
    assert [each["site"] for each in json.loads(capsys.readouterr().out)["elements"]] == ["umea"]


async def test_no_answer_at_all_and_no_address_are_told_by_the_exit_code(
    servers: IndexServers, capsys: Captured
) -> None:
    assert await wms("--discover", servers.url("gone")) == 75
    assert await wms("--discover", "https://user:pass@example.org/") == 2
    assert await wms("--discover", "kafka://127.0.0.1:9/wms.resource.ads") == 75
    assert "nothing here speaks that" in capsys.readouterr().out


async def test_nothing_that_strangers_say_reaches_the_terminal_as_it_is(
    servers: IndexServers, capsys: Captured
) -> None:
    servers.answers["top"] = queue("umea", "VO:\x1b[2J") + b"GlueCEInfoContactString: \x1b]0;x\n"
    servers.answers["list"] = f"u={servers.url('top')} t=archery.group\nu=\x1b[2J t=archery.group".encode()
    assert await wms("--discover", servers.url("list")) == 0
    out = capsys.readouterr().out
    assert "umea" in out
    assert "\x1b" not in out
