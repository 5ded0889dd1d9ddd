"""The text of JDL: brackets that may be left out, comments, and lines."""

from wms.jobdesc.languages.jdl_text import parse, split


def test_brackets_may_be_left_out() -> None:
    plain = parse('# c\nA = 1;\nB = {"x",\n "y"};\n// d\nC = D && true;')
    record = parse('[ A = 1; /* c\n */ B = {"x", "y"}; C = D && true ]')
    assert [(each.name, each.text) for each in plain] == [(each.name, each.text) for each in record]
    assert [each.line for each in plain] == [2, 3, 6]
    assert [each.line for each in record] == [1, 2, 2]


def test_values_and_lists() -> None:
    number, text, names, expression = parse('A = -1; B = "x # y"; C = {"p", 2, true}; D = E;')
    assert (number.value, text.value) == (-1, "x # y")
    assert names.texts == ["p", "2", "true"]
    assert (expression.value, expression.texts) == (None, None)


def test_several_names_in_one_text() -> None:
    assert split(["a;b , c", "d"]) == ["a", "b", "c", "d"]
