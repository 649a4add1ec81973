"""Bare model folders: a folder that is one model and no repository, as KServe puts one into `/mnt/models`."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from naiad.errors import InvalidArgumentError
from naiad_config.repository import version_numbers

_SAVED_MODEL = "saved_model.pb"
"""The file by which TensorFlow knows the folder of a SavedModel; Triton calls such a folder model.savedmodel."""


@dataclass(frozen=True, slots=True)
class LinkedFolder:
    """A model of links: each path in the model's folder with its target; "" is the model's folder itself."""

    path: Path
    name: str
    links: Mapping[str, Path]

    def write(self, folder: Path) -> None:
        """Make the model's folder, in a repository that exists."""
        for inside, target in self.links.items():
            link = folder / inside if inside else folder
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)


def linked_folder(path: Path, name: str, files: Collection[str]) -> LinkedFolder | None:
    """The model of a folder with version folders, or of a SavedModel of TensorFlow; None for another folder.

    `files` are the names of model files and folders that backends read.
    """
    numbered = {child.name: child for child in _folders(path) if child.name.isdecimal() and int(child.name)}
    saved = {number: child for number, child in numbered.items() if (child / _SAVED_MODEL).is_file()}
    if saved:  # TensorFlow Serving has folders such as 0001 too
        return LinkedFolder(path, name, {f"{int(number)}/model.savedmodel": child for number, child in saved.items()})
    if is_model_folder(path, files):
        return LinkedFolder(path, name, {"": path})
    if (path / _SAVED_MODEL).is_file():
        return LinkedFolder(path, name, {"1/model.savedmodel": path})
    return None


def loose_file(path: Path, files: Collection[str], suffixes: Collection[str]) -> Path | None:
    """The model file of a folder without version folders; None where there is none, or where models have folders.

    A file of the names `files`, in their order, else the only one that ends in one of the `suffixes`. Raises
    InvalidArgumentError when there are several of these.
    """
    if not path.is_dir() or any(
        version_numbers(child) or (child / "config.pbtxt").is_file() for child in _folders(path)
    ):
        return None
    named = next((path / file for file in files if (path / file).exists()), None)
    if named is not None:
        return named
    loose = sorted(child for child in path.iterdir() if child.suffix in suffixes and child.is_file())
    if len(loose) > 1:
        listed = ", ".join(child.name for child in loose)
        raise InvalidArgumentError(
            f"'{path}' has several model files, {listed}; name the one to serve, as naiad serve {loose[0]}, or call it "
            f"model{loose[0].suffix}"
        )
    return loose[0] if loose else None


def is_model_folder(path: Path, files: Collection[str]) -> bool:
    """Whether it has version folders, and a configuration or a model file in one of them."""
    versions = version_numbers(path)
    return bool(versions) and (
        (path / "config.pbtxt").is_file() or any(has_model_file(path / str(version), files) for version in versions)
    )


def has_model_file(folder: Path, files: Collection[str]) -> bool:
    """Whether one of these files or folders is in it."""
    return folder.is_dir() and any(each.name in files for each in folder.iterdir())


def _folders(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from (child for child in path.iterdir() if child.is_dir() and child.name[0] not in "._")
