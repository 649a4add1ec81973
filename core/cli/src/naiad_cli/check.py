"""`naiad check`: every problem of every model in a repository, found without loading one."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from naiad import PluginRegistry
from naiad.errors import ConfigError, NaiadError
from naiad.options import Option, Settings
from naiad_cli.options import add_options, given, in_order
from naiad_cli.parser import Parser, Subparsers

if TYPE_CHECKING:
    from naiad._kernel.loading import Loader, PreparedModel
    from naiad._kernel.prepared import PreparedDependent

_NAMES = ("model-config-name", "disable-auto-complete-config", "backend-config")


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `check` with those options of `naiad serve` that change how a configuration is read."""
    parser = subparsers.add_parser(
        "check",
        description="Every problem of every model in the repositories DIR. Models are read and completed as by naiad "
        "serve, but not loaded. The exit status is 1 if there is any problem.",
    )
    parser.add_argument("repositories", nargs="+", metavar="DIR", help="a model repository")
    add_options(parser, _options(), "how configurations are read")
    parser.rewrite = lambda words: in_order(words, _options())
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print one line a model, and one for each of its problems."""
    registry = PluginRegistry.discover()
    for warning in registry.warnings():
        print(f"warning: {warning}", file=sys.stderr)
    registry.check()
    found = problems_of(registry, arguments.repositories, Settings(registry.options(), given(_options(), arguments)))
    for name, problems in found.items():
        print(f"{name}: {_count(len(problems), 'problem') if problems else 'ok'}")
        for problem in problems:
            print("  " + problem.replace("\n", "\n  "))
    broken = sum(bool(problems) for problems in found.values())
    print(f"{_count(len(found), 'model')}, {broken} with problems")
    return 1 if broken else 0


def problems_of(
    registry: PluginRegistry, repositories: Sequence[str], settings: Settings
) -> Mapping[str, Sequence[str]]:
    """The problems of each model by its name; none for a sound one. Raises NotFoundError without such a repository."""
    from naiad._kernel.checking import problems_of_dependents
    from naiad._kernel.loading import Loader
    from naiad._kernel.repository import scan

    folders = scan([Path(root).absolute() for root in repositories])
    loader = Loader(registry, settings)
    prepared: dict[str, PreparedModel | PreparedDependent] = {}
    found = {name: _problems(registry, loader, name, folders[name], prepared) for name in sorted(folders)}
    broken = {name: problems for name, problems in found.items() if problems}
    return found | problems_of_dependents({name: prepared[name] for name in folders if name not in broken}, broken)


def _problems(
    registry: PluginRegistry,
    loader: "Loader",
    name: str,
    folders: Sequence[Path],
    prepared: "dict[str, PreparedModel | PreparedDependent]",
) -> Sequence[str]:
    """Those of one model, which is put among the prepared ones if it can be."""
    from naiad._kernel.repository import ModelSource
    from naiad._kernel.version import labels_of

    if len(folders) > 1:
        return [f"the model is in more than one repository: {', '.join(str(folder.parent) for folder in folders)}"]
    try:
        made = prepared[name] = loader.prepare(ModelSource(name, folders[0]))
    except ConfigError as error:
        return [str(problem) for problem in error.problems]
    except NaiadError as error:
        return [str(error)]
    found = []
    for part in (labels_of, registry.warmup):
        try:
            part(made.contexts[-1])
        except NaiadError as error:
            found.append(str(error))
    return found


def _options() -> Sequence[Option]:
    return [option for option in PluginRegistry.of(()).options() if option.name in _NAMES]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
