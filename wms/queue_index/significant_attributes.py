"""Significant attributes: resources share cached verdicts if their ads are equal in all attributes that expressions read.

Ads change all the time, mostly in attributes that no expression reads. Ads are one class if all expressions read the same
values in them and they have the same requirements of jobs (HTCondor: autocluster). All verdicts on an ad are cached by its class.

A name can distinguish ads only if some queue references it *and* some resource has it. So a queue may reference names that no
resource has, and all classes stay as they are, however many such names and queues there are.
"""

import itertools
from collections.abc import Iterator

from msgspec import Struct

from wms.bounded_cache import BoundedCache
from wms.bounds import Names
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.folding import constant
from wms.classad.reduce import Sketch
from wms.matching.ads import (
    RESOURCE,
    Described,
    Seen,
    combined,
    described,
    open_requirements,
    site_ad,
    sketched,
)
from wms.matching.node_facts import MEASURED, POLICIES
from wms.site import Resource, ad_of, forwards_of, with_ad

_KEPT = 4_096
_KEPT_NAMES = 65_536
_OWN = frozenset({"requirements", "rank"})
"""The names of the attributes in which an ad states its own expressions over jobs."""

Place = tuple[str, str]
"""The names of a site and of one of its computing elements."""


class AdClass(Struct, frozen=True, eq=False):
    """A class of ads of resources on which all expressions have the same verdicts. `ad` is one of them; `number` is unique."""

    number: int
    ad: Ad
    requirements: Expression | None
    rank: Expression | None
    """The ad's Rank expression over jobs; None if it has none, or a constant one."""
    sketch: Sketch | None = None
    """What is known of the ad of a pilot that is not yet sent; None for a running pilot."""
    open_requirements: Expression | None = None
    """The ad's requirements with known values filled in, if they reference values that only a sent pilot will have; else None."""
    names: frozenset[str] = frozenset()
    """The attributes that the ad has, or may have once the pilot runs, in lower case. All others are undefined."""


class SignificantAttributes:
    """The ads of computing elements, and the classes of equal ads to which resources there belong.

    `version` grows when the class of a resource may have changed. Values cached by resource must then be computed anew.
    """

    def __init__(self) -> None:
        self.version = 0
        self._is_looked_at = False
        self._looked: set[str] = set()
        """The names that expressions of queues reference, in lower case."""
        self._present: set[str] = set()
        """The names of attributes that any resource so far has, or may have once its pilot runs."""
        self._relevant: frozenset[str] = frozenset()
        """The names that are both referenced and present; classes of ads differ in their values."""
        self._noted = BoundedCache[tuple[str, Names | None], None](_KEPT)
        """Pairs of an ad and the attributes that its site forwards, whose names are in `_present` already. The values are unused."""
        self._ads: dict[Place, str] = {}
        self._numbers: Iterator[int] = itertools.count(1)
        self._by_name: dict[tuple[str, Described, Names | None], AdClass] = {}
        self._by_view: dict[Seen, AdClass] = {}
        self._forget_present()

    def look(self, names: frozenset[str]) -> None:
        """Register that expressions of a task queue read these attributes of resources; names are in lower case.

        From then on, ads that differ in them are of different classes.
        """
        new = names - self._looked
        self._looked |= new
        if not self._is_looked_at or not self._present.isdisjoint(new):
            self._is_looked_at = True
            self._relevant |= new & self._present
            self._forget()
            self.version += 1

    def anew(self) -> "SignificantAttributes":
        """Return a new instance with the same ads of elements but no names. The caller registers the queues' names again by `look`."""
        ad_classes = SignificantAttributes()
        ad_classes._ads = self._ads
        return ad_classes

    def advertise(self, place: Place, ad: str) -> bool:
        """Set the ad of an element, as canonical text, or remove it if empty. Return whether the change could affect a match."""
        before = self._ads.get(place, "")
        if ad == before:
            return False
        if ad:
            self._ads[place] = ad
        else:
            del self._ads[place]
        return self._is_looked_at or site_ad(ad).demands or site_ad(before).demands

    def knows(self, place: Place) -> bool:
        """Return whether the ad of a computing element is stored."""
        return place in self._ads

    def seen(self, resource: Resource) -> Resource:
        """Return a resource completed by the stored ad of its computing element; unchanged if none is stored."""
        ad = self._ads.get((resource.site, resource.grid_ce))
        return with_ad(resource, ad) if ad else resource

    def of(self, resource: Resource) -> AdClass | None:
        """Return the ad class of a resource; None if no queue has an expression and the ad has no requirements or rank."""
        text, forwards = ad_of(resource), forwards_of(resource)
        said = site_ad(text)
        if not self._is_looked_at and not said.demands:
            return None
        self._note(text, forwards, resource)
        names = self._relevant if said.looks <= self._relevant else self._relevant | said.looks
        name = text, described(resource, names), forwards
        ad_class = self._by_name.get(name)
        if ad_class is None:
            if len(self._by_name) >= _KEPT_NAMES:
                self._forget()
            ad_class = self._by_name[name] = self._ad_class(
                combined(*name[:2], self._relevant | _OWN), forwards
            )
        return ad_class

    def number(self, resource: Resource) -> int:
        """Return the number of a resource's ad class; 0 if it has none.

        If the resource lacks its element's ad, the stored ad is used.
        """
        if not (self._is_looked_at or self._ads or ad_of(resource)):
            return 0
        ad_class = self.of(self.seen(resource))
        return ad_class.number if ad_class else 0

    def _note(self, text: str, forwards: Names | None, resource: Resource) -> None:
        """Add the names of a resource's attributes to those present.

        Existing classes stay valid, since none of their ads has a new name.
        """
        new = {name for name, _ in resource.node if name not in self._present}
        if (text, forwards) not in self._noted:
            self._noted[text, forwards] = None
            new |= site_ad(text).attributes.keys() - self._present
            if forwards is not None:
                new |= {*map(str.lower, forwards), *MEASURED, *POLICIES} - self._present
        if not new:
            return
        if len(self._present) > _KEPT_NAMES:
            # Other resources note theirs again when they are looked up next.
            self._forget_present()
            self._forget()
            self.version += 1
            self._note(text, forwards, resource)
            return
        self._present |= new
        self._relevant |= new & self._looked

    def _ad_class(self, ad: Ad, forwards: Names | None) -> AdClass:
        relevant = self._relevant
        rank = None if ad.rank is None or constant(ad.rank.tree) else ad.rank
        known = None if forwards is None else sketched(ad, forwards)
        left = known and open_requirements(ad, known)
        told = known and (known.ad.view(relevant), known.free & relevant, left and left.text)
        # The names as well: when there were fewer, the same values may have been those of others.
        view = relevant, ad.view(relevant), ad.requirements and ad.requirements.text, rank and rank.text, told
        ad_class = self._by_view.get(view)
        if ad_class is None:
            if len(self._by_view) >= _KEPT:
                self._forget()
            names = frozenset(name.lower() for name in ad.names) | (known.free if known else frozenset())
            ad_class = self._by_view[view] = AdClass(
                next(self._numbers), ad, ad.requirements, rank, known, left, names
            )
        return ad_class

    def _forget_present(self) -> None:
        self._noted.clear()
        self._present = set(RESOURCE)
        self._relevant = frozenset(self._present & self._looked)

    def _forget(self) -> None:
        self._by_name.clear()
        self._by_view.clear()
