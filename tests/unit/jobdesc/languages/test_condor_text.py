"""Submit files as HTCondor reads them: lines, conditions, macros of their own names, includes and items."""

import pytest

from tests.unit.jobdesc.languages.condor_machine import MACHINE
from wms.jobdesc import InvalidDescription
from wms.jobdesc.languages.condor_text import parse


def value(text: str, name: str = "v") -> str:
    [queue] = parse(f"{text}\nqueue", MACHINE)
    return queue.commands[name].value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("v = a \\  \nb", "a b"),
        ("v = a \\\n  b \\\n\nw = 1", "a b"),
        ("v = a # c", "a # c"),
        ("# v = 1 \\\nv = 2", "2"),
        ("v = a\nv = $(v) b", "a b"),
        ("v = a\nv += b", "a b"),
        ("v = 1\nif defined w\nv = 2\nelse\nv = 3\nendif", "3"),
        ("v = 1\nif ! defined w\nif true\nv = 2\nendif\nelif true\nv = 3\nendif", "2"),
        ("w = 1\nv = 0\nif $(w)\nv = 1\nendif", "1"),
        ("v = 0\nif version >= 8.1.2\nv = 1\nendif", "1"),
        ("v @=end\nl1\nl2\n@end", "l1\nl2"),
        ("include : more.sub", "included"),
        ("v = 1\ninclude ifexist : none.sub", "1"),
    ],
)
def test_a_value_is_what_htcondor_takes_it_for(text: str, said: str) -> None:
    assert value(text) == said


@pytest.mark.parametrize(
    ("said", "count", "rows"),
    [
        ("", 1, [()]),
        ("2 * 3", 6, [()]),
        ("$(N) x in (a b)", 3, [["a"], ["b"]]),
        ("x in $(list)", 1, [["a"], ["b"], ["c"]]),
        ("x, y from (\n a, 1 2\n b 2\n # c\n)", 1, [["a", "1 2"], ["b", "2"]]),
        ("x in [1:3] (a, b, c, d)", 1, [["b"], ["c"]]),
        ("from [::2] (\na\nb\nc\n)", 1, [["a"], ["c"]]),
        ("x from items.txt", 1, [["one 1"], ["two 2"]]),
        ("x matching *.dat", 1, [["a.dat"], ["d.dat"]]),
        ("x matching files (*.dat)", 1, [["a.dat"]]),
        ("x matching dirs *.dat", 1, [["d.dat"]]),
    ],
)
def test_the_items_of_a_queue_statement(said: str, count: int, rows: list[object]) -> None:
    [queue] = parse(f"N = 3\nlist = a b c\nqueue {said}", MACHINE)
    assert (queue.count, list(queue.items.rows)) == (count, rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("queue x from seq 1 3 |", "a program prints"),
        ("include : seq 1 3 |", "a program prints"),
        ("include command : mkdir x\nqueue", "HTCondor alone"),
        ("use template : x\nqueue", "HTCondor alone"),
        ("if $(x) > 3\nendif\nqueue", "HTCondor does not take"),
        ("if true\nqueue", "without endif"),
        ("else\nqueue", "without if"),
        ("queue x in (a\nb", "closing bracket"),
        ("queue x in [3] (a)", "slice"),
        ("queue a lot", "not understood"),
        ("queue x from TABLE x.csv", "not read"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidDescription, match=said):
        parse(text, MACHINE)
