"""`wms open`: opens the dashboard in the browser, signed in with the user's token."""

import os
import tempfile
import time
import webbrowser
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from cyclopts import Parameter

from wms.cli.options import USUAL, CommonOptions, Patience
from wms.cli.printing import note, show, show_json
from wms.cli.session import OK, UNAVAILABLE

if TYPE_CHECKING:
    from wms.client import ClientSettings


def open_dashboard(
    *, keep: Annotated[Patience, Parameter(show_default=lambda _: "15s")] = 15, common: CommonOptions = USUAL
) -> int:
    """Open the dashboard in the browser, signed in with your token.

    The token is on no command line and in no log: the browser is given a file that you alone can read, which hands the token over to the page and is deleted after some seconds. The page keeps it until its tab is closed.

    For example:
      wms open
      wms open --token ./other.token
      wms open --json

    Parameters
    ----------
    keep
        How long to keep the file for a browser that starts slowly.
    """
    from wms.client.credential import TokenFile
    from wms.client.settings import read_settings
    from wms.runtime import clock

    settings = read_settings(common.data, token=common.token)
    url = gateway_of(settings)
    if common.json:
        show_json({"url": url})
        return OK
    token = TokenFile(Path(settings.auth.token_file)).read(clock.timestamp()).token
    if not _opened(url, token, keep):
        show(url)
        note(f"no browser starts here: open that address and paste the token in {settings.auth.token_file}")
        return UNAVAILABLE
    show(f"{url} is open in the browser")
    return OK


def gateway_of(settings: "ClientSettings") -> str:
    """Return the URL of the gateway whose dashboard to open. Raise Rejected if the settings name none."""
    from wms.errors import Rejected

    if settings.gateway is not None:
        return settings.gateway.url
    if settings.dashboard is not None:
        return settings.dashboard.url
    raise Rejected("NO_GATEWAY", "no gateway is known here", "WMS_URL=https://HOST names one")


def handover(url: str, token: str) -> str:
    """Return an HTML page that redirects to the dashboard. The token is in the URL's fragment, which browsers send to no server."""
    target = escape(f"{url.rstrip('/')}/#token={quote(token, safe='')}", quote=True)
    return (
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0;url={target}"><title>wms</title><a href="{target}">Open wms</a>\n'
    )


def _opened(url: str, token: str, seconds: float) -> bool:
    """Open a temporary file in the browser that redirects to the dashboard, and delete it after `seconds`. Return whether a browser started."""
    # The file is made for its owner alone.
    number, name = tempfile.mkstemp(prefix="wms-", suffix=".html")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(handover(url, token))
        if not webbrowser.open(Path(name).as_uri()):
            return False
        note(f"the browser starts; this command ends in {seconds:g} s")
        time.sleep(seconds)
        return True
    finally:
        Path(name).unlink()
