"""Paths to nodes of an XML document: the part of XPath that sweeps use. The number of nodes visited is bounded.

Examples are `/a:b/c[2]`, `//a:b[@name='x']/@name`, `*[local-name()='b']`, each with or without `text()` at the end. Names without a
prefix match in any namespace. `substring(path, from, length)` is a part of the text of the nodes, counted from 1.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from lxml import etree

from wms.jobdesc.languages.hardened_xml import XmlNode

LENGTH_LIMIT = 1_000
STEPS_LIMIT = 20
NODES_LIMIT = 30_000
"""How many nodes all paths of one document together may visit."""

_STEP = re.compile(
    r"(?P<slashes>/{0,2})(?:(?P<text>text\(\))|(?P<attribute>@)?(?:(?P<prefix>[^\s/@\[\]:*'\"()]+):)?(?P<name>\*|[^\s/@\[\]:*'\"()]+))"
    r"(?P<predicates>(?:\[[^\[\]]{1,200}\]){0,5})"
)
_NUMBER = re.compile(r"\s*([0-9]{1,6})\s*")
_PREDICATE = re.compile(r"\[([^\[\]]+)\]")
_POSITION = re.compile(r"\s*(?:position\(\)\s*=\s*)?([0-9]{1,9})\s*")
_EQUALITY = re.compile(r"""\s*(@(?:[^\s:]+:)?[^\s=]+|local-name\(\))\s*=\s*(?:'([^']*)'|"([^"]*)")\s*""")


class PathTarget(NamedTuple):
    """A node that a path leads to: an element's text, or one of its attributes, or a part of them."""

    element: XmlNode
    attribute: str = ""
    before: str = ""
    """The text in front of the part that the path selects."""
    after: str = ""
    """The text behind this part."""

    @property
    def node(self) -> tuple[XmlNode, str]:
        """The node itself, whatever part of it the path selects."""
        return self.element, self.attribute

    def assign(self, value: str) -> None:
        """Set the attribute, or the text of the element, or the part of it, to `value`. Child elements of the element are removed."""
        value = f"{self.before}{value}{self.after}"
        if self.attribute:
            self.element.set(self.attribute, value)
        else:
            for child in list(self.element):
                self.element.remove(child)
            self.element.text = value

    def value(self) -> str:
        """Return the present value of the attribute, or the text of the element, or the part of it; empty if there is none."""
        whole = str((self.element.get(self.attribute) if self.attribute else self.element.text) or "")
        return whole[len(self.before) : len(whole) - len(self.after)]

    def part(self, start: int, length: int | None) -> "PathTarget":
        """Return the part of the node's text from a place, counted from 1, with a length; None: up to the end."""
        whole = self.value()
        end = len(whole) if length is None else start - 1 + length
        return self._replace(before=whole[: start - 1], after=whole[end:])


class PathBudget:
    """How many nodes the paths of a document may still visit."""

    def __init__(self, nodes: int = NODES_LIMIT) -> None:
        self._left = nodes

    def spend(self) -> None:
        """Count one visited node. Raise ValueError if that exceeds the budget."""
        self._left -= 1
        if self._left < 0:
            raise ValueError("the paths of this document look at too many nodes")


def find(
    root: XmlNode, path: str, prefixes: Mapping[str | None, str], budget: PathBudget
) -> list[PathTarget]:
    """Return the nodes of the document below `root` that a path selects, in no particular order.

    `prefixes` maps namespace prefixes to namespaces. `budget` counts the visited nodes. Raise ValueError if the path uses other XPath
    than this module supports, or the budget is exceeded.
    """
    path = path.strip()
    if path.startswith("substring(") and path.endswith(")") and len(path) <= LENGTH_LIMIT:
        path, start, length = _substring(path)
        return [each.part(start, length) for each in find(root, path, prefixes, budget)]
    steps = _steps(path)
    if not steps[0]["slashes"]:
        found = _walk([_Document(root)], steps, prefixes, budget)
        return found or _walk([root], steps, prefixes, budget)
    return _walk([_Document(root)], steps, prefixes, budget)


class _Document(list[XmlNode]):
    """The node above the root element of a document."""

    def __init__(self, root: XmlNode) -> None:
        super().__init__([root])
        self.root = root


def _steps(path: str) -> list[re.Match[str]]:
    if not path or len(path) > LENGTH_LIMIT:
        raise ValueError("is no path, or too long a one")
    steps, at = list[re.Match[str]](), 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or (at and not found["slashes"]) or len(steps) == STEPS_LIMIT:
            raise ValueError("is no path of the kind that is read here")
        steps.append(found)
        at = found.end()
    return steps


def _substring(path: str) -> tuple[str, int, int | None]:
    """Return the path within `substring(path, from, length)`, the place and the length. Raise ValueError if there is no such place."""
    inner, numbers = path.removeprefix("substring(").removesuffix(")"), list[int]()
    while len(numbers) < 2 and (found := _NUMBER.fullmatch(inner.rpartition(",")[2])):
        inner = inner.rpartition(",")[0]
        numbers.insert(0, int(found[1]))
    if not numbers or not numbers[0] or inner.startswith("substring("):
        raise ValueError("selects no part of a text that is known here")
    return inner, numbers[0], numbers[1] if len(numbers) == 2 else None


def _walk(
    contexts: list[XmlNode],
    steps: list[re.Match[str]],
    prefixes: Mapping[str | None, str],
    budget: PathBudget,
) -> list[PathTarget]:
    for place, step in enumerate(steps):
        if step["slashes"] == "//":
            contexts = list(_below(contexts, budget))
        if step["text"] or step["attribute"]:
            if place + 1 < len(steps):
                raise ValueError("goes on after an attribute or a text")
            return _leaves(contexts, step, prefixes)
        matches = _test(step, prefixes)
        contexts = [each for context in contexts for each in _chosen(context, matches, step, budget)]
    return [PathTarget(each) for each in contexts]


def _below(contexts: list[XmlNode], budget: PathBudget) -> Iterator[XmlNode]:
    seen = set[XmlNode]()
    for context in contexts:
        if isinstance(context, _Document):
            yield context
        for each in (context.root if isinstance(context, _Document) else context).iter():
            budget.spend()
            if each not in seen:
                seen.add(each)
                yield each


def _test(step: re.Match[str], prefixes: Mapping[str | None, str]) -> Callable[[XmlNode], bool]:
    name, prefix = step["name"], step["prefix"]
    if prefix is not None and prefix not in prefixes:
        raise ValueError(f"uses the prefix {prefix}, which is not declared")
    space = None if prefix is None else prefixes[prefix]
    if name != "*" and space is not None:
        tag = f"{{{space}}}{name}"
        return lambda node: node.tag == tag

    def matches(node: XmlNode) -> bool:
        found = etree.QName(node)
        return name in ("*", found.localname) and space in (None, found.namespace)

    return matches


def _chosen(
    context: XmlNode, matches: Callable[[XmlNode], bool], step: re.Match[str], budget: PathBudget
) -> list[XmlNode]:
    found = list[XmlNode]()
    for each in context:
        budget.spend()
        if matches(each):
            found.append(each)
    for predicate in _PREDICATE.findall(step["predicates"]):
        found = _filtered(found, predicate)
    return found


def _filtered(found: list[XmlNode], predicate: str) -> list[XmlNode]:
    if position := _POSITION.fullmatch(predicate):
        at = int(position[1])
        return found[at - 1 : at] if at else []
    if predicate.strip() == "last()":
        return found[-1:]
    equal = _EQUALITY.fullmatch(predicate)
    if equal is None:
        raise ValueError("has a predicate of a kind that is not read here")
    value = equal[2] if equal[2] is not None else equal[3]
    if equal[1].startswith("@"):
        name = equal[1][1:].rpartition(":")[2]
        return [each for each in found if value in _attributes(each, name)]
    return [each for each in found if etree.QName(each).localname == value]


def _attributes(node: XmlNode, name: str) -> list[str]:
    return [str(value) for key, value in node.attrib.items() if etree.QName(key).localname == name]


def _leaves(
    contexts: list[XmlNode], step: re.Match[str], prefixes: Mapping[str | None, str]
) -> list[PathTarget]:
    elements = [each for each in contexts if not isinstance(each, _Document)]
    if step["text"]:
        return [PathTarget(each) for each in elements]
    if step["prefix"] is not None and step["prefix"] not in prefixes:
        raise ValueError(f"uses the prefix {step['prefix']}, which is not declared")
    return [
        PathTarget(each, key)
        for each in elements
        for key in each.attrib
        if etree.QName(key).localname == step["name"]
    ]
