"""`naiad new`: creates the files of a model or of a backend plugin from templates, with a test."""

import argparse
import importlib.util
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from string import Template

from naiad import PluginRegistry
from naiad.errors import AlreadyExistsError
from naiad_cli.parser import Parser, Subparsers, UsageError

_MODEL = {
    "model/model.py.txt": "1/model.py",
    "model/test_model.py.txt": "test_$identifier.py",
}
_TRITON_MODEL = {
    "triton/config.pbtxt.txt": "config.pbtxt",
    "triton/model.py.txt": "1/model.py",
    "triton/test_model.py.txt": "test_$identifier.py",
}
_BACKEND = {
    "backend/pyproject.toml.txt": "pyproject.toml",
    "backend/README.md.txt": "README.md",
    "backend/gitignore.txt": ".gitignore",
    "backend/hooks.py.txt": "src/naiad_$identifier/__init__.py",
    "backend/backend.py.txt": "src/naiad_$identifier/backend.py",
    "backend/py.typed.txt": "src/naiad_$identifier/py.typed",
    "backend/test_backend.py.txt": "tests/test_backend.py",
    "backend/model.json.txt": "tests/models/line/1/model.json",
}
"""Template files by their place under `templates`, with the place of what is made from them."""

OWN_NAMES = frozenset(
    [
        "cache",
        "cache-local",
        "cache-redis",
        "caffe2",
        "cli",
        "config",
        "custom",
        "dashboard",
        "explain",
        "grpc",
        "http",
        "kit",
        "loop-handoff",
        "metrics",
        "model-calls",
        "onnx",
        "openvino",
        "process-workers",
        "rate-limiter",
        "ray",
        "recorded-warmup",
        "repository-agents",
        "scheduler-dynamic",
        "scheduler-ensemble",
        "scheduler-sequence",
        "shared-memory",
        "statistics",
        "store",
        "tensorflow",
        "tensorrt",
        "tensors",
        "testing",
        "torch",
        "tracing",
        "tritonserver",
        "warmup",
    ]
)
"""The published distributions of Naiad, without `naiad-`."""

_TEST_MODULES = ("pytest", "naiad_testing")


def add_parser(subparsers: "Subparsers[Parser]") -> None:
    """Add the command `new`."""
    parser = subparsers.add_parser("new", description="Write the start of a model or a backend, with its tests.")
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
    backend = kinds.add_parser(
        "backend",
        help="a distribution with a backend of your own",
        description="Write DIRECTORY/naiad-NAME, a distribution with a backend, its entry point and its tests.",
    )
    backend.add_argument("name", metavar="NAME", help="what 'backend:' of a configuration says")
    backend.add_argument(
        "--directory", default=".", metavar="DIR", help="where to put the distribution (default: here)"
    )
    backend.set_defaults(run=_new_backend)


def _new_model(arguments: argparse.Namespace) -> int:
    if not re.fullmatch(r"[A-Za-z0-9][\w.-]*", arguments.name):
        raise UsageError(
            f"'{arguments.name}' is not a name for a model: use letters, digits, '_', '-' and '.', "
            "a letter or digit first"
        )
    repository = Path(arguments.directory)
    identifier = re.sub(r"\W", "_", arguments.name)
    names = {"name": arguments.name, "identifier": f"model_{identifier}" if identifier[0].isdigit() else identifier}
    _write(_TRITON_MODEL if arguments.triton else _MODEL, repository / arguments.name, names)
    if any(importlib.util.find_spec(module) is None for module in _TEST_MODULES):
        print("\nthe test needs: pip install 'naiad-testing[pytest]'")
    print(f"\nnext: pytest {repository / arguments.name}\n      naiad serve {repository}")
    return 0


def _new_backend(arguments: argparse.Namespace) -> int:
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", arguments.name):
        raise UsageError(
            f"'{arguments.name}' is not a name for a backend: use small letters, digits, '-' and '_', a letter first"
        )
    _refuse_taken(arguments.name)
    identifier = arguments.name.replace("-", "_")
    classname = "".join(part.capitalize() for part in identifier.split("_")) + "Backend"
    folder = Path(arguments.directory) / f"naiad-{arguments.name}"
    _write(_BACKEND, folder, {"name": arguments.name, "identifier": identifier, "classname": classname})
    local = folder if folder.is_absolute() else f"./{folder}"  # pip takes a bare name for one on its index
    print(f"\nnext: pip install -e '{local}[test]'\n      pytest {folder}\n      naiad serve {folder}/tests/models")
    return 0


def _refuse_taken(name: str) -> None:
    """Raise UsageError for the name of a distribution, a plugin or a backend that exists."""
    registry = PluginRegistry.discover()
    backends = registry.backends().values()
    taken = {traits.name: "backend" for traits in (backend.traits for backend in backends)}
    taken |= {report.name: "plugin" for report in registry.plugins}
    taken |= dict.fromkeys(OWN_NAMES, "distribution of Naiad")
    folded = name.replace("_", "-")
    for other, kind in taken.items():
        if other.replace("_", "-") == folded:
            raise UsageError(f"'{name}' is the name of a {kind}, with which naiad-{folded} would clash; choose another")


def _write(templates: Mapping[str, str], folder: Path, names: Mapping[str, str]) -> None:
    """Make a file of each template, and print its path. Raises AlreadyExistsError when the folder is there."""
    if folder.exists():
        raise AlreadyExistsError(f"'{folder}' is there already; choose another name or remove it")
    source = resources.files("naiad_cli") / "templates"
    for template, target_name in templates.items():
        target = folder / Template(target_name).substitute(names)
        target.parent.mkdir(parents=True, exist_ok=True)
        text = source.joinpath(*template.split("/")).read_text(encoding="utf-8")
        target.write_text(Template(text).substitute(names), encoding="utf-8")
        print(f"wrote {target}")
