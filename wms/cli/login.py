"""`wms login`, `wms logout`: gets a token from an OpenID provider, which is renewed while commands run, and gives it up."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from wms.cli.options import USUAL, CommonOptions
from wms.cli.printing import note, show, show_json
from wms.cli.session import OK, quiet, run_async
from wms.errors import Rejected

if TYPE_CHECKING:
    from wms.client.login import DeviceCode, Login


def login(
    url: Annotated[
        str, Parameter(help="the address of the OpenID provider, your issuer; a profile remembers it")
    ] = "",
    /,
    *,
    gateway: str = "",
    gateway_authorities: str = "",
    client_id: str = "wms-cli",
    scope: str = "openid offline_access",
    audience: str = "",
    resource: str = "",
    authorities: str = "",
    common: CommonOptions = USUAL,
) -> int:
    """Log in at an OpenID provider: confirm a code in the browser of any machine.

    The token goes into the token file of the data directory or the profile, which you alone can read, and is renewed by itself while commands run. With --gateway a profile is made or changed, and remembers the options given here. The system must trust the provider: `wms whoami` shows who you are to the system.

    For example:
      wms login https://atlas-auth.example.org --profile atlas --gateway https://wms.example.org
      wms login --profile atlas
      wms login https://atlas-auth.example.org --data ./atlas --scope 'openid offline_access wlcg.groups'
      wms login https://iam.example.org --audience wms --client-id my-client

    Parameters
    ----------
    gateway
        The address of the system's gateway, for the profile.
    gateway_authorities
        A file with the CA certificates by which the gateway's certificate is checked, for the profile; default: those that this machine trusts.
    client_id
        The id by which the provider knows this command.
    scope
        The scopes to request; without offline_access the token cannot be renewed.
    audience
        The audience of the token, if the provider needs it as the parameter `audience`.
    resource
        The audience of the token, if the provider needs it as the parameter `resource` (RFC 8707).
    authorities
        A file or directory with the CA certificates by which the provider's certificate is checked; default: those that this machine trusts.
    """
    from wms.client import login as logins

    quiet()
    told = {
        "client_id": client_id,
        "scope": scope,
        "audience": audience,
        "resource": resource,
        "authorities": authorities,
    }
    if gateway:
        _make_profile(common, url, gateway, gateway_authorities, told)
    wanted = logins.Login(issuer=url, **told) if url else _remembered(common)
    credential = run_async(logins.log_in(wanted, _token_file(common), tell))
    if common.json:
        show_json({"owner": credential.owner, "expires_at": credential.expires_at})
    else:
        show(f"you are logged in as {credential.owner}")
    return OK


def _make_profile(
    common: CommonOptions, url: str, gateway: str, gateway_authorities: str, told: dict[str, str]
) -> None:
    from wms.client.profiles import write_profile
    from wms.client.settings import GatewayAddress, LoginSettings

    if not common.profile or not url:
        raise Rejected("BAD_OPTION", "--gateway is for a profile", "give URL and --profile NAME too")
    address = GatewayAddress(url=gateway, authorities=gateway_authorities)
    write_profile(common.profile, address, LoginSettings(issuer=url, **told))


def _remembered(common: CommonOptions) -> "Login":
    """Return the login that the profile remembers. Raise Rejected if it has none."""
    from msgspec.structs import asdict

    from wms.client.login import Login
    from wms.client.settings import read_settings

    known = read_settings(common.data, token=common.token).login
    if known is None:
        raise Rejected("NO_ISSUER", "no provider is named", "give its address: `wms login URL`")
    return Login(**asdict(known))


def logout(*, common: CommonOptions = USUAL) -> int:
    """Log out: have the token refused everywhere, the provider renew it no more, and delete it here.

    For example:
      wms logout
      wms logout --profile atlas
      wms logout --data ./atlas
    """
    from wms.client import login as logins

    quiet()
    token_file = _token_file(common)
    if logins.read_login(token_file) is not None:
        run_async(_revoke(common))
    ended = run_async(logins.log_out(token_file))
    _tell_end(ended, common)
    return OK


async def _revoke(common: CommonOptions) -> None:
    """Have the system refuse the token from now on. If the system cannot be reached, warn that the token stays valid until it expires."""
    from wms.client import Client, read_settings
    from wms.errors import WmsError

    try:
        settings = read_settings(common.data, token=common.token)
        async with Client.connect(settings, timeout=common.timeout, patience=2.0) as client:
            await client.revoke("token", (await client.whoami()).token_id, reason="logged out")
    except WmsError as error:
        note(f"the token is good until it ends: {error}")


def _tell_end(ended: "Login", common: CommonOptions) -> None:
    show_json({"issuer": ended.issuer}) if common.json else show(f"you are logged out of {ended.issuer}")


def tell(code: "DeviceCode") -> None:
    """Print on standard error the code of a login, and the page where the user confirms it."""
    if code.verification_uri_complete:
        note(f"open {code.verification_uri_complete}")
        note(f"and confirm the code {code.user_code}")
    else:
        note(f"open {code.verification_uri} and enter the code {code.user_code}")


def _token_file(common: CommonOptions) -> Path:
    from wms.client.settings import read_settings

    return Path(read_settings(common.data, token=common.token).auth.token_file)
