"""`naiad new`: creates the files of a model or of a plugin from templates, with tests."""

import argparse
import importlib.util
import re
from pathlib import Path

from naiad.errors import UsageError
from naiad_cli.new_plugin import KINDS, add_plugin_parser
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.scaffolds import write_files
from naiad_config.installing import install_command

_MODEL = {
    "model/model.py.txt": "1/model.py",
    "model/test_model.py.txt": "test_$identifier.py",
}
_TRITON_MODEL = {
    "triton/config.pbtxt.txt": "config.pbtxt",
    "triton/model.py.txt": "1/model.py",
    "triton/test_model.py.txt": "test_$identifier.py",
}
_NEEDS = (
    ("the model", "naiad-custom", ("naiad_custom",)),
    ("the test", "naiad-testing[pytest]", ("pytest", "naiad_testing")),
)
"""What needs which distribution, and the modules that it brings."""


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `new`."""
    parser = subparsers.add_parser("new", description="Write the start of a model or a plugin, with its tests.")
    kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True, parser_class=Parser)
    model = kinds.add_parser(
        "model",
        help="a Python model in a model repository",
        description="Write DIRECTORY/NAME with a model in Python and a test of it. It needs naiad-custom.",
    )
    model.add_argument("name", metavar="NAME", help="the model's name, which is its folder's")
    model.add_argument(
        "--directory", default="models", metavar="DIR", help="the model repository (default: %(default)s)"
    )
    model.add_argument(
        "--triton", action="store_true", help="a class TritonPythonModel with a config.pbtxt, not a function"
    )
    model.set_defaults(run=_new_model)
    for kind in KINDS:
        add_plugin_parser(kind, kinds)


def _new_model(arguments: argparse.Namespace) -> int:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", arguments.name):
        raise UsageError(
            f"'{arguments.name}' is not a name for a model: use letters, digits, '_', '-' and '.', "
            "a letter or digit first"
        )
    repository = Path(arguments.directory)
    identifier = re.sub(r"\W", "_", arguments.name)
    names = {"name": arguments.name, "identifier": f"model_{identifier}" if identifier[0].isdigit() else identifier}
    write_files(_TRITON_MODEL if arguments.triton else _MODEL, repository / arguments.name, names)
    advice = [
        f"{what} needs: {install_command(requirement)}"
        for what, requirement, modules in _NEEDS
        if any(importlib.util.find_spec(module) is None for module in modules)
    ]
    if advice:
        print("", *advice, sep="\n")
    print(f"\nnext: pytest {repository / arguments.name}\n      naiad serve {repository}")
    return 0
