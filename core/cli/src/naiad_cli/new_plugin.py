"""`naiad new backend`, `scheduler`, `frontend` and `cache`: a distribution with a plugin of that kind."""

import argparse
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from naiad import PluginRegistry
from naiad.errors import UsageError
from naiad_cli.parser import Parser, Subparsers
from naiad_cli.scaffolds import write_files

_DISTRIBUTION = {
    "plugin/pyproject.toml.txt": "pyproject.toml",
    "$kind/README.md.txt": "README.md",
    "plugin/gitignore.txt": ".gitignore",
    "$kind/hooks.py.txt": "src/naiad_$identifier/__init__.py",
    "$kind/$kind.py.txt": "src/naiad_$identifier/$kind.py",
    "plugin/py.typed.txt": "src/naiad_$identifier/py.typed",
    "$kind/test_$kind.py.txt": "tests/test_$kind.py",
}
_DOUBLE = {"plugin/double.py.txt": "tests/models/double/1/model.py"}
_DOUBLE_CONFIG = {"$kind/config.pbtxt.txt": "tests/models/double/config.pbtxt"}
"""Template files by their path under `templates`, with the path of what is made from them; `$kind` is a kind's name."""


@dataclass(frozen=True, slots=True)
class PluginKind:
    """A kind of plugin: what the name of one is for, its files, what it and its tests need, and the taken names."""

    name: str
    chosen_by: str
    files: Mapping[str, str]
    needs: tuple[str, ...]
    test_needs: tuple[str, ...]
    taken: Callable[[PluginRegistry], Iterable[str]] = field(repr=False)


def _released(*distributions: str) -> tuple[str, ...]:
    """Requirements of distributions of Naiad."""
    return tuple(f"{each}>=0.1,<0.2" for each in distributions)


KINDS = (
    PluginKind(
        "backend",
        "what 'backend:' of a configuration says",
        {"$kind/model.json.txt": "tests/models/line/1/model.json"},
        (*_released("naiad", "naiad-config"), "numpy>=1.26,<3"),
        (),
        lambda registry: registry.backends(),
    ),
    PluginKind(
        "scheduler",
        "what the parameter 'scheduler' of a configuration says",
        {**_DOUBLE, **_DOUBLE_CONFIG},
        _released("naiad", "naiad-config"),
        _released("naiad-custom"),
        lambda registry: [name for each in registry.schedulers() for name in (each.name, each.choice)],
    ),
    PluginKind(
        "frontend",
        "with which its options begin",
        {"$kind/wire.py.txt": "src/naiad_$identifier/wire.py", **_DOUBLE},
        _released("naiad", "naiad-tensors"),
        _released("naiad-custom"),
        lambda registry: registry.frontends(),
    ),
    PluginKind(
        "cache",
        "what --cache-config says",
        {**_DOUBLE, **_DOUBLE_CONFIG},
        _released("naiad", "naiad-kit"),
        _released("naiad-cache", "naiad-custom"),
        lambda registry: registry.caches(),
    ),
)
"""The kinds that `naiad new` writes."""

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


def add_plugin_parser(kind: PluginKind, subparsers: "Subparsers[Parser]") -> None:
    """Add the command `new KIND`."""
    parser = subparsers.add_parser(
        kind.name,
        help=f"a distribution with a {kind.name} of your own",
        description=f"Write DIRECTORY/naiad-NAME, a distribution with a {kind.name}, its entry point and its tests.",
    )
    parser.add_argument("name", metavar="NAME", help=kind.chosen_by)
    parser.add_argument("--directory", default=".", metavar="DIR", help="where to put the distribution (default: here)")
    parser.set_defaults(run=functools.partial(_new_plugin, kind))


def _new_plugin(kind: PluginKind, arguments: argparse.Namespace) -> int:
    name = arguments.name
    if not re.fullmatch(r"[a-z][a-z0-9]*([-_][a-z0-9]+)*", name):
        raise UsageError(
            f"'{name}' is not a name for a {kind.name}: use small letters, digits, '-' and '_', a letter first"
        )
    _refuse_taken(kind, name)
    names = _names(kind, name)
    folder = Path(arguments.directory) / f"naiad-{names['dashed']}"
    files = {template.replace("$kind", kind.name): path for template, path in {**_DISTRIBUTION, **kind.files}.items()}
    write_files(files, folder, names)
    local = folder if folder.is_absolute() else f"./{folder}"  # pip takes a bare name for one on its index
    print(f"\nnext: pip install -e '{local}[test]'\n      pytest {folder}\n      naiad serve {folder}/tests/models")
    return 0


def _names(kind: PluginKind, name: str) -> dict[str, str]:
    """What stands in the templates for their `$` names."""
    identifier = name.replace("-", "_")
    return {
        "kind": kind.name,
        "name": name,
        "dashed": name.replace("_", "-"),
        "identifier": identifier,
        "classname": "".join(part.capitalize() for part in identifier.split("_")) + kind.name.capitalize(),
        "dependencies": "\n".join(f'  "{each}",' for each in kind.needs),
        "test_dependencies": ", ".join(
            f'"{each}"' for each in (*kind.test_needs, *_released("naiad-testing"), "pytest>=8")
        ),
    }


def _refuse_taken(kind: PluginKind, name: str) -> None:
    """Raise UsageError for the name of a distribution, a plugin or a thing of that kind that exists."""
    registry = PluginRegistry.discover()
    taken = dict.fromkeys(kind.taken(registry), kind.name)
    taken |= {report.name: "plugin" for report in registry.plugins}
    taken |= dict.fromkeys(OWN_NAMES, "distribution of Naiad")
    folded = name.replace("_", "-")
    for other, owner in taken.items():
        if other.replace("_", "-") == folded:
            raise UsageError(
                f"'{name}' is the name of a {owner}, with which naiad-{folded} would clash; choose another"
            )
    if registry.what_to_install(kind.name, name):
        raise UsageError(f"'{name}' is the name of a {kind.name} of Naiad; choose another")
