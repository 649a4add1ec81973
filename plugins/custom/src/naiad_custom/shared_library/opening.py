"""Loading of shared libraries: finds the file, checks it, and explains each failure."""

import ctypes
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError, NotFoundError, UnsupportedError
from naiad_custom.include import include_dir
from naiad_custom.shared_library import abi, elf
from naiad_custom.shared_library.library import Library

DEFAULT_FILE = "libcustom.so"
REQUIRED = ("naiad_initialize", "naiad_execute", "naiad_finalize")
_OTHER_INTERFACES = {
    "TRITONBACKEND_ModelInstanceExecute": "Triton's C API of backends",
    "CustomExecute": "the C API that Triton's custom backends had",
    "CustomExecuteV2": "the C API that Triton's custom backends had",
}


def library_file(context: ModelContext) -> Path:
    """The path of the model's library. Raises NotFoundError, which lists the files of the folder."""
    path = context.model_path(DEFAULT_FILE)
    if path.is_file():
        return path
    folder = context.version_directory
    names = sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []
    if "model.py" in names:
        step = 'model.py is served with backend: "python"; for a library, build it, or name it with '
    else:
        step = "build it there, or name it with "
    raise NotFoundError(
        f"unable to find '{path}' for model '{context.config.name}': "
        + (f"the version folder has {', '.join(names)}; " if names else "the version folder is empty; ")
        + f"{step}default_model_filename"
    )


def open_library(path: Path, model: str) -> Library:
    """Load the library at `path`.

    Raises InvalidArgumentError when it is not a library for this machine, cannot be loaded or lacks a function, and
    UnsupportedError when it was built with another version of the header.
    """
    start = f"failed to load model '{model}' from '{path}'"
    try:
        header = _first_bytes(path)
    except OSError as error:
        raise InvalidArgumentError(f"{start}: {error.strerror}; the server must be able to read it") from error
    objection = elf.objection(header, _first_bytes(Path(sys.executable)))
    if objection:
        raise InvalidArgumentError(f"{start}: {objection}")
    functions = _loaded(path, start)
    _check_functions(functions, start)
    _check_abi(functions, start)
    return Library(path.name, functions)


def _first_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(elf.HEADER_SIZE)


def _loaded(path: Path, start: str) -> ctypes.CDLL:
    """The library, loaded from a copy: a file that is written over while it runs takes the process with it.

    Its neighbours are copied too, for those that look for them in `$ORIGIN`. Where the copy cannot be loaded (they lie
    in other folders, or nothing may be executed in the folder of temporary files), the file itself is.
    """
    with TemporaryDirectory(prefix="naiad-custom-") as folder:
        try:
            for neighbour in {path, *path.parent.glob("*.so"), *path.parent.glob("*.so.*")}:
                if neighbour.is_file():
                    shutil.copyfile(neighbour, Path(folder, neighbour.name))
            return ctypes.CDLL(str(Path(folder, path.name)))
        except OSError:
            pass
    try:
        return ctypes.CDLL(str(path.resolve()))
    except OSError as error:
        text = str(error)
        raise InvalidArgumentError(f"{start}: the loader says: {text}; {_next_step(text, path)}") from error


def _next_step(text: str, path: Path) -> str:
    if "cannot open shared object file" in text:
        return (
            f"install that library, or put it beside '{path.name}' and link with -Wl,-rpath,'$ORIGIN'; "
            f"`ldd {path}` lists what is missing"
        )
    if "undefined symbol" in text:
        return "link the library with what has that symbol (-l...); -Wl,--no-undefined reports it at the build"
    if "version `" in text:
        return "build it on a system as old as this one, or in the server's image"
    return f"`ldd -r {path}` may say more"


def _check_functions(functions: ctypes.CDLL, start: str) -> None:
    missing = [name for name in (*REQUIRED, "naiad_abi") if not hasattr(functions, name)]
    if not missing:
        return
    others = {message for name, message in _OTHER_INTERFACES.items() if hasattr(functions, name)}
    known = f"; it was written for {others.pop()}, which Naiad does not support" if others else ""
    raise InvalidArgumentError(
        f"{start}: it has no {', no '.join(missing)}{known}; include naiad_custom.h, which lies in {include_dir()}, "
        "and write the functions that it declares"
    )


def _check_abi(functions: ctypes.CDLL, start: str) -> None:
    functions.naiad_abi.restype = ctypes.c_uint64
    stamp = functions.naiad_abi()
    if stamp == abi.STAMP:
        return
    version, size = stamp >> 32, stamp & 0xFFFFFFFF
    if version != abi.VERSION:
        message = f"it was built with version {version} of naiad_custom.h, and this server has version {abi.VERSION}"
    else:
        message = (
            f"its structs take {size} bytes, and those of this server {abi.STAMP & 0xFFFFFFFF}: it was built with an "
            "option that packs structs, or with a naiad_custom.h that somebody changed"
        )
    raise UnsupportedError(f"{start}: {message}; build it again with the header in {include_dir()}")
