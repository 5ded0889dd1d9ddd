"""The public keys of trusted issuers (other systems): which are trusted now, and which issuers' keys are to be fetched again.

This module fetches nothing. A token whose key is unknown is refused at once, and its issuer is marked, so that another task
fetches its keys. How often that happens is limited, since anybody can send tokens with invented key ids. Keys that an issuer
no longer publishes are dropped. While an issuer cannot be reached, its known keys stay trusted for `trusted_seconds` of its
configuration.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import jwt
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from wms.auth.trusted_issuer import TrustedIssuer
from wms.bounds import Line, Word
from wms.decoding import UNDECODABLE
from wms.errors import Rejected

ALGORITHMS: Final = ("ES256", "RS256")
KEYS_LIMIT: Final = 100
AGAIN_SECONDS: Final = 10.0
"""The least number of seconds between two fetches of one issuer's keys, if tokens with unknown keys ask for them.

Fetches at the regular interval, `refresh_seconds`, are not limited by it.
"""
RETRY_SECONDS: Final = (5.0, 10.0, 20.0, 40.0, 60.0)
"""Seconds until the next fetch of an issuer's keys, after one, two, three, ... failures in a row. The last value repeats."""
RSA_BITS: Final = range(2_048, 8_193)
"""The sizes of RSA keys that are accepted, in bits: 2048 to 8192. Keys of other sizes are left out, as weak or slow."""


class PublishedKey(msgspec.Struct, frozen=True, omit_defaults=True):
    """A public JSON Web Key (RFC 7517) as an issuer publishes it. Other members of the key are ignored.

    `x` and `y` are of EC keys, `n` and `e` of RSA keys.
    """

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
    """A trusted public key: its issuer, its published form, and the algorithm (ES256 or RS256) of the signatures that it verifies.

    `public` is the key object for PyJWT.
    """

    issuer: TrustedIssuer
    published: PublishedKey
    algorithm: str
    public: Any


class KeyStanding(msgspec.Struct):
    """The keys of one issuer and the state of fetching them: last success, last try, next try, failures in a row.

    Times are in seconds since 1970. `trouble` says why the last fetch failed; it is empty after a success.
    """

    keys: dict[str, IssuerKey] = msgspec.field(default_factory=dict)
    looked_at: float | None = None
    """When the keys were last fetched with success; None if they never were."""
    tried_at: float | None = None
    next_at: float = 0.0
    failures: int = 0
    trouble: str = "not looked at yet"
    is_wanted: bool = False
    """Whether, since the last successful fetch, a token came whose key id is not among `keys`."""


class IssuerKeys:
    """The public keys of all trusted issuers, by the issuer's URL. Raise Rejected (CONFIG_INVALID) for two issuers with one URL.

    An object is true if it has an issuer; `url in keys` says whether that issuer is trusted.
    """

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
        """Return the key with the id `kid` of the trusted issuer with this URL.

        Raise Rejected (TOKEN_KEY_UNKNOWN) if no such key was fetched. The issuer's keys then become due for a fetch, at most
        every AGAIN_SECONDS.
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
        """Raise Rejected if a key that verified a token is not trusted any more at `now`, in seconds since 1970.

        The code is TOKEN_KEY_WITHDRAWN if the last fetched keys of its issuer lack it. It is ISSUER_SILENT if that fetch was
        `trusted_seconds` ago or more.
        """
        standing = self._standing[key.issuer.url]
        if standing.keys.get(key.published.kid) is not key:
            raise Rejected("TOKEN_KEY_WITHDRAWN", "its issuer has withdrawn its key", "get a new one")
        if standing.looked_at is None or now >= standing.looked_at + key.issuer.trusted_seconds:
            raise Rejected("ISSUER_SILENT", "its issuer has not answered for too long", "try again later")

    def due(self, now: float) -> list[TrustedIssuer]:
        """Return the issuers whose keys are to be fetched at `now`, in seconds since 1970.

        An issuer is due at its regular interval, after a pause that follows a failure, or if a token had an unknown key.
        """
        return [self._issuers[url] for url, each in self._standing.items() if _is_due(each, now)]

    def take(self, issuer: TrustedIssuer, jwks: bytes, now: float) -> None:
        """Replace the keys of an issuer by those in `jwks`, a JSON Web Key Set in JSON, fetched at `now` (seconds since 1970).

        Raise Rejected (KEYS_INVALID) if the set cannot be read or has no usable key. The known keys then stay.
        """
        try:
            published = msgspec.json.decode(jwks, type=PublishedKeys).keys
        except UNDECODABLE as error:
            raise Rejected("KEYS_INVALID", f"{issuer.url}: its keys cannot be read: {error}") from None
        standing = self._standing[issuer.url]
        keys = _usable(issuer, published, standing.keys)
        if not keys:
            raise Rejected("KEYS_INVALID", f"{issuer.url} publishes no key that can be used here")
        standing.keys, standing.looked_at, standing.tried_at = keys, now, now
        standing.next_at = now + issuer.refresh_seconds
        standing.failures, standing.trouble, standing.is_wanted = 0, "", False

    def failed(self, issuer: TrustedIssuer, why: str, now: float) -> None:
        """Record that fetching an issuer's keys failed at `now` (seconds since 1970), and why. The next try follows after a pause.

        The known keys stay.
        """
        standing = self._standing[issuer.url]
        pause = RETRY_SECONDS[min(standing.failures, len(RETRY_SECONDS) - 1)]
        standing.tried_at, standing.next_at = now, now + min(pause, issuer.refresh_seconds)
        standing.failures += 1
        standing.trouble = why

    def health(self, now: float) -> dict[str, dict[str, Any]]:
        """Return, for each issuer's URL: the number of `keys`, the `age_seconds` since their last successful fetch, and `trouble`.

        `age_seconds` is None if no fetch has succeeded. `trouble` says why the last fetch failed, and is empty if it
        succeeded. `now` is in seconds since 1970.
        """
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
    """Return the published keys that this system can use, by key id. Keys without an id, or that share one, are left out.

    Usable are keys for signatures with ES256, or with RS256 and a size in RSA_BITS. A key that is the same as in `before`
    keeps its object: tokens that it verified stay valid.
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
