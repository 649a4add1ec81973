"""No call of the client library is left out: every public method of every client occurs in a test of this folder."""

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from .driving import KINDS, MODULES

HERE = Path(__file__).parent


def exercised() -> dict[str, set[str]]:
    """By the kind of client, the methods that tests call on the fixtures which stand for it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in HERE.glob("test_*.py"):
        for test in _tests(ast.parse(path.read_text())):
            for fixture, method in _calls(test):
                for kind in KINDS[fixture]:
                    found[kind].add(method)
    return found


def _tests(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Functions that take a client: tests, and what they share."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(argument.arg in KINDS for argument in node.args.args):
            yield node


def _calls(test: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    fixtures = {argument.arg for argument in test.args.args} & set(KINDS)
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in fixtures:
            yield node.value.id, node.attr


@pytest.mark.parametrize("kind", MODULES)
def test_every_method_of_a_client_is_exercised(kind: str) -> None:
    members = inspect.getmembers(MODULES[kind].InferenceServerClient, callable)
    public = {name for name, _ in members if not name.startswith("_")}

    assert public - exercised()[kind] == set()
