"""Authentication: verifies the token of each request, and refuses requests over the rates of `RequestLimits`."""

import hashlib
from ipaddress import IPv6Address, ip_address

import structlog
from starlette.requests import Request

from services.gateway.config import RequestLimits
from services.gateway.http_connection import KEY
from services.gateway.problem import TooMany
from services.gateway.request_rates import RequestBudget
from wms.auth.principal import Principal
from wms.auth.token import SIZE_LIMIT, Verifier
from wms.bounded_cache import BoundedCache
from wms.client.credential import UserCredential
from wms.errors import Rejected
from wms.runtime import clock

log = structlog.get_logger()

SCHEME = "bearer"
KNOWN = 20_000
"""The most tokens whose digests are remembered as valid; when it is reached, the oldest quarter is forgotten.

Requests with a remembered token do not count for their address.
"""
REFUSALS_PER_SECOND = 1 / 60
"""How often the refusals of one token are logged: the first one, and then one a minute."""

OF_PAYLOADS = "a payload reads its own job, and nothing else"


class Authentication:
    """Admits requests that have a valid token and keep within the rates of their token, owner, pilot and client address."""

    def __init__(self, verifier: Verifier, limits: RequestLimits) -> None:
        self._verifier = verifier
        self._by_token = RequestBudget(limits.token_per_second, limits.token_burst)
        self._by_owner = RequestBudget(limits.owner_per_second, limits.owner_burst)
        self._by_address = RequestBudget(limits.address_per_second, limits.address_burst)
        self._by_pilot = RequestBudget(limits.pilot_per_second, limits.pilot_burst)
        self._by_site_address = RequestBudget(limits.site_address_per_second, limits.site_address_burst)
        self._known: BoundedCache[bytes, None] = BoundedCache(KNOWN)
        """The SHA-256 digests of tokens that were valid when last used."""
        self._logged = RequestBudget(REFUSALS_PER_SECOND, 1)
        self.refused = 0
        """The number of requests refused for exceeding a rate, since the start."""

    def admit(self, request: Request, *, payloads: bool = False) -> tuple[UserCredential, Principal]:
        """Return the verified token of a request, and the principal that it names. With `payloads`, a payload's token is accepted too.

        Raise Rejected if the token is missing, invalid or not accepted, and TooMany if a rate is exceeded.
        """
        now = clock.timestamp()
        digest, credential, principal = self._identified(request, self._by_address, now)
        if principal.kind == "payload" and not payloads:
            raise Rejected("NOT_ALLOWED", OF_PAYLOADS, "use a user's token")
        self._spend(self._by_token, digest, "this token", now)
        self._spend(self._by_owner, principal.owner, "this user", now)
        return credential, principal

    def admit_pilot(self, request: Request, pilot_id: str = "") -> tuple[UserCredential, Principal]:
        """Return the verified token of a pilot's request, and the pilot. Pilots have rates of their own, for each pilot and for each client address.

        With `pilot_id` only that pilot is admitted. Raise Rejected if the token is missing, invalid or of anyone else, and TooMany if a
        rate is exceeded.
        """
        now = clock.timestamp()
        _, credential, principal = self._identified(request, self._by_site_address, now)
        self._spend_of_pilot(principal, pilot_id, now)
        return credential, principal

    def admit_holder(self, request: Request) -> UserCredential:
        """Return the verified token of a request by a pilot or a payload. A payload's requests count for its token, a pilot's for the pilot.

        Raise Rejected if the token is missing, invalid or of another kind, and TooMany if a rate is exceeded.
        """
        now = clock.timestamp()
        digest, credential, principal = self._identified(request, self._by_site_address, now)
        if principal.kind == "payload":
            self._spend(self._by_token, digest, "this token", now)
        else:
            self._spend_of_pilot(principal, "", now)
        return credential

    def _spend_of_pilot(self, principal: Principal, pilot_id: str, now: float) -> None:
        if principal.kind != "pilot":
            raise Rejected("NOT_ALLOWED", f"a {principal.kind}'s token holds no jobs", "use a pilot's token")
        if pilot_id not in {"", principal.pilot_id}:
            raise Rejected("NOT_ALLOWED", "this is the way of another pilot", "use the token of that pilot")
        self._spend(self._by_pilot, principal.pilot_id, "this pilot", now)

    def admit_secret(self, request: Request) -> None:
        """Admit a request by which a pilot exchanges its one-time secret for a token.

        Raise TooMany if its client address exceeds the rate for pilots.
        """
        self._spend(self._by_site_address, address_of(request), "this address", clock.timestamp())

    def check_kept(self, principal: Principal) -> None:
        """Raise Rejected if the token of this principal was revoked after it was admitted."""
        self._verifier.check_kept(principal)

    def admit_anyone(self, request: Request) -> None:
        """Admit a request without checking a token. Raise TooMany if its client address exceeds its rate."""
        self._spend(self._by_address, address_of(request), "this address", clock.timestamp())

    def _identified(
        self, request: Request, by_address: RequestBudget, now: float
    ) -> tuple[bytes, UserCredential, Principal]:
        """Return the digest of a request's token, the token, and the principal that it names.

        A token not seen before counts for its address's rate, before its signature is verified, which costs the most time. A token that was
        valid before does not, so forged tokens block no valid one from the same address. Raise Rejected if the token is missing or invalid,
        and TooMany if it is new and the address exceeds its rate.
        """
        header = request.headers.get("authorization", "")
        digest = hashlib.sha256(header.partition(" ")[2].strip().encode("latin-1")).digest()
        if digest not in self._known:
            self._spend(by_address, address_of(request), "this address", now)
        token = bearer(header)
        try:
            principal = self._verifier.verify(token, now)
        except Rejected as fault:
            self._known.pop(digest, None)
            self._log_refusal(request, token, digest, fault, now)
            raise
        if digest not in self._known:
            self._known[digest] = None
        if (connection := request.scope.get(KEY)) is not None:
            connection.know()
        return digest, UserCredential(token, principal.owner, principal.expires_at, {}), principal

    def _log_refusal(self, request: Request, token: str, digest: bytes, fault: Rejected, now: float) -> None:
        """Log who used a token that was revoked or has expired. Forged tokens are not logged, since anyone could fill the log with them."""
        owner = self._verifier.subject(token)
        if owner and self._logged.spend(digest, now) == 0:
            log.warning(
                "token refused",
                owner=owner,
                code=fault.code,
                address=address_of(request),
                method=request.method,
                path=request.url.path,
            )

    def _spend(self, budget: RequestBudget, key: object, whose: str, now: float) -> None:
        wait = budget.spend(key, now)
        if wait > 0:
            self.refused += 1
            raise TooMany(f"too many requests of {whose}", wait)


def bearer(header: str) -> str:
    """Return the bearer token in an `Authorization` header. Raise Rejected if there is none, or it is too long or not ASCII."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != SCHEME or not token:
        raise Rejected(
            "TOKEN_MISSING", "the request has no token", "send the header `Authorization: Bearer TOKEN`"
        )
    if len(token) > SIZE_LIMIT or not token.isascii():
        raise Rejected("TOKEN_INVALID", "the token is refused: it is not a token of this system")
    return token.strip()


def address_of(request: Request) -> str:
    """Return the client address of a request; for IPv6 its /64 network, and empty if it is unknown."""
    return network_of(request.client.host if request.client else "")


def network_of(host: str) -> str:
    """Return the address; for IPv6 its /64 network, since one person usually controls all of it. Other texts are returned unchanged."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped) if address.ipv4_mapped else address.exploded[:19]
    return str(address)
