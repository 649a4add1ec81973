"""`naiad check`: reports every problem of every model in a repository, short of loading the models."""

import argparse
import functools
from collections.abc import Mapping, Sequence

from naiad import PluginRegistry
from naiad.options import Settings
from naiad_cli.model_files import MODEL_NAME, ModelFiles
from naiad_cli.option_sources import OPTIONS_FILE
from naiad_cli.options import add_options, in_order, refuse_unknown
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.serve_options import every_option, read_arguments
from naiad_cli.tables import add_json_option, coloured, print_json, print_warnings

_SHOWN = (
    MODEL_NAME.name,
    OPTIONS_FILE.name,
    "backend-config",
    "backend-directory",
    "disable-auto-complete-config",
    "model-config-name",
)
"""The options that the help lists: they change how a configuration is read."""


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `check`, which takes the command line of `naiad serve`."""
    registry = PluginRegistry.discover()
    every = every_option(registry)
    parser = subparsers.add_parser(
        "check",
        usage="naiad check [OPTION]... DIR|FILE...",
        description="Every problem of every model in the repositories DIR, and of the model files FILE. Models are "
        "read and completed as by naiad serve, but not loaded: model.py files are imported. All options of naiad serve "
        "are taken. The exit status is 1 if there is any problem.",
        rewrite=lambda words: in_order(words, every),
        refuse=lambda words: refuse_unknown(
            words, every, functools.partial(registry.what_to_install, "option"), "check"
        ),
    )
    parser.add_argument("repositories", nargs="*", metavar="DIR|FILE", help="a model repository, or a model file")
    add_json_option(parser)
    add_options(parser, [option for option in every if option.name in _SHOWN], "how configurations are read")
    add_options(parser, [option for option in every if option.name not in _SHOWN], None)
    parser.set_defaults(run=lambda arguments: run(arguments, registry))


def run(arguments: argparse.Namespace, registry: PluginRegistry) -> int:
    """Print one line a model, and one for each of its problems."""
    from naiad import ModelInspector  # only now: --help is answered at once

    print_warnings(registry.warnings())
    registry.check()
    read = read_arguments(arguments, registry)
    print_warnings(read.warnings)
    settings = Settings(registry.options(), read.values)
    with ModelFiles(read.words, registry, read.own.get(MODEL_NAME.name, "")) as files:
        print_warnings(files.warnings())
        models = {
            name: [files.in_words_of_user(problem) for problem in problems]
            for name, problems in ModelInspector(registry, settings).problems(files.repositories).items()
        }
    if arguments.json:
        print_json([{"name": name, "problems": problems} for name, problems in models.items()])
    else:
        _print_problems(models)
    return 1 if any(models.values()) else 0


def _print_problems(models: Mapping[str, Sequence[str]]) -> None:
    for name, problems in models.items():
        print(f"{name}: {coloured(_count(len(problems), 'problem'), 'red') if problems else coloured('ok', 'green')}")
        for problem in problems:
            print("  " + problem.replace("\n", "\n  "))
    broken = sum(bool(problems) for problems in models.values())
    print(f"{_count(len(models), 'model')}, {broken} with problems")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
