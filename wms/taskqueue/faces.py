"""Faces: what of a resource's ad matters to the expressions of queues, and what its ad asks of them.

Ads change all the time, in what hardly anybody looks at. Resources whose ads are the same to all expressions that there are, and
ask the same of jobs, have one face; all that is found out about an ad is kept by its face.
"""

import itertools
from collections.abc import Iterator

from msgspec import Struct

from wms.bounds import Names
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.folding import constant
from wms.classad.reduce import Sketch
from wms.site import Resource, ad_of, forwards_of, with_ad
from wms.taskqueue.ads import Described, Seen, combined, described, open_requirements, site_ad, sketched

_KEPT = 4_096
_KEPT_NAMES = 65_536
_OWN = frozenset({"requirements", "rank"})
"""What an ad itself asks of jobs."""

Place = tuple[str, str]
"""A site and a computing element."""


class Face(Struct, frozen=True, eq=False):
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


class Faces:
    """The ads of computing elements, and the faces of resources there. `version` moves when more is looked at."""

    def __init__(self) -> None:
        self.version = 0
        self._is_looked_at = False
        self._looked: frozenset[str] = frozenset()
        self._ads: dict[Place, str] = {}
        self._numbers: Iterator[int] = itertools.count(1)
        self._by_name: dict[tuple[str, Described, Names | None], Face] = {}
        self._by_view: dict[Seen, Face] = {}

    def look(self, names: frozenset[str]) -> None:
        """Note that a queue has an expression, which looks at these names of resources, in lower case."""
        if not self._is_looked_at or not names <= self._looked:
            self._is_looked_at = True
            self._looked |= names
            self._forget()
            self.version += 1

    def anew(self) -> "Faces":
        """Return faces that know the same ads, at which no queue looks yet."""
        faces = Faces()
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

    def of(self, resource: Resource) -> Face | None:
        """Return the face of a resource with its ad; None when nobody looks and nothing is asked."""
        text = ad_of(resource)
        said = site_ad(text)
        if not self._is_looked_at and not said.demands:
            return None
        names = self._looked if said.looks <= self._looked else self._looked | said.looks
        name = text, described(resource, names), forwards_of(resource)
        face = self._by_name.get(name)
        if face is None:
            if len(self._by_name) >= _KEPT_NAMES:
                self._forget()
            face = self._by_name[name] = self._face(combined(*name[:2], self._looked | _OWN), name[2])
        return face

    def number(self, resource: Resource) -> int:
        """Return the number of a resource's face, given the resource with its ad or without; 0 for none."""
        if not (self._is_looked_at or self._ads or ad_of(resource)):
            return 0
        face = self.of(self.seen(resource))
        return face.number if face else 0

    def _face(self, ad: Ad, forwards: Names | None) -> Face:
        rank = None if ad.rank is None or constant(ad.rank.tree) else ad.rank
        known = None if forwards is None else sketched(ad, forwards)
        left = known and open_requirements(ad, known)
        told = known and (known.ad.view(self._looked), known.free & self._looked, left and left.text)
        view = ad.view(self._looked), ad.requirements and ad.requirements.text, rank and rank.text, told
        face = self._by_view.get(view)
        if face is None:
            if len(self._by_view) >= _KEPT:
                self._forget()
            face = self._by_view[view] = Face(next(self._numbers), ad, ad.requirements, rank, known, left)
        return face

    def _forget(self) -> None:
        self._by_name.clear()
        self._by_view.clear()
