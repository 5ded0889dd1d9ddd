"""`wms profiles`: lists the user's profiles, each a named system with its token and login."""

from typing import TYPE_CHECKING

from wms.cli.options import USUAL, CommonOptions
from wms.cli.printing import note, show_json, show_table
from wms.cli.session import OK

if TYPE_CHECKING:
    from wms.client.profiles import Profile


def profiles(*, common: CommonOptions = USUAL) -> int:
    """List your profiles: the systems you use, each under a name.

    `wms login URL --profile NAME --gateway URL` makes one. Every command uses it with --profile NAME, or after `export WMS_PROFILE=NAME`; the one that is in use has a star. To forget a profile, log out and delete its directory.

    For example:
      wms profiles
      wms profiles --json
    """
    from wms.client.profiles import profiles as listed
    from wms.client.settings import profiles_directory
    from wms.runtime import clock

    found = listed(clock.timestamp())
    if common.json:
        show_json(found)
    elif found:
        show_table(
            ("", "NAME", "SYSTEM", "ISSUER", "LOGGED IN AS", "UNTIL"), [row(each, common) for each in found]
        )
    else:
        note(f"there are no profiles in {profiles_directory()}: `wms login --help` says how to make one")
    return OK


def row(profile: "Profile", common: CommonOptions) -> tuple[str, ...]:
    """Return the table row that shows a profile. `common` says which profile is in use."""
    from datetime import UTC, datetime

    until = datetime.fromtimestamp(profile.expires_at, UTC).isoformat() if profile.expires_at else "-"
    return (
        "*" if profile.name == common.profile else "",
        profile.name,
        profile.trouble or profile.gateway or "brokers",
        profile.issuer or "-",
        profile.owner or "-",
        until,
    )
