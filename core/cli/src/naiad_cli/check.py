"""`naiad check`: reports every problem of every model in a repository, without loading a model."""

import argparse
import sys
from collections.abc import Sequence

from naiad import PluginRegistry
from naiad.options import Option, Settings
from naiad_cli.model_files import MODEL_NAME, ModelFiles
from naiad_cli.options import add_options, chosen_values, in_order
from naiad_cli.parser import Parser, Subparsers

_NAMES = ("model-config-name", "disable-auto-complete-config", "backend-config")


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `check` with those options of `naiad serve` that change how a configuration is read."""
    parser = subparsers.add_parser(
        "check",
        description="Every problem of every model in the repositories DIR, and of the model files FILE. Models are "
        "read and completed as by naiad serve, but not loaded. The exit status is 1 if there is any problem.",
    )
    parser.add_argument("repositories", nargs="+", metavar="DIR|FILE", help="a model repository, or a model file")
    options = (*_options(), MODEL_NAME)
    add_options(parser, options, "how configurations are read")
    parser.rewrite = lambda words: in_order(words, options)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one line a model, and one for each of its problems."""
    from naiad import ModelInspector  # only now: --help is answered at once

    registry = PluginRegistry.discover()
    for warning in registry.warnings():
        print(f"warning: {warning}", file=sys.stderr)
    registry.check()
    settings = Settings(registry.options(), chosen_values(_options(), arguments))
    name = chosen_values([MODEL_NAME], arguments).get(MODEL_NAME.name, "")
    with ModelFiles(arguments.repositories, registry, name) as files:
        for warning in files.warnings():
            print(f"warning: {warning}", file=sys.stderr)
        models = ModelInspector(registry, settings).problems(files.repositories)
        for name, problems in models.items():
            print(f"{name}: {_count(len(problems), 'problem') if problems else 'ok'}")
            for problem in problems:
                print("  " + files.in_words_of_user(problem).replace("\n", "\n  "))
    broken = sum(bool(problems) for problems in models.values())
    print(f"{_count(len(models), 'model')}, {broken} with problems")
    return 1 if broken else 0


def _options() -> Sequence[Option]:
    return [option for option in PluginRegistry.of(()).options() if option.name in _NAMES]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
