"""The keys and tokens of a system on one machine: made for whoever brings it up, and for nobody else to read."""

import getpass

from wms.auth.keys import generate_keys, load_key
from wms.auth.principal import ANY_SITE, Right
from wms.auth.token import Claims, mint
from wms.embedded.layout import Layout
from wms.files import write_secret
from wms.runtime import clock

VO, GROUP = "local", "user"
# Made anew at each start; a system that is up for longer than that has to be restarted once.
LIFETIME_SECONDS = 366 * 86_400.0


def ensure_identity(layout: Layout) -> None:
    """Make the keys that are not there, and fresh tokens: the user's, who may do everything here, and the site's."""
    generate_keys(layout.keys)
    # All rights over all jobs: it is this user's own system.
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
        token = mint(load_key(layout.keys / key), claims, LIFETIME_SECONDS, clock.timestamp())
        write_secret(path, token + "\n")


def _user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "user"
