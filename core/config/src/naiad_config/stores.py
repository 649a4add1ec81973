"""Model stores: model repositories that are not folders, such as object stores, and the models of either kind."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from naiad_config import repository
from naiad_config.errors import InvalidArgumentError, NaiadError


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model of a remote repository, its `parent`; `digest` changes with the files.

    `fetch` blocks, and gives a folder with these files, which stays as it is. It raises NaiadError.
    """

    name: str
    parent: "RemoteRepository"
    digest: str
    fetch: Callable[[], Path]


class RemoteRepository(Protocol):
    """A model repository that is not a folder; `str()` gives its URL. For threads: its methods block."""

    @property
    def problem(self) -> str:
        """Why it cannot be reached now, "" while it can."""

    def models(self, name: str = "", is_elsewhere: bool = False) -> Mapping[str, RemoteModel]:
        """The models by name, or only the model `name`.

        A repository that cannot be reached answers with its last listing. `is_elsewhere` says that another repository
        has the model, so that a slow answer is not waited for. Raises NaiadError when the repository cannot be reached
        and has no listing, or its last listing lacks `name`.
        """


@runtime_checkable
class RepositoryScheme(Protocol):
    """A kind of model repository that is not a folder."""

    @property
    def name(self) -> str:
        """What its URLs begin with, as `s3`."""

    def open(self, url: str, settings: Mapping[str, Any]) -> RemoteRepository:
        """The repository of that URL, with the server's options; it is not reached yet.

        Raises NaiadError for a URL or option that is wrong.
        """


Root = Path | RemoteRepository
"""A model repository: a folder, or one that is not."""

Location = Path | RemoteModel
"""Where a model is: its folder, or what fetches one."""


def roots_of(
    names: Sequence[str | Path], scheme: Callable[[str], RepositoryScheme], settings: Mapping[str, Any]
) -> list[Root]:
    """The repositories of these names, each once; `scheme` finds the scheme of a URL.

    Raises what `scheme` and `RepositoryScheme.open` raise.
    """
    urls = dict.fromkeys(str(name) for name in names if "://" in str(name))
    folders = {Path(name).resolve(): Path(name).absolute() for name in names if str(name) not in urls}
    return [*folders.values(), *(scheme(url.partition("://")[0]).open(url, settings) for url in urls)]


def scan(roots: Sequence[Root]) -> dict[str, list[Location]]:
    """Where the models are, by name. Blocks. Raises NaiadError for a repository that cannot be read."""
    folders = repository.scan([root for root in roots if isinstance(root, Path)])
    every: dict[str, list[Location]] = {name: [*paths] for name, paths in folders.items()}
    for root in roots:
        for name, model in {} if isinstance(root, Path) else root.models().items():
            every.setdefault(name, []).append(model)
    return every


def find(roots: Sequence[Root], name: str) -> list[Location]:
    """Where one model is; nowhere for a name that cannot be a folder's. Blocks.

    Raises the NaiadError of a repository that cannot be read when no other one has the model.
    """
    locations: list[Location] = []
    unread: NaiadError | None = None
    for root in roots:
        try:
            locations += _find(root, name, is_elsewhere=bool(locations))
        except NaiadError as error:
            unread = unread or error
    if unread and not locations:
        raise unread
    return locations


def folder_of(location: Location) -> Path:
    """The folder of a model, fetched where it is not there. Blocks. Raises NaiadError."""
    return location if isinstance(location, Path) else location.fetch()


def only(name: str, locations: Sequence[Location]) -> Location:
    """The one location of a model. Raises InvalidArgumentError for a model that several repositories have."""
    if len(locations) > 1:
        why = describe_ambiguity(locations)
        raise InvalidArgumentError(f"failed to poll model '{name}': not unique across all model repositories; {why}")
    return locations[0]


def describe_ambiguity(locations: Sequence[Location]) -> str:
    """Why a model cannot be loaded that several repositories have; "" for any other one."""
    if len(locations) < 2:
        return ""
    return f"model appears in two or more repositories: {', '.join(str(each.parent) for each in locations)}"


def problem_of(locations: Iterable[Location]) -> str:
    """Why the stores of these cannot be reached now, "" while they can."""
    remote = [each.parent.problem for each in locations if not isinstance(each, Path)]
    return "; ".join(filter(None, remote))


def _find(root: Root, name: str, is_elsewhere: bool) -> Iterable[Location]:
    if isinstance(root, Path):
        return repository.find([root], name)
    return root.models(name, is_elsewhere).values() if repository.is_folder_name(name) else ()
