"""The text of xRSL: quotes, comments, lists and joined requests."""

from wms.jobdesc.languages.xrsl_text import parse, written


def values(text: str) -> tuple[object, ...]:
    return parse(f"&(a={text})")[0].relations[0].values


def test_quotes_protect_and_are_doubled_within() -> None:
    said = ["plain", '"two words"', "'it''s'", '"say ""x"""', '^|a "b" ||^|']
    assert values(" ".join(said)) == ("plain", "two words", "it's", 'say "x"', 'a "b" |^')


def test_lists_hold_lists() -> None:
    assert values('("a" "b") ("c" ("d"))') == (("a", "b"), ("c", ("d",)))


def test_names_have_neither_case_nor_underscores() -> None:
    (request,) = parse('(* c *) (run_Time_Environment >= "x") (* d\n *)\n(Count=1)')
    assert [(each.name, each.operator, each.line) for each in request.relations] == [
        ("runtimeenvironment", ">=", 1),
        ("count", "=", 3),
    ]


def test_what_is_written_is_parsed_again() -> None:
    wanted = {"executable": "a b", "arguments": ("x", 'y"z'), "inputfiles": (("a", "b"), ("c", ""))}
    (request,) = parse(written(wanted))
    assert {each.name: each.values for each in request.relations} == {
        "executable": ("a b",),
        "arguments": ("x", 'y"z'),
        "inputfiles": (("a", "b"), ("c", "")),
    }
