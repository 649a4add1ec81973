"""The backend `custom`: serves the shared library in a version folder."""

from pathlib import Path

from naiad.backend import BackendTraits, ModelContext
from naiad_config import ModelConfig
from naiad_config.text import parse_text
from naiad_custom.shared_library.completion import completed
from naiad_custom.shared_library.library import Library
from naiad_custom.shared_library.model import LibraryModel
from naiad_custom.shared_library.opening import DEFAULT_FILE, library_file, open_library
from naiad_custom.shared_library.setup import Preparation

_Stamp = tuple[int, int, int]


class CustomBackend:
    """Loads libraries, each once for as long as its file stays the same: a library is never unloaded."""

    traits = BackendTraits(
        name="custom",
        platforms=("custom",),
        files={DEFAULT_FILE: "custom"},
        loads_in_parallel=False,
        executes_files=True,
    )

    def __init__(self) -> None:
        self._libraries: dict[Path, tuple[_Stamp, Library]] = {}

    def complete(self, context: ModelContext) -> ModelConfig:
        """The configuration with what naiad_complete says; as it is where the library has no such function.

        Raises NaiadError when the library cannot be loaded, fails, or contradicts the configuration.
        """
        return _completed(context, self._library(context))

    def load(self, context: ModelContext) -> LibraryModel:
        """Load one version. Raises NaiadError like `complete`, and for configurations that no library can serve."""
        library = self._library(context)
        _completed(context, library)
        return LibraryModel(context, library)

    def _library(self, context: ModelContext) -> Library:
        path = library_file(context)
        status = path.stat()
        stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        kept = self._libraries.get(path)
        if kept is not None and kept[0] == stamp:
            return kept[1]
        library = open_library(path, context.config.name)
        self._libraries[path] = (stamp, library)
        return library


def _completed(context: ModelContext, library: Library) -> ModelConfig:
    if not library.has("naiad_complete"):
        return context.config
    preparation = Preparation(context)
    code = library.complete(preparation.struct)
    if code or preparation.failure is not None:
        raise preparation.error("naiad_complete", code)
    if not preparation.configuration:
        return context.config
    return completed(context.config, parse_text(preparation.configuration, file=f"naiad_complete of {library.name}"))
