"""Model files of OpenVINO: found in the version folder, read, and reshaped as the configuration says."""

from pathlib import Path
from typing import Any

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError
from naiad_config import ModelConfig
from naiad_kit.backends.interface import shape_text
from naiad_openvino.interface import port_indices
from naiad_openvino.parameters import RunSettings
from naiad_openvino.runtime import describe_error, runtime

FILES = ("model.xml", "model.onnx", "model.saved_model", "model.tflite", "model.pdmodel")
"""What a version folder may hold, the format of OpenVINO itself first."""


def model_file(context: ModelContext) -> Path:
    """The model's file, or folder where the format has one. Raises NotFoundError, with what is there instead."""
    return context.existing_path(*map(context.model_path, FILES))


def make_core(context: ModelContext, settings: RunSettings) -> Any:
    """An `openvino.Core` with the user's operators. Raises InvalidArgumentError when these cannot be loaded."""
    core = runtime().Core()
    if settings.extension:
        start = f"CPU_EXTENSION_PATH '{settings.extension}' of model '{context.config.name}'"
        path = context.path_inside(settings.extension, start)
        try:
            core.add_extension(str(path))
        except Exception as error:
            raise InvalidArgumentError(f"{start} cannot be loaded: {describe_error(error)}") from error
    return core


def read_model(core: Any, path: Path, config: ModelConfig, settings: RunSettings) -> Any:
    """The `openvino.Model`, with a variable batch dimension where the configuration batches and nothing forbids it.

    A model that pads batches keeps the dimension of its file where it cannot vary. Raises InvalidArgumentError when the
    file is not a model, or cannot have those shapes.
    """
    model = _read(core, path, config)
    shapes = _shapes(model, config, settings)
    if not shapes:
        return model
    may_keep = settings.pads and not settings.reshapes
    try:
        model.reshape(shapes)
    except Exception as error:
        if may_keep:
            return _read(core, path, config)
        names = {index: name for name, index in reversed(port_indices(model.inputs).items())}
        requested = ", ".join(f"input '{names[index]}': {shape_text(shape)}" for index, shape in shapes.items())
        raise InvalidArgumentError(
            f"model '{config.name}' from '{path.name}' cannot have the shapes {requested}: {describe_error(error)}"
        ) from error
    return _read(core, path, config) if may_keep and any(map(_is_fixed, model.outputs)) else model


def _read(core: Any, path: Path, config: ModelConfig) -> Any:
    try:
        return core.read_model(str(path))
    except Exception as error:
        raise InvalidArgumentError(
            f"failed to load model '{config.name}' from '{path.name}': {describe_error(error)}"
        ) from error


def _shapes(model: Any, config: ModelConfig, settings: RunSettings) -> dict[int, list[int]]:
    """The shapes to give to inputs, by their places."""
    batch = [-1] if config.max_batch_size > 0 and not settings.keeps_batch else []
    if settings.reshapes:
        indices = port_indices(model.inputs)
        kept = [config.max_batch_size] if config.max_batch_size > 0 and settings.keeps_batch else []
        return {
            indices[model_input.name]: [
                *kept,
                *batch,
                *(model_input.reshape.shape if model_input.reshape is not None else model_input.dims),
            ]
            for model_input in config.input
            if model_input.name in indices
        }
    if not batch or not all(_is_fixed(port) for port in model.inputs):
        return {}
    return {index: [-1, *_rest(port)] for index, port in enumerate(model.inputs)}


def _is_fixed(port: Any) -> bool:
    rank = port.partial_shape.rank
    return bool(rank.is_static and rank.get_length() > 0 and port.partial_shape[0].is_static)


def _rest(port: Any) -> list[int]:
    return [dim.get_length() if dim.is_static else -1 for dim in port.partial_shape][1:]
