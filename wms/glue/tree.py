"""Trees of named nodes, the common form of XML and ARC's JSON, and the GLUE 2.0 entities in them.

Documents have one of two shapes. The schema's is flat: its entities name each other in `Associations`. ARC's is nested, with shares
inside their service. Attributes of nodes (`CreationTime`, `Validity`) are not read, since our ads have a lifetime of their own.
"""

from msgspec import Struct, field

from wms.glue.entity import KINDS, Entity

DEPTH_LIMIT = 64
"""The greatest nesting depth of a document that is read; ARC's are 14 deep."""


class TreeNode(Struct):
    """A named node of a document, with its text and the nodes within it."""

    name: str
    text: str = ""
    nodes: list["TreeNode"] = field(default_factory=list)


def entities(root: TreeNode) -> list[Entity]:
    """Return the GLUE 2.0 entities of known kinds (`KINDS`) at any depth of a tree."""
    found: list[Entity] = []
    _walk(root, None, found)
    return found


def _walk(node: TreeNode, within: Entity | None, found: list[Entity]) -> None:
    for each in node.nodes:
        if each.name in KINDS:
            found.append(entity := Entity(each.name))
            _fill(entity, each)
            if within is not None:
                entity.link(within.kind, within.id)
            _walk(each, entity, found)
        elif each.nodes and each.name != "Associations":
            # A group (`Services`, `ExecutionEnvironments`), or an entity of another kind: what is in it may be of ours.
            _walk(each, within, found)


def _fill(entity: Entity, node: TreeNode) -> None:
    for each in node.nodes:
        if each.name == "Associations":
            for link in each.nodes:
                entity.link(link.name.removesuffix("ID"), link.text.strip())
        elif not each.nodes:
            entity.say(each.name, each.text)
