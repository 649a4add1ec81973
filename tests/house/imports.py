"""Import statements of modules, wherever they stand: in functions and under TYPE_CHECKING as well."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from .workspace import Module


def imported(module: Module, known: Iterable[str]) -> set[str]:
    """The modules that a module imports, in full; a name imported from a package is a module where it is `known`."""
    known = set(known)
    importable = set()
    for package, name in _statements(module):
        inner = f"{package}.{name}" if name else package
        importable.add(inner if inner in known else package)
    return importable - {module.name}


def graph(modules: Iterable[Module]) -> dict[str, set[str]]:
    """What each of the modules imports, of these modules and of others."""
    modules = list(modules)
    known = {module.name for module in modules}
    return {module.name: imported(module, known) for module in modules}


def between_packages(modules: Iterable[Module], edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """The edges of modules as edges of their packages.

    The files of a distribution's top package, its `__init__.py` among them, stay nodes of their own: some stand below
    its other packages, and some above.
    """
    nodes = {module.name: module.package if "." in module.package else module.name for module in modules}
    packages: dict[str, set[str]] = defaultdict(set)
    for name, node in nodes.items():
        packages[node] |= {nodes[other] for other in edges[name] if other in nodes} - {node}
    return dict(packages)


def _statements(module: Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = _absolute(module, node)
            yield from ((package, alias.name) for alias in node.names)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    return ".".join([*parts[: len(parts) - node.level + 1], *([node.module] if node.module else [])])
