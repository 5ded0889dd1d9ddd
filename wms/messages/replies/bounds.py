"""Bounds on the sizes of lists, tables and pages in replies."""

from typing import Annotated, TypeAlias

import msgspec

from wms.bounds import LongText, Total

Position = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
"""The `after` of a query for the next page: how many entries of the list come before it."""

Lines: TypeAlias = Annotated[tuple[LongText, ...], msgspec.Meta(max_length=100_000)]
Counts: TypeAlias = Annotated[dict[LongText, Total], msgspec.Meta(max_length=100_000)]
Many = msgspec.Meta(max_length=1_000_000)
"""The largest number of entries of a table in a reply. The size limit of a message allows fewer."""
