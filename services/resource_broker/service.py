"""Builds the resource broker: creates its loops, which place jobs, handle messages and clean up, and adds them to a host."""

from services.resource_broker.broken_groups import BrokenGroups
from services.resource_broker.brokering import Brokering
from services.resource_broker.config import Config
from services.resource_broker.incoming_jobs import IncomingJobs
from services.resource_broker.record_upkeep import RecordUpkeep
from services.resource_broker.requested_indexes import RequestedIndexes
from wms.messages import agreements, broker
from wms.runtime.host import Host

STEP_SECONDS = 0.2
"""Seconds between two rounds of the broker, if no message starts one sooner. So a step that is due begins so late at most."""


async def build(host: Host, config: Config) -> None:
    """Create the loops of the resource broker from its configuration and add them to `host`, which runs them."""
    settings = config.brokering
    indexes = RequestedIndexes(config.indexes)
    brokering = Brokering(host.patient_db, settings, indexes, host.instance_id)
    loop = host.every("steps", STEP_SECONDS, brokering.step)
    orders = IncomingJobs(host.patient_db, loop.wake)
    host.consume("jobs", broker.TOPIC, broker.ToBroker, orders.handle)
    host.consume("decisions", agreements.DECISIONS_TOPIC, agreements.AgreementDecided, orders.decided)
    host.every("lost-orders", 2.0, orders.look)
    upkeep = RecordUpkeep(host.patient_db, settings.kept_days)
    host.every("regroup", 1.0, BrokenGroups(host.patient_db).gather)
    host.every("score", 2.0, upkeep.score)
    host.every("close", 2.0, upkeep.close)
    host.every("forget", 600.0, upkeep.forget)
    host.show("placed", lambda: brokering.placed)
    host.show("searches", lambda: indexes.searches)
