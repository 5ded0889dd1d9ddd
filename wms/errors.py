"""Errors by remedy: after `Rejected` the caller must change the request, after `Unavailable` a later retry may succeed. Others are bugs of wms."""

CODE_LIMIT = 64
MESSAGE_LIMIT = 2_000
DETAILS_LIMIT = 100
DETAIL_LIMIT = 500


def shown(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Return the text made safe for a terminal or a log line: unprintable characters escaped, at most `limit` characters."""
    # Cut before escaping too: a hostile text of 100 MB must not be walked to show its first line.
    whole = text[: limit + 1]
    if not whole.isprintable():
        whole = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in whole)
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


class WmsError(Exception):
    """The base class of the errors that this system raises on purpose."""


class Rejected(WmsError):  # noqa: N818 - an outcome said in the field's word, not an error of ours
    """The error of a request that cannot succeed; the same request always has the same outcome.

    `code` is for programs (`UPPER_CASE`), `message` names the fault, `remedy` the correction. `details` has one line for each problem if there are
    several. All texts are of limited length and printable.
    """

    def __init__(self, code: str, message: str, remedy: str = "", details: tuple[str, ...] = ()) -> None:
        self.code = shown(code, CODE_LIMIT)
        self.message = shown(message)
        self.remedy = shown(remedy)
        self.details = _bounded(details)
        super().__init__(self.code, self.message, self.remedy, self.details)

    def __str__(self) -> str:
        head = f"{self.message} ({self.code})"
        remedy = [f"  remedy: {self.remedy}"] if self.remedy else []
        return "\n".join([head, *(f"  {line}" for line in self.details), *remedy])


class Unavailable(WmsError):  # noqa: N818 - likewise
    """The error of a request that needs something not available now; the same request may succeed later.

    `remedy` says what brings it back; None: not known here.
    """

    def __init__(self, message: str, remedy: str | None = None) -> None:
        self.message = shown(message)
        self.remedy = remedy
        super().__init__(self.message)


def _bounded(details: tuple[str, ...]) -> tuple[str, ...]:
    kept = tuple(shown(line, DETAIL_LIMIT) for line in details[:DETAILS_LIMIT])
    rest = len(details) - len(kept)
    return (*kept, f"and {rest} more") if rest else kept
