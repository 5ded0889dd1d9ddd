"""Which process can reach which block of SQL, read from the code: from its modules along the names that they use.

A name leads to what it was imported from or to what its own module defines; a class leads to all that its body names. Annotations lead
nowhere: whoever only receives a value cannot make one. So what is found is at least what a process uses.
"""

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from wms.db.role_rights import TOOLS

ROOT = Path(__file__).parents[2]
OWNERS_WORK = ("wms.embedded", "wms.demo", "wms.db.migrate", "wms.db.roles")
"""What the owner of the schema does, and no role."""


class Symbol(NamedTuple):
    """What a module defines or imports under a name, at its top level."""

    module: str
    name: str


class Use(NamedTuple):
    """A block of SQL (`noun`, `name`), or a table that is written by COPY (`noun` is empty)."""

    noun: str
    name: str


class Module:
    """A module as it is read: the definitions at its top level, and what its imports bind."""

    def __init__(self, name: str, tree: ast.Module) -> None:
        self.name = name
        self.definitions: dict[str, list[ast.stmt]] = {}
        self.imports: dict[str, Symbol] = {}
        for statement in tree.body:
            for bound in _bound_by(statement):
                self.definitions.setdefault(bound, []).append(statement)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    self.imports[alias.asname or alias.name] = Symbol(node.module, alias.name)


def _bound_by(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    else:
        stored = [
            node.id
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        # What a module does without keeping it, such as to serve, has no name.
        yield from stored or [""]


@cache
def modules() -> dict[str, Module]:
    """Return all modules of the library and the services, by name."""
    found = {}
    for path in [*ROOT.glob("wms/**/*.py"), *ROOT.glob("services/**/*.py")]:
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, ast.parse(path.read_text("utf-8")))
    return found


def reached(packages: Iterable[str], *, beyond: Iterable[str] = ()) -> set[Use]:
    """Return the blocks and tables that all modules below these packages can reach; those below `beyond` are not entered."""
    shut = tuple(beyond)
    todo = [
        Symbol(module.name, name)
        for module in modules().values()
        if _below(module.name, packages) and not _below(module.name, shut)
        for name in module.definitions
    ]
    seen: set[Symbol] = set()
    uses: set[Use] = set()
    while todo:
        symbol = todo.pop()
        if symbol in seen or _below(symbol.module, shut):
            continue
        seen.add(symbol)
        uses.update(_uses(symbol))
        todo += _leads(symbol)
    return uses


def _below(module: str, packages: Iterable[str]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in packages)


def _leads(symbol: Symbol) -> Iterator[Symbol]:
    module = modules().get(symbol.module)
    if module is None:
        return
    if symbol.name not in module.definitions:
        if symbol.name in module.imports:
            yield module.imports[symbol.name]
        return
    for node in _nodes(symbol):
        if isinstance(node, ast.Name):
            yield from _named(module, node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield from _attribute(module, node.value.id, node.attr)


def _named(module: Module, name: str) -> Iterator[Symbol]:
    if name in module.imports:
        yield module.imports[name]
    elif name in module.definitions:
        yield Symbol(module.name, name)


def _attribute(module: Module, name: str, attribute: str) -> Iterator[Symbol]:
    if name in module.imports:
        whole = ".".join(module.imports[name])
        if whole in modules():
            yield Symbol(whole, attribute)


def _uses(symbol: Symbol) -> Iterator[Use]:
    for node in _nodes(symbol):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "SQL":
            noun = symbol.module.rpartition(".")[2]
            yield from (Use(noun, name) for name in _texts(node.slice))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy":
            yield from (Use("", name) for name in (_texts(node.args[0]) if node.args else ()))


def _texts(node: ast.AST) -> list[str]:
    return [
        each.value
        for each in ast.walk(node)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]


def _nodes(symbol: Symbol) -> Iterator[ast.AST]:
    module = modules().get(symbol.module)
    for statement in module.definitions.get(symbol.name, ()) if module else ():
        yield from _without_annotations(statement)


def _without_annotations(node: ast.AST) -> Iterator[ast.AST]:
    yield node
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _without_annotations(child)


def reached_by(role: str) -> set[Use]:
    """Return what the processes of a role of Postgres reach."""
    if role == TOOLS:
        return reached(["wms.cli", "wms.audit", "wms.replay"], beyond=OWNERS_WORK)
    return reached([f"services.{role}"], beyond=OWNERS_WORK)
