"""`naiad check`: reports every problem of every model in a repository, without loading a model."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from naiad import PluginRegistry
from naiad.options import Option, Settings
from naiad_cli.model_files import MODEL_NAME, ModelFiles
from naiad_cli.option_sources import OPTIONS_FILE, sourced_values
from naiad_cli.options import add_options, chosen_values, in_order, refuse_unknown
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.serve_options import every_option
from naiad_cli.tables import add_json_option, coloured, print_json

_NAMES = ("model-config-name", "disable-auto-complete-config", "backend-config")


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `check` with those options of `naiad serve` that change how a configuration is read."""
    options = (*_options(), MODEL_NAME, OPTIONS_FILE)
    parser = subparsers.add_parser(
        "check",
        description="Every problem of every model in the repositories DIR, and of the model files FILE. Models are "
        "read and completed as by naiad serve, but not loaded. The exit status is 1 if there is any problem.",
        rewrite=lambda words: in_order(words, options),
        refuse=lambda words: refuse_unknown(words, options, lambda name: "", "check"),
    )
    parser.add_argument("repositories", nargs="+", metavar="DIR|FILE", help="a model repository, or a model file")
    add_json_option(parser)
    add_options(parser, options, "how configurations are read")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one line a model, and one for each of its problems."""
    from naiad import ModelInspector  # only now: --help is answered at once

    registry = PluginRegistry.discover()
    for warning in registry.warnings():
        print(f"warning: {warning}", file=sys.stderr)
    registry.check()
    options = _options()
    values = sourced_values(
        (*options, MODEL_NAME),
        every_option(registry),
        chosen_values((*options, MODEL_NAME, OPTIONS_FILE), arguments),
        os.environ,
    )
    name = values.pop(MODEL_NAME.name, "")
    settings = Settings(registry.options(), values)
    with ModelFiles(arguments.repositories, registry, name) as files:
        for warning in files.warnings():
            print(f"warning: {warning}", file=sys.stderr)
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


def _options() -> Sequence[Option]:
    return [option for option in PluginRegistry.of(()).options() if option.name in _NAMES]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
