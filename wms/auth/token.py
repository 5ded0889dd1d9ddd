"""Signed tokens (JWT, ES256): made with a private key of this system, and verified into a `Principal`.

One algorithm, one form of header and one spelling of the signature are accepted. The id of the signing key (`kid`) determines
which kinds of token it may sign. No error contains a token or a part of one.
"""

import hashlib
import re
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jwt
import msgspec

from wms.auth.foreign_token import UNREADABLE, issuer_in, verified
from wms.auth.issuer_keys import IssuerKeys
from wms.auth.keys import ALGORITHM, KeySet, PublicKey, SigningKey, generate_keys, load_key
from wms.auth.orders import OrderKeys
from wms.auth.payload_token import is_payload_token, verified_payload
from wms.auth.principal import ISSUER, NAME_MARK, Fqans, Kind, Principal, Right, Subject, owner_of
from wms.auth.revocations import Revocations
from wms.auth.verified_token import LIFETIME_LIMIT, VerifiedToken
from wms.bounded_cache import BoundedCache
from wms.bounds import NAME_LENGTH, GivenName, JobNumber, Name, NameSet, PilotName, WholeTimestamp
from wms.errors import Rejected
from wms.ids import JobId

__all__ = [
    "LIFETIME_LIMIT",
    "Claims",
    "Kind",
    "Principal",
    "Right",
    "SigningKey",
    "Verifier",
    "generate_keys",
    "load_key",
    "mint",
]

AUDIENCE: Final = "wms"
SIZE_LIMIT: Final = 8 * 1024
KEYS_BYTES: Final = 1024 * 1024
"""The most bytes of a file of public keys. A larger file is refused."""
CACHE_LIMIT: Final = 10_000

# 64 bytes of signature are 86 characters, and the last has four unused bits. Only one spelling is accepted,
# so that no changed token is valid.
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{85}[AQgw]")
_HEADER = {"alg", "kid", "typ"}
_NEEDED: Mapping[Kind, tuple[str, ...]] = {
    "user": ("group", "vo"),
    "service": (),
    "pilot": ("group", "vo", "pilot_id", "site", "ce"),
    "site": ("site",),
}


class Claims(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The claims of a token about its bearer: kind, names and rights. Which claims are needed depends on the kind."""

    kind: Kind
    owner: Name = msgspec.field(name="sub")
    group: Name = ""
    vo: Name = ""
    rights: NameSet = frozenset()
    pilot_id: PilotName | None = None
    site: Name | None = None
    ce: Name | None = None
    job_id: JobNumber | None = None
    """The only job that may be given to a pilot. None for a pilot that may have any job, and for other bearers."""
    sites: NameSet = frozenset()
    """Names or patterns of further sites for which the bearer of a site's token may publish ads. With them the token needs no `site`."""
    certificate_subject: Subject = ""
    """The subject of the user's X.509 certificate. Access rules of sites may name it."""
    fqans: Fqans = ()
    """The VOMS roles of the user, such as `/lhcb/Role=production`, the primary one first."""

    def fault(self) -> str:
        """Return the first fault that is found in the claims, as a sentence; empty if they are valid."""
        values = (
            self.owner,
            self.group,
            self.vo,
            self.pilot_id or "",
            self.site or "",
            self.ce or "",
            *self.rights,
            *self.sites,
            *self.fqans,
        )
        if not self.certificate_subject.isprintable():
            return "a certificate's subject must be printable"
        if (self.certificate_subject or self.fqans) and self.kind != "user":
            return f"a {self.kind}'s token has no certificate's subject and no VOMS roles"
        if not all(each.startswith("/") for each in self.fqans):
            return "a VOMS role begins with a slash: /lhcb/Role=production"
        if not all(len(value) <= NAME_LENGTH and value.isprintable() for value in values):
            return f"names must be printable and at most {NAME_LENGTH} long"
        if (self.sites and self.kind != "site") or (self.job_id is not None and self.kind != "pilot"):
            return f"a {self.kind}'s token is for no {'sites' if self.sites else 'single job'}"
        needed = () if self.sites else _NEEDED[self.kind]
        missing = [name for name in ("owner", *needed) if not getattr(self, name)]
        return f"a {self.kind}'s token needs {', '.join(missing)}" if missing else ""


class _Token(Claims, frozen=True, kw_only=True):
    iss: Name
    aud: Name
    iat: WholeTimestamp
    nbf: WholeTimestamp
    exp: WholeTimestamp
    jti: GivenName


def mint(key: SigningKey, claims: Claims, lifetime: float, now: float) -> str:
    """Return a token with these claims, signed with `key` and valid for `lifetime` seconds from `now` (seconds since 1970).

    Raise Rejected (TOKEN_NOT_MINTED) if the claims or the lifetime are invalid, or if the key may not sign this kind of
    token.
    """
    fault = claims.fault() if claims.kind in key.kinds else f"this key is not for a {claims.kind}'s token"
    fault = fault or _own_fault(claims)
    if not fault and not 0 < lifetime <= LIFETIME_LIMIT:
        fault = f"a token lives more than 0 seconds and at most {LIFETIME_LIMIT // 86_400} days"
    if fault:
        raise Rejected("TOKEN_NOT_MINTED", fault)
    issued = int(now)
    body = {
        **msgspec.to_builtins(claims),
        "rights": sorted(claims.rights),
        **({"sites": sorted(claims.sites)} if claims.sites else {}),
        "iss": ISSUER,
        "aud": AUDIENCE,
        "iat": issued,
        "nbf": issued,
        "exp": issued + max(1, int(lifetime)),
        "jti": uuid.uuid4().hex,
    }
    return jwt.encode(body, key.private, algorithm=ALGORITHM, headers={"kid": key.kid})


class Verifier:
    """Verifies tokens by the public keys of their issuers. The results are cached by the tokens' hashes.

    `keys` are public keys from a file. `issuers` has the keys of trusted issuers, which another task fetches. `revocations`
    are the revoked tokens, users and pilots. `orders` has the secrets from which keys of pilots are derived; without them no
    payload's token is valid. Raise Rejected (KEYS_INVALID) for a public key that is no P-256 key, a key id used twice, or an
    issuer's name with `#`.
    """

    def __init__(
        self,
        keys: KeySet,
        issuers: IssuerKeys | None = None,
        revocations: Revocations | None = None,
        orders: OrderKeys | None = None,
    ) -> None:
        self._orders = orders
        self._issuers = IssuerKeys() if issuers is None else issuers
        self._revocations = Revocations() if revocations is None else revocations
        self._keys = {
            key.kid: (_verifying(key), frozenset(key.wms_kinds), key.wms_issuer) for key in keys.keys
        }
        if any(NAME_MARK in key.wms_issuer for key in keys.keys):
            raise Rejected("KEYS_INVALID", f"the name of an issuer holds {NAME_MARK}")
        if len(self._keys) != len(keys.keys):
            raise Rejected("KEYS_INVALID", "two public keys have one name")
        self._good = BoundedCache[bytes, VerifiedToken](CACHE_LIMIT)
        """What verified tokens contain, by the SHA-256 hash of each token, so that no token stays in memory."""

    @classmethod
    def from_file(
        cls,
        path: Path,
        issuers: IssuerKeys | None = None,
        revocations: Revocations | None = None,
        orders: OrderKeys | None = None,
    ) -> "Verifier":
        """Return a verifier with the public keys of a file such as `jwks.json`. The other arguments are those of the class.

        Raise Rejected (KEYS_INVALID) if the file cannot be read, is larger than KEYS_BYTES, or is invalid.
        """
        try:
            with path.open("rb") as file:
                text = file.read(KEYS_BYTES + 1)
            if len(text) > KEYS_BYTES:
                raise Rejected("KEYS_INVALID", f"{path}: is larger than {KEYS_BYTES:,} bytes")
            keys = msgspec.json.decode(text, type=KeySet)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise Rejected("KEYS_INVALID", f"cannot read the public keys in {path}: {error}") from None
        return cls(keys, issuers, revocations, orders)

    def verify(self, token: str | bytes, now: float) -> Principal:
        """Return the bearer of the token, if the token is valid at `now` (seconds since 1970).

        Raise Rejected if it is not: TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED, TOKEN_NOT_YET_VALID or TOKEN_REVOKED. For a
        token of a trusted issuer the code may also be TOKEN_KEY_UNKNOWN, TOKEN_KEY_WITHDRAWN or ISSUER_SILENT.
        """
        known = self._known(token)
        if known.key is not None:
            self._issuers.check(known.key, now)
        known.check_times(now)
        self._revocations.check(known.principal)
        return known.principal

    def check_kept(self, principal: Principal) -> None:
        """Raise Rejected (TOKEN_REVOKED) if this principal, which was verified earlier, has been revoked since."""
        self._revocations.check(principal)

    def subject(self, token: str | bytes) -> str:
        """Return the owner's name in a token whose signature is valid, even if the token has expired; empty for any other token.

        A caller that answers a rejected request sends the answer to this owner, and so sends none about a forged token.
        """
        try:
            return self._known(token).principal.owner
        except Rejected:
            return ""

    def _known(self, token: str | bytes) -> VerifiedToken:
        if len(token) > SIZE_LIMIT:
            raise _invalid(f"it is longer than {SIZE_LIMIT:,} bytes")
        digest = hashlib.sha256(
            token if isinstance(token, bytes) else token.encode("utf-8", "surrogatepass")
        ).digest()
        known = self._good.get(digest)
        if known is None:
            known = self._good[digest] = self._checked_by_issuer(_text(token))
        return known

    def _checked_by_issuer(self, text: str) -> VerifiedToken:
        if self._orders is not None and is_payload_token(text):
            return verified_payload(text, self._orders)
        if self._issuers and (url := issuer_in(text)) in self._issuers:
            return verified(text, url, self._issuers)
        if not _FORM.fullmatch(text):
            raise _invalid("it is not a token of this system")
        return self._checked(text)

    def _checked(self, text: str) -> VerifiedToken:
        public, kinds, issuer = self._key_of(text)
        try:
            body = jwt.decode(
                text, public, algorithms=[ALGORITHM], audience=AUDIENCE, issuer=issuer, options=_OPTIONS
            )
            claims = msgspec.convert(body, _Token)
        except UNREADABLE as error:
            raise _invalid(_REASONS.get(type(error), "it is not a token of this system")) from None
        if claims.kind not in kinds:
            raise _invalid("its key may not sign this kind of token")
        if fault := claims.fault():
            raise _invalid(fault)
        if fault := _own_fault(claims) if issuer == ISSUER else "":
            raise _invalid(fault)
        claims = msgspec.structs.replace(claims, owner=owner_of(issuer, claims.owner))
        if len(claims.owner) > NAME_LENGTH:
            raise _invalid("its issuer and subject together are too long a name")
        return VerifiedToken(_principal(claims), claims.iat, claims.nbf)

    def _key_of(self, text: str) -> tuple[Any, frozenset[Kind], str]:
        try:
            header = jwt.get_unverified_header(text)
        except UNREADABLE:
            raise _invalid("it is not a token of this system") from None
        if header.get("alg") != ALGORITHM or not header.keys() <= _HEADER:
            raise _invalid(f"only {ALGORITHM} is accepted, with no other instructions in its header")
        known = self._keys.get(header.get("kid", ""))
        if known is None:
            raise _invalid("its key is unknown here")
        return known


def claimed(token: str) -> Principal:
    """Return the bearer that a token names, without any check: for a process that asks who its own token says it is.

    Raise Rejected (TOKEN_INVALID) if it is no token of this system's form.
    """
    try:
        return _principal(msgspec.convert(jwt.decode(token, options={"verify_signature": False}), _Token))
    except UNREADABLE:
        raise _invalid("it is not a token of this system") from None


_OPTIONS: Any = {
    "require": ["iss", "aud", "sub", "iat", "nbf", "exp", "jti"],
    # Times are compared by us, with the caller's clock.
    "verify_exp": False,
    "verify_nbf": False,
    "verify_iat": False,
}
_REASONS: dict[type[BaseException], str] = {
    jwt.InvalidSignatureError: "its signature is wrong",
    jwt.InvalidAudienceError: "it is meant for somebody else",
    jwt.InvalidIssuerError: "another issued it",
    jwt.MissingRequiredClaimError: "it lacks a claim",
    msgspec.ValidationError: "it lacks a claim, or one is of the wrong type",
}


def _own_fault(claims: Claims) -> str:
    """Return the fault of the owner's name in a token of this system, as a sentence; empty if there is none.

    The name of a user, service or site must not contain `#`. The owner of a pilot may be another issuer's user, with any
    name.
    """
    if claims.kind == "pilot" or NAME_MARK not in claims.owner:
        return ""
    return f"a name of our own holds no {NAME_MARK}"


def _text(token: str | bytes) -> str:
    if not token:
        raise Rejected("TOKEN_MISSING", "there is no token", "send one: it says who you are")
    if len(token) > SIZE_LIMIT:
        raise _invalid(f"it is longer than {SIZE_LIMIT:,} bytes")
    return token.decode("latin-1") if isinstance(token, bytes) else token


def _principal(claims: _Token) -> Principal:
    return Principal(
        kind=claims.kind,
        owner=claims.owner,
        group=claims.group,
        vo=claims.vo,
        rights=claims.rights,
        pilot_id=claims.pilot_id,
        site=claims.site,
        ce=claims.ce,
        job_id=None if claims.job_id is None else JobId(claims.job_id),
        sites=claims.sites,
        certificate_subject=claims.certificate_subject,
        fqans=claims.fqans,
        token_id=claims.jti,
        expires_at=claims.exp,
    )


def _verifying(key: PublicKey) -> Any:
    try:
        return jwt.PyJWK.from_dict(msgspec.to_builtins(key), algorithm=ALGORITHM).key
    except UNREADABLE:
        raise Rejected("KEYS_INVALID", f"the public key {key.kid} is no EC key on P-256") from None


def _invalid(why: str) -> Rejected:
    return Rejected(
        "TOKEN_INVALID", f"the token is refused: {why}", "get a new one from this system's issuer"
    )
