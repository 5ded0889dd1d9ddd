"""Chooses the mover for a URL by its scheme. The code of a mover is loaded when its first URL comes."""

from collections.abc import Callable

import msgspec

from wms.bounds import Line, Lines
from wms.errors import Rejected
from wms.transfer.access_rules import REFUSED, AccessRules
from wms.transfer.file_url import FileUrl
from wms.transfer.mover import Mover
from wms.transfer.s3_settings import S3Settings
from wms.transfer.transfer_limits import TransferLimits
from wms.web import WebIdentity


class TransferSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A site's settings for the files of jobs that are fetched and delivered by URL."""

    access: AccessRules = AccessRules()
    limits: TransferLimits = TransferLimits()
    identity: WebIdentity = WebIdentity()
    """The credentials that the job agent shows to https servers. Their files are on the node."""
    token_hosts: Lines = []
    """Patterns of the hosts that may be sent the token of `identity`."""
    s3: S3Settings = S3Settings()
    catalogue: Line = ""
    """A JSON file of the node with the replicas of logical names; empty for none.

    Its form is `{"lfn:/data/a": ["https://...", ...]}`.
    """
    first_hosts: Lines = []
    """The storage hosts from which a file is fetched first, in this order. Replicas on other hosts follow as the job lists them."""


class Movers:
    """The movers of a site, each loaded when it is first needed."""

    def __init__(self, settings: TransferSettings) -> None:
        self._settings = settings
        self._loaded: dict[str, Mover] = {}

    def mover(self, url: FileUrl) -> Mover:
        """Return the mover for a URL. Raise Rejected (URL_REFUSED) if the site's rules exclude the URL, or no mover knows its scheme."""
        self._settings.access.check(url)
        kind = _KINDS.get(url.scheme)
        if kind is None:
            raise Rejected(REFUSED, f"{url}: no mover knows the scheme {url.scheme!r}")
        if kind not in self._loaded:
            self._loaded[kind] = _MAKERS[kind](self._settings)
        return self._loaded[kind]


def _file(settings: TransferSettings) -> Mover:
    from wms.transfer.file_mover import FileMover

    return FileMover(settings.access)


def _web(settings: TransferSettings) -> Mover:
    from wms.transfer.web_mover import WebMover

    return WebMover(settings.access, settings.identity, settings.token_hosts)


def _s3(settings: TransferSettings) -> Mover:
    try:
        from wms.transfer.s3_mover import S3Mover
    except ModuleNotFoundError:  # an agent that travels as one file has no client of S3
        raise Rejected(REFUSED, "this pilot has no client of S3 (obstore)") from None

    return S3Mover(settings.access, settings.s3)


def _xrootd(settings: TransferSettings) -> Mover:
    from wms.transfer.tool_mover import XrootdMover

    return XrootdMover(settings.access)


def _gfal(settings: TransferSettings) -> Mover:
    from wms.transfer.tool_mover import GfalMover

    return GfalMover(settings.access)


_MAKERS: dict[str, Callable[[TransferSettings], Mover]] = {
    "file": _file,
    "web": _web,
    "s3": _s3,
    "xrootd": _xrootd,
    "gfal": _gfal,
}
_KINDS = (
    {"file": "file", "s3": "s3"}
    | dict.fromkeys(("http", "https", "dav", "davs"), "web")
    | dict.fromkeys(("root", "roots", "xroot", "xroots"), "xrootd")
    | dict.fromkeys(("gsiftp", "srm"), "gfal")
)
