"""Model control from a model: `pb_utils.load_model`, `unload_model` and `is_model_ready`."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from naiad.errors import NaiadError
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.logger import context_of_caller
from naiad_kit.calls import ModelCalls

_T = TypeVar("_T")


def load_model(model_name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
    """Load or reload a model and wait until it is READY; `config` is JSON, `files` are named `file:1/model.onnx`.

    Raises TritonModelException when that fails, and where the server's control mode is not explicit.
    """
    contents = {name.removeprefix("file:"): bytes(content) for name, content in (files or {}).items()}
    _call(lambda models: models.load(model_name, config, contents or None))


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Take a model out of service. Raises TritonModelException where the server's control mode is not explicit."""
    _call(lambda models: models.unload(model_name, unload_dependents))


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Whether a version (any of them without one) can serve. Raises TritonModelException for what is not a version."""
    if model_version and not str(model_version).isdecimal():
        raise TritonModelException(f"'{model_version}' is not a version; give a whole number as text, such as '1'")
    return _call(lambda models: models.ready(model_name, int(model_version or 0)))


def _call(ask: Callable[[ModelCalls], _T]) -> _T:
    context = context_of_caller()
    if context is None:
        raise TritonModelException("models are loaded, unloaded and asked for by the code of a model only")
    try:
        return ask(context.models)
    except NaiadError as error:
        raise TritonModelException(str(error)) from error
