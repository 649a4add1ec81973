"""Bare model folders on this machine: what of them is linked into a temporary repository."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from naiad_config.bare import BareModel, bare_model


@dataclass(frozen=True, slots=True)
class LinkedFolder:
    """A model of links: each path in the model's folder with its target; "" is the model's folder itself."""

    path: Path
    name: str
    links: Mapping[str, str]

    def write(self, folder: Path) -> None:
        """Make the model's folder, in a repository that exists."""
        for inside, target in self.links.items():
            link = folder / inside if inside else folder
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(self.path / target)


def bare_folder(path: Path, files: Sequence[str]) -> BareModel | None:
    """The model of that folder, None for a repository; `files` are the names of model files, in order of detection."""
    return bare_model(_two_levels(path), files)


def readable(path: Path) -> Sequence[Path]:
    """What is in a folder; nothing for what is no folder, or may not be read, which the server reports."""
    try:
        return list(path.iterdir())
    except OSError:
        return ()


def empty_version(path: Path) -> str:
    """The first version folder of a folder that has nothing but version folders without files; else ""."""
    folders = sorted(each for each in readable(path) if each.is_dir())
    try:
        is_empty = all(each.name.isdigit() and not any(each.iterdir()) for each in folders)
    except OSError:
        return ""
    return folders[0].name if folders and is_empty else ""


def _two_levels(path: Path) -> Iterator[str]:
    """The paths of what is in a folder and in its folders, but for what is hidden."""
    for child in readable(path):
        if child.name.startswith((".", "__")):
            continue
        yield child.name
        if child.is_dir():
            yield from (f"{child.name}/{each.name}" for each in readable(child))
