"""Runs Apache Kafka 4 on this machine: one node in KRaft mode. Maven downloads the published jars, and Java runs them."""

import argparse
import asyncio
import os
import re
import secrets
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

from wms.embedded.java_program import JavaProgram, java_command
from wms.embedded.kafka_broker import cluster_id_of, new_cluster_id
from wms.embedded.process import Child
from wms.embedded.server import KafkaServer, settle_port
from wms.errors import Unavailable
from wms.files import Table, write_secret

USER = "wms"
# Beside the sources, or in an installed wheel beside this module.
_POMS = (
    Path(__file__).parents[2] / "deploy" / "apache_kafka" / "pom.xml",
    Path(__file__).with_name("pom.xml"),
)
APACHE_KAFKA = JavaProgram(
    "Apache Kafka", next((each for each in _POMS if each.exists()), _POMS[-1]), "kafka.version"
)

SETTINGS: Mapping[str, str] = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,KAFKA:PLAINTEXT",
    "inter.broker.listener.name": "KAFKA",
    "auto.create.topics.enable": "false",
    "default.replication.factor": "1",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.cleaner.dedupe.buffer.size": str(8 * 1024 * 1024),
    # A broker that is started again waits until the session of its earlier run has expired.
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    # There is no other broker to take over its partitions.
    "controlled.shutdown.enable": "false",
}
LOGGING = """\
Configuration:
  status: "ERROR"
  Appenders:
    Console:
      name: "OUT"
      target: "SYSTEM_OUT"
      PatternLayout:
        pattern: "%d %p %c{1}: %m%n"
  Loggers:
    Root:
      level: "WARN"
      AppenderRef:
        ref: "OUT"
"""


class ApacheKafka(KafkaServer):
    """An Apache Kafka broker on 127.0.0.1 whose topics survive restarts, with a Java heap of `heap_mib` MiB.

    `port` 0 means any free port, the same at each start if possible. With `closed`, clients must give the password that is in `data_dir`
    (mode 0600). `settings` override the Kafka settings in `SETTINGS`. `start` fails if the broker is not ready within `ready_within`
    seconds.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int = 0,
        *,
        settings: Mapping[str, str] | None = None,
        closed: bool = False,
        heap_mib: int = 384,
        ready_within: float = 180.0,
    ) -> None:
        super().__init__(data_dir, name="kafka", ready_within=ready_within)
        self.port = port
        self._settings = {**SETTINGS, **(settings or {})}
        self._heap_mib = heap_mib
        self._closed = closed

    @property
    def access(self) -> Table:
        """The settings by which clients connect to the broker, as a table of a configuration file. With `closed` they include the password."""
        if not self._closed:
            return super().access
        password = (self.data_dir / "password").read_text("ascii").strip()
        sasl = {"security": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": USER, "password": password}
        return {**super().access, **sasl}

    async def wipe(self) -> None:
        """Remove all topics and the cluster's id, like a loss of the disk. The broker must not be running."""
        assert not self.running
        await asyncio.to_thread(shutil.rmtree, self._logs, ignore_errors=True)

    @property
    def _logs(self) -> Path:
        return self.data_dir / "logs"

    async def _launch(self) -> Child:
        jars = await APACHE_KAFKA.fetch()
        self.port = settle_port(self.data_dir, self.port)
        self._write_settings(settle_port(self.data_dir, 0, "controller_port"))
        if not (self._logs / "meta.properties").exists():
            await self._format(jars)
        return await self._java(jars, "kafka.Kafka", str(self._properties))

    async def _is_ready(self) -> bool:
        return await cluster_id_of(self) == self._cluster_id()

    @property
    def _properties(self) -> Path:
        return self.data_dir / "server.properties"

    def _write_settings(self, controller_port: int) -> None:
        controller = f"127.0.0.1:{controller_port}"
        where = {
            "listeners": f"KAFKA://{self.bootstrap},CONTROLLER://{controller}",
            "advertised.listeners": f"KAFKA://{self.bootstrap}",
            "controller.quorum.voters": f"1@{controller}",
            # In a properties file a backslash begins an escape.
            "log.dirs": str(self._logs).replace("\\", "\\\\"),
        }
        settings = {**self._settings, **where, **(self._sasl() if self._closed else {})}
        write_secret(self._properties, "".join(f"{key}={value}\n" for key, value in settings.items()))
        (self.data_dir / "log4j2.yaml").write_text(LOGGING, "utf-8")

    def _sasl(self) -> dict[str, str]:
        """Return the Kafka settings that require the password from clients and from the broker itself. Create a password if there is none."""
        file = self.data_dir / "password"
        if not file.exists():
            write_secret(file, secrets.token_hex(24))
        password = file.read_text("ascii").strip()
        module = "org.apache.kafka.common.security.plain.PlainLoginModule required"
        login = f'{module} username="{USER}" password="{password}" user_{USER}="{password}";'
        return {
            "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,KAFKA:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.kafka.plain.sasl.jaas.config": login,
            "listener.name.controller.plain.sasl.jaas.config": login,
        }

    async def _format(self, jars: Path) -> None:
        await self.wipe()
        arguments = ["format", "-t", new_cluster_id(), "-c", str(self._properties)]
        child = await self._java(jars, "kafka.tools.StorageTool", *arguments)
        if await child.wait() != 0:
            raise Unavailable(f"Kafka's storage tool failed; the end of {self.log_path}: {child.log_tail()}")

    async def _java(self, jars: Path, main: str, *arguments: str) -> Child:
        log_settings = f"log4j2.configurationFile={(self.data_dir / 'log4j2.yaml').as_uri()}"
        argv = java_command(jars, main, *arguments, heap_mib=self._heap_mib, log_settings=log_settings)
        return await Child.start(argv, log_path=self.log_path, env={**os.environ, **self.environment})

    def _cluster_id(self) -> str:
        text = (self._logs / "meta.properties").read_text("utf-8")
        found = re.search(r"^cluster\.id=(.+)$", text, re.MULTILINE)
        return found[1].strip() if found else ""


async def _serve(data_dir: Path, port: int) -> None:
    ended = asyncio.Event()
    for sig in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sig, ended.set)
    async with ApacheKafka(data_dir, port) as kafka:
        print(f"Apache Kafka {APACHE_KAFKA.version} listens on {kafka.bootstrap}", flush=True)  # noqa: T201 - a command
        told, died = asyncio.create_task(ended.wait()), asyncio.create_task(kafka.wait())
        await asyncio.wait({told, died}, return_when=asyncio.FIRST_COMPLETED)
        told.cancel()


def main() -> None:
    """Run an Apache Kafka broker in the foreground until it ends or gets SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(prog="apache_kafka", description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="directory for its log and settings")
    parser.add_argument(
        "--port", type=int, default=9092, help="port on 127.0.0.1 (default 9092, 0: a free one)"
    )
    options = parser.parse_args()
    asyncio.run(_serve(options.data, options.port))


if __name__ == "__main__":
    main()
