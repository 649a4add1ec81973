"""Reads in a model file, without running it, where its instances are to live: `@model(isolation="process")`."""

import ast
from collections.abc import Iterator
from pathlib import Path

from naiad.errors import ConfigError, Problem
from naiad_config import ModelConfig
from naiad_custom.declaration import ISOLATIONS, Declaration
from naiad_custom.syntax_trees import syntax_tree

_PACKAGE = "naiad_custom"


def declared_isolation(path: Path) -> str:
    """The literal `isolation` of the one `@model(...)` in that file; "" without one, or if it is not a Python file."""
    try:
        tree = syntax_tree(path) if path.is_file() else ast.Module([], [])  # to read a pipe would wait for ever
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):  # what imports the file says so
        return ""
    names = set(_names_of_model(tree))
    declared = {value for call in _decorators(tree) if _dotted(call.func) in names for value in _isolation(call)}
    return declared.pop() if len(declared) == 1 else ""


def check_isolation(config: ModelConfig, declaration: Declaration, path: Path) -> None:
    """Raise ConfigError for a model that asks for an isolation which was not read before its file was imported."""
    parameter = config.parameters.get("isolation")
    if not declaration.isolation or (parameter is not None and parameter.string_value.strip()):
        return
    message = f"@model in {path} asks for isolation {declaration.isolation!r}, and the file was imported without it"
    hint = (
        f"write isolation={declaration.isolation!r} as a literal in the file itself and install naiad-process-workers, "
        "or set the parameter 'isolation' in config.pbtxt"
    )
    raise ConfigError([Problem(message, "parameters", hint=hint)])


def _names_of_model(tree: ast.Module) -> Iterator[str]:
    """The dotted names by which the file knows `naiad_custom.model`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == _PACKAGE and not node.level:
            yield from (each.asname or each.name for each in node.names if each.name == "model")
        elif isinstance(node, ast.Import):
            yield from (f"{each.asname or each.name}.model" for each in node.names if each.name == _PACKAGE)


def _decorators(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from (each for each in node.decorator_list if isinstance(each, ast.Call))


def _isolation(call: ast.Call) -> Iterator[str]:
    for keyword in call.keywords:
        value = keyword.value
        if keyword.arg == "isolation" and isinstance(value, ast.Constant) and value.value in ISOLATIONS:
            yield str(value.value)


def _dotted(node: ast.expr) -> str:
    """`a.b` for that expression, "" for one that is no dotted name."""
    if isinstance(node, ast.Name):
        return node.id
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""
