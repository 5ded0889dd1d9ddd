"""An ARC computing element of one machine: A-REX with its REST interface over a Slurm cluster.

It knows its users by certificates of an authority of its own, by proxies of these, and by tokens of an issuer of its own. Jobs
run as nobody, since A-REX passes over jobs of root's without a word. It tells of its jobs what its information provider saw
last, once a minute; here that is every few seconds.
"""

import http.client
import ssl
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.testbed.certificates import Authority, Credential, proxy
from deploy.testbed.daemons import TestbedError, environment, free_ports, kill, marked, run, wait_until
from deploy.testbed.issuer import Issuer

READY_SECONDS = 90.0
SCRIPTS = Path("/usr/share/arc")
TRUSTED = Path("/etc/grid-security/certificates")
"""Where A-REX looks for who vouches for an issuer of tokens, whatever its configuration says."""
INFORMATION_SECONDS = 4

CONFIGURATION = """\
[common]
hostname = localhost
x509_host_key = {place}/host.key
x509_host_cert = {place}/host.pem
x509_cert_dir = {place}/authorities
[authtokens]
[authgroup:people]
subject = {subject}
[authgroup:bearers]
authtokens = * {issuer} * * *
[mapping]
map_to_user = people nobody:nogroup
map_to_user = bearers nobody:nogroup
[lrms]
lrms = slurm
slurm_use_sacct = no
slurm_wakeupperiod = 2
defaultmemory = 100
[arex]
controldir = {place}/control
sessiondir = {place}/session
tmpdir = {place}/tmp
logfile = {place}/log/arex.log
pidfile = {place}/run/arex.pid
joblog = {place}/log/jobs.log
helperlog = {place}/log/helpers.log
loglevel = 3
watchdog = no
wakeupperiod = 2
[arex/cache]
cachedir = {place}/cache
[arex/data-staging]
logfile = {place}/log/staging.log
[arex/ws]
wsurl = {url}
logfile = {place}/log/ws.log
pidfile = {place}/run/arex-ws.pid
[arex/ws/jobs]
allowaccess = people
allowaccess = bearers
[infosys]
logfile = {place}/log/information.log
loglevel = 3
[infosys/glue2]
admindomain_name = testbed
[infosys/cluster]
alias = testbed
advertisedvo = testbed
{queues}
"""


class ArcElement:
    """One computing element below `root`/arc, over the cluster of a slurm.conf."""

    def __init__(
        self,
        root: Path,
        slurm_conf: Path,
        queues: Sequence[str],
        information_seconds: int = INFORMATION_SECONDS,
    ) -> None:
        self.place = root / "arc"
        self.queues = list(queues)
        self.url = ""
        self.information_seconds = information_seconds
        self._root = root
        self._slurm_conf = slurm_conf
        self._linked = self.place / "linked"

    @property
    def authority(self) -> Path:
        """Who vouches for it, as PEM."""
        return self.place / "authorities" / "authority.pem"

    @property
    def proxy(self) -> Path:
        """The proxy of a user: certificate, key and chain in one file, 0600."""
        return self.place / "proxy.pem"

    @property
    def token(self) -> Path:
        """A user's token, 0600."""
        return self.place / "token"

    def start(self) -> None:
        """Start the issuer, A-REX and its web service, and wait until it tells of itself."""
        self._prepare()
        self._fast_start_script()
        self.start_daemons()

    def start_daemons(self) -> None:
        """Start A-REX and its web service as they were prepared, and wait until they answer."""
        for script in (self.place / "run" / "arex-start", SCRIPTS / "arc-arex-ws-start"):
            run([str(script)], self._environment(), within=READY_SECONDS)
        wait_until(f"information from {self.url}", self._tells, READY_SECONDS)

    def kill_daemons(self) -> None:
        """Kill A-REX and its web service; what they submitted runs on."""
        daemons = marked(self._root, "arched")
        if not daemons:
            raise TestbedError("A-REX does not run")
        kill(daemons)
        for name in ("arex.pid", "arex-ws.pid"):
            (self.place / "run" / name).unlink(missing_ok=True)

    def forget(self) -> None:
        """Take back what was put outside of our directory."""
        if self._linked.exists():
            for line in self._linked.read_text().splitlines():
                Path(line).unlink(missing_ok=True)
            self._linked.unlink()

    def _environment(self) -> dict[str, str]:
        return environment(
            self._root, {"ARC_CONFIG": str(self.place / "arc.conf"), "SLURM_CONF": str(self._slurm_conf)}
        )

    def _prepare(self) -> None:
        for name in ("control", "session", "cache", "run", "log", "tmp"):
            (self.place / name).mkdir(parents=True, exist_ok=True)
        (self.place / "tmp").chmod(0o1777)
        web_port, issuer_port = free_ports(2)
        self.url = f"https://localhost:{web_port}/arex"
        issuer = Issuer(self.place / "issuer", issuer_port)
        self._write_credentials(issuer, f"https://localhost:{web_port}")
        self._short_parameters()
        self._serve(issuer)

    def _write_credentials(self, issuer: Issuer, audience: str) -> None:
        authority = Authority()
        self._link(authority.trust(self.place / "authorities"))
        host, user = authority.host("localhost"), authority.user("Pilot Submitter")
        (self.place / "host.pem").write_bytes(host.pem)
        _closed(self.place / "host.key", host.key_pem)
        _closed(self.proxy, proxy(user))
        issuer.write(host)
        _closed(self.token, issuer.token("pilot-submitter", audience).encode())
        self._configure(user, issuer)

    def _configure(self, user: Credential, issuer: Issuer) -> None:
        queues = "\n".join(f"[queue:{queue}]\ncomment = partition {queue}" for queue in self.queues)
        (self.place / "arc.conf").write_text(
            CONFIGURATION.format(
                place=self.place, subject=user.subject, issuer=issuer.url, url=self.url, queues=queues
            )
        )

    def _link(self, files: Sequence[Path]) -> None:
        TRUSTED.mkdir(parents=True, exist_ok=True)
        links = [TRUSTED / file.name for file in files]
        self._linked.write_text("\n".join(map(str, links)))
        for link, file in zip(links, files, strict=True):
            link.unlink(missing_ok=True)
            link.symlink_to(file)

    def _short_parameters(self) -> None:
        # Without them the start script makes ones of 4096 bits, which keeps a processor busy for minutes.
        file = self.place / "control" / "dhparam.pem"
        run(["openssl", "dhparam", "-dsaparam", "-out", str(file), "2048"], self._environment())
        file.chmod(0o600)

    def _serve(self, issuer: Issuer) -> None:
        with (self.place / "log" / "issuer.log").open("ab") as log:
            subprocess.Popen(
                [sys.executable, "-m", "deploy.testbed.issuer", str(issuer.place), str(issuer.port)],
                cwd=Path(__file__).parents[2],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _fast_start_script(self) -> None:
        """Make a copy of the script that starts A-REX with another period of the information provider."""
        text = (SCRIPTS / "arc-arex-start").read_text()
        after = "</arex:gmconfig>\n"
        period = (
            f"<arex:InfoproviderWakeupPeriod>{self.information_seconds}</arex:InfoproviderWakeupPeriod>\n"
        )
        if after not in text:
            raise TestbedError(f"{SCRIPTS}/arc-arex-start is not as it was in ARC 6.17")
        script = self.place / "run" / "arex-start"
        script.write_text(text.replace(after, after + period))
        script.chmod(0o755)

    def _tells(self) -> bool:
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(self.proxy)
        port = int(self.url.split(":")[2].partition("/")[0])
        connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=5)
        try:
            connection.request("GET", "/arex/rest/1.0/info", headers={"Accept": "application/json"})
            return len(connection.getresponse().read()) > 500
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def _closed(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(content)
