"""Bare models: a folder that is one model and no repository, as KServe puts one into `/mnt/models`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from naiad_config.errors import InvalidArgumentError

_SAVED_MODEL = "saved_model.pb"
"""The file by which TensorFlow knows the folder of a SavedModel; Triton calls such a folder model.savedmodel."""


@dataclass(frozen=True, slots=True)
class BareModel:
    """How a folder becomes the folder of a model.

    `links` are paths in the folder of the model, each with the path in the bare folder that it stands for; "" is the
    folder itself. `files` are the model files where the bare folder is all of a version: one, or those of which none
    has the name of a model file.
    """

    links: Mapping[str, str]
    files: Sequence[str] = ()

    def file(self, folder: str) -> str:
        """The model file of a bare folder that is a version, "" for another; `folder` is its name.

        Raises InvalidArgumentError where there are several.
        """
        if len(self.files) > 1:
            raise InvalidArgumentError(
                f"'{folder}' has several model files, {', '.join(self.files)}; name the one to serve, "
                f"{folder}/{self.files[0]}, or call it model{PurePosixPath(self.files[0]).suffix}"
            )
        return next(iter(self.files), "")


def bare_model(paths: Iterable[str], files: Sequence[str]) -> BareModel | None:
    """The model of a folder with these paths, None for a repository of models and for a folder without a model.

    The paths are relative to the folder, with slashes, and two levels are enough. `files` are the names of model files
    and folders, in the order of detection; a file counts that has one of these names, else those with one of their
    suffixes.
    """
    children: dict[str, set[str]] = {}
    for path in paths:
        child, _, below = path.partition("/")
        children.setdefault(child, set()).update([below.partition("/")[0]] if below else [])
    versions = {child: names for child, names in children.items() if _is_version(child)}
    saved = {child: child for child, names in versions.items() if _SAVED_MODEL in names}
    if saved:  # TensorFlow Serving has folders such as 0001 too
        return BareModel({f"{int(child)}/model.savedmodel": child for child in saved})
    if versions and ("config.pbtxt" in children or any(names & {*files} for names in versions.values())):
        return BareModel({"": ""})
    if any("config.pbtxt" in names or any(map(_is_version, names)) for names in children.values()):
        return None
    if _SAVED_MODEL in children:
        return BareModel({"1/model.savedmodel": ""})
    named = [file for file in files if file in children][:1]
    suffixes = {PurePosixPath(file).suffix for file in files}
    loose = named or [child for child in sorted(children) if PurePosixPath(child).suffix in suffixes]
    return BareModel({"1": ""}, loose) if loose else None


def _is_version(name: str) -> bool:
    return name.isascii() and name.isdigit() and int(name) > 0
