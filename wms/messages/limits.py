"""The limits on jobs as messages carry them: the key that says what is counted, and the numbers."""

from typing import Annotated, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from wms.bounds import Count, Name

Kind: TypeAlias = Literal["running", "rate", "waiting"]
Attribute: TypeAlias = Literal["owner", "owner_group", "vo", "setup", "job_type", "tag", "any"]


class CounterKey(NamedTuple):
    """What a limit counts: the jobs with one value of an attribute at one place. `ce` is empty for the whole site."""

    site: Name
    ce: Name
    attribute: Attribute
    value: Name


class Limit(Struct, frozen=True, kw_only=True):
    """One limit on jobs. `*` as site, computing element or value: the limit holds for each of them separately.

    `running`: at most `most` jobs at a time have a pilot there. `rate`: at most `per_second` jobs are given to pilots there, and
    `most` at once after a pause. `waiting`: a submission is refused if more than `most` jobs would wait, wherever they may run.
    """

    kind: Kind = "running"
    site: Name = ""
    ce: Name = ""
    attribute: Attribute = "any"
    value: Name = ""
    most: Count
    per_second: Annotated[float, Meta(gt=0, le=1e6)] | None = None

    @property
    def key(self) -> CounterKey:
        """What the limit counts, with `*` where it stands for any value."""
        return CounterKey(self.site, self.ce, self.attribute, self.value)
