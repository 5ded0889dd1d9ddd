"""The parser of ClassAd expressions and ads; it parses a text completely or refuses it.

It is stricter than the library, which ignores the rest of some texts. The library also takes 99999999999999999999 for 0, and reads
the clock for CurrentTime.
"""

from typing import NoReturn, TypeGuard

from wms.classad.functions import FUNCTIONS, PATTERN_FIRST
from wms.classad.grammar import CONSTANTS, LEVELS, SCOPES, name_checked, name_fault
from wms.classad.limits import ATTRIBUTES, DEPTH, NODES, RECORDS, refused
from wms.classad.patterns import power
from wms.classad.string_lists import MEMBERSHIP, delimiters_allowed
from wms.classad.tokens import Token, checked, tokens, where
from wms.classad.tree import (
    Binary,
    Call,
    Conditional,
    ListOf,
    Literal,
    MemberAccess,
    NameScope,
    Node,
    Record,
    Reference,
    Subscript,
    Unary,
    chain,
    children,
    localised,
    walk,
)
from wms.classad.value import Scalar
from wms.errors import shown

Attributes = tuple[tuple[str, Node], ...]

_SAME = {"=?=": "is", "=!=": "isnt"}
_ASSIGNS = "`=` assigns; compare with `==`"
_UNARY = frozenset("-+!~")
_BRACKETS = frozenset("({[")
_PARTS = frozenset(".[")
"""The signs before an attribute or element of a value."""
_LARGEST = 2**63 - 1
_NESTED = DEPTH + 2
"""The nesting depth of brackets and signs that the parser accepts.

The text of a tree of the allowed depth needs two levels more: one for brackets around the whole, one for the sign of a number.
"""


def parse_expression(text: str, place: str = "") -> Node:
    """Return the tree of an expression.

    Raise Rejected, with `place` in the message, if the text is no expression or exceeds a limit.
    """
    reader = _Reader(checked(text, place), place)
    tree = reader.expression()
    reader.expect_end()
    nodes(tree, place)
    return tree


def parse_ad(text: str, place: str = "") -> Attributes:
    """Return the attributes of an ad in the new syntax, `[name = expression; ...]`.

    Raise Rejected, with `place`, if the text is no ad or exceeds a limit.
    """
    reader = _Reader(checked(text, place), place)
    reader.expect("[")
    attributes = reader.attributes()
    reader.expect_end()
    return _measured_ad(attributes, place)


def parse_old_ad(text: str, place: str = "") -> Attributes:
    """Return the attributes of an ad in the old syntax, one `name = expression` a line; lines that begin with `#` are comments.

    Raise Rejected, with `place`, if the text is no ad or exceeds a limit.
    """
    found: dict[str, tuple[str, Node]] = {}
    for number, line in enumerate(checked(text, place).splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            reader = _Reader(line, f"{place}{' ' if place else ''}line {number} of the ad,", old=True)
            reader.attribute(found)
            reader.expect_end()
    return _measured_ad(tuple(found.values()), place)


def nodes(tree: Node, place: str) -> int:
    """Return the number of nodes of a tree. Raise Rejected, with `place` in the message, if it has too many nodes or levels."""
    waiting = [(tree, 1)]
    found = 0
    while waiting:
        node, depth = waiting.pop()
        found += 1
        if depth > DEPTH:
            raise refused(
                "TOO_DEEP", f"more than {DEPTH} levels of brackets and operators in each other", place
            )
        if found > NODES:
            raise refused("TOO_LARGE", f"more than {NODES:,} names, values and operators", place)
        waiting.extend((each, depth + 1) for each in children(node))
    return found


def _measured_ad(attributes: Attributes, place: str) -> Attributes:
    if len(attributes) > ATTRIBUTES:
        raise refused("TOO_LARGE", f"{len(attributes):,} attributes, {ATTRIBUTES:,} are allowed", place)
    nodes(Record(attributes), place)
    return attributes


class _Reader:
    """A recursive-descent parser of tokens, with one method for each grammar rule; binary operators are parsed by their precedence."""

    def __init__(self, text: str, place: str, *, old: bool = False) -> None:
        self._text, self._place = text, place
        self._tokens = tokens(text, place, old=old)
        self._token = next(self._tokens)
        self._depth = 0
        self._records = 0

    def expression(self) -> Node:
        self._deepen("levels of brackets and operators in each other")
        condition = self._operators(1)
        if self._sign("?"):
            yes = self.expression()
            self.expect(":")
            condition = Conditional(condition, yes, self.expression())
        self._depth -= 1
        return condition

    def attributes(self) -> Attributes:
        """Parse the attributes of a record up to its closing bracket. The caller has consumed the opening bracket."""
        found: dict[str, tuple[str, Node]] = {}
        while not self._sign("]"):
            # As the library, which reads [a = 1;; b = 2].
            if self._sign(";"):
                continue
            self.attribute(found)
            if not self._sign(";"):
                self.expect("]")
                break
        return tuple(found.values())

    def attribute(self, found: dict[str, tuple[str, Node]]) -> None:
        token = self._take()
        name = self._attribute_name(token)
        if name.lower() in found:
            self._fail(f'the attribute "{shown(name, 60)}" is given twice', "TWICE", token)
        self.expect("=")
        found[name.lower()] = (name, self.expression())

    def expect(self, sign: str) -> None:
        if not self._sign(sign):
            self._fail(_ASSIGNS if self._token.kind == "=" else f'"{sign}" should stand here')

    def expect_end(self) -> None:
        if self._token.kind != "end":
            self._fail(_ASSIGNS if self._token.kind == "=" else "the text goes on behind its end")

    def _operators(self, least: int) -> Node:
        left = self._unary()
        grown = 0
        while (operator := self._operator()) and LEVELS[operator] >= least:
            self._take()
            right = self._operators(LEVELS[operator] + 1)
            if operator in {"&&", "||"}:
                terms = [left, right]
                while self._operator() == operator:
                    self._take()
                    terms.append(self._operators(LEVELS[operator] + 1))
                left = chain(operator, terms)
            else:
                grown += 1
                left = Binary(operator, left, right)
            if grown > DEPTH:
                self._fail(f"more than {DEPTH} operators in a row", "TOO_DEEP")
        return left

    def _operator(self) -> str:
        """Return the binary operator that the next token is; empty if it is none."""
        kind = self._token.kind
        if kind in LEVELS:
            return kind
        if kind == "name":
            word = self._token.text.lower()
            return word if word in {"is", "isnt"} else ""
        return _SAME.get(kind, "")

    def _unary(self) -> Node:
        if self._token.kind not in _UNARY:
            return self._alternative()
        operator = self._take()
        self._deepen("operators in a row")
        number = self._token
        operand = (
            self._smallest() if operator.text == "-" and number.text == str(_LARGEST + 1) else self._unary()
        )
        self._depth -= 1
        if isinstance(operand, Literal) and operator.text == "-" and _is_positive(operand.value):
            return Literal(-operand.value)
        return Unary(operator.text, operand)

    def _smallest(self) -> Node:
        """Parse 2**63, which is valid only after a minus sign, as it is one more than the largest integer."""
        self._take()
        if self._token.kind in _PARTS:
            self._fail("a number has no attributes or elements")
        return Literal(_LARGEST + 1)

    def _alternative(self) -> Node:
        """Parse `a ?: b`, which binds closer than any other operator, as in the library."""
        node = self._postfix()
        grown = 0
        while self._sign("?:"):
            grown += 1
            if grown > DEPTH:
                self._fail(f"more than {DEPTH} operators in a row", "TOO_DEEP")
            node = Conditional(node, None, self._second())
        return node

    def _second(self) -> Node:
        """Parse the operand after `?:`. As in the library, an operand with a sign must be a negative number."""
        if self._token.kind in _UNARY:
            sign = self._take()
            number = self._token
            if sign.kind == "-" and number.kind in {"integer", "real"}:
                value = self._smallest() if number.text == str(_LARGEST + 1) else self._primary()
                if isinstance(value, Literal) and _is_positive(value.value):
                    return Literal(-value.value)
            self._fail("put brackets around what has a sign before it", at=sign)
        return self._postfix()

    def _postfix(self) -> Node:
        node = self._primary()
        grown = 0
        while self._token.kind in _PARTS:
            grown += 1
            if grown > DEPTH:
                self._fail(f"more than {DEPTH} attributes and elements of each other", "TOO_DEEP")
            if self._take().kind == ".":
                node = MemberAccess(node, self._attribute_name(self._take()))
            else:
                node = Subscript(node, self.expression())
                self.expect("]")
        return node

    def _attribute_name(self, token: Token) -> str:
        if token.kind not in {"name", "quoted"}:
            self._fail("the name of an attribute should stand here", at=token)
        return self._checked_name(token)

    def _checked_name(self, token: Token) -> str:
        # Its place is reckoned for a refusal alone: that takes time with the length of the text.
        return name_checked(token.text, self._where(token)) if name_fault(token.text) else token.text

    def _primary(self) -> Node:
        token = self._take()
        match token.kind:
            case "name":
                node = self._named(token)
            case "quoted":
                node = Reference(NameScope.BARE, self._checked_name(token))
            case "string":
                node = Literal(token.text)
            case "integer":
                node = Literal(self._integer(token))
            case "real":
                node = Literal(self._real(token))
            case _:
                node = self._bracketed(token)
        return node

    def _named(self, token: Token) -> Node:
        word = token.text.lower()
        if self._token.kind == "(":
            return self._call(token)
        if word in CONSTANTS:
            return Literal(CONSTANTS[word])
        if word in SCOPES:
            if word == "self" and self._records:
                self._fail("self within a record would be the record", "SCOPE", token)
            if not self._sign("."):
                self._fail(f"{token.text} must be followed by a full stop and a name", "SCOPE", token)
            return Reference(SCOPES[word], self._attribute_name(self._take()))
        return Reference(NameScope.BARE, self._checked_name(token))

    def _call(self, token: Token) -> Node:
        function = FUNCTIONS.get(token.text.lower())
        if function is None:
            self._fail(f"there is no function {shown(token.text, 60)} here", "FUNCTION", token)
        self.expect("(")
        arguments = self._listed(")")
        if not function.least <= len(arguments) <= function.most:
            self._fail(f"{function.name} does not take {len(arguments)} arguments", "FUNCTION", token)
        if function.name in PATTERN_FIRST:
            self._check_pattern(arguments, token)
        if function.name in MEMBERSHIP:
            self._check_string_list(arguments, token)
        return Call(function.name, arguments)

    def _check_pattern(self, arguments: tuple[Node, ...], token: Token) -> None:
        first, options = arguments[0], arguments[2:]
        if not isinstance(first, Literal) or not isinstance(first.value, str):
            self._fail("a regular expression must be a string written down", "PATTERN", token)
        power(first.value, self._where(token))
        for each in options:
            if (
                not isinstance(each, Literal)
                or not isinstance(each.value, str)
                or each.value.lower() not in {"", "i"}
            ):
                self._fail('the only option of regular expressions is "i"', "PATTERN", token)

    def _check_string_list(self, arguments: tuple[Node, ...], token: Token) -> None:
        for each in arguments[2:]:
            if not isinstance(each, Literal) or not delimiters_allowed(each.value):
                self._fail("delimiters must be signs or blanks in a string written down", "DELIMITERS", token)
        # Each is written for the library several times: one in another would grow by powers.
        if any(
            isinstance(node, Call) and node.function in MEMBERSHIP
            for each in arguments
            for node in walk(each)
        ):
            self._fail(f"{token.text} gives no text or list to look in", "FUNCTION", token)

    def _listed(self, end: str) -> tuple[Node, ...]:
        items: list[Node] = []
        if self._sign(end):
            return ()
        while True:
            items.append(self.expression())
            if not self._sign(","):
                self.expect(end)
                return tuple(items)

    def _bracketed(self, token: Token) -> Node:
        if token.kind in _BRACKETS:
            return self._opened(token.kind)
        message = "the text ends too early" if token.kind == "end" else "a value should stand here"
        return self._fail(
            "a name must not begin with a full stop" if token.kind == "." else message, at=token
        )

    def _opened(self, bracket: str) -> Node:
        if bracket == "(":
            node = self.expression()
            self.expect(")")
            return node
        if bracket == "{":
            return ListOf(self._listed("}"))
        self._records += 1
        if self._records > RECORDS:
            self._fail(f"more than {RECORDS} records in each other", "TOO_DEEP")
        record = Record(self.attributes())
        self._records -= 1
        return localised(record)

    def _integer(self, token: Token) -> int:
        if len(token.text) > 1 and token.text[0] == "0":
            self._fail("a number must not begin with 0", at=token)
        if len(token.text) > 19 or int(token.text) > _LARGEST:
            self._fail(f"a number above {_LARGEST:,}", "OVERFLOW", token)
        return int(token.text)

    def _real(self, token: Token) -> float:
        number = float(token.text)
        if number == float("inf"):
            self._fail("a number above all that can be reckoned with", "OVERFLOW", token)
        return number

    def _deepen(self, what: str) -> None:
        self._depth += 1
        if self._depth > _NESTED:
            self._fail(f"more than {DEPTH} {what}", "TOO_DEEP")

    def _sign(self, sign: str) -> bool:
        """Return whether the next token is this sign, and if so consume it."""
        if self._token.kind != sign:
            return False
        self._token = next(self._tokens)
        return True

    def _take(self) -> Token:
        token = self._token
        if token.kind != "end":
            self._token = next(self._tokens)
        return token

    def _where(self, token: Token) -> str:
        return where(self._text, token.at, self._place)

    def _fail(self, message: str, code: str = "SYNTAX", at: Token | None = None) -> NoReturn:
        raise refused(code, message, self._where(at or self._token))


def _is_positive(value: Scalar) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
