"""Tokens of payloads: what the payload of one attempt shows to read its own job, and nothing else.

The job agent makes the token from its pilot's key, so that no service issues any and a match costs nothing more. A token is a JWT in the
form that clients read, with HMAC-SHA256 under a key that follows from the pilot's key. Services have the secret from which all keys of
pilots follow, and verify it. The token names job, epoch and pilot. It is only as good as the lease: who answers checks that the
pilot still holds the job under this epoch.
"""

import base64
import hmac
from typing import Annotated, Final, Literal

import msgspec

from wms.auth.orders import OrderKeys, PilotKey
from wms.auth.principal import NAME_MARK, Principal
from wms.bounds import EpochNumber, JobNumber, PilotName, WholeTimestamp
from wms.errors import Rejected
from wms.ids import AttemptId, Epoch, JobId

LIFETIME_LIMIT: Final = 90 * 86_400
"""The longest life of a token in seconds. Most end long before, with their lease."""
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
    """Return the name as which a payload asks. No user has it: each of their names begins with that of an issuer or has no mark."""
    return f"{NAME_MARK}job-{attempt_id.job_id}.{attempt_id.epoch}"


def payload_token(key: PilotKey, attempt_id: AttemptId, lifetime: float, now: float) -> str:
    """Return the token of an attempt's payload, made with the key of its pilot. It needs microseconds.

    It is valid for `lifetime` seconds from `now` (seconds since 1970), at most 90 days, if the lease lasts as long.
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
    """Return whether a text has the header of a payload's token, and of no other. Its signature is not looked at."""
    return token.startswith(f"{_HEADER.decode()}.")


def payload_principal(token: str, keys: OrderKeys) -> Principal:
    """Return the payload that bears a token, by the services' secrets. Its expiry and its lease are not checked here.

    Raise Rejected (TOKEN_INVALID) if it is too long, malformed, or signed with another key.
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
    return _principal(content)


def _decoded(signed: bytes) -> _Content:
    """Return the content of a token without its signature. Raise ValueError or DecodeError if it is malformed."""
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
