"""GLUE 2.0 in the JSON of ARC's REST interface, which ARC converts from its XML by a fixed rule.

An XML element becomes its text, or an object of its children. A single child is a member; several children of one name are a list.
All values are texts. `_attributes` holds the XML attributes in a damaged form, and is not read. (This is not the JSON of GFD.219.)
"""

import json
import re
from itertools import accumulate

from wms.errors import Rejected
from wms.glue.entity import SIZE_LIMIT, services
from wms.glue.glue2 import Service
from wms.glue.tree import DEPTH_LIMIT, TreeNode, entities

# A text holds no line end, and none is taken to be open at the end of its line: else looking for its end is quadratic.
_STRING = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"?')
_NO_BRACKET = re.compile(r"[^][{}]+")
_STEP = {"[": 1, "{": 1, "]": -1, "}": -1}


def read_arc_json(data: bytes, limit: int = SIZE_LIMIT) -> list[Service]:
    """Return the computing services of a JSON document of at most `limit` bytes. Raise Rejected if it is malformed or larger."""
    return services(entities(tree_of_json(data, limit)))


def tree_of_json(data: bytes, limit: int = SIZE_LIMIT) -> TreeNode:
    """Return the tree of all nodes of a JSON document of at most `limit` bytes. Raise Rejected if it is malformed or larger."""
    if len(data) > limit:
        raise Rejected("GLUE_TOO_LARGE", f"{len(data):,} bytes of JSON, at most {limit:,} are read")
    try:
        text = data.decode("utf-8")
        if _depth(text) > 2 * DEPTH_LIMIT:
            raise Rejected("GLUE_TOO_LARGE", f"objects and lists are nested over {2 * DEPTH_LIMIT} deep")
        tree = json.loads(text)
    except ValueError as error:
        raise Rejected("GLUE_INVALID", f"not JSON: {error}") from None
    return TreeNode("", nodes=_nodes("", tree))


def _depth(text: str) -> int:
    brackets = _NO_BRACKET.sub("", _STRING.sub("", text))
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0)


def _nodes(name: str, value: object) -> list[TreeNode]:
    """Return tree nodes for a JSON value: one named `name` for each item of a list.

    Without a name, return those for the members of an object.
    """
    match value:
        case dict():
            inner = [
                node for key, each in value.items() if key != "_attributes" for node in _nodes(str(key), each)
            ]
            return [TreeNode(name, nodes=inner)] if name else inner
        case list():
            return [node for each in value for node in _nodes(name, each)]
        case str():
            return [TreeNode(name, text=value)]
        case bool() | int() | float():
            return [TreeNode(name, text=json.dumps(value))]
        case _:
            return [TreeNode(name)]
