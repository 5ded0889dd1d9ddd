"""The gate: verifies the token of a request, and refuses requests that come too often."""

import hashlib
from ipaddress import IPv6Address, ip_address

from starlette.requests import Request

from services.gateway.config import RequestLimits
from services.gateway.problem import TooMany
from services.gateway.request_budget import RequestBudget
from wms.auth.principal import Principal
from wms.auth.token import SIZE_LIMIT, Verifier
from wms.bounded_cache import BoundedCache
from wms.client.credential import UserCredential
from wms.errors import Rejected
from wms.runtime import clock

SCHEME = "bearer"
KNOWN = 20_000
"""The most tokens that are remembered as valid."""


OF_PAYLOADS = "a payload reads its own job, and nothing else"


class Gate:
    """A gate that admits requests with a valid token, within the budgets of token, owner and address."""

    def __init__(self, verifier: Verifier, limits: RequestLimits) -> None:
        self._verifier = verifier
        self._by_token = RequestBudget(limits.token_per_second, limits.token_burst)
        self._by_owner = RequestBudget(limits.owner_per_second, limits.owner_burst)
        self._by_address = RequestBudget(limits.address_per_second, limits.address_burst)
        self._by_pilot = RequestBudget(limits.pilot_per_second, limits.pilot_burst)
        self._by_site_address = RequestBudget(limits.site_address_per_second, limits.site_address_burst)
        self._known: BoundedCache[bytes, None] = BoundedCache(KNOWN)
        """The digests of tokens that were valid when they last came."""
        self.refused = 0
        """The number of requests that were refused because they came too often."""

    def admit(self, request: Request, *, payloads: bool = False) -> tuple[UserCredential, Principal]:
        """Return the token of a request and the identity in it. Tokens of payloads are refused without `payloads`.

        Raise Rejected if the token is missing, invalid or refused, and TooMany if a budget is spent.
        """
        now = clock.timestamp()
        digest, credential, principal = self._identified(request, self._by_address, now)
        if principal.kind == "payload" and not payloads:
            raise Rejected("NOT_ALLOWED", OF_PAYLOADS, "use a user's token")
        self._spend(self._by_token, digest, "this token", now)
        self._spend(self._by_owner, principal.owner, "this user", now)
        return credential, principal

    def admit_pilot(self, request: Request, pilot_id: str = "") -> tuple[UserCredential, Principal]:
        """Return the token of a pilot's request, and the pilot. Pilots have budgets of their own, each and by their site's address.

        Without `pilot_id` any pilot is admitted. Raise Rejected if the token is missing or invalid or another pilot's, and TooMany if a
        budget is spent.
        """
        now = clock.timestamp()
        _, credential, principal = self._identified(request, self._by_site_address, now)
        self._spend_of_pilot(principal, pilot_id, now)
        return credential, principal

    def admit_holder(self, request: Request) -> UserCredential:
        """Return the token of a request from a pilot or from a payload, which has a budget for itself. The errors are those of pilots."""
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
        """Let a pilot's request in without a token. TooMany: the address has asked too often."""
        self._spend(self._by_site_address, address_of(request), "this address", clock.timestamp())

    def check_kept(self, principal: Principal) -> None:
        """Raise Rejected if the token of this principal, which was let in earlier, has been revoked since."""
        self._verifier.check_kept(principal)

    def admit_anyone(self, request: Request) -> None:
        """Admit a request without looking at its token. Raise TooMany if its address has asked too often."""
        self._spend(self._by_address, address_of(request), "this address", clock.timestamp())

    def _identified(
        self, request: Request, by_address: RequestBudget, now: float
    ) -> tuple[bytes, UserCredential, Principal]:
        """Return the digest of a request's token, the token, and the identity in it.

        The address's budget is spent before a signature is checked, which takes longest. A token that was valid before is admitted
        without that budget, so that forged tokens keep nobody out who has the same address. Raise Rejected if the token is missing or
        invalid, and TooMany if it is new and the address has asked too often.
        """
        header = request.headers.get("authorization", "")
        digest = hashlib.sha256(header.partition(" ")[2].strip().encode("latin-1")).digest()
        if digest not in self._known:
            self._spend(by_address, address_of(request), "this address", now)
        token = bearer(header)
        try:
            principal = self._verifier.verify(token, now)
        except Rejected:
            self._known.pop(digest, None)
            raise
        if digest not in self._known:
            self._known[digest] = None
        return digest, UserCredential(token, principal.owner, principal.expires_at, {}), principal

    def _spend(self, budget: RequestBudget, key: object, whose: str, now: float) -> None:
        wait = budget.spend(key, now)
        if wait > 0:
            self.refused += 1
            raise TooMany(f"too many requests of {whose}", wait)


def bearer(header: str) -> str:
    """Return the token in an Authorization header. Raise Rejected if there is none, or if it cannot be one."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != SCHEME or not token:
        raise Rejected(
            "TOKEN_MISSING", "the request has no token", "send the header `Authorization: Bearer TOKEN`"
        )
    if len(token) > SIZE_LIMIT or not token.isascii():
        raise Rejected("TOKEN_INVALID", "the token is refused: it is not a token of this system")
    return token.strip()


def address_of(request: Request) -> str:
    """Return the sender's address, as `network_of` does."""
    return network_of(request.client.host if request.client else "")


def network_of(host: str) -> str:
    """Return an address; of IPv6 the network of 64 bits, which one person has whole."""
    try:
        address = ip_address(host)
    except ValueError:
        return host
    return address.exploded[:19] if isinstance(address, IPv6Address) else str(address)
