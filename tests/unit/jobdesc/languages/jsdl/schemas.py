"""Documents made of the constructs of the JSDL schemas, which are interpreted where they are at hand.

`WMS_SCHEMAS` names their folder; without it, it is looked for beside the project.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from lxml import etree

XSD = "{http://www.w3.org/2001/XMLSchema}"
PARTS = ("jsdl", "jsdl-posix", "jsdl-hpcp", "jsdl-spmd", "jsdl-sweep", "jsdl-sweepfunctions")
DEPTH = 12
Draw = Callable[[Any], Any]

_BESIDE = Path("shared", "data", "schemas")
_TEXT = st.text(
    st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"),
    max_size=8,
)
_PATHS = st.sampled_from(
    ["//*[local-name()='Argument'][1]", "//Executable", "//*[local-name()='Environment']/@name", "/x"]
)
_SIMPLE = {
    "string": st.sampled_from(["prog", "/bin/sh", "http://x/y", " spaced ", ""]) | _TEXT,
    "normalizedString": _TEXT,
    "anyURI": st.sampled_from(["http://x/y", "file:a", "", "http://www.ogf.org/jsdl/2007/02/jsdl-spmd/MPICH2"]),
    "NCName": st.sampled_from(["HOME", "WORKINGDIR", "ROOT", "disk", "a.b-c"]),
    "ID": st.sampled_from(["one", "two"]),
    "double": st.sampled_from(["1", "2.5", "-1", "INF", "NaN", "1e300", " 4 ", "1073741824", "0"]),
    "integer": st.integers(-3, 12).map(str) | st.just("9" * 30),
    "boolean": st.sampled_from(["true", "false", "0", "1", " true "]),
    "nonNegativeInteger": st.sampled_from(["0", "60", "+7", "9" * 5_000, "1073741824"]),
    "positiveInteger": st.sampled_from(["1", "4", "9" * 40]),
}  # fmt: skip


def folder() -> Path | None:
    """Return the folder of the schemas, or None."""
    named = os.environ.get("WMS_SCHEMAS")
    places = [Path(named)] if named else [parent / _BESIDE for parent in Path(__file__).parents[5:]]
    return next((each for each in places if (each / "jsdl.xsd").exists()), None)


class Schemas:
    """The schemas together: what each element may contain, and whether a document is valid."""

    def __init__(self, place: Path) -> None:
        self._elements = dict[str, Any]()
        self._types = dict[str, Any]()
        for part in PARTS:
            root = etree.parse(place / f"{part}.xsd").getroot()
            for node in root:
                if node.tag in (f"{XSD}element", f"{XSD}complexType", f"{XSD}simpleType"):
                    names = self._elements if node.tag == f"{XSD}element" else self._types
                    names[f"{{{root.get('targetNamespace')}}}{node.get('name')}"] = node
        self._schema = _validator(place)

    def is_valid(self, document: bytes) -> bool:
        """Return whether a document is valid by all schemas."""
        return bool(self._schema.validate(etree.fromstring(document)))

    @property
    def constructs(self) -> set[str]:
        """The names of all elements that are declared for all."""
        return set(self._elements)

    def document(self, draw: Draw) -> bytes:
        """Return a document, its constructs chosen by `draw`."""
        root = self._element("{http://schemas.ggf.org/jsdl/2005/11/jsdl}JobDefinition", draw, 0)
        return bytes(etree.tostring(root))

    def _element(self, name: str, draw: Draw, depth: int) -> Any:
        declared = self._elements[name]
        if declared.get("abstract") == "true":
            name = draw(st.sampled_from(sorted(self._substitutes(name))))
            declared = self._elements[name]
        node = etree.Element(name)
        self._fill(node, declared, draw, depth)
        return node

    def _substitutes(self, name: str) -> list[str]:
        return [
            key
            for key, node in self._elements.items()
            if _qualified(node, node.get("substitutionGroup")) == name
        ]

    def _fill(self, node: Any, declared: Any, draw: Draw, depth: int) -> None:
        inner = declared.find(f"{XSD}complexType")
        if inner is not None:
            self._complex(node, inner, draw, depth)
        elif declared.get("type"):
            self._typed(node, _qualified(declared, declared.get("type")), draw, depth)

    def _typed(self, node: Any, kind: str, draw: Draw, depth: int) -> None:
        if kind.startswith(XSD):
            node.text = draw(_SIMPLE[kind.removeprefix(XSD)])
            return
        found = self._types[kind]
        if found.tag == f"{XSD}complexType":
            self._complex(node, found, draw, depth)
            return
        restriction = found.find(f"{XSD}restriction")
        values = [each.get("value") for each in restriction.findall(f"{XSD}enumeration")]
        node.text = draw(st.sampled_from(values) if values else _SIMPLE["string"])

    def _complex(self, node: Any, found: Any, draw: Draw, depth: int) -> None:
        extension = found.find(f"{XSD}simpleContent/{XSD}extension")
        if extension is not None:
            self._typed(node, _qualified(extension, extension.get("base")), draw, depth)
            found = extension
        for each in found.findall(f"{XSD}attribute"):
            if each.get("use") == "required" or draw(st.booleans()):
                qualified = found.getroottree().getroot().get("attributeFormDefault") == "qualified"
                space = f"{{{_space(found)}}}" if qualified else ""
                kind = _qualified(each, each.get("type")).removeprefix(XSD)
                node.set(f"{space}{each.get('name')}", draw(_attribute(kind)))
        for part in found.findall(f"{XSD}sequence/*"):
            for _ in range(self._times(part, draw, depth)):
                node.append(self._part(part, node, draw, depth + 1))

    def _times(self, part: Any, draw: Draw, depth: int) -> int:
        least = int(part.get("minOccurs", "1"))
        most = 3 if part.get("maxOccurs") == "unbounded" else int(part.get("maxOccurs", "1"))
        return least if depth > DEPTH else int(draw(st.integers(least, most)))

    def _part(self, part: Any, parent: Any, draw: Draw, depth: int) -> Any:
        if part.tag == f"{XSD}any":
            return self._any(parent, draw, depth)
        if part.get("ref"):
            node = self._element(_qualified(part, part.get("ref")), draw, depth)
        else:
            node = etree.Element(f"{{{_space(part)}}}{part.get('name')}")
            self._fill(node, part, draw, depth)
        if node.tag.endswith("jsdl-sweep}Parameter"):
            node.text = draw(_PATHS)
        return node

    def _any(self, parent: Any, draw: Draw, depth: int) -> Any:
        known = {
            "Application": ["POSIXApplication", "HPCProfileApplication", "SPMDApplication"],
            "JobDefinition": ["Sweep"],
        }.get(etree.QName(parent).localname, [])
        names = [each for each in self._elements if etree.QName(each).localname in known]
        name = draw(st.sampled_from([*sorted(names), "{urn:other}Thing"]))
        return etree.Element(name) if name.startswith("{urn:other}") else self._element(name, draw, depth)


def _attribute(kind: str) -> Any:
    # Loops of some thousand jobs are as good as longer ones.
    return st.integers(1, 4).map(str) if kind == "positiveInteger" else _SIMPLE[kind]


def _space(node: Any) -> str:
    return str(node.getroottree().getroot().get("targetNamespace"))


def _qualified(node: Any, name: str | None) -> str:
    prefix, _, local = (name or "").rpartition(":")
    space = node.nsmap.get(prefix or None)
    return f"{{{space}}}{local}"


class _Beside(etree.Resolver):  # type: ignore[misc]  # lxml has no types
    """Finds the schemas under the names by which they import each other."""

    def __init__(self, place: Path) -> None:
        self._place = place
        super().__init__()

    def resolve(self, url: str, _: object, context: object) -> Any:
        name = Path(url).name.replace("parametersweep.xsd", "jsdl-sweep.xsd")
        return self.resolve_filename(str(self._place / name), context)


def _validator(place: Path) -> Any:
    parser = etree.XMLParser()
    parser.resolvers.add(_Beside(place))
    spaces = {part: etree.parse(place / f"{part}.xsd").getroot().get("targetNamespace") for part in PARTS}
    imports = "".join(
        f'<xs:import namespace="{space}" schemaLocation="{part}.xsd"/>' for part, space in spaces.items()
    )
    whole = f'<xs:schema xmlns:xs="{XSD[1:-1]}">{imports}</xs:schema>'
    return etree.XMLSchema(etree.fromstring(whole, parser))
