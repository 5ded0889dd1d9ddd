"""What payloads are given to reach their pilot's gateway, and what is left of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from services.job_agent.payload.gateway_access import PayloadGateway, gateway_of, variables
from services.job_agent.payload.run import Payload
from services.job_agent.payload.workplace import Workplace
from tests.services.job_agent.payload.processes import ISOLATIONS
from tests.waiting import eventually
from wms.ids import AttemptId, Epoch, JobId, PilotId, SiteName
from wms.job.reasons import Code
from wms.jobdesc.description import JobDescription
from wms.runtime.pilot_config import GatewayAccess, PilotConfig, PilotSettings, SandboxSettings
from wms.transfer import open_store

GATEWAY = PayloadGateway(
    url="https://gateway:1",
    authorities="-- PEM --",
    token=lambda attempt_id: f"token-{attempt_id.job_id}.{attempt_id.epoch}",
)


@pytest_asyncio.fixture(scope="module", loop_scope="session", params=ISOLATIONS)
async def workplace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Workplace]:
    root = tmp_path_factory.mktemp("agent")
    async with Workplace(
        root=root / "run",
        store=open_store(f"file://{root}/store"),
        site=SiteName("S"),
        pilot_id=PilotId("p"),
        isolation=request.param,
        gateway=GATEWAY,
    ) as entered:
        yield entered


def payload(workplace: Workplace, job_id: int, *argv: str) -> Payload:
    description = JobDescription(executable=argv[0], arguments=argv[1:], output_sandbox=("**",))
    return Payload(workplace, JobId(job_id), Epoch(1), description)


async def test_a_payload_reads_its_own_token_and_nobody_elses(workplace: Workplace) -> None:
    script = (
        'echo $WMS_URL; cat $WMS_TOKEN $WMS_AUTHORITIES; stat -c %a $WMS_TOKEN; cat "$0" 2>/dev/null; true'
    )
    first = payload(workplace, 1, "sleep", "600")
    running = asyncio.create_task(first.run())
    await eventually(lambda: first.pid is not None)
    others = first._place.scratch / ".wms-token"
    second = payload(workplace, 2, "sh", "-c", script, str(others))
    outcome = await second.run()
    seen = outcome.stdout_tail.splitlines()
    assert seen[:3] == ["https://gateway:1", "token-2.1", "-- PEM --600"]
    if workplace.isolation_words == "namespaces":
        assert seen[3:] == []
    first.kill(outcome.reason)
    await running


async def test_the_token_is_no_output_and_keeps_no_directory_from_being_used_again(
    workplace: Workplace,
) -> None:
    done = payload(workplace, 3, "true")
    outcome = await done.run()
    assert (outcome.reason.code, outcome.left.count) == (Code.DONE, 0)
    before = len(workplace.spares._kept)
    await done.clean()
    assert len(workplace.spares._kept) == before + 1
    assert not list(workplace.spares._kept[-1][1].rglob(".wms-token"))


async def test_what_a_payload_made_of_its_token_is_removed(workplace: Workplace) -> None:
    done = payload(workplace, 4, "sh", "-c", "rm $WMS_TOKEN; mkdir -p $WMS_TOKEN/deep; ln -s /etc/passwd x")
    assert (await done.run()).reason.code is Code.DONE
    await done.clean()
    assert not done._place.directory.exists()
    assert Path("/etc/passwd").exists()


def config(url: str) -> PilotConfig:
    pilot = PilotSettings(
        pilot_id="p", site="S", ce="c", vo="v", slots=1, token_file="t", directory="d", lifetime_seconds=90.0
    )
    gateway = GatewayAccess(url=url)
    return PilotConfig(pilot=pilot, sandboxes=SandboxSettings(url="file:///s"), gateway=gateway)


def test_pilots_without_a_gateway_give_nothing() -> None:
    assert gateway_of(config(""), lambda _, __: "t") is None
    assert variables(None, Path("/x")) == {}


def test_a_token_lives_as_long_as_its_pilot() -> None:
    gateway = gateway_of(config("https://g:1"), lambda _, seconds: f"for {seconds:g} s")
    assert gateway is not None
    assert gateway.files(AttemptId(JobId(1), Epoch(1))) == {".wms-token": "for 115 s\n"}
    assert variables(gateway, Path("/x")) == {"WMS_URL": "https://g:1", "WMS_TOKEN": "/x/.wms-token"}
