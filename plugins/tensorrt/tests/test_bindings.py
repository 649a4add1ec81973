"""Every name of TensorRT that reading and opening engines uses is there, in the modules that are really installed."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
import tensorrt_lean_bindings as lean
import tensorrt_rtx_bindings as rtx

import naiad_tensorrt

SOURCES = sorted(Path(naiad_tensorrt.__file__).parent.glob("*.py"))
OWNERS = {"trt": "", "engine": "ICudaEngine", "runtime": "Runtime"}
"""What a variable or attribute of that name is an object of; "" is the module itself."""

LEAN_LACKS = {"TensorFormat", "init_libnvinfer_plugins"}
"""What the sources look for before they use it."""


def used() -> list[tuple[str, str]]:
    """Each class of TensorRT with the name of it that is used, found in the sources."""
    nodes = (node for path in SOURCES for node in ast.walk(ast.parse(path.read_text())))
    return sorted({actual for node in nodes if isinstance(node, ast.Attribute) for actual in _uses(node)})


def _uses(node: ast.Attribute) -> Iterator[tuple[str, str]]:
    owner = _name(node.value)
    if owner in OWNERS and node.attr != "__version__":
        yield OWNERS[owner], node.attr
    if isinstance(node.value, ast.Attribute) and _name(node.value.value) == "trt":
        yield node.value.attr, node.attr
    if isinstance(node.value, ast.Call) and _name(node.value.func) == "get_plugin_registry":
        yield "IPluginRegistry", node.attr


def _name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@pytest.mark.parametrize("module", [rtx, lean], ids=lambda module: module.__name__)
@pytest.mark.parametrize(("kind", "name"), used())
def test_a_name_that_is_used_is_there(module, kind, name):
    is_missing = module is lean and (kind or name) in LEAN_LACKS

    assert hasattr(getattr(module, kind, None) if kind else module, name) is not is_missing


def test_the_search_finds_what_is_used():
    assert {
        ("", "Runtime"),
        ("Runtime", "deserialize_cuda_engine"),
        ("Runtime", "engine_host_code_allowed"),
        ("ICudaEngine", "get_tensor_profile_shape"),
        ("ICudaEngine", "weight_streaming_budget_v2"),
        ("TensorIOMode", "INPUT"),
        ("IPluginRegistry", "load_library"),
    } <= set(used())


@pytest.mark.parametrize("module", [rtx, lean], ids=lambda module: module.__name__)
def test_the_values_of_a_profile_are_asked_for_by_its_index_first(module):
    """The names in the signature are swapped: what is called `name` takes the number."""
    signature = module.ICudaEngine.get_tensor_profile_values.__doc__.splitlines()[0]

    assert "name: typing.SupportsInt, profile_index: str" in signature


@pytest.mark.parametrize("module", [rtx, lean], ids=lambda module: module.__name__)
@pytest.mark.parametrize("strategy", ["STATIC", "ON_PROFILE_CHANGE"])
def test_the_strategies_of_the_configuration_are_tensorrts(module, strategy):
    assert hasattr(module.ExecutionContextAllocationStrategy, strategy)
