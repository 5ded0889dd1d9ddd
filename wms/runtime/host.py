"""The host of a service process: opens its connections, runs its loops, sends its heartbeat, and shuts it down.

On SIGTERM and SIGINT no more messages are read. Current batches are finished, the outbox is sent, and connections close. A loop that fails ends the
process, and the supervisor starts it again. A changed id of the Kafka cluster ends it too, since all topics and offsets are new then. A process
that ends for any of these reasons has `END_SECONDS` for it. While a server is away, the process waits for it.
"""

import asyncio
import contextlib
import os
import platform
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import psutil
import structlog

from wms import __version__
from wms.auth.issuer_keys import IssuerKeys
from wms.auth.orders import OrderKeys
from wms.auth.revocations import Revocations
from wms.auth.service_signatures import ServiceSignatures
from wms.auth.token import Verifier
from wms.bus.consumer import ONE_LANE, Consumer, ConsumerSettings, Handler, OnRefused
from wms.bus.database_marks import DatabaseMarks
from wms.bus.delivery import Decoded, Preparation
from wms.bus.kafka import Kafka
from wms.bus.membership import Membership
from wms.bus.probe import PROBE_SECONDS, ConsumerHealth
from wms.bus.relay import Relay
from wms.bus.signed import SignedCodec
from wms.bus.time_slices import TimeSlices
from wms.bus.topics import SHARED, Topic, find
from wms.db import instance
from wms.db.database import GONE, RETRIED, Database
from wms.db.migrate import check
from wms.db.offset import ConsumedTopic
from wms.db.roles import check_rights
from wms.errors import Rejected, Unavailable
from wms.ids import InstanceId
from wms.messages.wire import Codec
from wms.runtime import clock
from wms.runtime.config import ServiceConfig
from wms.runtime.event_loop import measured
from wms.runtime.every import Every
from wms.runtime.incarnation_watch import IncarnationWatch
from wms.runtime.loop import NamedLoop, endless
from wms.runtime.patience import patiently
from wms.runtime.process import DRAIN_SECONDS, LoopProcess, check_cluster, run_process
from wms.runtime.revocation_refresh import LOOK_SECONDS, RevocationRefresh
from wms.runtime.watchdog import Watchdog

log = structlog.get_logger()

BEAT_SECONDS = 1.0
ISSUER_SECONDS = 0.5
"""Seconds between two checks of which issuers' keys must be fetched."""
URGENT_CONNECTIONS = 4
"""How many database connections are kept for urgent work: two lanes of pilots' reports, the heartbeat and the outbox relay."""
C = TypeVar("C", bound=ServiceConfig)


class Probed(Protocol):
    """A reader of a Kafka topic that checks itself by probes: tiny messages sent through each partition."""

    async def probe(self) -> None:
        """Send one probe to each partition that this reader reads."""

    def probe_health(self) -> ConsumerHealth:
        """Return the health of the reader's partitions as measured by its probes, for the heartbeat."""


class Host(LoopProcess):
    """A running service process: its database, its Kafka client, its consumers of messages and its periodic loops.

    A service registers its consumers and loops before `run`.
    """

    def __init__(
        self,
        service: str,
        config: ServiceConfig,
        db: Database,
        kafka: Kafka,
        instance_id: InstanceId | None = None,
    ) -> None:
        """Build the host of a service. The connections of `db` are named by `instance_id`; None: they are not, and the id is new."""
        super().__init__()
        self.service = service
        self.config = config
        self.db = db
        """The database for urgent work: the heartbeat, the relay, and consumers with `is_urgent`."""
        self.patient_db = db.limited(URGENT_CONNECTIONS)
        """The database for all other work. It leaves connections free for urgent work, however many statements are slow."""
        self.kafka = kafka
        self.issuers = IssuerKeys(config.auth.issuers)
        self.revocations = Revocations()
        self.orders = OrderKeys.from_file(config.auth.orders_key_file)
        self.verifier = Verifier.from_file(
            Path(config.auth.jwks), self.issuers, self.revocations, self.orders
        )
        self.instance_id = instance_id or instance.new_id(service)
        self.membership = Membership(self.instance_id)
        self.notices = ServiceSignatures(self.orders, clock.timestamp)
        self.marks = DatabaseMarks(kafka, self.notices)
        self.incarnation = IncarnationWatch(db, self.marks)
        self.relay = Relay(db, kafka, self.orders, self.notices)
        self.slices = TimeSlices()
        self._consumers: list[Consumer[Any]] = []
        self._facts: dict[str, Callable[[], Any]] = {}
        self._probed: dict[str, Probed] = {}
        self._revocation_refresh = RevocationRefresh(db, self.revocations)
        self.every("revocations", LOOK_SECONDS, self._revocation_refresh.look)
        self.show("revocations", lambda: len(self.revocations))
        if self.issuers:
            from wms.runtime.issuer_fetch import IssuerFetch

            self.every("issuers", ISSUER_SECONDS, IssuerFetch(self.issuers, clock.timestamp).look)
            self.show("issuers", lambda: self.issuers.health(clock.timestamp()))

    def consume(
        self,
        name: str,
        topic: str | Topic,
        union: Any,
        handle: Handler[Any],
        *,
        on_refused: OnRefused[Any] | None = None,
        policy: ConsumerSettings = ONE_LANE,
        preparation: Preparation[Any] | None = None,
        admit: Callable[[Decoded[Any]], Rejected | None] | None = None,
        is_urgent: bool = False,
    ) -> None:
        """Register a consumer that calls `handle` with the messages of `topic`, in batches. `union` is the type of the messages.

        Each message needs a valid token, or on an internal topic a signature; on an open topic neither. Messages of an internal
        topic may be old or repeated, so `handle` must check the database. `on_refused` answers refused messages, and `admit` may refuse a decoded
        one. `is_urgent` gives the consumer reserved database connections.
        """
        read = find(topic) if isinstance(topic, str) else topic
        signed = read.is_internal
        consumer: Consumer[Any] = Consumer(
            f"{self.service}.{name}",
            read,
            SignedCodec(union, read.name, self.notices, again=True) if signed else Codec(union),
            handle,
            db=self.db if is_urgent else self.patient_db,
            kafka=self.kafka,
            membership=self.membership,
            verifier=None if signed or read.is_open else self.verifier,
            now=clock.timestamp,
            on_refused=on_refused,
            policy=policy,
            preparation=preparation,
            slices=self.slices,
            admit=admit,
            look=self.incarnation.look,
        )
        self._consumers.append(consumer)
        self._loops.append(consumer)
        self._loops.append(Every(f"{consumer.name}.replay", 2.0, consumer.replay_one))
        self.show_probes(consumer.name, consumer)

    def feeds(self) -> list[ConsumedTopic]:
        """Return the registered consumers whose topics hold orders, which a restored database keeps aside."""
        return [each.feed for each in self._consumers if each.topic.holds_orders]

    def show(self, name: str, fact: Callable[[], Any]) -> None:
        """Add the result of `fact`, a JSON value, to each heartbeat under this name. `fact` is called before each heartbeat.

        `wms status` shows the value.
        """
        self._facts[name] = fact

    def show_probes(self, name: str, reader: Probed) -> None:
        """Register a loop that sends the reader's probes. Their health is added to each heartbeat under this name."""
        self._probed[name] = reader
        self.every(f"{name}.probe", PROBE_SECONDS, reader.probe)

    async def run(self) -> None:
        """Run all registered loops until `stop`, SIGTERM or SIGINT. A loop that fails or ends by itself raises an exception group."""
        await patiently(self._bury_dead)
        # Before the first message: nobody who was revoked comes in at a restart.
        await patiently(self._revocation_refresh.look)
        await patiently(self._beat)
        self.show("loop", measured(asyncio.get_running_loop()))
        log.info("service runs", instance=self.instance_id, cluster=self.kafka.cluster_id)
        try:
            async with asyncio.TaskGroup() as group:
                relay = group.create_task(endless(self.relay), name=self.relay.name)
                watchdog = Watchdog(self._consumers, self.config.postgres.url, self.membership)
                await self.run_loops([NamedLoop("heartbeat", self._beat_on), watchdog])
                await self.relay.drain(DRAIN_SECONDS)
                relay.cancel()
        finally:
            self.slices.close()
            await self._leave()
        log.info("service ends", instance=self.instance_id)

    async def _bury_dead(self) -> None:
        """Free the partitions of instances on this machine whose process has ended, such as this process's predecessor.

        An instance whose process is alive but invisible to this one registers again with its next heartbeat.
        """
        async with self.db.transaction() as tx:
            # In one order, as other services that start now do the same.
            for each in sorted(await instance.instances(tx), key=lambda each: str(each["instance_id"])):
                if each["host"] == platform.node() and not psutil.pid_exists(each["pid"]):
                    await instance.leave(tx, each["instance_id"])

    async def _leave(self) -> None:
        """Free this instance's partitions, so that other instances need not wait until it counts as dead."""
        with contextlib.suppress(*GONE, *RETRIED):
            async with asyncio.timeout(DRAIN_SECONDS), self.db.transaction() as tx:
                await instance.leave(tx, self.instance_id)

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                async with asyncio.timeout(instance.DEAD_AFTER_SECONDS):
                    await check_cluster(self.kafka)
                    await self._beat()
            except (*GONE, *RETRIED, Unavailable) as error:
                # By the time that the others consider it dead, it has given up its partitions.
                log.warning("heartbeat missed", error=repr(error))

    async def _beat(self) -> None:
        began = time.monotonic()
        async with self.db.transaction() as tx:
            beat = instance.Beat(
                instance_id=self.instance_id,
                service=self.service,
                consumers=[consumer.name for consumer in self._consumers],
                host=platform.node(),
                pid=os.getpid(),
                version=__version__,
                health=self._health(),
            )
            await self.incarnation.look(tx)
            sharers = await instance.beat(tx, beat)
            ended = await instance.end_silent(tx)
        self.membership.update(sharers, began)
        if ended:
            log.warning("transactions of silent instances ended", instances=dict(ended))

    def _health(self) -> str:
        health = {
            "lag": {consumer.name: consumer.lag for consumer in self._consumers},
            "partitions": {consumer.name: consumer.health() for consumer in self._consumers},
            "probes": {name: each.probe_health() for name, each in self._probed.items()},
            "troubles": self._troubles(),
            "handled": {consumer.name: consumer.handled for consumer in self._consumers},
            "sent": self.relay.sent,
            **{name: fact() for name, fact in self._facts.items()},
        }
        return msgspec.json.encode(health).decode()

    def _troubles(self) -> dict[str, str]:
        """Return the troubles of the relay and of the periodic loops, by name."""
        loops: list[Relay | Every] = [self.relay, *(each for each in self._loops if isinstance(each, Every))]
        return {each.name: trouble for each in loops if (trouble := each.trouble())}


def serve(
    service: str,
    kind: type[C],
    build: Callable[[Host, C], Awaitable[None]],
) -> None:
    """Run a service as a process, from the command line `python -m services.<name> --config FILE`, until it is stopped.

    `build` registers its consumers and loops. `kind` is the class of the configuration. The exit code is 2 for a wrong
    configuration, 75 if a server is unavailable at the start or a loop fails, and 1 if the process did not end in time.
    """
    run_process(service, kind, lambda config: _serve(service, config, build))


async def _serve(service: str, config: C, build: Callable[[Host, C], Awaitable[None]]) -> None:
    name = instance.new_id(service)
    db = await patiently(
        lambda: Database.connect(config.postgres.url, size=config.postgres.pool, application=name)
    )
    try:
        await patiently(lambda: check(config.postgres.url))
        await patiently(lambda: check_rights(config.postgres.url, service))
        kafka = Kafka(config.kafka, service)
        await patiently(lambda: kafka.start(SHARED))
        try:
            host = Host(service, config, db, kafka, name)
            host.end_in_time()
            await build(host, config)
            await patiently(host.incarnation.settle)
            await host.run()
        finally:
            await kafka.close()
    finally:
        await db.close()
