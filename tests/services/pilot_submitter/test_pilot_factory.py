"""What a pilot is sent with."""

import tomllib
from collections.abc import Sequence

import msgspec

from services.pilot_submitter.ce_endpoints import EndpointSettings
from tests.services.pilot_submitter.elements import ENDS, Site
from wms.dispatch.forwarding import HostRequestTerms
from wms.dispatch.job_policy import JobPolicy
from wms.dispatch.local import LocalDispatcher
from wms.dispatch.port import PilotRequest, PilotSighting
from wms.runtime.pilot_config import SandboxSettings
from wms.transfer.access_rules import AccessRules
from wms.transfer.movers import TransferSettings


class FakeTaker(LocalDispatcher):
    """Stands for a batch system that takes pilots, and shows what it was told of them."""

    taken: tuple[PilotRequest, ...] = ()

    async def send(self, orders: Sequence[PilotRequest]) -> list[PilotSighting]:
        self.taken += tuple(orders)
        return [PilotSighting(pilot_id=each.pilot_id, state="Submitted") for each in orders]


async def test_a_batch_system_is_told_what_the_jobs_require_that_a_pilot_is_sent_for(site: Site) -> None:
    taker = site.dispatcher(FakeTaker, "first", ENDS)
    assert isinstance(taker, FakeTaker)
    terms = EndpointSettings(
        kind="slurm", lifetime_seconds=86_400, asks=HostRequestTerms(kind="slurm", walltime_seconds=90_000)
    )
    provisioning, _ = site.build(terms, first=taker)
    await site.advertise("first")
    await site.world.submitted(cpu_time=400)
    await provisioning.provide()
    (order,) = taker.taken
    assert order.policy == JobPolicy(
        vo="lhcb", owner_groups=("physics",), cores=1, cpu_seconds=500, walltime_seconds=90_000
    )


async def test_an_elements_own_settings_for_files_stand_in_place_of_those_of_all(site: Site) -> None:
    taker = site.dispatcher(FakeTaker, "first", ENDS)
    assert isinstance(taker, FakeTaker)
    own = TransferSettings(access=AccessRules(hosts=["store.example.org"]))
    store = SandboxSettings(url="https://gateway.example.org", authorities="-----\nPEM\n")
    asks = HostRequestTerms(kind="slurm", walltime_seconds=90_000)
    terms = EndpointSettings(kind="slurm", asks=asks, transfers=own, sandboxes=store)
    provisioning, _ = site.build(terms, first=taker)
    await site.advertise("first")
    await site.world.submitted(cpu_time=400)
    await provisioning.provide()
    told = tomllib.loads(taker.taken[0].config)
    assert told["transfers"]["access"]["hosts"] == ["store.example.org"]
    assert told["sandboxes"] == msgspec.to_builtins(store)
