"""The public keys of trusted issuers: which are trusted at a time, and whose are to be fetched again.

Nothing is fetched here. A token whose key is unknown is refused at once and its issuer is marked, so that its keys are fetched beside.
The rate of this is bounded, since anybody can invent names of keys. Keys that an issuer no longer publishes are dropped. While it cannot
be reached its keys stay, for a bounded time.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from wms.auth.trusted_issuer import TrustedIssuer
from wms.bounds import Line, Word
from wms.errors import Rejected

ALGORITHMS: Final = ("ES256", "RS256")
KEYS_LIMIT: Final = 100
AGAIN_SECONDS: Final = 10.0
"""The shortest time between two fetches for unknown keys of an issuer."""
RETRY_SECONDS: Final = (5.0, 10.0, 20.0, 40.0, 60.0)
"""The pauses after fetches that fail one after another; the last one repeats."""
RSA_BITS: Final = range(2_048, 8_193)
"""Sizes of RSA keys: smaller ones are weak, larger ones slow."""


class PublishedKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """A JSON Web Key as issuers publish it; further members are ignored."""

    kty: Word = ""
    kid: Line = ""
    use: Word = "sig"
    alg: Word = ""
    crv: Word = ""
    x: Word = ""
    y: Word = ""
    n: Annotated[str, msgspec.Meta(max_length=1_500)] = ""
    e: Word = ""


class PublishedKeys(msgspec.Struct, frozen=True):
    """A JSON Web Key Set as issuers publish it."""

    keys: Annotated[tuple[PublishedKey, ...], msgspec.Meta(max_length=KEYS_LIMIT)]


class IssuerKey(msgspec.Struct, frozen=True, eq=False):
    """A trusted key: its issuer, its published form, and the algorithm with which it verifies."""

    issuer: TrustedIssuer
    published: PublishedKey
    algorithm: str
    public: Any


class KeyStanding(msgspec.Struct):
    """What is known of one issuer's keys; times are in seconds since 1970."""

    keys: dict[str, IssuerKey] = msgspec.field(default_factory=dict)
    looked_at: float | None = None
    """The last successful look."""
    tried_at: float | None = None
    next_at: float = 0.0
    failures: int = 0
    trouble: str = "not looked at yet"
    is_wanted: bool = False
    """Whether a token came with an unknown key."""


class IssuerKeys:
    """The keys of all trusted issuers, by the issuers' addresses."""

    def __init__(self, issuers: Sequence[TrustedIssuer] = ()) -> None:
        self._issuers = {each.url: each for each in issuers}
        if len(self._issuers) != len(issuers):
            raise Rejected(
                "CONFIG_INVALID", "an issuer is configured twice", "give it one table with all its rules"
            )
        self._standing = {url: KeyStanding() for url in self._issuers}

    def __bool__(self) -> bool:
        return bool(self._issuers)

    def __contains__(self, url: object) -> bool:
        return url in self._issuers

    def find(self, url: str, kid: str) -> IssuerKey:
        """Return an issuer's key. An unknown one is wanted from now on.

        Raises:
            Rejected: TOKEN_KEY_UNKNOWN if it is not known, or not yet.
        """
        standing = self._standing[url]
        if (found := standing.keys.get(kid)) is None:
            standing.is_wanted = True
            raise Rejected(
                "TOKEN_KEY_UNKNOWN",
                "its issuer has published no such key, as far as is known",
                "send it again in some seconds",
            )
        return found

    def check(self, key: IssuerKey, now: float) -> None:
        """Raise Rejected if a key is no longer trusted: TOKEN_KEY_WITHDRAWN, or ISSUER_SILENT if its issuer is away for too long."""
        standing = self._standing[key.issuer.url]
        if standing.keys.get(key.published.kid) is not key:
            raise Rejected("TOKEN_KEY_WITHDRAWN", "its issuer has withdrawn its key", "get a new one")
        if standing.looked_at is None or now >= standing.looked_at + key.issuer.trusted_seconds:
            raise Rejected("ISSUER_SILENT", "its issuer has not answered for too long", "try again later")

    def due(self, now: float) -> list[TrustedIssuer]:
        """Return the issuers whose keys are to be fetched now."""
        return [self._issuers[url] for url, each in self._standing.items() if _is_due(each, now)]

    def take(self, issuer: TrustedIssuer, jwks: bytes, now: float) -> None:
        """Replace an issuer's keys by those of a fetched JSON Web Key Set. Raise Rejected (KEYS_INVALID), changing nothing, if it has none."""
        try:
            published = msgspec.json.decode(jwks, type=PublishedKeys).keys
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Rejected("KEYS_INVALID", f"{issuer.url}: its keys cannot be read: {error}") from None
        standing = self._standing[issuer.url]
        keys = _usable(issuer, published, standing.keys)
        if not keys:
            raise Rejected("KEYS_INVALID", f"{issuer.url} publishes no key that can be used here")
        standing.keys, standing.looked_at, standing.tried_at = keys, now, now
        standing.next_at = now + issuer.refresh_seconds
        standing.failures, standing.trouble, standing.is_wanted = 0, "", False

    def failed(self, issuer: TrustedIssuer, why: str, now: float) -> None:
        """Note that an issuer's keys could not be fetched. Its keys stay."""
        standing = self._standing[issuer.url]
        pause = RETRY_SECONDS[min(standing.failures, len(RETRY_SECONDS) - 1)]
        standing.tried_at, standing.next_at = now, now + min(pause, issuer.refresh_seconds)
        standing.failures += 1
        standing.trouble = why

    def health(self, now: float) -> dict[str, dict[str, Any]]:
        """Return by issuer: the number of keys, the seconds since the last look that succeeded, and the trouble."""
        return {
            url: {
                "keys": len(each.keys),
                "age_seconds": None if each.looked_at is None else round(now - each.looked_at, 1),
                "trouble": each.trouble,
            }
            for url, each in self._standing.items()
        }


def _is_due(standing: KeyStanding, now: float) -> bool:
    may_again = standing.tried_at is None or now >= standing.tried_at + AGAIN_SECONDS
    return now >= standing.next_at or (standing.is_wanted and may_again)


def _usable(
    issuer: TrustedIssuer, published: Sequence[PublishedKey], before: Mapping[str, IssuerKey]
) -> dict[str, IssuerKey]:
    """Return the keys that can be used; one that has not changed is the same object as before. Of two with one name none is used."""
    kids = [each.kid for each in published]
    found: dict[str, IssuerKey] = {}
    for each in published:
        if kids.count(each.kid) > 1 or not each.kid or each.use != "sig":
            continue
        held = before.get(each.kid)
        key = held if held is not None and held.published == each else _key(issuer, each)
        if key is not None:
            found[each.kid] = key
    return found


def _key(issuer: TrustedIssuer, published: PublishedKey) -> IssuerKey | None:
    algorithm = {"EC": "ES256", "RSA": "RS256"}.get(published.kty, "")
    if not algorithm or published.alg not in ("", algorithm):
        return None
    try:
        public = jwt.PyJWK.from_dict(msgspec.to_builtins(published), algorithm=algorithm).key
    except (jwt.PyJWTError, ValueError, TypeError):
        return None
    return IssuerKey(issuer, published, algorithm, public) if _is_strong(public) else None


def _is_strong(public: Any) -> bool:
    if isinstance(public, rsa.RSAPublicKey):
        return public.key_size in RSA_BITS
    return isinstance(public, ec.EllipticCurvePublicKey) and public.curve.name == "secp256r1"
