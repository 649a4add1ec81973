"""Model files of TensorFlow: the SavedModel or GraphDef, its init ops and its libraries."""

import json
from pathlib import Path

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError
from naiad_tensorflow.artefact import Artefact
from naiad_tensorflow.frozen_graph import FrozenGraph
from naiad_tensorflow.parameters import RunSettings
from naiad_tensorflow.runtime import describe_error, runtime
from naiad_tensorflow.saved_model import SavedModel

SAVED_MODEL, FROZEN_GRAPH = "tensorflow_savedmodel", "tensorflow_graphdef"
_DEFAULTS = {SAVED_MODEL: "model.savedmodel", FROZEN_GRAPH: "model.graphdef"}


def model_path(context: ModelContext) -> Path:
    """The SavedModel's folder, or the graph's file. Raises NotFoundError, with what is there instead."""
    platform = context.config.platform
    defaults = (_DEFAULTS[platform],) if platform in _DEFAULTS else tuple(_DEFAULTS.values())
    return context.existing_path(*(context.model_path(default) for default in defaults))


def read_artefact(path: Path, context: ModelContext, settings: RunSettings) -> Artefact:
    """The model there. Raises InvalidArgumentError when it is none, or not of the platform that is written."""
    load_libraries(context, settings)
    config = context.config
    platform = SAVED_MODEL if path.is_dir() else FROZEN_GRAPH
    if config.platform not in ("", platform):
        raise InvalidArgumentError(
            f"failed to load model '{config.name}': '{path.name}' is a {'folder' if path.is_dir() else 'file'}, as "
            f"models of the platform {platform} are, and not of {config.platform}; correct the platform"
        )
    return SavedModel(path, config.name, settings) if path.is_dir() else FrozenGraph(path, config)


def load_libraries(context: ModelContext, settings: RunSettings) -> None:
    """Load the libraries with operators of the user's own. Raises InvalidArgumentError."""
    for library in settings.libraries:
        start = f"op_library_filename '{library}' of model '{context.config.name}'"
        path = context.path_inside(library, start)
        try:
            runtime().load_op_library(str(path))
        except Exception as error:
            raise InvalidArgumentError(f"{start} cannot be loaded: {describe_error(error)}") from error


def init_ops(context: ModelContext, settings: RunSettings) -> list[str]:
    """The operations to run in a new session; their file lies in the version's folder, or else in the model's.

    Raises InvalidArgumentError when it is not there or is invalid.
    """
    if not settings.init_ops_file:
        return []
    start = f"TF_INIT_OPS_FILE '{settings.init_ops_file}' of model '{context.config.name}'"
    candidates = [folder / settings.init_ops_file for folder in (context.version_directory, context.model_directory)]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise InvalidArgumentError(f"{start} is neither in the version's folder nor in the model's")
    path = context.path_inside(path, start)
    try:
        names = json.loads(path.read_text(encoding="utf-8"))["init_ops"]
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f'{start} must hold {{"init_ops": ["name"]}}: {error}') from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidArgumentError(f'{start} must hold {{"init_ops": ["name"]}}, a list of names')
    return names
