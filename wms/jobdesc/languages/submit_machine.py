"""What a document may take from the machine on which it is submitted: files, variables of the environment, chance and a number."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec


class FoundName(NamedTuple):
    """A name that a pattern found."""

    name: str
    is_directory: bool


class SubmitMachine(msgspec.Struct, frozen=True, kw_only=True):
    """The machine on which a document is submitted, as far as documents may refer to it. Paths are relative to the document."""

    environment: Mapping[str, str]
    text: Callable[[str], str]
    """Returns the text of a file. Raises Rejected if it cannot be read."""
    matching: Callable[[str], Sequence[FoundName]]
    """Returns the files and directories that match a pattern of a shell, sorted by name."""
    draw: Callable[[int], int]
    """Returns a number by chance, from 0 and less than the argument."""
    now: datetime
    """The time at which the document is read, in the zone of the machine."""

    @property
    def number(self) -> int:
        """A number that no other submission from this machine has, for documents that ask for the number of their jobs."""
        return int(self.now.timestamp())
