"""What is ARC's own: the two kinds of credential, what pilots ask for, what the element refuses."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from tests.contract.dispatch.cable import cable
from tests.contract.dispatch.grounds import ENDS, SHELL, WAITS, ArcGround, look, order, over, seen
from tests.middleware import Sites
from tests.waiting import eventually
from wms.dispatch.agent_file import AgentFile
from wms.dispatch.arc import ArcDispatcher
from wms.dispatch.port import Request
from wms.errors import Unavailable

pytestmark = pytest.mark.testbed


@pytest.fixture
def arc(testbed: Sites) -> ArcGround:
    return ArcGround(testbed)


async def test_a_bearer_of_a_token_may_do_what_the_holder_of_a_proxy_may(testbed: Sites) -> None:
    ground, pilot = ArcGround(testbed, by="token"), order(ENDS)
    dispatcher = ground.dispatcher()
    await dispatcher.send([pilot])
    assert (await over(ground, dispatcher, pilot.pilot_id)).state == "Done"
    (output,) = await dispatcher.outputs([pilot.pilot_id])
    assert output.text == "all is well\n"
    # One user's jobs are not another's.
    assert (await look(ArcGround(testbed).dispatcher(), pilot.pilot_id)).state == "Aborted"


async def test_a_pilot_gets_what_it_asks_for(arc: ArcGround) -> None:
    request = Request(cores=3, memory_mb=900, walltime_seconds=601)
    dispatcher = arc.dispatcher(queue="short")
    pilot = order(WAITS, request=request)
    await dispatcher.send([pilot])
    await seen(arc, dispatcher, pilot.pilot_id, "Running")
    jobs = arc.sites.run("alpha", "scontrol", "-o", "show", "job")
    (job,) = (line for line in jobs.splitlines() if pilot.pilot_id.replace("-", "_") in line)
    for word in ("cpu=3", "mem=900M", "Partition=short"):
        assert word in job
    assert "TimeLimit=00:11:00" in job or "TimeLimit=00:12:00" in job
    await dispatcher.cancel([pilot.pilot_id])
    assert (await over(arc, dispatcher, pilot.pilot_id)).state == "Aborted"


async def test_what_arc_has_no_words_for_and_queues_that_it_has_not_are_refused(arc: ArcGround) -> None:
    dispatcher = arc.dispatcher()
    strange, good = order(request=Request(gres="gpu:1")), order(ENDS)
    refused, sent = await dispatcher.send([strange, good])
    assert (refused.state, sent.state) == ("Failed", "Submitted")
    assert "no word" in refused.reason
    (elsewhere,) = await arc.dispatcher(queue="nowhere").send([order(ENDS)])
    assert elsewhere.state == "Failed"
    assert elsewhere.reason.startswith("refused: ")


async def test_a_credential_that_is_not_ours_or_not_there_makes_it_unavailable(
    arc: ArcGround, tmp_path: Path
) -> None:
    forged = tmp_path / "token"
    forged.write_text("a.forged.token")
    told = arc.sites.told["arc"]
    element = arc.element(told["url"], "main")
    stranger = ArcDispatcher(element._replace(proxy="", token=str(forged)), SHELL)
    with pytest.raises(Unavailable, match="HTTP 403"):
        await stranger.send([order()])
    lost = ArcDispatcher(element._replace(proxy=str(tmp_path / "gone")), SHELL)
    with pytest.raises(Unavailable, match="credential cannot be read"):
        await lost.follow([order().pilot_id])


async def test_a_pilot_whose_files_did_not_arrive_is_ended_and_does_not_wait_for_them(arc: ArcGround) -> None:
    told = urlsplit(arc.sites.told["arc"]["url"])
    pilot = replace(order(ENDS), config="#" * 4_000_000)
    async with cable(told.hostname or "", told.port or 0, most=1_000_000) as way:
        element = arc.element(told._replace(netloc=f"{told.hostname}:{way.port}").geturl(), "main")
        dispatcher = ArcDispatcher(element, SHELL)
        with pytest.raises(Unavailable):
            await dispatcher.send([pilot])
        assert way.broken, "while the configuration was on its way"
        assert (await over(arc, dispatcher, pilot.pilot_id)).state in ("Aborted", "Failed")


async def test_nothing_is_left_of_a_pilot_that_is_forgotten(arc: ArcGround) -> None:
    dispatcher, pilot = arc.dispatcher(), order(ENDS)
    await dispatcher.send([pilot])
    await over(arc, dispatcher, pilot.pilot_id)
    await dispatcher.forget([pilot.pilot_id])

    async def gone() -> bool:
        return (await look(arc.dispatcher(), pilot.pilot_id)).state == "Aborted"

    await eventually(gone, within=arc.patience)


async def test_a_file_with_the_agent_goes_with_each_pilot_and_to_no_shared_directory(
    arc: ArcGround, tmp_path: Path
) -> None:
    file = tmp_path / "agent.pyz"
    file.write_text("import sys\nprint('carried', open(sys.argv[2]).read())\n")
    agent = AgentFile(file)
    dispatcher = ArcDispatcher(arc.element(arc.sites.told["arc"]["url"], "main"), agent.argv, agent.path)
    pilot = order("a pilot's configuration")
    await dispatcher.send([pilot])
    end = await over(arc, dispatcher, pilot.pilot_id)
    assert end.state == "Done", end.reason
    (output,) = await dispatcher.outputs([pilot.pilot_id])
    assert output.text == "carried a pilot's configuration\n"
