"""What is PBS's and LSF's own, against fakes of their tools: options, names, refusals, how jobs are told to have ended."""

from pathlib import Path

import pytest

from tests.contract.dispatch.grounds import ENDS, FakeLsfGround, FakePbsGround, look, order, over
from wms.dispatch.port import Request


@pytest.mark.parametrize(
    ("ground", "attributes"),
    [
        (FakePbsGround, {"-N": "x"}),
        (FakePbsGround, {"-W": "stagein=/etc/passwd@here:x"}),
        (FakePbsGround, {"nodes": "99"}),
        (FakePbsGround, {"file": "5gb,nodes=99"}),
        (FakePbsGround, {"file": "$(id)"}),
        (FakePbsGround, {"-p": "1; id"}),
        (FakeLsfGround, {"J": "x"}),
        (FakeLsfGround, {"K": "x"}),
        (FakeLsfGround, {"order": "a] rusage[mem=1"}),
        (FakeLsfGround, {"p": "1\n2"}),
    ],
)
async def test_what_a_request_may_not_say_is_refused_before_the_tools_hear_of_it(
    tmp_path: Path, ground: type[FakePbsGround | FakeLsfGround], attributes: dict[str, str]
) -> None:
    pilot = order(request=Request(attributes=attributes))
    (refused,) = await ground(tmp_path).dispatcher().send([pilot])
    assert refused.state == "Failed"
    assert refused.reason.startswith("not sent: ")


@pytest.mark.parametrize("ground", [FakePbsGround, FakeLsfGround])
async def test_what_is_refused_has_failed_and_says_why_and_the_others_go(
    tmp_path: Path, ground: type[FakePbsGround | FakeLsfGround]
) -> None:
    it = ground(tmp_path)
    big, small = order(request=Request(memory_mb=1_000_000)), order(ENDS)
    refused, sent = await it.dispatcher().send([big, small])
    assert (refused.state, sent.state) == ("Failed", "Submitted")
    assert refused.reason == "refused: Job violates the limits of the queue: so much memory"
    assert not (it.place / big.pilot_id / "token").exists()
    await over(it, it.dispatcher(), small.pilot_id)


@pytest.mark.parametrize("ground", [FakePbsGround, FakeLsfGround])
async def test_how_a_pilot_ended_is_known_after_its_batch_system_has_forgotten_it(
    tmp_path: Path, ground: type[FakePbsGround | FakeLsfGround]
) -> None:
    it, pilot = ground(tmp_path), order("echo no broker answers\nexit 3\n")
    await it.dispatcher().send([pilot])
    await over(it, it.dispatcher(), pilot.pilot_id)
    for path in it.queue.glob("*.json"):
        path.unlink()
    ended = await look(it.dispatcher(), pilot.pilot_id)
    assert (ended.state, ended.reason) == ("Failed", "exit code 3: no broker answers")
