"""Call specification of an exported model: the tree of its arguments and results. Pure.

It comes as the trees of `torch.export.ExportedProgram.call_spec`, or as the text in a compiled package: `[1, {"type",
"context", "children_spec"}]`, where a type of null is a leaf, and the context of a dict is the JSON list of its keys.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from naiad.errors import InvalidArgumentError

_Container = type[tuple[Any, ...]] | type[list[Any]] | type[dict[str, Any]]
_KINDS: dict[str, _Container] = {"builtins.tuple": tuple, "builtins.list": list, "builtins.dict": dict}
_VERSION = 1


@dataclass(frozen=True, slots=True)
class Node:
    """A tuple, list or dict of further nodes, or, with `kind` None, a leaf. `keys` are those of a dict, in order."""

    kind: _Container | None = None
    children: "tuple[Node, ...]" = ()
    keys: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many leaves it has."""
        return 1 if self.kind is None else sum(child.size for child in self.children)


@dataclass(frozen=True, slots=True)
class CallSpec:
    """The arguments by position and by name, and the result, of one model."""

    arguments: Node
    keywords: Node
    result: Node

    @property
    def input_count(self) -> int:
        """How many tensors it takes."""
        return self.arguments.size + self.keywords.size

    def input_names(self) -> list[tuple[str, ...]]:
        """For each tensor that it takes the names by which a configuration may call it."""
        names: list[tuple[str, ...]] = [(f"ARGS{path}",) for path in _paths(self.arguments)]
        for key, child in zip(self.keywords.keys, self.keywords.children, strict=True):
            names += [(f"KWARGS[{key}]{path}", f"KWARGS{key}{path}") for path in _paths(child)]
        return names

    def output_names(self) -> list[tuple[str, ...]]:
        """The same for each tensor that it gives."""
        return [(f"RESULT{path}",) for path in _paths(self.result)]

    def call(self, leaves: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments over these tensors, by position and by name."""
        rest = iter(leaves)
        return _built(self.arguments, rest), _built(self.keywords, rest)

    def results(self, result: Any) -> list[Any]:
        """The tensors of a result, in order. Raises InvalidArgumentError when it is of another form."""
        return list(_leaves(self.result, result))


def read_call_spec(inputs: Any, outputs: Any) -> CallSpec:
    """The call spec in two trees, or in two texts. Raises InvalidArgumentError for a form that is not known."""
    root = _read(inputs)
    if root.kind is not tuple or [child.kind for child in root.children] != [tuple, dict]:
        raise InvalidArgumentError("its arguments are not a tuple and a dict, as those of every call are")
    arguments, keywords = root.children
    return CallSpec(arguments, keywords, _read(outputs))


def spec_of(inputs: Any, outputs: Any, file: str, model: str) -> CallSpec:
    """The call spec of the package in that file. Raises InvalidArgumentError, that names both."""
    try:
        return read_call_spec(inputs, outputs)
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"model '{model}': '{file}' cannot be served: {error}") from error


def _read(spec: Any) -> Node:
    return _node(_root(spec)) if isinstance(spec, str) else _node_of_tree(spec)


def _node_of_tree(tree: Any) -> Node:
    """A tree of PyTorch; older ones have no method `children`."""
    if tree.is_leaf():
        return Node()
    kind = _kind(f"{tree.type.__module__}.{tree.type.__qualname__}")
    children = tree.children() if hasattr(tree, "children") else tree.children_specs
    return Node(kind, tuple(map(_node_of_tree, children)), tuple(map(str, tree.context)) if kind is dict else ())


def _root(text: str) -> Any:
    try:
        version, root = json.loads(text)
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(f"its call specification cannot be read: {error}") from error
    if version != _VERSION:
        raise InvalidArgumentError(f"its call specification is of version {version}; only {_VERSION} is known")
    return root


def _node(spec: Any) -> Node:
    if spec["type"] is None:
        return Node()
    kind = _kind(spec["type"])
    children = tuple(_node(child) for child in spec["children_spec"])
    keys = tuple(map(str, json.loads(spec["context"]))) if kind is dict else ()
    return Node(kind, children, keys)


def _kind(name: str) -> _Container:
    kind = _KINDS.get(name)
    if kind is None:
        known = ", ".join(_KINDS)
        raise InvalidArgumentError(f"it takes or gives a {name}; tensors can only be in {known}")
    return kind


def _paths(node: Node) -> Iterator[str]:
    if node.kind is None:
        yield ""
        return
    keys: Sequence[object] = node.keys if node.kind is dict else range(len(node.children))
    for key, child in zip(keys, node.children, strict=True):
        for path in _paths(child):
            yield f"[{key}]{path}"


def _built(node: Node, leaves: Iterator[Any]) -> Any:
    if node.kind is None:
        return next(leaves)
    children = [_built(child, leaves) for child in node.children]
    return dict(zip(node.keys, children, strict=True)) if node.kind is dict else node.kind(children)


def _leaves(node: Node, value: Any) -> Iterator[Any]:
    if node.kind is None:
        yield value
        return
    if not isinstance(value, node.kind) or len(value) != len(node.children):
        raise InvalidArgumentError(f"it gave a {type(value).__name__} where a {node.kind.__name__} was expected")
    parts = [value[key] for key in node.keys] if isinstance(value, dict) else value
    for child, part in zip(node.children, parts, strict=True):
        yield from _leaves(child, part)
