"""The signing keys and tokens of a system on one machine. Only the user who starts the system can read their files."""

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
    """Write new tokens, valid for `lifetime_seconds`, each time a third of that has passed, until cancelled. Programs read the token files again."""
    while True:
        await asyncio.sleep(lifetime_seconds / 3)
        await asyncio.to_thread(write_tokens, layout, lifetime_seconds)


def ensure_identity(layout: Layout, lifetime_seconds: float = LIFETIME_SECONDS) -> None:
    """Create the system's signing keys if they are missing, and write new tokens that are valid for `lifetime_seconds`."""
    generate_keys(layout.keys)
    write_tokens(layout, lifetime_seconds)


def write_tokens(layout: Layout, lifetime_seconds: float) -> None:
    """Write two new tokens, valid for `lifetime_seconds`: the user's, with all rights in this system, and the advertiser's.

    The advertiser is the service that publishes this machine's offers of resources.
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
