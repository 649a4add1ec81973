"""Type annotations of a function: resolved, with their position in the file."""

import ast
import dataclasses
import inspect
import types
import typing
from collections import abc
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

from naiad_custom.declaration import ArraySpec
from naiad_custom.syntax_trees import syntax_tree

_UNIONS = (types.UnionType, typing.Union)


class Way(Enum):
    """How a function responds: it returns one response, or yields them from an iterator, plain or async."""

    ONCE = ""
    ITERATOR = "Iterator"
    ASYNC_ITERATOR = "AsyncIterator"


_WAYS: dict[Any, Way] = {
    **dict.fromkeys((abc.Iterator, abc.Iterable, abc.Generator), Way.ITERATOR),
    **dict.fromkeys((abc.AsyncIterator, abc.AsyncIterable, abc.AsyncGenerator), Way.ASYNC_ITERATOR),
}


def way_of(hint: Any) -> tuple[Way, Any]:
    """How the responses come by a return annotation, and what the annotation of one response is."""
    items = typing.get_args(hint)
    way = _WAYS.get(typing.get_origin(hint), Way.ONCE) if items else Way.ONCE
    return way, hint if way is Way.ONCE else items[0]


def way_written(function: Callable[..., Any]) -> Way | None:
    """How the responses come by the body of a function; None when the body does not show it."""
    if inspect.isgeneratorfunction(function):
        return Way.ITERATOR
    if inspect.isasyncgenfunction(function):
        return Way.ASYNC_ITERATOR
    return Way.ONCE if inspect.iscoroutinefunction(function) else None


def node_of(function: types.FunctionType) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function in the syntax tree of its file, for the lines of its parameters; None without a file."""
    code = function.__code__
    try:
        tree = syntax_tree(Path(code.co_filename))
    except (OSError, SyntaxError, ValueError, SystemError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == function.__name__:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


def without_none(hint: Any) -> tuple[Any, bool]:
    """The annotation without its `| None`, and whether it had one."""
    if typing.get_origin(hint) not in _UNIONS:
        return hint, False
    kept = [each for each in typing.get_args(hint) if each is not type(None)]
    return (kept[0], True) if len(kept) == 1 else (hint, False)


def spec_of(hint: Any) -> ArraySpec | None:
    """What `Array[...]` said, None for an annotation that is none."""
    metadata: Sequence[Any] = getattr(hint, "__metadata__", ())
    return next((each for each in metadata if isinstance(each, ArraySpec)), None)


def class_form(cls: type) -> str:
    """The `form` of a signature that returns such a class, "" for one that is no result."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        return "tuple"
    if typing.is_typeddict(cls):
        return "mapping"
    return "attributes" if dataclasses.is_dataclass(cls) else ""


def shown(hint: Any) -> str:
    """The annotation as its author would write it, for a message."""
    return hint.__qualname__ if inspect.isclass(hint) else str(hint)
