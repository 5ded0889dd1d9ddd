"""What decoding the JSON of others may raise."""

from typing import Final

import msgspec

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""The errors of msgspec for what is no JSON, or not of its type; for what is no UTF-8; and for what nests deeper than Python follows."""
