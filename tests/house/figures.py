"""What the house measures of itself: each figure with what it counts, its target and the limit that holds today."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import boundaries, privates, wording, words
from .circles import circles
from .imports import between_packages, graph
from .workspace import ROOT, Member, Module, members

SMALL = 20
SHORT = ("__init__", "__main__", "_version")
"""Files of these names may be of any length."""
LARGE = 350


@dataclass(frozen=True)
class Figure:
    """A count. `items` are what was counted, where they can be named one by one."""

    name: str
    value: int
    items: tuple[str, ...] = ()


@dataclass(frozen=True)
class Budget:
    """The most that a figure may be: one day (`target`) and today (`limit`)."""

    target: int
    limit: int


def settings(root: Path = ROOT) -> dict[str, Any]:
    """The table `tool.house` of the root's `pyproject.toml`."""
    table: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["house"]
    return table


def budgets(table: Mapping[str, Any]) -> dict[str, Budget]:
    """The budgets by the names of their figures."""
    return {name: Budget(**each) for name, each in table["budgets"].items()}


def measure(pure: Iterable[str], root: Path = ROOT) -> Iterator[Figure]:
    """All figures of a workspace; `pure` names the modules that know neither clock nor loop nor thread nor chance."""
    workspace = members(root)
    modules = [module for member in workspace for module in member.modules]
    edges = graph(modules)
    yield from _lines(workspace)
    yield from _circles(modules, edges)
    yield _listed("imports of members that the layers forbid", boundaries.forbidden_members(workspace, edges))
    yield _listed("imports of undeclared members", boundaries.undeclared_members(workspace, edges))
    yield _listed("imports by pure modules of clock, loop, thread or chance", boundaries.impure(pure, workspace, edges))
    yield _listed("back doors: imports of naiad._* outside naiad", boundaries.back_doors(workspace, edges))
    yield _listed("imports of naiad._* by the contract", boundaries.private_contract(workspace, edges))
    beside = list(words.beside_the_packages(root))
    known = [module.name for module in modules]
    yield _listed("imports of naiad._* by tests of others", boundaries.private_in_tests(beside, known))
    yield _listed("private names of others in tests", privates.of_others_in_tests(workspace, beside))
    yield _listed("messages asserted in several test files", wording.repeated(modules, beside))
    yield _listed("callbacks that are set from outside", privates.callbacks_from_outside(modules))
    yield _listed("imports of an upper layer of naiad by a lower one", boundaries.upward(workspace, edges))
    yield _listed(
        f"files under {SMALL} lines",
        [f"{each.name} {each.lines}" for each in modules if each.lines < SMALL and each.path.stem not in SHORT],
    )
    yield _listed(f"files over {LARGE} lines", [f"{each.name} {each.lines}" for each in modules if each.lines > LARGE])
    counted = words.in_texts(words.texts(root), root) | words.as_names([*modules, *beside])
    yield from (_listed(f"word: {word}", items) for word, items in counted.items())


def _lines(workspace: list[Member]) -> Iterator[Figure]:
    (kernel,) = (member for member in workspace if member.distribution == "naiad")
    contract = [module for module in kernel.modules if not module.name.startswith("naiad._")]
    yield _lines_of("naiad (contract)", contract)
    for layer in boundaries.LAYERS:
        yield _lines_of(layer, [module for module in kernel.modules if f"{module.name}.".startswith(f"{layer}.")])
    for member in workspace:
        yield _lines_of(member.distribution if member is not kernel else "naiad in all", member.modules)


def _lines_of(name: str, modules: Iterable[Module]) -> Figure:
    sizes = sorted(((module.lines, module.name) for module in modules), reverse=True)
    return Figure(f"lines: {name}", sum(size for size, _ in sizes), tuple(f"{name} {size}" for size, name in sizes))


def _circles(modules: list[Module], edges: Mapping[str, set[str]]) -> Iterator[Figure]:
    for kind, listed in (("files", circles(edges)), ("packages", circles(between_packages(modules, edges)))):
        items = tuple(" ".join(circle) for circle in listed)
        yield Figure(f"{kind} in import circles", sum(len(circle) for circle in listed), items)


def _listed(name: str, items: Iterable[str]) -> Figure:
    items = tuple(items)
    return Figure(name, len(items), items)
