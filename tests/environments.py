"""Environments that hold some of what the environment of the tests holds, made by links: nothing is downloaded."""

import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
COMMAND = """#!{python}
import sys
from {module} import {function}
sys.argv[0] = "{name}"
sys.exit({function}())
"""


def needed(requirements: Iterable[str], extras: Iterable[str] = ()) -> set[str]:
    """The names of what these ask for, and what those ask for: of the workspace only what its extras ask for."""
    distributions: set[str] = set()
    for text in requirements:
        requirement = Requirement(text)
        environments = [{"extra": extra} for extra in ("", *extras)]
        applies = requirement.marker is None or any(requirement.marker.evaluate(each) for each in environments)
        name = requirement.name
        if applies and not name.startswith("naiad"):
            distributions |= {name} | needed(metadata.requires(name) or (), requirement.extras)
        elif applies and requirement.extras:
            of_extras = [each for each in metadata.requires(name) or () if Requirement(each).marker is not None]
            distributions |= needed(of_extras, requirement.extras)
    return distributions


def members_of(names: Iterable[str]) -> list[str]:
    """These distributions of the workspace and those that they need."""
    distributions: dict[str, None] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in distributions:
            distributions[name] = None
            requirements = [Requirement(text) for text in metadata.requires(name) or ()]
            waiting += [each.name for each in requirements if each.name.startswith("naiad") and not each.marker]
    return list(distributions)


def link(distribution: str, target: Path) -> None:
    """Make an installed distribution visible in another folder of packages."""
    for file in metadata.files(distribution) or ():
        top = file.parts[0]
        if top not in ("..", "__pycache__") and not (target / top).exists():
            (target / top).symlink_to(Path(sysconfig.get_path("purelib")) / top)


def empty(folder: Path) -> Path:
    """The Python of a new environment without any package."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return folder / "bin" / "python"


def with_members(folder: Path, members: Iterable[str], others: Iterable[str] = ()) -> Path:
    """The command `naiad` of a new environment with these members and what they need, without the extras of any.

    `others` are requirements besides, whose commands are there too.
    """
    members = members_of(["naiad-cli", *members])
    python = empty(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    for member in members:
        for distribution in (member, *needed(metadata.requires(member) or ())):
            link(distribution, packages)
    for distribution in needed(others):
        link(distribution, packages)
        _write_commands(python, distribution)
    _write_commands(python, "naiad-cli")
    return python.with_name("naiad")


def _write_commands(python: Path, distribution: str) -> None:
    """Write the commands of a distribution beside the interpreter that runs them."""
    for command in metadata.distribution(distribution).entry_points.select(group="console_scripts"):
        path = python.with_name(command.name)
        text = COMMAND.format(python=python, module=command.module, function=command.attr, name=command.name)
        path.write_text(text)
        path.chmod(0o755)
