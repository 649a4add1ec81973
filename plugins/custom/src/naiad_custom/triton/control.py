"""Model control from a model: `pb_utils.load_model`, `unload_model` and `is_model_ready`."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from naiad.errors import NaiadError
from naiad_custom.triton.errors import TritonModelException
from naiad_custom.triton.logger import context_of_caller
from naiad_custom.triton.texts import text_of
from naiad_kit.calls import ModelCalls

_T = TypeVar("_T")


def load_model(model_name: str, config: str = "", files: Mapping[str, bytes] | None = None) -> None:
    """Load or reload a model and wait until it is READY; `config` is JSON, `files` are named `file:1/model.onnx`.

    Raises TritonModelException when that fails, and where the server's control mode is not explicit; TypeError for
    arguments of other types.
    """
    name, text = text_of("the name of a model", model_name), text_of("the config of load_model", config)
    if files is not None and not isinstance(files, Mapping):
        raise TritonModelException(
            f"failed to load model '{name}', files should be a dictionary of file paths and file contents"
        )
    contents = {
        text_of("the name of a file", path).removeprefix("file:"): _content(path, content)
        for path, content in (files or {}).items()
    }
    _call(lambda models: models.load(name, text, contents or None))


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Take a model out of service. Raises TritonModelException where the server's control mode is not explicit."""
    name = text_of("the name of a model", model_name)
    _call(lambda models: models.unload(name, bool(unload_dependents)))


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Whether a version (any of them without one) can serve. Raises TritonModelException for what is not a version."""
    name, version = text_of("the name of a model", model_name), text_of("the version of a model", model_version)
    if version and not version.isdecimal():
        raise TritonModelException(f"'{version}' is not a version; give a whole number as text, such as '1'")
    if version and int(version) == 0:  # no model has it; for the kernel, 0 is any version
        return False
    return _call(lambda models: models.ready(name, int(version or 0)))


def _content(path: str | bytes, content: Any) -> bytes:
    if not isinstance(content, bytes | bytearray | memoryview):
        raise TypeError(f"the content of file {path!r} must be bytes, not {type(content).__name__}")
    return bytes(content)


def _call(ask: Callable[[ModelCalls], _T]) -> _T:
    context = context_of_caller()
    if context is None:
        raise TritonModelException("load_model, unload_model and is_model_ready can be called only by a model's code")
    try:
        return ask(context.models)
    except NaiadError as error:
        raise TritonModelException(str(error)) from error
