"""Layouts of stores: which objects belong to which model of a repository, to a bare model, or to a model file."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from naiad.errors import InvalidArgumentError
from naiad_config.bare import bare_model
from naiad_config.detection import KNOWN_FORMATS
from naiad_store.sources import StoredObject

Files = Mapping[str, StoredObject]
"""Objects by their paths below a folder."""

_MODEL_FILES = [known.file for known in KNOWN_FORMATS]


def models_of(files: Files, name: str, url: str) -> Mapping[str, Files]:
    """The files of each model, by its name, in the folder of `url` with these `files`.

    The folder is a repository of models, or with a `name` perhaps one model. Raises InvalidArgumentError for one model
    without a name, and for one with several model files.
    """
    files = {path: stored for path, stored in files.items() if not path.startswith(".")}
    bare = bare_model(files, _MODEL_FILES)
    if bare is None:
        return repository_models(files)
    if not name:
        raise InvalidArgumentError(
            f"'{url}' is one model, not a repository of models; add --model-name=NAME, or #NAME to the URL"
        )
    file = bare.file(url)
    linked = {
        f"{inside}/{path[len(target) :].lstrip('/')}".lstrip("/"): stored
        for path, stored in files.items()
        for inside, target in bare.links.items()
        if path != "config.pbtxt" and (not target or path.startswith(f"{target}/"))
    }
    if "config.pbtxt" in files:
        linked["config.pbtxt"] = files["config.pbtxt"]
    return {name: _with_model_file(linked, file) if file else linked}


def repository_models(files: Files) -> Mapping[str, Files]:
    """The files of each folder that may be a model, by its name."""
    models: dict[str, dict[str, StoredObject]] = {}
    for path, stored in files.items():
        name, _, inside = path.partition("/")
        if inside and not name.startswith((".", "__")):
            models.setdefault(name, {})[inside] = stored
    return models


def model_of_file(files: Files, file: str) -> Files:
    """The files of the model with that model file in a folder with these `files`: those whose names begin as its own.

    `<stem>.pbtxt` is its configuration. There are none where there is no such file.
    """
    stem = PurePosixPath(file).stem
    if file not in files:
        return {}
    beside = {
        f"1/{path}": stored
        for path, stored in files.items()
        if "/" not in path and path.startswith((f"{stem}.", f"{stem}_")) and path != f"{stem}.pbtxt"
    }
    configuration = {"config.pbtxt": files[f"{stem}.pbtxt"]} if f"{stem}.pbtxt" in files else {}
    return {**_with_model_file(beside, file), **configuration}


def is_model_file(path: str) -> bool:
    """Whether a path ends as a model file does."""
    return PurePosixPath(path).suffix in {PurePosixPath(file).suffix for file in _MODEL_FILES}


def _with_model_file(files: Files, file: str) -> Files:
    """With the model file, and those of the same stem, under the names by which a backend finds its files too."""
    stem = PurePosixPath(file).stem
    if file in _MODEL_FILES:
        return files
    also = {
        f"1/model{PurePosixPath(path).suffix}": stored
        for path, stored in files.items()
        if path.startswith("1/") and PurePosixPath(path).stem == stem
    }
    return {**also, **files}
