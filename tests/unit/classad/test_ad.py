"""Ads: what is read of a text, how ads are made of values, and which are refused."""

import pytest

from tests.unit.classad.references import read, value
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import evaluate
from wms.errors import Rejected


def test_egee_the_ad_of_the_reference_is_read_whole(ce: Ad) -> None:
    assert len(ce.names) == 55
    assert value("other.GlueHostBenchmarkSI00 + other.glueceinfototalcpus", str(ce)) == 401
    software = 'member("app3", other.GlueHostApplicationSoftwareRunTimeEnvironment)'
    assert value(software, str(ce)) is True
    outer = Ad.parse(read("egee-ce.ad"))
    assert evaluate(Expression.parse("other.info.GlueHostBenchmarkSI00"), outer) == 400
    assert Ad.parse(str(outer)) == outer == Ad.parse(outer.text)


def test_old_ads_have_a_line_an_attribute_and_backslashes_that_are_backslashes() -> None:
    ad = Ad.parse('# from a file\nPath = "C:\\new"\n\nQuoted = "a\\"b"\nTwice = 2 * Half\nHalf = 21\n')
    assert evaluate(Expression.parse("other.Path"), ad) == "C:\\new"
    assert evaluate(Expression.parse("other.Quoted"), ad) == 'a"b'
    assert evaluate(Expression.parse("other.Twice"), ad) == 42
    with pytest.raises(Rejected, match="line 2 of the ad, line 1, column 7"):
        Ad.parse("a = 1\nb = 2 3\n")


def test_ads_are_made_of_values() -> None:
    ad = Ad.of(
        {
            "a": 1,
            "b": None,
            "c": [1, "x", {"d": True}],
            "e": {"f": 2.5},
            "g": Expression.parse("a + 1"),
            "h": 'q"\n',
        }
    )
    assert Ad.parse(ad.text) == ad
    assert evaluate(Expression.parse("other.g + size(other.c)"), ad) == 5
    assert evaluate(Expression.parse("other.c[2].d && other.e.f > 2"), ad) is True
    assert evaluate(Expression.parse("other.h"), ad) == 'q"\n'
    for bad in (
        {"a": 2**70},
        {"a": float("nan")},
        {"a": "\udcff"},
        {"a": "\0"},
        {"a": object()},
        {"true": 1},
        {"": 1},
    ):
        with pytest.raises(Rejected, match="attribute"):
            Ad.of(bad)  # type: ignore[arg-type]  # on purpose
    loop: dict[str, object] = {}
    loop["a"] = loop
    with pytest.raises(Rejected, match="levels"):
        Ad.of(loop)  # type: ignore[arg-type]  # likewise


@pytest.mark.parametrize(
    ("ad", "code"),
    [
        ("[a = b; b = c; c = a]", "CIRCLE"),
        ("[a = a]", "CIRCLE"),
        ('[a0 = "' + "x" * 1000 + '"; ' + "; ".join(f"a{n + 1} = strcat(a{n}, a{n})" for n in range(9)) + "]", "TOO_COSTLY"),
        ("[" + "; ".join(f"a{n + 1} = {{a{n}, a{n}}}" for n in range(40)) + "; a0 = 1]", "TOO_"),
        ("[" + "; ".join(f"a{n + 1} = a{n} + a{n}" for n in range(40)) + "; a0 = other.x]", "TOO_"),
        ("[r = [" + "; ".join(f"a{n + 1} = a{n} + a{n}" for n in range(40)) + "; a0 = 1]; x = r.a40]", "TOO_COSTLY"),
        ("[r = [a = b; b = a]]", "TOO_COSTLY"),
        ('[s = "' + "x" * 40_000 + '"; y = regexp(".*a.*b", s)]', "TOO_COSTLY"),
    ],
)  # fmt: skip
def test_ads_that_grow_without_bound_are_refused(ad: str, code: str) -> None:
    with pytest.raises(Rejected) as refused:
        Ad.parse(ad, "ad")
    assert refused.value.code.startswith(f"CLASSAD_{code}")
