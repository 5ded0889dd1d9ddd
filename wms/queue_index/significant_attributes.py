"""Significant attributes: resources whose ads are equal in what any expression looks at share one cached verdict.

Ads change all the time, mostly in attributes that no expression looks at. Ads that are equal to all expressions, and ask the same
of jobs, are one class (HTCondor: autocluster). All verdicts on an ad are kept by its class.

A name can tell ads apart only if some queue looks at it *and* some resource has it. So a queue that looks at names which no
resource has leaves all classes as they are, however many such names and queues there are.
"""

import itertools
from collections.abc import Iterator

from msgspec import Struct

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
"""What an ad itself asks of jobs."""

Place = tuple[str, str]
"""A site and a computing element."""


class AdClass(Struct, frozen=True, eq=False):
    """One face, by a number that no other has."""

    number: int
    ad: Ad
    requirements: Expression | None
    rank: Expression | None
    """None also where it is the same for all jobs."""
    sketch: Sketch | None = None
    """What is known of the ad of a pilot that is yet to be sent; None of one that is there."""
    open_requirements: Expression | None = None
    """What such an ad requires as far as it is known, where it looks at what is not."""
    names: frozenset[str] = frozenset()
    """The attributes that it has, or may turn out to have, in lower case: all others are undefined."""


class SignificantAttributes:
    """The ads of computing elements, and the faces of resources there.

    `version` moves when a face may be another than it was: what was kept of resources is to be looked up anew.
    """

    def __init__(self) -> None:
        self.version = 0
        self._is_looked_at = False
        self._looked: set[str] = set()
        """The names that expressions of queues look at, in lower case."""
        self._present: set[str] = set()
        """The names that any resource so far has, or may have once it is there."""
        self._relevant: frozenset[str] = frozenset()
        """Those of both: by them faces differ."""
        self._noted: set[tuple[str, Names | None]] = set()
        """Ads and what their sites forward, of which the names are among those present."""
        self._ads: dict[Place, str] = {}
        self._numbers: Iterator[int] = itertools.count(1)
        self._by_name: dict[tuple[str, Described, Names | None], AdClass] = {}
        self._by_view: dict[Seen, AdClass] = {}
        self._forget_present()

    def look(self, names: frozenset[str]) -> None:
        """Note that a queue has an expression, which looks at these names of resources, in lower case."""
        new = names - self._looked
        self._looked |= new
        if not self._is_looked_at or not self._present.isdisjoint(new):
            self._is_looked_at = True
            self._relevant |= new & self._present
            self._forget()
            self.version += 1

    def anew(self) -> "SignificantAttributes":
        """Return faces that know the same ads, at which no queue looks yet."""
        faces = SignificantAttributes()
        faces._ads = self._ads
        return faces

    def advertise(self, place: Place, ad: str) -> bool:
        """Take the ad of an element, as canonical text, empty when it is gone; tell whether it could matter to a match."""
        before = self._ads.get(place, "")
        if ad == before:
            return False
        if ad:
            self._ads[place] = ad
        else:
            del self._ads[place]
        return self._is_looked_at or site_ad(ad).demands or site_ad(before).demands

    def knows(self, place: Place) -> bool:
        """Tell whether there is an ad of an element."""
        return place in self._ads

    def seen(self, resource: Resource) -> Resource:
        """Return a resource with the ad of its element, where one is known."""
        ad = self._ads.get((resource.site, resource.grid_ce))
        return with_ad(resource, ad) if ad else resource

    def of(self, resource: Resource) -> AdClass | None:
        """Return the face of a resource with its ad; None when nobody looks and nothing is asked."""
        text, forwards = ad_of(resource), forwards_of(resource)
        said = site_ad(text)
        if not self._is_looked_at and not said.demands:
            return None
        self._note(text, forwards, resource)
        names = self._relevant if said.looks <= self._relevant else self._relevant | said.looks
        name = text, described(resource, names), forwards
        face = self._by_name.get(name)
        if face is None:
            if len(self._by_name) >= _KEPT_NAMES:
                self._forget()
            face = self._by_name[name] = self._face(combined(*name[:2], self._relevant | _OWN), forwards)
        return face

    def number(self, resource: Resource) -> int:
        """Return the number of a resource's face, given the resource with its ad or without; 0 for none."""
        if not (self._is_looked_at or self._ads or ad_of(resource)):
            return 0
        face = self.of(self.seen(resource))
        return face.number if face else 0

    def _note(self, text: str, forwards: Names | None, resource: Resource) -> None:
        """Note the names that a resource has. Faces so far stay what they are: none of them had a name that is new."""
        new = {name for name, _ in resource.node if name not in self._present}
        if (text, forwards) not in self._noted:
            if len(self._noted) >= _KEPT:
                self._noted.clear()
            self._noted.add((text, forwards))
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

    def _face(self, ad: Ad, forwards: Names | None) -> AdClass:
        relevant = self._relevant
        rank = None if ad.rank is None or constant(ad.rank.tree) else ad.rank
        known = None if forwards is None else sketched(ad, forwards)
        left = known and open_requirements(ad, known)
        told = known and (known.ad.view(relevant), known.free & relevant, left and left.text)
        # The names as well: when there were fewer, the same values may have been those of others.
        view = relevant, ad.view(relevant), ad.requirements and ad.requirements.text, rank and rank.text, told
        face = self._by_view.get(view)
        if face is None:
            if len(self._by_view) >= _KEPT:
                self._forget()
            names = frozenset(name.lower() for name in ad.names) | (known.free if known else frozenset())
            face = self._by_view[view] = AdClass(
                next(self._numbers), ad, ad.requirements, rank, known, left, names
            )
        return face

    def _forget_present(self) -> None:
        self._noted.clear()
        self._present = set(RESOURCE)
        self._relevant = frozenset(self._present & self._looked)

    def _forget(self) -> None:
        self._by_name.clear()
        self._by_view.clear()
