"""Environments that hold some of what the environment of the tests holds, made by links: nothing is downloaded."""

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from .house.workspace import members

INSTALLED = Path(sysconfig.get_path("purelib"))
"""The packages of the environment of the tests."""

UV = Path(sys.executable).with_name("uv")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
UNCHECKED = {"PIP_NO_WARN_CONFLICTS": "false"}
"""Variables for pip: it warns of no conflict at its end. `check` looks for conflicts in less time, and fails."""

COMMAND = """#!{python}
import sys
from {module} import {function}
sys.argv[0] = "{name}"
sys.exit({function}())
"""


BUILD = """
import os, sys
from hatchling.build import build_wheel
target, *folders = sys.argv[1:]
for folder in folders:
    os.chdir(folder)
    build_wheel(target)
"""
"""What pip does to build a wheel, for many in one process."""


@dataclass(frozen=True)
class Wheels:
    """The wheels of all members, and the packages of an environment that they are installed in."""

    folder: Path
    packages: Path

    def __getitem__(self, distribution: str) -> Path:
        (path,) = self.folder.glob(f"{distribution.replace('-', '_')}-[0-9]*.whl")
        return path


def built_wheels(factory: pytest.TempPathFactory) -> Wheels:
    """The wheels of this run of tests."""
    folder = made_once(factory, "wheels", _build_and_install)
    return Wheels(folder, packages_in(folder / "venv"))


def _build_and_install(folder: Path) -> None:
    """Build all wheels into the folder, and install them in an environment in it."""
    subprocess.run([sys.executable, "-c", BUILD, folder, *(each.folder for each in members())], check=True)
    python = empty(folder / "venv")
    command = [UV, "pip", "install", "--quiet", "--python", python, "--no-index", "--no-deps", "--compile-bytecode"]
    subprocess.run([*command, *folder.glob("*.whl")], check=True)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder of this name, which `make` has filled: once in a run of tests, for all of its processes."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            folder.mkdir()
            try:
                make(folder)
            except BaseException:
                shutil.rmtree(folder)
                raise
    return folder


@cache
def requires(distribution: str) -> tuple[str, ...]:
    """What an installed distribution asks for, with its extras."""
    return tuple(metadata.requires(distribution) or ())


@cache
def parsed(text: str) -> Requirement:
    """A requirement that is written like this."""
    return Requirement(text)


def needed(requirements: Iterable[str], extras: Iterable[str] = ()) -> set[str]:
    """The names of what these ask for, and what those ask for: of the workspace only what its extras ask for."""
    distributions: set[str] = set()
    for text in requirements:
        requirement = parsed(text)
        environments = [{"extra": extra} for extra in ("", *extras)]
        if requirement.marker is None or any(requirement.marker.evaluate(each) for each in environments):
            distributions |= needed_with(requirement.name, frozenset(requirement.extras))
    return distributions


@cache
def needed_with(name: str, extras: frozenset[str]) -> frozenset[str]:
    """The names of a distribution, unless it is of the workspace, and of what it asks for with these extras."""
    if not name.startswith("naiad"):
        return frozenset({name} | needed(requires(name), extras))
    of_extras = [each for each in requires(name) if parsed(each).marker is not None]
    return frozenset(needed(of_extras, extras) if extras else ())


def members_of(names: Iterable[str]) -> list[str]:
    """These distributions of the workspace and those that they need."""
    distributions: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in distributions:
            distributions[name] = None
            requirements = [parsed(text) for text in requires(name)]
            waiting += [each.name for each in requirements if each.name.startswith("naiad") and not each.marker]
    return list(distributions)


def link(distribution: str, target: Path, source: Path = INSTALLED) -> None:
    """Make a distribution that is installed in a folder of packages visible in another one."""
    for top in top_names(distribution, source):
        if (target / top).exists():
            continue
        if top.endswith(".dist-info"):  # uv does not see one that is a link
            (target / top).mkdir()
            for path in (source / top).iterdir():
                (target / top / path.name).symlink_to(path)
        else:
            (target / top).symlink_to(source / top)
            link_bytecode(top, target, source)


def link_bytecode(top: str, target: Path, source: Path) -> None:
    """Make the bytecode of a module without a folder visible too: each process would compile it otherwise."""
    if top.endswith(".py"):
        (target / "__pycache__").mkdir(exist_ok=True)
        for compiled in source.glob(f"__pycache__/{top.removesuffix('.py')}.*.pyc"):
            (target / "__pycache__" / compiled.name).symlink_to(compiled)


@cache
def top_names(distribution: str, source: Path) -> frozenset[str]:
    """The files and folders of a distribution that lie directly in the folder of packages."""
    (installed,) = metadata.distributions(name=distribution, path=[str(source)])
    # `Distribution.files` makes a path of each of ten thousand lines
    recorded = (installed.read_text("RECORD") or "").splitlines()
    return frozenset(line.lstrip('"').partition(",")[0].partition("/")[0] for line in recorded) - {"..", "__pycache__"}


def empty(folder: Path) -> Path:
    """The Python of a new environment without any package."""
    venv.create(folder, symlinks=True)
    return folder / "bin" / "python"


def packages_in(folder: Path) -> Path:
    """The folder of packages of an environment."""
    (packages,) = folder.glob("lib/python*/site-packages")
    return packages


def check(python: Path) -> None:
    """Check that an environment has what its distributions ask for, in versions that they take."""
    subprocess.run([UV, "pip", "check", "--quiet", "--python", python], check=True)


def with_members(folder: Path, members: Iterable[str], others: Iterable[str] = (), source: Path = INSTALLED) -> Path:
    """The command `naiad` of a new environment with these members and what they need, without the extras of any.

    `others` are requirements besides, whose commands are there too; `source` is the folder of packages that the members
    come from, such as that of `Wheels`.
    """
    python, packages = empty(folder), packages_in(folder)
    for member in members_of(["naiad-cli", *members]):
        link(member, packages, source)
        write_commands(python, member, source)
        for distribution in needed(requires(member)):
            link(distribution, packages)
    for distribution in needed(others):
        link(distribution, packages)
        write_commands(python, distribution)
    return python.with_name("naiad")


def hint_of_checkout(distribution: str, extra: str = "") -> str:
    """What a Naiad of this checkout, without that member, says to install."""
    member = f"*/{distribution.removeprefix('naiad-')}/pyproject.toml"
    (project,) = Path(__file__).parents[1].glob(member)
    return f"It comes with {distribution}: pip install -e '{project.parent}{extra}'."


def write_commands(python: Path, distribution: str, source: Path = INSTALLED) -> None:
    """Write the commands of a distribution beside the interpreter that runs them."""
    (installed,) = metadata.distributions(name=distribution, path=[str(source)])
    for command in installed.entry_points.select(group="console_scripts"):
        path = python.with_name(command.name)
        text = COMMAND.format(python=python, module=command.module, function=command.attr, name=command.name)
        path.write_text(text)
        path.chmod(0o755)
