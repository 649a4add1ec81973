"""The rules of who imports whom between distributions, and what pure modules stay away from.

* a member imports another member only where its `pyproject.toml` declares the dependency;
* plugins and frontends import the contract (`naiad`), `naiad_config`, `naiad_tensors` and `naiad_kit`, and never
  each other;
* a member of `core` imports those of `core` alone that stand below it;
* only `naiad` imports `naiad._*`, and of `naiad` only its root and its private packages; among tests, benchmarks and
  examples, only the tests of the kernel;
* of the private packages of `naiad`, none imports one that stands above it (`LAYERS`);
* schedulers, and what else is named as pure, know neither clock nor loop nor thread nor chance.
"""

import ast
import re
from collections.abc import Iterable, Mapping

from .imports import imported
from .workspace import Member, Module

FOR_PLUGINS = frozenset({"naiad", "naiad_config", "naiad_kit", "naiad_statistics", "naiad_tensors"})
BELOW: Mapping[str, frozenset[str]] = {
    "naiad_config": frozenset(),
    "naiad_tensors": frozenset({"naiad_config"}),
    "naiad_statistics": frozenset(),
    "naiad": frozenset({"naiad_config", "naiad_statistics", "naiad_tensors"}),
    "naiad_kit": FOR_PLUGINS - {"naiad_kit"},
    "naiad_testing": FOR_PLUGINS,
    "naiad_cli": FOR_PLUGINS | {"naiad_testing"},
    "naiad_tritonserver": frozenset({"naiad_cli"}),
}
"""What each package of `core` may import of the others."""

LAYERS = ("naiad._server", "naiad._lifecycle", "naiad._plugins", "naiad._engine")
"""The private packages of `naiad`, the uppermost first."""

_PRIVATE_NAME = re.compile(r"naiad\._[a-z][\w.]*")
_MAY_IMPORT_PRIVATE = re.compile(r"naiad\._[a-z]|from naiad import")

IMPURE = frozenset({"asyncio", "time", "threading", "random"})


def forbidden_members(members: Iterable[Member], edges: Mapping[str, set[str]]) -> list[str]:
    """The imports of one member by another that the layers do not allow."""
    members = list(members)
    owner = {package: member for member in members for package in member.packages}
    violations = []
    for member in members:
        own = set(member.packages)
        allowed = FOR_PLUGINS if member.group != "core" else frozenset().union(*(BELOW.get(name, ()) for name in own))
        for module in member.modules:
            foreign = {name.split(".")[0]: name for name in edges[module.name]}
            violations += [
                f"{module.name} imports {name}"
                for top, name in sorted(foreign.items())
                if top in owner and top not in own and top not in allowed
            ]
    return violations


def undeclared_members(members: Iterable[Member], edges: Mapping[str, set[str]]) -> list[str]:
    """The imports of one member by another that it does not name among its dependencies or extras."""
    members = list(members)
    owner = {package: member.distribution for member in members for package in member.packages}
    violations = []
    for member in members:
        declared = {member.distribution} | {_distribution(text) for text in _requirements(member)}
        for module in member.modules:
            needed = {owner[top] for top in (name.split(".")[0] for name in edges[module.name]) if top in owner}
            violations += [f"{module.name} needs {name}" for name in sorted(needed - declared)]
    return violations


def back_doors(members: Iterable[Member], edges: Mapping[str, set[str]]) -> list[str]:
    """The imports of `naiad._*` outside `naiad`."""
    modules = [module for member in members if member.distribution != "naiad" for module in member.modules]
    return _private_imports((module.name for module in modules), edges)


def private_contract(members: Iterable[Member], edges: Mapping[str, set[str]]) -> list[str]:
    """The imports of `naiad._*` by the public modules of `naiad`; its root may offer what private packages make."""
    modules = [module for member in members if member.distribution == "naiad" for module in member.modules]
    public = (module.name for module in modules if module.name != "naiad" and not module.name.startswith("naiad._"))
    return _private_imports(public, edges)


def private_in_tests(files: Iterable[Module], known: Iterable[str]) -> list[str]:
    """The imports of `naiad._*` by tests, benchmarks and examples other than the kernel's own tests.

    A string that is the name of something private counts too: tests patch and import by such names. `known` are the
    modules of the workspace. The house itself names what it looks for.
    """
    known = set(known)
    outside = [file for file in files if not file.name.startswith(("core/kernel/tests/", "tests/house/"))]
    violations = []
    for file in (file for file in outside if _MAY_IMPORT_PRIVATE.search(file.text)):  # to parse all takes seconds
        strings = (node.value for node in ast.walk(file.tree) if isinstance(node, ast.Constant))
        names = {name for name in strings if isinstance(name, str) and _PRIVATE_NAME.fullmatch(name)}
        names |= {name for name in imported(file, known) if name.startswith("naiad._")}
        violations += [f"{file.name} imports {name}" for name in sorted(names)]
    return violations


def upward(members: Iterable[Member], edges: Mapping[str, set[str]]) -> list[str]:
    """The imports of a private package of `naiad` by one that stands below it."""
    modules = [module.name for member in members if member.distribution == "naiad" for module in member.modules]
    violations = []
    for height, upper in enumerate(LAYERS):
        for name in modules:
            if _inside(name, LAYERS[height + 1 :]):
                violations += [f"{name} imports {other}" for other in sorted(edges[name]) if _inside(other, [upper])]
    return violations


def impure(names: Iterable[str], members: Iterable[Member], edges: Mapping[str, set[str]]) -> list[str]:
    """The imports of clocks, loops, threads and chance by the modules and packages of these names.

    A name that no module has is reported as well.
    """
    modules = [module.name for member in members for module in member.modules]
    violations = []
    for pure in names:
        concerned = [name for name in modules if _inside(name, [pure])]
        if not concerned:
            violations.append(f"no module is named {pure}")
        for name in concerned:
            violations += [f"{name} imports {other}" for other in sorted(edges[name]) if other.split(".")[0] in IMPURE]
    return violations


def _private_imports(names: Iterable[str], edges: Mapping[str, set[str]]) -> list[str]:
    return [f"{name} imports {other}" for name in names for other in sorted(edges[name]) if other.startswith("naiad._")]


def _inside(name: str, packages: Iterable[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _requirements(member: Member) -> list[str]:
    extras = member.project.get("optional-dependencies", {}).values()
    return [*member.project["dependencies"], *(text for extra in extras for text in extra)]


def _distribution(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0]
