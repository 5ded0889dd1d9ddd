"""The public keys of trusted issuers: which are trusted now, and which issuers' keys are to be fetched again.

Nothing is fetched here. A token whose key is unknown is refused at once, and its issuer is marked, so that another task fetches its keys.
How often that happens is bounded, since anybody can invent names of keys. Keys that an issuer no longer publishes are dropped. While it
cannot be reached its keys stay, for a bounded time.
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
"""How many seconds pass at least between two fetches of an issuer's keys because of an unknown key."""
RETRY_SECONDS: Final = (5.0, 10.0, 20.0, 40.0, 60.0)
"""The pauses after fetches that failed one after another, in seconds. The last one repeats."""
RSA_BITS: Final = range(2_048, 8_193)
"""The sizes of RSA keys that are accepted, in bits. Smaller keys are weak, larger ones slow."""


class PublishedKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """A JSON Web Key (RFC 7517) as issuers publish it. Further members are ignored."""

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
    """A JSON Web Key Set (RFC 7517) as issuers publish it."""

    keys: Annotated[tuple[PublishedKey, ...], msgspec.Meta(max_length=KEYS_LIMIT)]


class IssuerKey(msgspec.Struct, frozen=True, eq=False):
    """A trusted public key: whose it is, how it was published, and the algorithm of the signatures that it verifies."""

    issuer: TrustedIssuer
    published: PublishedKey
    algorithm: str
    public: Any


class KeyStanding(msgspec.Struct):
    """What is known of the keys of one issuer. Times are in seconds since 1970."""

    keys: dict[str, IssuerKey] = msgspec.field(default_factory=dict)
    looked_at: float | None = None
    """When the keys were last fetched; None if they never were."""
    tried_at: float | None = None
    next_at: float = 0.0
    failures: int = 0
    trouble: str = "not looked at yet"
    is_wanted: bool = False
    """Whether a token came whose key is unknown, since the keys were last fetched."""


class IssuerKeys:
    """The public keys of all trusted issuers, by the URL of the issuer."""

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
        """Return the key with the id `kid` of the issuer with this URL. If it is unknown, the issuer's keys are soon due.

        Raise Rejected (TOKEN_KEY_UNKNOWN) if the key is not known, or not yet.
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
        """Raise Rejected if a key is not trusted any more at `now`.

        The code is TOKEN_KEY_WITHDRAWN if its issuer no longer publishes it, or ISSUER_SILENT if the keys were fetched too long ago.
        """
        standing = self._standing[key.issuer.url]
        if standing.keys.get(key.published.kid) is not key:
            raise Rejected("TOKEN_KEY_WITHDRAWN", "its issuer has withdrawn its key", "get a new one")
        if standing.looked_at is None or now >= standing.looked_at + key.issuer.trusted_seconds:
            raise Rejected("ISSUER_SILENT", "its issuer has not answered for too long", "try again later")

    def due(self, now: float) -> list[TrustedIssuer]:
        """Return the issuers whose keys are to be fetched at `now`."""
        return [self._issuers[url] for url, each in self._standing.items() if _is_due(each, now)]

    def take(self, issuer: TrustedIssuer, jwks: bytes, now: float) -> None:
        """Replace the keys of an issuer by those of a JSON Web Key Set (JSON) that was fetched at `now`.

        Raise Rejected (KEYS_INVALID), and change nothing, if it has no usable key.
        """
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
        """Store that the keys of an issuer could not be fetched, and why. The known keys stay."""
        standing = self._standing[issuer.url]
        pause = RETRY_SECONDS[min(standing.failures, len(RETRY_SECONDS) - 1)]
        standing.tried_at, standing.next_at = now, now + min(pause, issuer.refresh_seconds)
        standing.failures += 1
        standing.trouble = why

    def health(self, now: float) -> dict[str, dict[str, Any]]:
        """Return, for each issuer's URL: the number of `keys`, the `age_seconds` since they were fetched, and the last `trouble`."""
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
    """Return the published keys that can be used, by id. One that did not change is the same object as before.

    Keys that share an id are left out.
    """
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
