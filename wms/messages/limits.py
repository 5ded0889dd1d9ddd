"""Limits in messages: the key of a limit, and its bounds."""

from typing import Annotated, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from wms.bounds import Count, Name

Kind: TypeAlias = Literal["running", "rate", "waiting"]
Attribute: TypeAlias = Literal["owner", "owner_group", "vo", "setup", "job_type", "tag", "any"]


class Key(NamedTuple):
    """The key of a limit's counter: the jobs with one value of an attribute at one place. `ce` is empty for the site as a whole."""

    site: Name
    ce: Name
    attribute: Attribute
    value: Name


class Limit(Struct, frozen=True, kw_only=True):
    """One limit; `*` as site, computing element or value applies it to each separately.

    `running`: at most `most` jobs at a time have a pilot there. `rate`: at most `per_second` jobs are matched there, and `most` at
    once after a pause. `waiting`: no more than `most` jobs wait after a submission, wherever they may run.
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
        """The place and pair that the limit names, wild cards included."""
        return Key(self.site, self.ce, self.attribute, self.value)
