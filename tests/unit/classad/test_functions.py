"""Every function that expressions may call, evaluated by the library that we ship; those that it lacks against HTCondor's own."""

import json
import subprocess
import sys

import pytest

from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.functions import FUNCTIONS
from wms.classad.match import evaluate
from wms.classad.value import ERROR, UNDEFINED
from wms.errors import Rejected

CALLS = {
    "isUndefined(other.nowhere)": True,
    "isError(error)": True,
    'isString("a")': True,
    "isInteger(1)": True,
    "isReal(1.5)": True,
    "isBoolean(true)": True,
    "isList({1})": True,
    "isClassad([a = 1])": True,
    'member("A", {"a", "b"})': True,
    'identicalMember("A", {"a", "b"})': False,
    'anyCompare("<", {1, 5}, 3)': True,
    'allCompare("<", {1, 5}, 3)': False,
    'regexp("^l", "LHC", "i")': True,
    'regexpMember("^l", {"a", "lhc"})': True,
    'stringListMember("b", "a, b")': True,
    'stringListIMember("B", "a, b")': True,
    'stringListsIntersect("a,b", "b,c")': True,
    'versionLT("8.9", "8.10")': True,
    'versionLE("8.9", "8.9")': True,
    'versionEQ("8.9", "8.10")': False,
    'versionGE("8.9", "8.10")': False,
    'versionGT("8.10", "8.9")': True,
    'version_in_range("8.9", "8.1", "8.10")': True,
    'bool("true")': True,
    "size({1, 2})": 2,
    "sum({1, 2})": 3,
    "avg({1, 2})": 1.5,
    "min({1, 2})": 1,
    "max({1, 2})": 2,
    'int("12")': 12,
    'real("1.5")': 1.5,
    "floor(1.5)": 1,
    "ceiling(1.5)": 2,
    "round(1.6)": 2,
    "pow(2, 3)": 8,
    "quantize(7, 4)": 8,
    'strcmp("a", "b")': -1,
    'stricmp("A", "a")': 0,
    'versioncmp("8.9", "8.10")': -1,
    'strcat("a", 1)': "a1",
    "string(1)": "1",
    'substr("abc", 1, 1)': "b",
    'toUpper("a")': "A",
    'toLower("A")': "a",
    "ifThenElse(true, 1, 2)": 1,
}


def value(text: str, other: str = "[]") -> object:
    return evaluate(Expression.parse(text), Ad.parse(other))


@pytest.mark.parametrize("call", CALLS)
def test_a_function_that_is_accepted_has_a_value(call: str) -> None:
    assert value(call) == CALLS[call]


def test_no_function_is_accepted_that_was_never_evaluated() -> None:
    assert {call.partition("(")[0].lower() for call in CALLS} == FUNCTIONS.keys()


# --- string lists, which the library has not -------------------------------------------------------------------------

ITEMS = [
    '"a"',
    '"A"',
    '" a"',
    '"a "',
    '"a,b"',
    '"a b"',
    '""',
    '"b"',
    r'"a\tb"',
    '"é"',
    "undefined",
    "error",
    "1",
    '{"a"}',
]
LISTS = [
    '"a,b"', '"A b"', '" a , b "', '"a;b"', '"x: a :b"', '"x: a b :b"', '""', '","', '", ,a"', r'"x\ta\nb"', r'"b\ra"', '"aa,b"',
    '"a b"', '"É,é"', r'"b\013,\013a"', r'"b\013a"', "undefined", "error", "1", '{"a"}',
]  # fmt: skip
DELIMITERS = ["", ', ":"', ', ","', ', " "', ', ";:"', r', ", \t\r\n"', r', "]\\^-"']
STRING_LISTS = [
    f"{function}({item}, {items}{delimiters})"
    for function in ("stringListMember", "stringListIMember")
    for item in ITEMS
    for items in LISTS
    for delimiters in DELIMITERS
]

# HTCondor defines these functions outside the library, where its own module is loaded; here that is nobody's but this test's.
ORACLE = """
import json, os, sys
os.environ["CONDOR_CONFIG"] = "ONLY_ENV"
import htcondor2, classad2
print(json.dumps([repr(classad2.ExprTree(each).eval()) for each in json.load(sys.stdin)]))
"""


def test_string_lists_are_searched_as_htcondor_searches_them() -> None:
    said = subprocess.run(
        [sys.executable, "-c", ORACLE],
        input=json.dumps(STRING_LISTS),
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [_oracle(each) for each in json.loads(said.stdout.splitlines()[-1])]
    found = [value(each) for each in STRING_LISTS]
    assert {True, False, UNDEFINED, ERROR} <= set(found)
    assert [
        (text, ours, theirs)
        for text, ours, theirs in zip(STRING_LISTS, found, expected, strict=True)
        if ours is not theirs
    ] == []


def _oracle(said: str) -> object:
    return {"True": True, "False": False}.get(said, UNDEFINED if "Undefined" in said else ERROR)


def test_a_string_list_of_an_ad_is_searched() -> None:
    ad = '[Tools = "root, GEANT4 ,gcc"]'
    assert value('stringListMember("GEANT4", other.Tools)', ad) is True
    assert value('stringListMember("geant4", other.Tools)', ad) is False
    assert value('stringListIMember("geant4", other.Tools)', ad) is True
    assert value('stringListMember("cc", other.Tools)', ad) is False


def test_the_canonical_text_keeps_the_call_as_it_was_written() -> None:
    assert Expression.parse('STRINGLISTMEMBER("a",  other.X)').text == 'stringlistmember("a", other.x)'


@pytest.mark.parametrize(
    "text",
    [
        'stringListMember("a", "a,b", other.Delimiters)',
        'stringListMember("a", "a,b", "")',
        'stringListMember("a", "axb", "x")',
        'stringListMember(stringListMember("a", "b"), "c")',
    ],
)
def test_what_the_library_could_not_evaluate_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(Rejected):
        Expression.parse(text)


def test_blanks_without_end_take_no_more_than_a_moment() -> None:
    blanks = " " * 8_000
    assert value(f'stringListMember("a", "x{blanks}a{blanks};b{blanks}", ";")') is False


# --- what HTCondor reads, and so do we -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["[a = 1;; b = 2]", "[; a = 1; b = 2;;]"])
def test_empty_places_between_attributes_are_passed_over(text: str) -> None:
    assert Ad.parse(text) == Ad.parse("[a = 1; b = 2]")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("other.x ?: -1", -1),
        ("other.x ?: -1.5", -1.5),
        ("other.x ?: -1 + 2", 1),
        ("1 + other.x ?: -1", 0),
        ("other.x ?: -9223372036854775808", -(2**63)),
        ("other.y ?: -1", 3),
    ],
)
def test_a_negative_number_may_stand_behind_the_alternative(text: str, expected: object) -> None:
    assert value(text, "[y = 3]") == expected
    again = Expression.parse(Expression.parse(text).text)
    assert again == Expression.parse(text)


@pytest.mark.parametrize("text", ["other.x ?: !true", "other.x ?: -other.y", "other.x ?: - -1"])
def test_any_other_sign_behind_the_alternative_is_refused_as_by_htcondor(text: str) -> None:
    with pytest.raises(Rejected):
        Expression.parse(text)
