"""Python models: a `torch.nn.Module` class in `model.py`, with weights in `model.pt`."""

import importlib.util
import inspect
import sys
import traceback
import weakref
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from naiad.errors import InternalError, InvalidArgumentError
from naiad_torch.described import Described
from naiad_torch.program import Program, Weight, results_of, weights_in
from naiad_torch.runtime import describe_error, runtime

WEIGHTS = "model.pt"


class ModuleArtefact:
    """The first `torch.nn.Module` that a file defines, made without arguments.

    Raises InvalidArgumentError, with the line, when the file cannot be run or defines none.
    """

    outputs: Mapping[str, int] = {}
    output_count: int | None = None
    keys = False
    takes: Sequence[Described] = ()
    gives: Sequence[Described] = ()

    def __init__(self, path: Path, model: str, compile_arguments: Mapping[str, Any] | None) -> None:
        self.path = path
        self._model = model
        self._compile = compile_arguments
        self._class = self._model_class()
        parameters = list(inspect.signature(self._class.forward).parameters.values())[1:]
        takes_any = any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters)
        named = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
        self.inputs: Mapping[str, int] = {} if takes_any else {each.name: index for index, each in enumerate(named)}
        self.input_count: int | None = None if takes_any else len(named)
        self.required = sum(each.default is inspect.Parameter.empty for each in named)

    def open(self, device: str) -> Program:
        """A new module on that device, with its weights, compiled if the configuration says so."""
        torch = runtime()
        try:
            module = self._class()
        except Exception as error:
            raise InternalError(
                f"failed to load model '{self._model}': {self._location(error)}{describe_error(error)}"
            ) from error
        weights = self.path.with_name(WEIGHTS)
        try:
            if weights.is_file():
                module.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        except Exception as error:
            raise InternalError(
                f"failed to load model '{self._model}': '{WEIGHTS}' must hold the weights of {self._class.__name__}, "
                f"as torch.save(model.state_dict()) writes them: {' '.join(describe_error(error).split())}"
            ) from error
        module = (module.to(device) if device else module).eval()
        return _ModuleProgram(module, self._compiled(module), None if device else _home(module))

    def _compiled(self, module: Any) -> Any:
        """What to call in its place. Raises InvalidArgumentError for arguments that `torch.compile` does not know."""
        if self._compile is None:
            return module
        try:
            return runtime().compile(module, **self._compile)
        except Exception as error:
            raise InvalidArgumentError(
                f"torch.compile refuses the TORCH_COMPILE_OPTIONAL_PARAMETERS of model '{self._model}': "
                f"{describe_error(error)}"
            ) from error

    def _model_class(self) -> type[Any]:
        name = f"naiad_torch_model_{uuid4().hex}"
        spec = importlib.util.spec_from_file_location(name, self.path)
        if spec is None or spec.loader is None:
            raise InvalidArgumentError(f"model '{self._model}': '{self.path}' is not a file of Python")
        file = importlib.util.module_from_spec(spec)
        sys.modules[name] = file  # where dataclasses and pickled classes of the file look themselves up
        forget = weakref.finalize(self, sys.modules.pop, name, None)
        try:
            spec.loader.exec_module(file)
        except Exception as error:
            forget()
            raise InvalidArgumentError(
                f"failed to load model '{self._model}': {self._location(error)}{type(error).__name__}: "
                f"{describe_error(error)}"
            ) from error
        kind = runtime().nn.Module
        for candidate in vars(file).values():
            if isinstance(candidate, type) and issubclass(candidate, kind) and candidate.__module__ == name:
                return candidate
        forget()
        raise InvalidArgumentError(
            f"Cannot find a subclass of torch.nn.Module in '{self.path}' of model '{self._model}'; define it there"
        )

    def _location(self, error: Exception) -> str:
        """Where in the file it happened, "" when it was elsewhere."""
        if isinstance(error, SyntaxError):
            return f"{self.path.name}:{error.lineno}: "
        lines = [each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == str(self.path)]
        return f"{self.path.name}:{lines[-1]}: " if lines else ""


class _ModuleProgram:
    """A module, what to call for it, and the device to bring tensors to, None where they are on it already."""

    def __init__(self, module: Any, call: Any, home: Any) -> None:
        self._module = module
        self._call = call
        self.in_place = True  # Python may do anything, and keep its results anywhere
        self._home = home

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        if self._home is not None:
            feeds = [feed.to(self._home) if hasattr(feed, "to") else feed for feed in feeds]
        return results_of(self._call(*feeds))

    def weights(self) -> Iterator[Weight]:
        yield from weights_in(self._module)


def _home(module: Any) -> Any:
    """Where a module that places itself is: where its first parameter is, None without any."""
    first = next(module.parameters(), None)
    return None if first is None else first.device
