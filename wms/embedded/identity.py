"""The keys and tokens of a system on one machine. Only the user who starts the system can read them."""

import asyncio
import getpass

from wms.auth.keys import generate_keys, load_key
from wms.auth.principal import ANY_SITE, Right
from wms.auth.token import Claims, mint
from wms.embedded.layout import Layout
from wms.files import write_secret
from wms.runtime import clock

VO, GROUP = "local", "user"
LIFETIME_SECONDS = 12 * 3_600.0


async def renew_tokens(layout: Layout, lifetime_seconds: float) -> None:
    """Write new tokens of `lifetime_seconds` each, long before the last ones expire, until cancelled. Their users read the files anew."""
    while True:
        await asyncio.sleep(lifetime_seconds / 3)
        await asyncio.to_thread(write_tokens, layout, lifetime_seconds)


def ensure_identity(layout: Layout, lifetime_seconds: float = LIFETIME_SECONDS) -> None:
    """Make the missing signing keys of the system, and write new tokens that are valid for `lifetime_seconds`."""
    generate_keys(layout.keys)
    write_tokens(layout, lifetime_seconds)


def write_tokens(layout: Layout, lifetime_seconds: float) -> None:
    """Write two new tokens: one for the user, with all rights in this system, and one for the advertiser of the site.

    They are valid for `lifetime_seconds` seconds.
    """
    # All rights over all jobs, since it is this user's own system.
    user = Claims(
        kind="user",
        owner=_user_name(),
        group=GROUP,
        vo=VO,
        rights=frozenset({Right.JOB_ADMINISTRATOR, Right.OPERATOR}),
    )
    site = Claims(kind="site", owner="advertiser", site=ANY_SITE)
    for claims, key, path in (
        (user, "issuer.pem", layout.user_token),
        (site, "sites.pem", layout.site_token),
    ):
        token = mint(load_key(layout.keys / key), claims, lifetime_seconds, clock.timestamp())
        write_secret(path, token + "\n")


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "user"
