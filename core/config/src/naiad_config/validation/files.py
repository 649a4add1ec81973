"""Rules for the files that a configuration names: they stay in their folders, exist, and are large enough."""

import math
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from naiad_config.errors import Problem
from naiad_config.model import ModelConfig
from naiad_config.paths import entry
from naiad_config.tensors import DataType, element_bytes


def problems(config: ModelConfig) -> Iterator[Problem]:
    """File names that would leave their folder."""
    inside = {
        "default_model_filename": config.default_model_filename,
        **{entry("cc_model_filenames", key): filename for key, filename in config.cc_model_filenames.items()},
    }
    for path, filename in inside.items():
        yield from _leaving(filename, path, "version folder")
    if config.runtime and (_leaves(config.runtime) or "/" in config.runtime):
        message = f"backend library name '{config.runtime}' escapes backend directory"
        yield Problem(message, "runtime", hint="give a file name without folders")
    for index, output in enumerate(config.output):
        yield from _leaving(output.label_filename, f"output[{index}].label_filename", "model folder")
    for path, filename, _, _ in _samples(config):
        yield from _leaving(filename, path, "folder of its kind (warmup or initial_state)")


def missing(config: ModelConfig, model_directory: Path) -> Iterator[Problem]:
    """Files that are not there, or hold fewer bytes than their tensor."""
    for index, output in enumerate(config.output):
        file = model_directory / output.label_filename
        if output.label_filename and not _leaves(output.label_filename) and _size(file) is None:
            message = f"the label file '{output.label_filename}' of output '{output.name}' is not in the model folder"
            yield Problem(message, f"output[{index}].label_filename", hint=f"put it at {file}")
    for path, filename, folder, expected in _samples(config):
        if _leaves(filename):
            continue
        file = model_directory / folder / filename
        size = _size(file)
        if size is None:
            yield Problem(f"the file '{filename}' is not there", path, hint=f"put it at {file}")
        elif size < expected:
            message = f"{folder} setting expects {expected} bytes, but the data provided from {filename} "
            yield Problem(f"{message}only has {size} bytes", path)


def _samples(config: ModelConfig) -> Iterator[tuple[str, str, str, int]]:
    """Every file with the content of a tensor: path of its key, file name, folder, and bytes that it must hold."""
    for index, sample in enumerate(config.model_warmup):
        for name, data in sample.inputs.items():
            if data.input_data_file is not None:
                path = entry(f"model_warmup[{index}].inputs", name)
                yield f"{path}.input_data_file", data.input_data_file, "warmup", _bytes(data.data_type, data.dims)
    states = config.sequence_batching.state if config.sequence_batching is not None else ()
    for index, state in enumerate(states):
        for position, initial in enumerate(state.initial_state):
            if initial.data_file is not None:
                path = f"sequence_batching.state[{index}].initial_state[{position}].data_file"
                yield path, initial.data_file, "initial_state", _bytes(initial.data_type, initial.dims)


def _bytes(data_type: DataType, dims: Sequence[int]) -> int:
    """The bytes of a tensor of that shape; 0 for strings and for what other rules refuse."""
    if data_type == DataType.TYPE_INVALID or any(dim < 0 for dim in dims):
        return 0
    return math.prod(dims) * element_bytes(data_type)


def _size(file: Path) -> int | None:
    """The bytes of a file; None when it is not there, is no file, or can have no such name."""
    try:
        state = file.stat()
    except OSError:
        return None
    return state.st_size if stat.S_ISREG(state.st_mode) else None


def _leaving(filename: str, path: str, folder: str) -> Iterator[Problem]:
    if _leaves(filename):
        message = f"the file name '{filename}' leaves the {folder}"
        yield Problem(message, path, hint="give a name relative to it, without '..'")


def _leaves(filename: str) -> bool:
    pure = PurePosixPath(filename)
    return pure.is_absolute() or ".." in pure.parts or "\0" in filename
