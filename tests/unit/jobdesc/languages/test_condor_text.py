"""The text of submit files: continued lines, macros and queue statements."""

from wms.jobdesc.languages.condor_text import Command, filled, macros, parse, without_macros


def test_lines_are_joined_and_counted() -> None:
    (queue,) = parse("# c\r\na = 1 \\\r\n 2\r\n\r\nb = x\r\nqueue\r\n")
    assert {each.name: (each.value.split(), each.line) for each in queue.commands.values()} == {
        "a": (["1", "2"], 2),
        "b": (["x"], 5),
    }


def test_lists_of_items() -> None:
    text = "queue 2 in (a b, c)\nqueue x from (\n one thing\n\n other\n)\nqueue 3\n"
    first, second, third = parse(text)
    assert (first.count, first.items) == (2, {"Item": ["a", "b", "c"]})
    assert (second.count, second.items) == (1, {"x": ["one thing", "other"]})
    assert (third.count, third.items) == (3, {})


def test_macros_have_defaults_and_are_nested() -> None:
    commands = {"a": Command("a", "$(b)!", 1), "b": Command("b", "x", 2)}
    kept = frozenset({"process"})
    assert without_macros("$(A)-$(c:y)-$(Process)", commands, kept, 3) == "x!-y-$(Process)"
    assert macros("$(A)$(c:y)") == {"a", "c"}
    assert filled("$(Process)$(z)", {"process": "{n}"}) == "{n}$(z)"
