"""The rules of what stays private: members of other distributions, and what an object works with.

* a test of one member names nothing private of another: no import, no attribute, no name to patch;
* a callback of an object is given to its constructor: no other code sets it afterwards. Plain values of records that
  change, such as the state of a stream, may be set by the code that owns them.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import zip_longest

from .words import definitions
from .workspace import GROUPS, Member, Module

SET_BY_CONTRACT = frozenset({"on_cancelled", "on_device"})
"""Attributes of `naiad.types.Request` that are there to be set: how a model that waits is woken, and where it takes
outputs (a plain value, in spite of its name)."""

_PRIVATE = re.compile(r"_[a-zA-Z]\w*")
_DOTTED = re.compile(r"\w+(\.\w+)+")


def of_others_in_tests(members: Iterable[Member], files: Iterable[Module]) -> list[str]:
    """What tests name of other members that is private there: imports, attributes, and strings such as `naiad_x._y`.

    An attribute counts if a member defines its name, but neither the test's own member nor any test beside it.
    """
    members, files = list(members), list(files)
    owner = {package: member.name for member in members for package in member.packages}
    of_members = {member.name: set[str]().union(*map(_definitions, member.modules)) for member in members}
    beside: dict[str, set[str]] = defaultdict(set)
    for file in files:
        beside[_member_of(file)] |= _definitions(file)
    violations = []
    for file in files:
        own = _member_of(file)
        foreign = set[str]().union(*of_members.values()) - of_members.get(own, set()) - beside[own]
        violations += [f"{file.name}:{line} {text}" for line, text in _names_of_others(file, own, owner, foreign)]
    return violations


def callbacks_from_outside(modules: Iterable[Module]) -> list[str]:
    """The assignments of functions to attributes of other objects than `self`."""
    return [f"{module.name}:{line} {text}" for module in modules for line, text in _callbacks_set(module.tree)]


def _member_of(file: Module) -> str:
    parts = file.name.split("/")
    return "/".join(parts[:2]) if parts[0] in GROUPS else parts[0]


def _names_of_others(file: Module, own: str, owner: Mapping[str, str], foreign: Set[str]) -> Iterator[tuple[int, str]]:
    """`foreign` are the private names that other members define."""
    libraries: set[str] = set()
    for node in ast.walk(file.tree):
        match node:
            case ast.Import(names=names):
                libraries |= {alias.asname or alias.name.partition(".")[0] for alias in names}
            case ast.ImportFrom(module=str(module), names=names, level=0) if _is_foreign(module, own, owner):
                path = [part for alias in names for part in (*module.split("."), alias.name)]
                if any(map(_PRIVATE.fullmatch, path)):
                    yield node.lineno, ast.unparse(node)
            case ast.Constant(value=str(text)) if _DOTTED.fullmatch(text) and _is_foreign(text, own, owner):
                if any(map(_PRIVATE.fullmatch, text.split("."))):
                    yield node.lineno, text
            case ast.Attribute(attr=name) if name in foreign and _root(node) not in libraries:
                yield node.lineno, ast.unparse(node)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Call):
        node = node.value if isinstance(node, ast.Attribute) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _is_foreign(module: str, own: str, owner: Mapping[str, str]) -> bool:
    return owner.get(module.partition(".")[0], own) != own


def _definitions(module: Module) -> set[str]:
    """The private names that a file defines."""
    return {name for name, _ in definitions(module.tree) if _PRIVATE.fullmatch(name)}


def _callbacks_set(tree: ast.AST, methods: frozenset[str] = frozenset()) -> Iterator[tuple[int, str]]:
    """`methods` are those of the class that the tree stands in."""
    for node in ast.iter_child_nodes(tree):
        inside = methods
        if isinstance(node, ast.ClassDef):
            functions = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            inside = frozenset(each.name for each in functions if not each.decorator_list)
        elif isinstance(node, ast.Assign):
            for target, value in (pair for each in node.targets for pair in _pairs(each, node.value)):
                is_foreign = isinstance(target, ast.Attribute) and ast.unparse(target.value) not in ("self", "cls")
                if is_foreign and _is_callback(target.attr, value, methods):
                    yield node.lineno, ast.unparse(target)
        yield from _callbacks_set(node, inside)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment sets, and to what."""
    if isinstance(target, ast.Tuple):
        values = value.elts if isinstance(value, ast.Tuple) else []
        yield from zip_longest(target.elts, values[: len(target.elts)], fillvalue=value)
    else:
        yield target, value


def _is_callback(name: str, value: ast.expr, methods: frozenset[str]) -> bool:
    is_method = isinstance(value, ast.Attribute) and ast.unparse(value.value) == "self" and value.attr in methods
    return name not in SET_BY_CONTRACT and (name.startswith("on_") or is_method or isinstance(value, ast.Lambda))
