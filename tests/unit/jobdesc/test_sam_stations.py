"""SAM stations of a description, as what the job requires of a resource's ad."""

from typing import Any

import pytest

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import satisfied
from wms.errors import Rejected
from wms.jobdesc.sam_stations import required_text


def met(text: str, **said: Any) -> bool:
    return satisfied(Expression.parse(text), Ad.of(said))


def test_without_stations_the_requirements_stay_in_their_canonical_text() -> None:
    assert required_text("", ()) == ""
    assert required_text("other.a>1", ()) == "other.a > 1"


def test_a_site_has_to_have_one_of_the_stations_in_whatever_case() -> None:
    text = required_text("", ("Fermi", "LYON"))
    assert met(text, StationNames=("lyon",))
    assert met(text, StationNames=("x", "FERMI"))
    assert not met(text, StationNames=("fermilab",))
    assert not met(text)


def test_stations_are_required_beside_what_the_job_requires() -> None:
    text = required_text("other.a > 1 || other.b > 1", ("lyon",))
    assert met(text, StationNames=("lyon",), b=2)
    assert not met(text, StationNames=("lyon",), b=1)
    assert not met(text, StationNames=("x",), b=2)


def test_jobs_that_name_the_same_stations_require_the_same() -> None:
    assert required_text("", ("b", "A", "a")) == required_text("", ("a", "B"))


def test_an_expression_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(Rejected):
        required_text("other.a >", ("lyon",))
