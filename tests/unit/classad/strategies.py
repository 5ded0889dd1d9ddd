"""Expressions and ads for tests: well-formed ones of every kind, in every spelling, and soups of tokens."""

import random

from hypothesis import strategies as st

OWN = ("a", "B", "cee", "List_1")
OTHER = ("x", "Y", "zed", "Tags")
MISSING = ("nowhere",)

literals = st.one_of(
    st.integers(-5, 5).map(str),
    st.sampled_from(["0.5", "2.5", "1e3", "9223372036854775807", "1.5E-7"]),
    st.sampled_from(['""', '"a"', '"A"', '"b c"', '"é"', r'"q\"\n"', '"a,b"']),
    st.sampled_from(["true", "FALSE", "undefined", "Error", "True"]),
)
own_names = st.sampled_from(
    [f"{scope}{name}" for name in OWN for scope in ("", "MY.", "my.", "self.", "Self.")]
    + ["MY.nowhere", "nowhere"]
).flatmap(lambda name: st.sampled_from([name, name.upper(), name.lower()]))
other_names = st.sampled_from(
    [f"{scope}{name}" for name in (*OTHER, *MISSING) for scope in ("TARGET.", "other.", "Other.", "target.")]
).flatmap(lambda name: st.sampled_from([name, name.upper(), name.lower()]))

_BINARY = [
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    "<=",
    ">",
    ">=",
    "==",
    "!=",
    "=?=",
    "=!=",
    "is",
    "isnt",
    "IS",
    "&&",
    "||",
    "&&",
    "||",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    ">>>",
]
_ONE = [
    "isUndefined",
    "isError",
    "isString",
    "isInteger",
    "isReal",
    "isBoolean",
    "isList",
    "size",
    "int",
    "real",
    "string",
    "bool",
    "floor",
    "toUpper",
    "round",
]
_TWO = [
    "member",
    "identicalMember",
    "strcmp",
    "stricmp",
    "versioncmp",
    "stringListsIntersect",
    "pow",
    "quantize",
    "versionGE",
]


@st.composite
def trees(draw, atoms: st.SearchStrategy[str], depth: int = 3) -> str:
    """Return an expression over atoms."""
    shape = draw(st.integers(0, 14)) if depth else 0

    def part() -> str:
        return str(draw(trees(atoms, depth - 1)))

    def several(least: int = 0) -> list[str]:
        return [part() for _ in range(draw(st.integers(least, 4)))]

    def one_of(*choices: str) -> str:
        return str(draw(st.sampled_from(choices)))

    shapes = (
        lambda: draw(atoms),
        lambda: draw(atoms),
        lambda: f"({part()}) {one_of(*_BINARY)} ({part()})",
        lambda: f"{part()}\n {one_of(*_BINARY)} {part()}",
        lambda: f"{part()} ? {part()}:{part()}",
        lambda: f"({part()})?({part()}) : {part()}",
        lambda: f"{part()} ?: ({part()})",
        lambda: f"ifThenElse({part()}, {part()},{part()})",
        lambda: f"{one_of('!', '-', '+', '~', '! ')}({part()})",
        lambda: f"{one_of(*_ONE)}({part()})",
        lambda: f"{one_of(*_TWO).upper()}({part()} /* , */, {part()})",
        lambda: one_of("{%s}", "strcat(%s)") % ", ".join(several()),
        lambda: one_of(" && ", " || ").join(several(2)),
        lambda: f"({part()})[{draw(st.integers(-1, 4))}]",
        lambda: one_of(f"[q = {part()}; k = 2; n = q].n", f'regexp("^[a-c]*", {part()}, "i")'),
    )
    return str(shapes[shape]())


closed = trees(literals)
open_ = trees(st.one_of(literals, own_names, other_names))
values = st.one_of(literals, st.lists(literals, max_size=3).map(lambda items: "{" + ", ".join(items) + "}"))


def ads(names: tuple[str, ...], value: st.SearchStrategy[str] = values) -> st.SearchStrategy[dict[str, str]]:
    """Return the attributes of ads, a subset of the names, with texts."""
    return st.dictionaries(st.sampled_from(names), value, max_size=len(names))


def ad_text(attributes: dict[str, str]) -> str:
    return "[" + "; ".join(f"{name} = {text}" for name, text in attributes.items()) + "]"


_SOUP = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ".",
    ",",
    ";",
    "?",
    ":",
    "?:",
    "=",
    "==",
    "!=",
    "=?=",
    "=!=",
    "<",
    "<=",
    ">",
    ">=",
    "<<",
    ">>",
    ">>>",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "&&",
    "|",
    "||",
    "^",
    "!",
    "~",
    "is",
    "isnt",
    "true",
    "undefined",
    "error",
    "a",
    "b",
    "MY.",
    "TARGET.",
    "other.",
    "self.",
    "my",
    "0",
    "1",
    "2.5",
    "1e308",
    "9223372036854775807",
    "9223372036854775808",
    "08",
    "0x1",
    "1K",
    '"s"',
    '"\\""',
    '"\\377"',
    "'q'",
    "''",
    "//",
    "/*",
    "*/",
    "\n",
    "strcat(",
    "size(",
    "member(",
    'regexp("a*",',
    'regexp("(a+)+",',
    "ifThenElse(",
    "eval(",
    "string(",
    "[a=1]",
    "{1,2}",
    "é",
    "�",
    "\x00",
    "parent",
    "root",
    "CurrentTime",
    "toplevel",
    "[a=a]",
    "[a=b;b=a].",
    "((((((",
    "}}}}",
    "!!!!!!",
]


def soup(rng: random.Random) -> str:
    """Return tokens in no order, now and then very many of one kind."""
    parts = rng.choices(_SOUP, k=rng.randint(1, 25))
    if rng.random() < 0.05:
        parts.insert(rng.randrange(len(parts)), rng.choice(_SOUP) * rng.choice([50, 500, 20_000]))
    return rng.choice(["", " "]).join(parts)
