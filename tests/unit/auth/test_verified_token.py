"""The times of a token: one check for every kind, by the clock of who uses it."""

import pytest

from tests.unit.auth.issuer import NOW, code
from wms.auth.principal import Principal
from wms.auth.verified_token import LIFETIME_LIMIT, SKEW_SECONDS, VerifiedToken


def token(issued: float = 0.0, begins: float = 0.0, ends: float = 60.0) -> VerifiedToken:
    """Return a token with these times in seconds from now."""
    bearer = Principal(
        kind="user", owner="alice", group="higgs", vo="atlas", token_id="t", expires_at=NOW + ends
    )
    return VerifiedToken(bearer, NOW + issued, NOW + begins)


@pytest.mark.parametrize(
    "valid",
    [
        token(),
        token(issued=SKEW_SECONDS),
        token(begins=SKEW_SECONDS),
        token(ends=LIFETIME_LIMIT),
        token(issued=SKEW_SECONDS, ends=LIFETIME_LIMIT + SKEW_SECONDS),
        token(issued=-LIFETIME_LIMIT + 1, ends=1),
    ],
)
def test_a_token_within_its_times_is_valid(valid: VerifiedToken) -> None:
    valid.check_times(NOW)


@pytest.mark.parametrize(
    ("refused", "why"),
    [
        (token(ends=0), "TOKEN_EXPIRED"),
        (token(begins=SKEW_SECONDS + 1), "TOKEN_NOT_YET_VALID"),
        (token(issued=SKEW_SECONDS + 1), "TOKEN_NOT_YET_VALID"),
        (token(ends=LIFETIME_LIMIT + 1), "TOKEN_INVALID"),
        (token(issued=-LIFETIME_LIMIT, ends=1), "TOKEN_INVALID"),
        # Its own life is short, and it would still be valid when its revocation is forgotten.
        (token(issued=10 * LIFETIME_LIMIT, ends=10 * LIFETIME_LIMIT + 60), "TOKEN_INVALID"),
    ],
)
def test_a_token_out_of_its_times_is_refused(refused: VerifiedToken, why: str) -> None:
    assert code(lambda: refused.check_times(NOW)) == why
