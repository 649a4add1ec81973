"""The options of `naiad serve`: its own, those of the kernel and of plugins, and those of Triton without effect."""

import argparse
import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from naiad import PluginRegistry
from naiad.errors import UsageError
from naiad.options import Option, boolean
from naiad_cli.model_files import MODEL_NAME
from naiad_cli.option_sources import OPTIONS_FILE, sourced_values, unknown_variables
from naiad_cli.options import chosen_values
from naiad_cli.triton_options import take_triton_options, triton_options

OWN_OPTIONS = (
    Option(
        "reload",
        False,
        "load models anew when their files change",
        boolean,
    ),
    Option("access-log", "off", "log a line for each request", choices=("off", "text", "json")),
    MODEL_NAME,
    OPTIONS_FILE,
    Option("api-keys", "", "the keys that authorize callers, hashed, in TOML", metavar="FILE"),
)
"""Options of this command that are not the server's."""


def every_option(registry: PluginRegistry) -> tuple[Option, ...]:
    """All options that the command takes, and that an options file may have."""
    options = registry.options()
    return (*OWN_OPTIONS, *options, *triton_options({option.name for option in options}))


@dataclass(frozen=True, slots=True)
class ServeArguments:
    """What a command line of `serve` or `check` chooses, with variables and the options file.

    `values` are those of the server's options, `own` those of `OWN_OPTIONS`; the values of Triton's other options are
    only in `warnings`. `words` are the repositories and model files.
    """

    values: dict[str, Any]
    own: Mapping[str, Any]
    words: Sequence[str]
    warnings: list[str]


def read_arguments(arguments: argparse.Namespace, registry: PluginRegistry) -> ServeArguments:
    """What the arguments of `serve` or `check` choose. Raises UsageError for a bad value, and without a repository."""
    of_triton = triton_options({option.name for option in registry.options()})
    every = every_option(registry)
    chosen = chosen_values(every, arguments)
    values = sourced_values(every, every, chosen, os.environ)
    if arguments.repositories and "model-repository" not in chosen:
        values.pop("model-repository", None)
    own = {option.name: values.pop(option.name) for option in OWN_OPTIONS if option.name in values}
    what_to_install = functools.partial(registry.what_to_install, "option")
    warnings = [*unknown_variables(every, os.environ, what_to_install), *take_triton_options(values, of_triton)]
    words = (*values.get("model-repository", ()), *arguments.repositories)
    if not words:
        command = f"naiad {arguments.command}"
        raise UsageError(f"no model repository is given; write {command} DIR, or {command} model.py")
    return ServeArguments(values, own, words, warnings)
