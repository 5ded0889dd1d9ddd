"""Makes what a pilot is sent with: its configuration, its token or one-time secret, and its request to the batch system."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from services.pilot_submitter.ce_endpoints import CeEndpoint
from services.pilot_submitter.config import Config, PilotFactorySettings
from services.pilot_submitter.gateway_access import gateway_access, store_access
from wms.auth.keys import SigningKey
from wms.auth.orders import OrderKeys, PilotCredential
from wms.auth.principal import Right
from wms.auth.token import Claims, mint
from wms.broker.start_window import StartWindow
from wms.bus.kafka import KafkaSettings
from wms.db import pilot, pilot_secret
from wms.db.database import Transaction
from wms.db.pilot import Link, NewPilot, TokenDue
from wms.dispatch.job_policy import JobPolicy
from wms.dispatch.port import PilotRequest, Request
from wms.files import Table, to_toml
from wms.messages.site_inbox import TokenRenewal
from wms.provisioning.purpose import Purpose
from wms.runtime import clock
from wms.runtime.pilot_config import GatewayAccess, SandboxSettings
from wms.site import ComputingElement, ad_of
from wms.transfer.movers import TransferSettings

NO_OWNER = "pilot_submitter"
"""The owner in the tokens of generic pilots, which run jobs of all owners of a VO. It is the service's own name."""

BOUND_IDLE_SECONDS = 90.0
"""The least seconds for which a pilot that was sent for one job waits for it. A matcher that missed the job finds it within 30 s."""


class PilotFactory:
    """Makes orders for dispatchers to send pilots, and new tokens for living pilots.

    `key` signs the tokens. `orders` derives the keys and one-time secrets of pilots.
    """

    def __init__(self, config: Config, key: SigningKey, orders: OrderKeys) -> None:
        self._pilots: PilotFactorySettings = config.pilots
        self._kafka: KafkaSettings = config.kafka
        self._gateway: GatewayAccess = gateway_access(config.gateway)
        self._transfers = config.transfers
        self._stores: dict[Link, SandboxSettings] = {
            "kafka": store_access(
                config.pilots.sandboxes_url or config.sandboxes.url, config.pilots.sandboxes_authorities
            ),
            # A pilot with a gateway needs no other way to anything.
            "gateway": store_access(
                config.pilots.sandboxes_url or config.gateway.url,
                config.pilots.sandboxes_authorities or config.gateway.authorities,
            ),
        }
        self._log_level = config.log.level
        self._key = key
        self._orders = orders

    @property
    def token_seconds(self) -> float:
        """Seconds for which a pilot's token is valid."""
        return self._pilots.token_seconds

    def lifetime_seconds(self, endpoint: CeEndpoint) -> float:
        """Return the seconds after its start at which a pilot of this endpoint takes no more jobs."""
        return endpoint.terms.lifetime_seconds or self._pilots.lifetime_seconds

    def transfers(self, endpoint: CeEndpoint) -> TransferSettings:
        """Return the settings for files by URL of jobs at this endpoint: the endpoint's own, or those of all elements."""
        return endpoint.terms.transfers or self._transfers

    def link(self, endpoint: CeEndpoint) -> Link:
        """Return how pilots sent through this endpoint reach the services: by Kafka, or by the gateway."""
        return endpoint.terms.link or self._pilots.link

    async def store(self, tx: Transaction, sent: Sequence[NewPilot]) -> None:
        """Store pilots before they are sent; of those that reach the services by a gateway, the hashes of their one-time secrets too."""
        await pilot.insert(tx, sent, self.token_seconds)
        digests = {
            each.pilot_id: self._orders.secrets_of(each.pilot_id)[0].digest
            for each in sent
            if each.link == "gateway"
        }
        await pilot_secret.insert(tx, digests, self._pilots.secret_seconds)

    def order(
        self,
        sent: NewPilot,
        element: ComputingElement,
        endpoint: CeEndpoint,
        request: Request | None = None,
        purpose: Purpose = Purpose(),  # noqa: B008 - a value that never changes
        *,
        window: StartWindow | None = None,
        first_hosts: Sequence[str] = (),
    ) -> PilotRequest:
        """Return the order by which the dispatcher of `endpoint` submits one pilot to `element`.

        It contains the pilot's token and key, or a one-time secret if the pilot uses a gateway. `request` is what the pilot
        requests of the batch system; None: what is usual at the endpoint. `purpose` describes the jobs that it is for.
        `window` is when the program of its job may start; None: at any time. Replicas on `first_hosts` are fetched first.
        """
        request = request or endpoint.request(element)
        return PilotRequest(
            pilot_id=sent.pilot_id,
            site=sent.site,
            ce=sent.ce,
            slots=sent.slots,
            config=self._config(sent, element, endpoint, request, window=window, first_hosts=first_hosts),
            token=self._secret_file(sent),
            request=request,
            policy=policy_of(sent.vo, request, purpose),
        )

    def _secret_file(self, sent: NewPilot) -> str:
        if sent.link == "gateway":
            return self._orders.secrets_of(sent.pilot_id)[0].text
        return self.credential(sent).text

    def credential(self, pilot: NewPilot | TokenDue) -> PilotCredential:
        """Return a new signed token for a pilot, and the pilot's key, by which it reads messages encrypted for it."""
        return PilotCredential(self.token(pilot), self._orders.of_pilot(pilot.pilot_id))

    def renewal(self, due: TokenDue) -> TokenRenewal:
        """Return a message with a new token for a living pilot, encrypted for that pilot. The token has the rights of its present one."""
        token = self.token(due)
        return TokenRenewal(pilot_id=due.pilot_id, sealed=self._orders.seal(due.pilot_id, token))

    def token(self, pilot: NewPilot | TokenDue) -> str:
        """Return a signed token that states what the pilot may do; it is valid for `token_seconds`.

        It names the pilot, its site, its element and its VO. The token of a private pilot names its owner and group too. It
        lacks the right to take jobs of all owners. The token of a pilot sent for a placement names its job.
        """
        claims = Claims(
            kind="pilot",
            owner=pilot.owner or NO_OWNER,
            group=pilot.owner_group or "pilot",
            vo=pilot.vo,
            rights=frozenset() if pilot.owner_group else frozenset({Right.GENERIC_PILOT}),
            pilot_id=pilot.pilot_id,
            site=pilot.site,
            ce=pilot.ce,
            job_id=pilot.job_id,
        )
        return mint(self._key, claims, self._pilots.token_seconds, clock.timestamp())

    def _idle_seconds(self, sent: NewPilot) -> float:
        """Return the seconds without a job after which a pilot ends.

        A pilot that was sent for one job waits longer, since its placement fails if it ends without the job.
        """
        idle = self._pilots.idle_seconds
        return idle if sent.job_id is None else max(idle, BOUND_IDLE_SECONDS)

    def _config(
        self,
        sent: NewPilot,
        element: ComputingElement,
        endpoint: CeEndpoint,
        request: Request,
        *,
        window: StartWindow | None,
        first_hosts: Sequence[str],
    ) -> str:
        node = sent.resource.node if sent.resource else ()
        # Its dispatcher adds the paths of its token and its jobs.
        return to_toml(
            {
                "pilot": {
                    "pilot_id": sent.pilot_id,
                    "site": sent.site,
                    "ce": sent.ce,
                    "vo": sent.vo,
                    "slots": sent.slots,
                    "most_jobs": 0 if sent.job_id is None else 1,
                    "idle_seconds": self._idle_seconds(sent),
                    "grace_seconds": self._pilots.grace_seconds,
                    "stop_seconds": self._pilots.stop_seconds,
                    "grace_most_seconds": self._pilots.grace_most_seconds,
                    "lifetime_seconds": self.lifetime_seconds(endpoint),
                    "isolation": self._pilots.isolation,
                    "cgroups": self._pilots.cgroups,
                    "hidden": self._pilots.hidden,
                    "walltime_seconds": request.walltime_seconds,
                    **_starts(window),
                },
                "resource": {
                    "setup": element.setup,
                    "cpu_time": element.max_cpu_time,
                    "memory_mb": request.memory_mb,
                    "platforms": list(element.platforms),
                    "tags": list(element.tags),
                    "required_tags": list(element.required_tags),
                    "job_types": list(element.job_types),
                    "pilot_type": element.pilot_type,
                    "ad": ad_of(element),
                    "software": endpoint.terms.software,
                },
                "resource.node": {
                    name: list(value) if isinstance(value, tuple) else value for name, value in node
                },
                **_tables(_fetching(self.transfers(endpoint), first_hosts)),
                "sandboxes": self._store(endpoint),
                **self._way(sent.link),
                "log": {"level": self._log_level},
            }
        )

    def _store(self, endpoint: CeEndpoint) -> Table:
        """Return the `[sandboxes]` table of a pilot's configuration: how pilots of an endpoint reach the sandbox store."""
        table: Table = msgspec.to_builtins(endpoint.terms.sandboxes or self._stores[self.link(endpoint)])
        return table

    def _way(self, link: Link) -> dict[str, Table]:
        """Return the `[gateway]` or `[kafka]` table of a pilot's configuration, by its `link`.

        A pilot with a gateway gets no access to Kafka.
        """
        if link == "gateway":
            return {"gateway": msgspec.to_builtins(self._gateway)}
        return {"kafka": msgspec.to_builtins(self._kafka)}


def policy_of(vo: str, request: Request, purpose: Purpose) -> JobPolicy:
    """Return what a batch system may be told of a pilot for its own policies: its VO, its request, and the jobs that it is for."""
    return JobPolicy(
        vo=vo,
        owner_groups=purpose.owner_groups,
        cores=request.cores,
        cpu_seconds=purpose.cpu_seconds,
        walltime_seconds=request.walltime_seconds,
        memory_mb=request.memory_mb or purpose.memory_mb,
        hosts=purpose.requirements,
    )


def _starts(window: StartWindow | None) -> Table:
    """Return the settings of a pilot that tell when the program of its job may start; empty without a window."""
    if window is None:
        return {}
    # A start that has passed is left out, so that no node whose clock is slow waits for it.
    ends = {
        "earliest_start": window.earliest if window.earliest > clock.now() else None,
        "latest_start": window.latest,
    }
    return {name: moment.isoformat() for name, moment in ends.items() if moment is not None}


def _fetching(settings: TransferSettings, first_hosts: Sequence[str]) -> TransferSettings:
    return replace(settings, first_hosts=list(first_hosts)) if first_hosts else settings


def _tables(settings: TransferSettings) -> dict[str, Table]:
    """Return the settings for files by URL as tables of a pilot's TOML configuration; empty if they are the job agent's own defaults."""
    if settings == TransferSettings():
        return {}
    table = msgspec.to_builtins(settings)
    nested = {f"transfers.{name}": each for name, each in table.items() if isinstance(each, dict)}
    return {"transfers": {name: each for name, each in table.items() if not isinstance(each, dict)}, **nested}
