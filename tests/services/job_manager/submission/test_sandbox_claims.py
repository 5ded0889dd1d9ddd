"""Who may refer to which archive: through a gateway to one's own alone; what comes over Kafka is believed, and noted."""

from typing import Any

import msgspec
import pytest

from services.job_manager.submission import sandbox_claims
from tests.services.world import World, user
from wms.errors import Rejected
from wms.ids import CommandId
from wms.jobdesc.description import JobDescription, SandboxRef
from wms.messages.commands import Submit
from wms.messages.replies import GATEWAY_CLIENT, GATEWAY_INBOX

MINE, OTHERS = "a" * 64, "b" * 64
GATEWAY = f"{GATEWAY_CLIENT}1"
ME = user().identity


def test_archives_are_named_by_sandboxes_and_by_parameters() -> None:
    description = JobDescription(
        executable="x",
        input_sandbox=(SandboxRef(sha256=MINE, size=1),),
        input_parameters=("file",),
        parameters={"file": (f"{OTHERS}:2",), "word": (f"{'c' * 64}:2",)},
    )
    assert sandbox_claims.referred([description]) == {MINE, OTHERS}


async def submitted_through_a_gateway(the_world: World, command_id: str, **description: Any) -> bytes:
    raw = msgspec.Raw(msgspec.json.encode({"executable": "/bin/true", **description}))
    await the_world.command(user(), Submit(command_id=CommandId(command_id), jobs=(raw,), client=GATEWAY))
    (reply,) = the_world.take(GATEWAY_INBOX)
    return reply


async def test_what_came_over_kafka_may_be_named_again_through_a_gateway(the_world: World) -> None:
    box = {"input_sandbox": [{"sha256": MINE, "size": 1}]}
    assert b"SANDBOX_NOT_SENT" in await submitted_through_a_gateway(the_world, "c-1", **box)
    await the_world.submitted(1, **box)
    assert b"submitted" in await submitted_through_a_gateway(the_world, "c-2", **box)


async def test_a_rehearsal_refers_to_what_is_not_sent_yet(the_world: World) -> None:
    box = {"executable": "/bin/true", "input_sandbox": [{"sha256": MINE, "size": 1}]}
    raw = msgspec.Raw(msgspec.json.encode(box))
    rehearsal = Submit(command_id=CommandId("c-1"), jobs=(raw,), client=GATEWAY, rehearsal=True)
    await the_world.command(user(), rehearsal)
    assert b"submitted" in the_world.take(GATEWAY_INBOX)[0]


async def test_lists_with_archives_that_were_not_sent_are_named(the_world: World) -> None:
    lists = {"file": (f"{MINE}:1", f"{OTHERS}:1"), "own": (f"{MINE}:1",) * 2, "word": ("a", "b")}
    async with the_world.db.transaction() as tx:
        await sandbox_claims.check(tx, ME, "cli-1", {MINE})
        found = await sandbox_claims.unclaimed_lists(tx, ME, GATEWAY, lists)
        with pytest.raises(Rejected, match="SANDBOX_NOT_SENT"):
            await sandbox_claims.check(tx, ME, GATEWAY, {OTHERS})
    assert found == {"file"}
