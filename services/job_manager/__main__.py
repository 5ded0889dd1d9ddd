"""Wires the job manager."""

import time
from functools import partial

from services import fast_start
from services.job_manager.commands import Commands, Reading, on_refused
from services.job_manager.config import Config
from services.job_manager.dependencies import Dependencies
from services.job_manager.maintenance.housekeeping import Housekeeping
from services.job_manager.maintenance.lease_sweeper import LeaseSweeper
from services.job_manager.maintenance.retention import Retention
from services.job_manager.maintenance.wait_reasons import WaitReasons
from services.job_manager.queries.answer import Queries
from services.job_manager.queries.answer import on_refused as on_query_refused
from services.job_manager.reports import Reports
from services.job_manager.submission.rates import Rates
from services.job_manager.submission.submit_check import SubmitCheck
from services.job_manager.submission.waiting_limits import WaitingQuota
from wms.bus.consumer import ConsumerPolicy
from wms.messages import commands, reports
from wms.messages import queries as asked
from wms.runtime import clock
from wms.runtime.host import Host, serve
from wms.runtime.newcomers import Newcomers

QUERY_SECONDS = 10.0
"""What an answer may take: for so long the others of its partition wait."""


async def build(host: Host, config: Config) -> None:
    """Put its loops together."""
    admission = WaitingQuota(host.db)
    await admission.refresh()
    segments = config.queues.cpu_segments
    taking = Commands(segments, SubmitCheck(segments), admission)
    host.consume(
        "commands", commands.TOPIC, commands.Command, taking.handle,
        on_refused=on_refused,
        policy=ConsumerPolicy(batch=256, lanes=2, is_fair=True),
        preparation=Reading(taking, host.patient_db, host.slices),
        admit=Rates(config.submissions, time.monotonic, clock.now).admit,
    )  # fmt: skip
    half_life = config.usage.half_life_hours
    answering = Queries(segments, half_life, host.orders)
    host.consume(
        "queries", asked.TOPIC, asked.Asked, answering.handle,
        on_refused=on_query_refused,
        policy=ConsumerPolicy(batch=64, seconds=QUERY_SECONDS, is_fair=True),
    )  # fmt: skip
    reported = Reports(config.lease, half_life, host.orders)
    host.consume(
        "reports",
        reports.TOPIC,
        reports.FromAgent,
        reported.handle,
        policy=ConsumerPolicy(lanes=2),
        is_urgent=True,
    )
    host.every("canaries", 1.0, partial(taking.canaries.look, host.patient_db))
    host.every("waiting-limits", 2.0, admission.refresh)
    host.every("leases", 1.0, LeaseSweeper(host.db, config.lease, time.monotonic).sweep)
    dependencies = Dependencies(host.patient_db)
    host.every("dependencies", 1.0, dependencies.look)
    host.every("idle-dependencies", 60.0, dependencies.forget_idle)
    newcomers = Newcomers(host.slices, over_sketches=True)
    host.every("reasons", 2.0, WaitReasons(host.patient_db, newcomers).look)
    upkeep = Housekeeping(host.patient_db, config.queues, config.sandboxes)
    host.every("task-queues", 30.0, upkeep.remove_empty_queues)
    host.every("sandboxes", 600.0, upkeep.collect_sandboxes)
    retention = Retention(host.patient_db, config.retention)
    host.every("partitions", 10.0, retention.make_room)
    host.every("retention", 60.0, retention.forget)
    host.every("dead-letters", 5.0, retention.bound_dead_letters)


if __name__ == "__main__":
    fast_start.started()
    serve("job_manager", Config, build)
