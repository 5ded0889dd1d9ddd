"""Ads, expressions and matches: the references' own texts, scopes, limits, what is left, and why not."""

import gc
from pathlib import Path

import psutil
import pytest

from wms.classad import engine
from wms.classad.ad import Ad
from wms.classad.explain import explain, failing
from wms.classad.expression import Expression
from wms.classad.limits import DEPTH, NODES, TEXT_BYTES
from wms.classad.match import evaluate, matches, rank, satisfied, satisfied_by, wants
from wms.classad.reduce import decided, reduce
from wms.classad.value import ERROR, UNDEFINED
from wms.errors import Rejected

DATA = Path(__file__).parents[2] / "data" / "classad"


def read(name: str) -> str:
    return (DATA / name).read_text()


def value(text: str, other: str = "[]", own: str = "[]") -> object:
    return evaluate(Expression.parse(text), Ad.parse(other), Ad.parse(own))


# --- SAM-Grid ------------------------------------------------------------------------------------


def station(rule: str, **counts: int) -> Ad:
    """An execution site's ad with a Requirements of the reference, in its words."""
    lines = "".join(f"{name} = {count}\n" for name, count in counts.items())
    return Ad.parse(read(rule) + read("samgrid-since.txt") + lines)


@pytest.mark.parametrize(("current", "wanted"), [(9, True), (10, False), (11, False)])
def test_samgrid_a_site_takes_jobs_below_its_limit(current: int, wanted) -> None:
    site = station("samgrid-simple.txt", CurrentJobs=current, MaxJobs=10)
    assert wants(site, Ad.parse("[]")) is wanted


@pytest.mark.parametrize(
    ("matched", "submitting", "wanted", "fails"),
    [
        (0, 0, True, ""),
        (4, 0, True, ""),
        (5, 0, False, "JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs < MaxSubmittingJobs"),
        (3, 2, False, "JobsMatchedSinceLastAdvertisement + CurrentSubmittingJobs < MaxSubmittingJobs"),
        (10, -9, False, "CurMatches < MaxJobs"),
    ],
)
def test_samgrid_jobs_matched_since_the_advertisement_count(
    matched: int, submitting: int, wanted, fails: str
) -> None:
    site = station(
        "samgrid-current.txt",
        CurrentJobs=90,
        CurMatches=90 + matched,
        MaxJobs=100,
        CurrentSubmittingJobs=submitting,
        MaxSubmittingJobs=5,
    )
    job = Ad.parse("[Owner = 1]")
    assert matches(job, site) is wanted
    assert [each.text for each in failing(site, job)] == ([fails] if fails else [])


def test_samgrid_an_ad_without_its_counts_takes_nothing() -> None:
    assert not wants(station("samgrid-simple.txt", MaxJobs=10), Ad.parse("[]"))


# --- EGEE ----------------------------------------------------------------------------------------


@pytest.fixture
def ce() -> Ad:
    ad = Ad.parse(read("egee-ce.ad")).inner("info")
    assert ad is not None
    return ad


def nested() -> Expression:
    requirements = Ad.parse(read("egee-requirements.txt").replace("\n", " ")).expression("Requirements")
    assert requirements is not None
    return requirements


def test_egee_the_ad_of_the_reference_is_read_whole(ce: Ad) -> None:
    assert len(ce.names) == 55
    assert value("other.GlueHostBenchmarkSI00 + other.glueceinfototalcpus", str(ce)) == 401
    software = 'member("app3", other.GlueHostApplicationSoftwareRunTimeEnvironment)'
    assert value(software, str(ce)) is True
    outer = Ad.parse(read("egee-ce.ad"))
    assert evaluate(Expression.parse("other.info.GlueHostBenchmarkSI00"), outer) == 400
    assert Ad.parse(str(outer)) == outer == Ad.parse(outer.text) == Ad.parse(outer.old_text)


@pytest.mark.parametrize(
    ("job", "wanted"),
    [
        ('[VirtualOrganisation = "EGEE"]', True),
        ('[VirtualOrganisation = "cms"]', False),
        ('[VirtualOrganisation = "cms"; CertificateSubject = "VO:EGEE"]', True),
        ("[]", False),
    ],
)
def test_egee_the_ces_authorization_check_looks_at_the_job(ce: Ad, job: str, wanted) -> None:
    ad = Ad.of({**_attributes(Ad.parse(job)), "Requirements": Expression.parse("other.AuthorizationCheck")})
    assert matches(ad, ce) is wanted
    assert "authorizationcheck" in ce.open


def _attributes(ad: Ad) -> dict[str, Expression]:
    return {name: found for name in ad.names if (found := ad.expression(name)) is not None}


@pytest.mark.parametrize(("si00", "limit"), [(400, 2000), (500, 2000), (501, 1000), (600, 1000)])
def test_egee_the_benchmark_decides_and_the_limit_is_left(si00: int, limit: int) -> None:
    left = reduce(nested(), Ad.of({"GlueHostBenchmarkSI00": si00}))
    assert str(left) == f"other.GlueCEPolicyMaxCPUTime > {limit}"
    assert left.names == {"gluecepolicymaxcputime"}


@pytest.mark.parametrize(
    ("limit", "left", "outcome"),
    [
        (1500, "other.GlueHostBenchmarkSI00 > 500", None),
        (500, "other.GlueHostBenchmarkSI00 > 500 ? false : false", False),
        (2500, "other.GlueHostBenchmarkSI00 > 500 ? true : true", None),
    ],
)
def test_egee_the_limit_decides_and_the_host_is_left(limit: int, left: str, outcome) -> None:
    found = reduce(nested(), Ad.of({"GlueCEPolicyMaxCPUTime": limit}))
    assert str(found) == left
    assert decided(found) is outcome


def test_egee_the_whole_ad_decides_all(ce: Ad) -> None:
    assert str(reduce(nested(), ce)) == "true"
    assert decided(reduce(nested(), ce)) is True


def test_what_the_ce_says_is_folded_away_and_what_is_about_the_host_is_left(ce: Ad) -> None:
    job = Ad.parse(
        '[Cores = 4; Requirements = other.GlueCEStateStatus == "production" && other.ScratchMB > Cores * 100]'
    )
    assert job.requirements is not None
    left = reduce(job.requirements, ce)
    assert str(left) == "other.ScratchMB > 400"
    assert decided(reduce(job.requirements, Ad.parse('[GlueCEStateStatus = "Closed"]'))) is False


# --- scopes and truth ----------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["other", "TARGET", "Target", "OTHER"])
def test_the_other_ad_by_all_its_names(scope: str) -> None:
    assert value(f"{scope}.memory", "[Memory = 5]", "[Memory = 7]") == 5


@pytest.mark.parametrize("scope", ["my", "MY", "self", "Self"])
def test_its_own_ad_by_all_its_names(scope: str) -> None:
    assert value(f"{scope}.memory", "[Memory = 5]", "[Memory = 7]") == 7
    assert value(f"{scope}.memory", "[Memory = 5]") is UNDEFINED


def test_a_name_without_a_scope_is_its_own_ads_and_else_the_others() -> None:
    assert value("memory", "[Memory = 5]", "[Memory = 7]") == 7
    assert value("memory", "[Memory = 5]") == 5
    assert value("memory") is UNDEFINED


def test_an_attribute_of_the_other_is_looked_up_from_the_others_side() -> None:
    resource = "[Size = 10; Fits = Wish <= Size; Wish2 = other.Size]"
    assert value("other.Fits", resource, "[Wish = 9; Size = 1]") is True
    assert value("other.Wish2", resource, "[Size = 1]") == 1


@pytest.mark.parametrize(
    ("requirements", "wanted"),
    [
        ("true", True), ("false", False), ("undefined", False), ("error", False), ("1", False), ("2.5", False),
        ('"true"', False), ("{}", False), ("1 && 1", True), ("undefined || true", True), ("nowhere", False),
    ],
)  # fmt: skip
def test_only_true_is_true(requirements: str, wanted) -> None:
    assert matches(Ad.parse(f"[Requirements = {requirements}]"), Ad.parse("[]")) is wanted
    assert matches(Ad.parse("[]"), Ad.parse(f"[requirements = {requirements}]")) is wanted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("other.Cpus * 2", 8.0),
        ("true", 1.0),
        ("undefined", 0.0),
        ('"a"', 0.0),
        ('real("NaN")', 0.0),
        ("-1.5", -1.5),
    ],
)
def test_rank_is_a_number_whatever_is_written(text: str, expected: float) -> None:
    assert rank(Ad.parse(f"[Rank = {text}]"), Ad.parse("[Cpus = 4]")) == expected
    assert rank(Ad.parse("[]"), Ad.parse("[]")) == 0.0


def test_special_values_are_neither_true_nor_false() -> None:
    with pytest.raises(TypeError, match="is True"):
        bool(UNDEFINED)


# --- keys ----------------------------------------------------------------------------------------


def test_texts_that_mean_the_same_have_one_canonical_text() -> None:
    texts = (
        'other.Cpus>=2&&(TARGET.OS=="Linux"&&!(isundefined(MY.x)))',
        '((other.CPUS >= 2) && target.os == "Linux") /* so */ && ! IsUndefined( self.X )',
        "other.cpus >= 2 // why\n && other.os == \"Linux\" && !ISUNDEFINED(my.'x')",
    )
    assert {Expression.parse(text).text for text in texts} == {
        'other.cpus >= 2 && other.os == "Linux" && !isundefined(my.x)'
    }
    assert len({Expression.parse(text) for text in texts}) == 1
    assert Expression.parse('x == "a"') != Expression.parse('x == "A"')


def test_an_expression_says_what_it_looks_at_and_an_ad_what_is_seen_of_it() -> None:
    job = Ad.parse("[Size = 3; Requirements = other.Memory > Size && Status == 1]")
    assert job.requirements is not None
    assert job.requirements.other == {"memory", "status"}
    one, two, three = (
        Ad.parse(f"[Memory = {memory}; Status = 1; Load = {load}]")
        for memory, load in ((5, 1), (5, 2), (2, 1))
    )
    view = job.requirements.other
    assert one.view(view) == two.view(view) != three.view(view)
    assert satisfied_by(job.requirements, [one, two, three], job) == [True, True, False]
    assert [satisfied(job.requirements, each, job) for each in (one, two, three)] == [True, True, False]


# --- syntax --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'"\303\251\101\\\"\t"', 'éA\\"\t'), ("-9223372036854775808", -(2**63)), ("- -1", 1), ("1e3", 1000.0),
        (".5", 0.5), ("5 ?: 1 * 2", 10), ("1 + undefined ?: 2", 3), ("{1, 2}[1]", 2), ("[a = 1; b = a].b", 1),
        ("'a b' ?: 3", 3), ("1 < 2 == true", True), ("7 & 3 + 1", 4), ("2 - 1 - 1", 0),
    ],
)  # fmt: skip
def test_what_is_read(text: str, expected: object) -> None:
    assert value(text) == expected


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("1] [x=2", "SYNTAX", "line 1, column 2: the text goes on"),
        ("true &&\n  (x >", "SYNTAX", "line 2, column 7: the text ends too early"),
        ("99999999999999999999", "OVERFLOW", "line 1, column 1"),
        ("1e999", "OVERFLOW", "column 1"),
        ("0x10", "SYNTAX", "goes on with letters"), ("1K", "SYNTAX", "goes on with letters"),
        ("010", "SYNTAX", "must not begin with 0"), ('"a', "SYNTAX", "does not end"), ("/* a", "SYNTAX", "does not end"),
        ('"\\377"', "TEXT", "UTF-8"), ('"\\0"', "TEXT", "code 0"), ('"\\q"', "SYNTAX", "escape"),
        ('"\udcff"', "TEXT", "surrogate"), ("a\0b", "TEXT", "code 0"), ("é", "SYNTAX", "é"),
        ("TARGET", "SCOPE", "full stop"), ("other.MY.x", "NAME", "MY"), (".a", "SYNTAX", "full stop"),
        ("[a = self.b]", "SCOPE", "record"), ("CurrentTime > 5", "NAME", "CurrentTime"), ("parent.x", "NAME", "parent"),
        ("time() > 5", "FUNCTION", "time"), ('eval("1")', "FUNCTION", "eval"), ("size()", "FUNCTION", "0 arguments"),
        ("regexp(x, y)", "PATTERN", "written down"), ('regexp("(a+)+$", x)', "PATTERN", "repeat"),
        ('regexp("(a|aa)*b", x)', "PATTERN", "repeat"), (r'regexp("(a)\\1", x)', "PATTERN", "must not have"),
        ('regexp("(?=a)", x)', "PATTERN", "must not have"), ('regexp("a", x, "x")', "PATTERN", "option"),
        ('regexp("a*b*c*d*e*", x)', "PATTERN", "5 repeats"), ('regexp("(a", x)', "PATTERN", "bracket"),
        ("(" * 100 + "1" + ")" * 100, "TOO_DEEP", "levels"), ("!" * 100 + "true", "TOO_DEEP", "row"),
        ("1" + "+1" * 100, "TOO_DEEP", "row"), ("{" * 100 + "}" * 100, "TOO_DEEP", "levels"),
        ("[a=" * 20 + "1" + "]" * 20, "TOO_DEEP", "records"), ("[a = 1; A = 2]", "TWICE", "twice"),
        ("true&&" * 200_000 + "true", "TOO_LONG", "bytes"), ("{" + "1," * NODES + "1}", "TOO_LARGE", "10,000"),
    ],
)  # fmt: skip
def test_what_is_refused_is_so_with_its_place(text: str, code: str, said: str) -> None:
    with pytest.raises(Rejected) as refused:
        Expression.parse(text, "Requirements")
    assert refused.value.code == f"CLASSAD_{code}"
    assert refused.value.message.startswith("Requirements")
    assert said in refused.value.message


def readable(text: str) -> Expression | None:
    """Return an expression, if it is not nested too deep."""
    try:
        return Expression.parse(text)
    except Rejected as refusal:
        if refusal.code != "CLASSAD_TOO_DEEP":
            raise
        return None


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("!", ""),
        ("- ", ""),
        ("-(a+", ")"),
        ("a[", "]"),
        ("a?", ":b"),
        ("a?b:", ""),
        ("size({", "})"),
        ("(a && ", ")"),
        ("(", "?:a)"),
    ],
)
def test_what_is_nested_as_deep_as_may_be_is_written_so_that_it_can_be_read(
    opening: str, closing: str
) -> None:
    deep = [opening * depth + "-5" + closing * depth for depth in range(1, DEPTH + 2)]
    read = [expression for each in deep if (expression := readable(each)) is not None]
    assert 20 < len(read) < len(deep)
    assert [Expression.parse(each.text) for each in read] == read


@pytest.mark.parametrize(
    "pattern", [r"^atlfarm[0-9]{1,3}\.(mi|pd)\.infn\.it(:[0-9]+)?", ".*cern.*", "[]a]+", r"\d+\s*x"]
)
def test_patterns_of_every_day_are_taken(pattern: str) -> None:
    escaped = pattern.replace("\\", "\\\\")
    assert value(f'regexp("{escaped}", "atlfarm006.mi.infn.it:2119")') in {True, False}


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


# --- what may be costly --------------------------------------------------------------------------


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


def test_ads_that_look_at_each_other_in_a_circle_or_too_often_are_errors() -> None:
    assert value("other.a", "[a = other.b]", "[b = other.a]") is ERROR
    one = "[" + "; ".join(f"a{n} = other.b{n} + other.b{n}" for n in range(60)) + "]"
    two = "[" + "; ".join(f"b{n} = other.a{n + 1} + other.a{n + 1}" for n in range(60)) + "]"
    expression = Expression.parse("other.a0 > 1 && other.x")
    assert evaluate(expression, Ad.parse(one), Ad.parse(two)) is ERROR
    assert not satisfied(expression, Ad.parse(one), Ad.parse(two))
    (first, _) = explain(expression, Ad.parse(one), Ad.parse(two))
    assert "look at each other" in first.note


def test_a_large_value_of_the_other_ad_makes_a_costly_expression_an_error_not_a_hang() -> None:
    slow = Expression.parse('regexp("x*y*v", other.s)')
    assert evaluate(slow, Ad.of({"s": "x" * 30})) is False
    assert evaluate(slow, Ad.of({"s": "x" * 60_000})) is ERROR
    twice = Expression.parse("size(strcat(other.s, other.s))")
    assert evaluate(twice, Ad.of({"s": "x" * 10_000})) == 20_000
    assert evaluate(twice, Ad.of({"s": "x" * 60_000})) is ERROR


def test_a_thousand_names_side_by_side_are_evaluated() -> None:
    text = " || ".join(f'other.CEid == "ce{n}"' for n in range(1_000))
    requirements = Expression.parse(text)
    assert [satisfied(requirements, Ad.of({"CEid": name})) for name in ("ce0", "CE999", "ce1000")] == [
        True,
        True,
        False,
    ]
    assert len(text) < TEXT_BYTES


def test_long_requirements_and_lists_cost_what_they_are() -> None:
    own = Ad.of({"Requirements": Expression.parse(" && ".join(f"other.a{n} < 1" for n in range(2_400)))})
    other = Ad.of({f"a{n}": 0 for n in range(1_900)})
    assert len(failing(own, other)) == 500
    assert value("member(7000, other.l) && sum(other.l) > 0", Ad.of({"l": list(range(7_500))}).text) is True


# --- why -----------------------------------------------------------------------------------------


def test_an_explanation_names_what_failed_and_what_it_saw() -> None:
    job = Ad.parse('[Wish = 4; Requirements = other.Cpus >= Wish && other.OS == "linux" && other.Fast]')
    resource = Ad.parse('[Cpus = 2; OS = "Linux"; Fast = 1]')
    (cpus,) = failing(job, resource)
    assert str(cpus) == "other.Cpus >= Wish is false where Wish = 4, other.Cpus = 2"
    assert [
        term.met for term in explain(job.expression("Requirements") or Expression.parse("0"), resource, job)
    ] == [
        False,
        True,
        True,
    ]
    assert failing(resource, job) == ()


def test_an_explanation_says_that_a_number_is_not_true_and_that_nothing_is_known() -> None:
    (alone,) = failing(Ad.parse("[Requirements = other.Fast]"), Ad.parse("[Fast = 1]"))
    assert (
        str(alone) == "other.Fast is 1; a number is not true: compare it with something where other.Fast = 1"
    )
    (missing,) = failing(Ad.parse("[Requirements = other.Fast]"), Ad.parse("[]"))
    assert str(missing) == "other.Fast is undefined where other.Fast = undefined"


# --- the library ---------------------------------------------------------------------------------


def test_without_the_library_texts_are_read_and_evaluation_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "classad2", None)
    engine._library.cache_clear()
    try:
        assert Expression.parse("other.x > 77").names == {"x"}
        with pytest.raises(Rejected, match="htcondor"):
            evaluate(Expression.parse("other.x > 77"), Ad.parse("[x = 1]"))
    finally:
        engine._library.cache_clear()


def test_ads_give_back_what_they_borrowed_and_see_nothing_of_each_other() -> None:
    look = Expression.parse("other.left")
    for number in range(100):
        assert satisfied(look, Ad.parse(f"[right = {number}]")) is False
        assert evaluate(look, Ad.parse(f"[left = {number}; n = [m = left]]")) == number
    gc.collect()
    assert len(engine.Values._spare) <= engine._SPARE


@pytest.mark.slow
def test_a_million_evaluations_and_a_hundred_thousand_ads_leave_no_memory_behind() -> None:
    process = psutil.Process()
    requirements = Expression.parse('other.Memory > 100 && member("b", other.Tags) && other.Fits')
    own = Ad.parse("[Wish = 5]")
    ads = [
        Ad.parse(f'[Memory = {n}; Tags = {{"a", "b"}}; Fits = {"Wish < 7" if n % 10 == 0 else "true"}]')
        for n in range(200)
    ]

    def rounds(count: int) -> None:
        for _ in range(count):
            assert sum(satisfied_by(requirements, ads, own)) == 99

    rounds(100)
    before = process.memory_info().rss
    rounds(5_000)
    assert process.memory_info().rss - before < 4 * 2**20
    for number in range(100_000):
        satisfied(requirements, Ad.of({"Memory": number, "Tags": ["a", "b"], "Fits": True}), own)
    assert process.memory_info().rss - before < 16 * 2**20
