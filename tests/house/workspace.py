"""The members of the workspace and their modules, read from the folders: there is no list of members to maintain."""

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GROUPS = ("core", "plugins", "frontends")
TEMPLATES = "templates"
"""Folders of this name hold text for new projects, not modules."""


@dataclass(frozen=True)
class Module:
    """A Python file of a package; `name` is the name by which it is imported."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        """The source."""
        return self.path.read_text()

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree of the source."""
        return ast.parse(self.text)

    @property
    def lines(self) -> int:
        """How many lines the file has."""
        return len(self.text.splitlines())

    @property
    def is_package(self) -> bool:
        """Whether the file is the `__init__.py` of a package."""
        return self.path.name == "__init__.py"

    @property
    def package(self) -> str:
        """The package that the file lies in: its own name for an `__init__.py`."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Member:
    """A distribution of the workspace: a folder with a `pyproject.toml`."""

    folder: Path

    @property
    def name(self) -> str:
        """The folder, relative to the root (`plugins/custom`)."""
        return f"{self.group}/{self.folder.name}"

    @property
    def group(self) -> str:
        """The folder of folders that it is in: `core`, `plugins` or `frontends`."""
        return self.folder.parent.name

    @cached_property
    def project(self) -> dict[str, Any]:
        """The table `project` of its `pyproject.toml`."""
        project: dict[str, Any] = tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]
        return project

    @property
    def distribution(self) -> str:
        """The name of the distribution (`naiad-custom`)."""
        return str(self.project["name"])

    @property
    def packages(self) -> list[str]:
        """The packages under `src`."""
        return sorted(path.parent.name for path in (self.folder / "src").glob("*/__init__.py"))

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """The Python files under `src`."""
        return tuple(self._modules())

    def _modules(self) -> Iterator[Module]:
        source = self.folder / "src"
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            if TEMPLATES not in parts:
                yield Module(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path)


def members(root: Path = ROOT) -> list[Member]:
    """All members: every folder with a `pyproject.toml` under `core`, `plugins` and `frontends`."""
    return [Member(path.parent) for group in GROUPS for path in sorted((root / group).glob("*/pyproject.toml"))]
