"""Limits as messages have them: what is limited, and by how much."""

from typing import Annotated, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from wms.bounds import Count, Name

Kind: TypeAlias = Literal["running", "rate", "waiting"]
Attribute: TypeAlias = Literal["owner", "owner_group", "vo", "setup", "job_type", "tag", "any"]


class Key(NamedTuple):
    """What is counted: jobs with this value of the attribute at this place; `ce` empty for the site as a whole."""

    site: Name
    ce: Name
    attribute: Attribute
    value: Name


class Limit(Struct, frozen=True, kw_only=True):
    """One limit; `*` as site, computing element or value stands for each by itself.

    `running`: at most `most` jobs at a time have a pilot there. `rate`: at most `per_second` are matched there, and `most`
    at once after a pause. `waiting`: no more than `most` jobs wait after a submission, wherever they may run.
    """

    kind: Kind = "running"
    site: Name = ""
    ce: Name = ""
    attribute: Attribute = "any"
    value: Name = ""
    most: Count
    per_second: Annotated[float, Meta(gt=0, le=1e6)] | None = None

    @property
    def key(self) -> Key:
        """Return what it names, wild cards and all."""
        return Key(self.site, self.ce, self.attribute, self.value)
