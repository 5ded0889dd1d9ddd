"""Assembles the job manager: its consumers, its loops and their parts."""

import time
from functools import partial

from services.job_manager.commands import Commands, SubmissionPreparation, on_refused
from services.job_manager.config import Config
from services.job_manager.dependencies import Dependencies
from services.job_manager.maintenance.broker_reminders import BrokerReminders
from services.job_manager.maintenance.housekeeping import Housekeeping
from services.job_manager.maintenance.incarnations import MARK_SECONDS, Incarnations
from services.job_manager.maintenance.lease_sweeper import LeaseSweeper
from services.job_manager.maintenance.retention import Retention
from services.job_manager.maintenance.skip_orders import SkipOrders
from services.job_manager.maintenance.usage_rollup import UsageRollup
from services.job_manager.maintenance.wait_reasons import WaitReasons
from services.job_manager.queries.answer import Queries
from services.job_manager.queries.answer import on_refused as on_query_refused
from services.job_manager.reports import Reports
from services.job_manager.submission import parse
from services.job_manager.submission.rates import Rates
from services.job_manager.submission.submit_check import SubmitCheck
from services.job_manager.submission.waiting_limits import WaitingQuota
from wms.auth.principal import Principal
from wms.auth.token import Verifier
from wms.bus.consumer import ConsumerSettings
from wms.errors import Rejected
from wms.messages import commands, reports
from wms.messages import queries as asked
from wms.parsing.parser_pool import ParserPool
from wms.runtime import clock
from wms.runtime.host import Host

QUERY_SECONDS = 10.0
"""The time limit, in seconds, for answering a query. Other queries of its partition wait meanwhile."""


async def build(host: Host, config: Config) -> None:
    """Register the consumers and loops of the job manager with the host."""
    waiting_quota = WaitingQuota(host.db)
    await waiting_quota.refresh()
    host.every("waiting-limits", 2.0, waiting_quota.refresh)
    _take_commands(host, config, waiting_quota)
    _answer_queries(host, config)
    _take_reports(host, config)
    _watch_leases_and_dependencies(host, config)
    _look_why_queues_wait(host)
    _clean_up(host, config)
    _mark_incarnations(host, config)


def _mark_incarnations(host: Host, config: Config) -> None:
    # After the consumers, whose orders a restored database keeps aside.
    incarnations = Incarnations(host.db, host.marks, host.feeds(), config.lease.lease_seconds)
    host.incarnation.begin = incarnations.begin
    host.every("marks", MARK_SECONDS, incarnations.mark)


def _take_commands(host: Host, config: Config, waiting_quota: WaitingQuota) -> None:
    segments = config.queues.cpu_segments
    parsers = ParserPool(parse.__name__)
    host.add(parsers)
    host.show("parsers_killed", lambda: parsers.killed)
    taking = Commands(segments, SubmitCheck(segments), waiting_quota, host.kafka.cluster_id)
    host.consume(
        "commands", commands.TOPIC, commands.Command, taking.handle,
        on_refused=on_refused,
        policy=ConsumerSettings(batch=256, lanes=2, is_fair=True),
        preparation=SubmissionPreparation(taking, host.patient_db, host.slices, parsers),
        admit=Rates(config.submissions, time.monotonic, clock.now).admit,
    )  # fmt: skip
    host.every("canaries", 1.0, partial(taking.canaries.look, host.patient_db))
    host.every("skips", 1.0, SkipOrders(host.patient_db, host.kafka, partial(_sender, host.verifier)).look)


def _sender(verifier: Verifier, token: str) -> Principal | None:
    try:
        return verifier.verify(token, clock.timestamp())
    except Rejected:
        return None


def _answer_queries(host: Host, config: Config) -> None:
    answering = Queries(config.queues.cpu_segments, config.usage.half_life_hours, host.orders)
    host.consume(
        "queries", asked.TOPIC, asked.Asked, answering.handle,
        on_refused=on_query_refused,
        policy=ConsumerSettings(batch=64, seconds=QUERY_SECONDS, is_fair=True),
    )  # fmt: skip


def _take_reports(host: Host, config: Config) -> None:
    reported = Reports(config.lease, config.usage.half_life_hours, host.orders)
    host.consume(
        "reports", reports.TOPIC, reports.FromAgent, reported.handle,
        policy=ConsumerSettings(lanes=2),
        is_urgent=True,
    )  # fmt: skip


def _watch_leases_and_dependencies(host: Host, config: Config) -> None:
    host.every("leases", 1.0, LeaseSweeper(host.db, config.lease, time.monotonic).sweep)
    dependencies = Dependencies(host.patient_db)
    host.every("dependencies", 1.0, dependencies.look)
    host.every("idle-dependencies", 60.0, dependencies.forget_idle)
    host.every("broker-orders", 2.0, BrokerReminders(host.patient_db).look)


def _look_why_queues_wait(host: Host) -> None:
    host.every("reasons", 2.0, WaitReasons(host.patient_db).look)


def _clean_up(host: Host, config: Config) -> None:
    upkeep = Housekeeping(host.patient_db, config.queues, config.sandboxes)
    host.every("task-queues", 30.0, upkeep.remove_empty_queues)
    host.every("sandboxes", 600.0, upkeep.collect_sandboxes)
    retention = Retention(host.patient_db, config.retention)
    host.every("usage", 30.0, UsageRollup(host.patient_db).look)
    host.every("partitions", 10.0, retention.make_room)
    host.every("retention", 60.0, retention.forget)
    host.every("dead-letters", 5.0, retention.bound_dead_letters)
