"""Shared libraries that are compiled for the tests, and the backend that loads them without a server."""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from naiad_custom.include import include_dir
from naiad_custom.shared_library.backend import CustomBackend
from naiad_testing.workbench import Loaded, Workbench

SOURCES = Path(__file__).parent / "sources"
STRICT = ("-Wall", "-Wextra", "-Werror", "-pedantic")
X_TO_Y = 'input { name: "X" data_type: TYPE_FP32 dims: 2 } output { name: "Y" data_type: TYPE_FP32 dims: 2 }'


class Compiler:
    """The machine's compiler; what it has compiled is kept for the session."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._libraries: dict[tuple[str, ...], Path] = {}

    def library(self, source: str, *options: str, program: str = "cc", standard: str = "c99") -> Path:
        """A shared library of one of the sources, or of a text."""
        if shutil.which(program) is None:
            pytest.skip(f"this machine has no compiler '{program}' to build a shared library with")
        key = (source, program, standard, *options)
        if key not in self._libraries:
            self._libraries[key] = self._compile(source, program, standard, options)
        return self._libraries[key]

    def _compile(self, source: str, program: str, standard: str, options: tuple[str, ...]) -> Path:
        folder = self._folder / str(len(self._libraries))
        folder.mkdir()
        file = SOURCES / source
        if "\n" in source:
            file = folder / ("source.cpp" if program == "c++" else "source.c")
            file.write_text(source)
        library = folder / "lib.so"
        flags = (f"-std={standard}", *STRICT, "-fPIC", "-shared", f"-I{include_dir()}")
        done = subprocess.run(
            [program, *flags, file, "-o", library, *options], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return library


class LibraryWorkbench(Workbench):
    """Puts libraries into the version folder as well."""

    def put(self, library: Path, name: str = "libcustom.so") -> Path:
        """Copy it there, as a file of its own."""
        path = self.path(name)
        path.unlink(missing_ok=True)
        shutil.copyfile(library, path)
        return path

    def serve(self, library: Path, config: str = X_TO_Y, parameters: Mapping[str, str] | None = None) -> Loaded:
        """Put the library there, and load it."""
        self.put(library)
        message = (
            f'parameters {{ key: "{k}" value {{ string_value: "{v}" }} }}' for k, v in (parameters or {}).items()
        )
        return self.load("\n".join((config, *message)))


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    return Compiler(tmp_path_factory.mktemp("libraries"))


@pytest.fixture
def workbench(tmp_path: Path) -> LibraryWorkbench:
    return LibraryWorkbench(tmp_path / "m", CustomBackend())


@pytest.fixture
def misbehave(compiler: Compiler, workbench: LibraryWorkbench) -> Callable[..., Loaded]:
    """A model X -> Y that makes one of the mistakes of `mistakes.c` with the request 0 of each batch."""

    def serve(mistake: str, config: str = f"max_batch_size: 8 {X_TO_Y}") -> Loaded:
        return workbench.serve(compiler.library("mistakes.c"), config, {"mistake": mistake})

    return serve
