"""Tokens of payloads: with its token a payload (the running program of a job) can read its own job, and nothing else.

The job agent makes the token from its pilot's key. So no service issues any, and a match of a job with a pilot costs nothing
more. A token is a JWT in the form that clients read, with HMAC-SHA256 under a key that is derived from the pilot's key.
Services derive the same key from their secrets, and verify the token. It names job, epoch and pilot. It is valid no longer
than the job's lease: the service that answers a request checks that the pilot still holds the job under this epoch.
"""

import base64
import hmac
from typing import Annotated, Final, Literal

import msgspec

from wms.auth.orders import OrderKeys, PilotKey
from wms.auth.principal import NAME_MARK, Principal
from wms.auth.verified_token import VerifiedToken
from wms.bounds import EpochNumber, JobNumber, PilotName, WholeTimestamp
from wms.errors import Rejected
from wms.ids import AttemptId, Epoch, JobId

LIFETIME_LIMIT: Final = 90 * 86_400
"""The longest lifetime of a token in seconds; longer ones are cut to it. Most tokens end long before, with the job's lease."""
_NAME = b"payload"


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


_HEADER: Final = _encoded(b'{"alg":"HS256","kid":"payload","typ":"JWT"}')
SIZE_LIMIT: Final = 1_024


class _Content(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    iss: Literal["wms"] = "wms"
    aud: Literal["wms-payload"] = "wms-payload"
    sub: Annotated[str, msgspec.Meta(max_length=100)]
    pilot_id: PilotName
    job_id: JobNumber
    epoch: EpochNumber
    iat: WholeTimestamp
    exp: WholeTimestamp


_DECODER: Final = msgspec.json.Decoder(_Content)


def owner_of_payload(attempt_id: AttemptId) -> str:
    """Return the owner's name in the token of an attempt's payload, such as `#job-17.1`. No user can have this name.

    Users of this system have no `#` in their names, and users of other issuers begin with the issuer's name.
    """
    return f"{NAME_MARK}job-{attempt_id.job_id}.{attempt_id.epoch}"


def payload_token(key: PilotKey, attempt_id: AttemptId, lifetime: float, now: float) -> str:
    """Return the token of an attempt's payload, made with the key of its pilot. The call needs microseconds.

    The token expires `lifetime` seconds after `now` (seconds since 1970), at least 1 second and at most 90 days. Services
    refuse it before that if the pilot has lost the job's lease.
    """
    issued = int(now)
    content = _Content(
        sub=owner_of_payload(attempt_id),
        pilot_id=key.pilot_id,
        job_id=attempt_id.job_id,
        epoch=attempt_id.epoch,
        iat=issued,
        exp=issued + max(1, int(min(lifetime, LIFETIME_LIMIT))),
    )
    signed = _HEADER + b"." + _encoded(msgspec.json.encode(content))
    return (signed + b"." + _signature(key.derived(_NAME), signed)).decode()


def is_payload_token(token: str) -> bool:
    """Return whether a text begins with the header of a payload's token, which no other token has. The signature is not verified."""
    return token.startswith(f"{_HEADER.decode()}.")


def verified_payload(token: str, keys: OrderKeys) -> VerifiedToken:
    """Return the token of a payload. Its signature is verified with keys derived from the services' secrets in `keys`.

    Its times and the job's lease are not checked here. Raise Rejected (TOKEN_INVALID) if it is too long, malformed, or
    signed with another key.
    """
    try:
        signed, _, signature = token.encode("ascii").rpartition(b".")
        content = _decoded(signed) if len(token) <= SIZE_LIMIT else None
    except (UnicodeEncodeError, ValueError, msgspec.DecodeError):
        content = None
    if content is None:
        raise _invalid("it is not a payload's token")
    if not any(
        hmac.compare_digest(_signature(key, signed), signature)
        for key in keys.derived_of_pilot(content.pilot_id, _NAME)
    ):
        raise _invalid("its signature is wrong")
    return VerifiedToken(_principal(content), content.iat, lifetime_limit=LIFETIME_LIMIT)


def _decoded(signed: bytes) -> _Content:
    """Return the claims in the signed part of a token: header and body without the signature.

    Raise ValueError or DecodeError if it is malformed.
    """
    header, _, body = signed.partition(b".")
    if header != _HEADER:
        raise ValueError("another header")
    return _DECODER.decode(base64.b64decode(body + b"=" * (-len(body) % 4), altchars=b"-_", validate=True))


def _signature(key: bytes, signed: bytes) -> bytes:
    return _encoded(hmac.digest(key, signed, "sha256"))


def _principal(content: _Content) -> Principal:
    attempt_id = AttemptId(JobId(content.job_id), Epoch(content.epoch))
    if content.sub != owner_of_payload(attempt_id):
        raise _invalid("it names two jobs")
    return Principal(
        kind="payload",
        owner=content.sub,
        group="",
        vo="",
        pilot_id=content.pilot_id,
        job_id=attempt_id.job_id,
        epoch=attempt_id.epoch,
        token_id=content.sub,
        expires_at=content.exp,
    )


def _invalid(why: str) -> Rejected:
    return Rejected(
        "TOKEN_INVALID", f"the token is refused: {why}", "use the one in the file that WMS_TOKEN names"
    )
