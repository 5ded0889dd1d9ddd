"""The token of an advertiser, which says of which sites it may speak."""

from pathlib import Path

from wms.auth.policy import may_advertise
from wms.auth.principal import Principal
from wms.auth.token import claimed
from wms.errors import Rejected


class SiteToken:
    """The token in a file. The file is read at each call, because other programs renew it."""

    def __init__(self, file: str) -> None:
        self._file = Path(file)

    def text(self) -> str:
        """Return the token. Raise Rejected (TOKEN_MISSING) if the file cannot be read."""
        try:
            return self._file.read_text("utf-8").strip()
        except OSError as error:
            raise Rejected(
                "TOKEN_MISSING", f"{self._file}: {error.strerror}", "ask for a token of kind site"
            ) from None

    def bearer(self) -> Principal:
        """Return the identity in the token, which is not verified: whoever takes the ads does that. Raise Rejected if there is none."""
        return claimed(self.text())

    def others(self, sites: set[str]) -> set[str]:
        """Return those of these sites that the token does not cover. Raise Rejected if there is no token."""
        bearer = self.bearer()
        return {each for each in sites if not may_advertise(bearer, each)}
