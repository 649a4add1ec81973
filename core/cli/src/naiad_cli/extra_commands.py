"""Commands of other distributions: entry points of the group `naiad.commands`, each a module with `add_parser`.

The name of an entry point is the name of its command. `add_parser(subparsers)` adds the parser, and sets `run`, a
function from the parsed arguments to the exit status, as its default. The module is imported only for its own command.
"""

import importlib.metadata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from naiad.errors import PluginError
from naiad_cli.parser import Parser, Subparsers
from naiad_config.installing import install_command

GROUP = "naiad.commands"
"""The group of entry points."""


@dataclass(frozen=True, slots=True)
class PublishedCommand:
    """A command of a published distribution: what to `pip install` for it, and one line of help."""

    requirement: str
    help: str


PUBLISHED_COMMANDS: Mapping[str, PublishedCommand] = {
    "ray": PublishedCommand("naiad-ray[serve]", "run servers on a cluster of Ray Serve"),
    "tritonserver": PublishedCommand("naiad-tritonserver", "serve, for command lines that begin with tritonserver"),
}
"""The published commands by name; their modules need not be imported for the help."""


@dataclass(frozen=True, slots=True)
class ExtraCommand:
    """A command that is installed: its distribution and its entry point."""

    distribution: str
    entry_point: importlib.metadata.EntryPoint

    @property
    def help(self) -> str:
        """One line on what the command does, or where it comes from."""
        published = PUBLISHED_COMMANDS.get(self.entry_point.name)
        return published.help if published else f"a command of {self.distribution}"


def extra_commands(taken: Iterable[str]) -> dict[str, ExtraCommand]:
    """The installed commands by name. Raises PluginError for a name that is `taken`, or that two distributions have."""
    owners = dict.fromkeys(taken, "naiad-cli")
    commands: dict[str, ExtraCommand] = {}
    for entry_point in sorted(importlib.metadata.entry_points(group=GROUP), key=lambda each: each.name):
        distribution = entry_point.dist.name if entry_point.dist else "an unknown distribution"
        owner = owners.setdefault(entry_point.name, distribution)
        if owner != distribution:
            raise PluginError(f"{owner} and {distribution} both have the command '{entry_point.name}'; uninstall one")
        commands[entry_point.name] = ExtraCommand(distribution, entry_point)
    return commands


def add_extra_command(name: str, installed: Mapping[str, ExtraCommand], subparsers: "Subparsers[Parser]") -> None:
    """Add the parser of a command. Raises PluginError, with the next step, if it is not installed or broken."""
    command = installed.get(name)
    if command is None:
        advice = install_command(PUBLISHED_COMMANDS[name].requirement)
        raise PluginError(f"the command comes with another distribution: {advice}")
    try:
        add_parser = command.entry_point.load().add_parser
    except Exception as error:
        raise PluginError(f"{command.distribution} is broken: {error}; install it anew, or uninstall it") from error
    add_parser(subparsers)
