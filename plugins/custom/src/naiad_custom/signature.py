"""The signature of a model function: inputs, outputs and special parameters, read from its annotations."""

import ast
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from naiad.batch import Batch
from naiad.errors import ConfigError, Problem
from naiad.types import Request
from naiad_custom.annotations import Way, class_form, node_of, shown, spec_of, way_of, way_written, without_none
from naiad_custom.declaration import ArraySpec, Declaration
from naiad_custom.servers import AsyncServer, Server


@dataclass(frozen=True, slots=True)
class Argument:
    """One input: its name, datatype, dims without batch dimension, and whether requests may leave it out."""

    name: str
    spec: ArraySpec
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """One output: its name, datatype and dims without batch dimension."""

    name: str
    spec: ArraySpec


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes and gives.

    `specials` are the parameters that get the `Request` or the `Batch` itself. `form` says how results are returned:
    `one` array, a `tuple` (also a named one), a `mapping`, or the `attributes` of a dataclass. `way` says whether that
    is the one response or each of several, and `is_async` whether the function belongs on an event loop. `server` is
    the parameter that gets the other models, "" without one.
    """

    function: str
    arguments: tuple[Argument, ...]
    specials: Mapping[str, type]
    results: tuple[Result, ...]
    form: str
    way: Way = Way.ONCE
    is_async: bool = False
    server: str = ""


def read_signature(function: Callable[..., Any], declaration: Declaration, is_method: bool = False) -> Signature:
    """The signature of a function. Raises ConfigError with everything wrong, each with file, line and column."""
    return _Reader(function, declaration, is_method).read()


class _Reader:
    def __init__(self, function: Callable[..., Any], declaration: Declaration, is_method: bool) -> None:
        self._function = inspect.unwrap(function)
        self._name = self._function.__qualname__
        self._declaration = declaration
        self._is_method = is_method
        self._problems: list[Problem] = []
        self._node = node_of(self._function)
        self._servers: dict[str, type] = {}

    def read(self) -> Signature:
        parameters = list(inspect.signature(self._function).parameters.values())[1 if self._is_method else 0 :]
        arguments: list[Argument] = []
        specials: dict[str, type] = {}
        for parameter in parameters:
            self._read_parameter(parameter, arguments, specials)
        if not arguments and not self._problems:
            self._note("it takes no array", "", "add a parameter such as a: Array[FP32, 16]")
        way, form, results = self._read_return()
        if way is Way.ONCE and self._declaration.max_batch_size > 0:
            self._refuse_requests(specials)
        is_async = way is Way.ASYNC_ITERATOR or inspect.iscoroutinefunction(self._function)
        self._check_servers(AsyncServer if is_async else Server)
        if self._problems:
            raise ConfigError(self._problems)
        server = next(iter(self._servers), "")
        return Signature(self._name, tuple(arguments), specials, results, form, way, is_async, server)

    def _read_parameter(
        self, parameter: inspect.Parameter, arguments: list[Argument], specials: dict[str, type]
    ) -> None:
        name = parameter.name
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            self._note("inputs are passed by name", name, f"write {name} as an ordinary parameter")
            return
        if name == "server" and parameter.annotation is parameter.empty:
            self._servers[name] = object
            return
        example = f"write {name}: Array[FP32, 16]"
        if parameter.annotation is parameter.empty:
            self._note("it has no annotation", name, example)
            return
        hint = self._resolved(parameter.annotation, name)
        if hint is None:
            return
        inner, optional = without_none(hint)
        has_default = parameter.default is not parameter.empty
        if inner is Request or inner is Batch:
            specials[name] = inner
        elif inner is Server or inner is AsyncServer:
            self._servers[name] = inner
        elif (spec := spec_of(inner)) is None:
            self._note(f"its annotation {shown(hint)} says neither datatype nor dims", name, example)
        elif optional and not has_default:
            self._note("an optional input needs a default", name, f"write {name}: {spec} | None = None")
        else:
            arguments.append(Argument(name, spec, has_default))

    def _check_servers(self, usable: type) -> None:
        for number, (name, kind) in enumerate(self._servers.items()):
            if kind not in (object, usable):
                kind_of_function = "an async def function" if usable is AsyncServer else "a function that is not async"
                self._note(f"{kind_of_function} cannot use {kind.__name__}", name, f"write {name}: {usable.__name__}")
            elif number:
                self._note("one parameter for the server is enough", name, "leave it out")

    def _refuse_requests(self, specials: Mapping[str, type]) -> None:
        for name, kind in specials.items():
            if kind is Request:
                text_shown = "with max_batch_size above 0 one call answers several requests"
                self._note(text_shown, name, f"write {name}: Batch and look at {name}.requests")

    def _read_return(self) -> tuple[Way, str, tuple[Result, ...]]:
        written = way_written(self._function)
        annotation = self._function.__annotations__.get("return")
        if annotation is None:
            self._note("it does not say what it returns", "return", f"write -> {_example(written)} before the colon")
            return Way.ONCE, "one", ()
        hint = self._resolved(annotation, "return")
        if hint is None:
            return Way.ONCE, "one", ()
        way, hint = way_of(hint)
        if written not in (None, way):
            self._note(*_misfit(written, way))
        form, hints = self._returned(hint)
        return way, form, tuple(Result(name, spec) for name, each in hints if (spec := self._returned_spec(name, each)))

    def _returned(self, hint: Any) -> tuple[str, list[tuple[str, Any]]]:
        if isinstance(hint, Mapping):
            return "mapping", [(str(name), self._resolved(each, "return")) for name, each in hint.items()]
        if inspect.isclass(hint) and (form := class_form(hint)):
            fields = typing.get_type_hints(hint, include_extras=True)
            self._refuse_names(f"{hint.__name__} has its own")
            return form, list(fields.items())
        names = self._declaration.outputs
        if typing.get_origin(hint) is not tuple:
            if len(names) > 1:
                self._note(f"@model names {len(names)} outputs and it returns one", "return", "name just one")
            return "one", [(names[0] if names else "output", hint)]
        items = typing.get_args(hint)
        if len(names) != len(items):
            example = ", ".join(f'"output{number}"' for number in range(len(items)))
            text_shown = f"it returns a tuple of {len(items)} arrays, and @model names {len(names)} outputs"
            self._note(text_shown, "return", f"write @model(outputs=({example})), or return a NamedTuple")
        return "tuple", list(zip(names, items, strict=False))

    def _returned_spec(self, name: str, hint: Any) -> ArraySpec | None:
        spec = spec_of(hint)
        if spec is None:
            text_shown = f"the annotation {shown(hint)} of output '{name}' says neither datatype nor dims"
            self._note(
                text_shown, "return", "write Array[FP32, 16], or a NamedTuple, TypedDict or dataclass of such fields"
            )
        return spec

    def _refuse_names(self, reason: str) -> None:
        if self._declaration.outputs:
            self._note(f"@model names outputs, and {reason}", "return", "drop outputs= from @model")

    def _resolved(self, annotation: Any, parameter: str) -> Any:
        """The annotation with its text (`from __future__ import annotations`) evaluated; None when that failed."""
        scope = SimpleNamespace(__annotations__={"it": annotation})
        if isinstance(annotation, Mapping) or annotation is None:
            return annotation
        try:
            return typing.get_type_hints(scope, self._function.__globals__, include_extras=True)["it"]
        except Exception as error:  # noqa: BLE001 - an annotation is an expression of the user's and may raise anything
            self._note(f"its annotation cannot be read: {type(error).__name__}: {error}", parameter, "")
            return None

    def _note(self, message: str, parameter: str, hint: str) -> None:
        code = self._function.__code__
        line, column = code.co_firstlineno, 1
        if self._node is not None:
            node: ast.AST = self._node
            if parameter == "return":
                node = self._node.returns or self._node
            elif parameter:
                every = [*self._node.args.posonlyargs, *self._node.args.args, *self._node.args.kwonlyargs]
                every += [one for one in (self._node.args.vararg, self._node.args.kwarg) if one is not None]
                node = next((one for one in every if one.arg == parameter), self._node)
            line, column = node.lineno, node.col_offset + 1  # type: ignore[attr-defined]
        subject = f"the answer of '{self._name}'" if parameter == "return" else f"'{self._name}'"
        if parameter and parameter != "return":
            subject = f"parameter '{parameter}' of '{self._name}'"
        self._problems.append(Problem(f"{subject}: {message}", "", code.co_filename, line, column, hint))


def _example(way: Way | None) -> str:
    one = "Array[FP32, 16]"
    return f"{way.value}[{one}]" if way and way.value else one


def _misfit(written: Way | None, annotated: Way) -> tuple[str, str, str]:
    """What to say of a function that is written in one way and annotated in another: the message, where, the hint."""
    if written is Way.ONCE:
        text_shown = f"an async def without a yield returns {annotated.value}[...] only when it is awaited"
        return text_shown, "return", f"write -> {_example(Way.ASYNC_ITERATOR)} and yield each response in it"
    text_shown = f"it yields, which is {_example(written)} and not what its annotation says"
    return text_shown, "return", f"write -> {_example(written)}, with {written and written.value} from collections.abc"
