"""Runs a compiled package without the GIL, which PyTorch's own binding holds during the run.

Meanwhile nothing else of the server would go on, health checks included. The functions are the C interface that every
compiled package exports (torch/csrc/inductor/aoti_runtime/interface.h), called by ctypes, which gives the lock away.
Handles of tensors are made by what PyTorch offers to its own generated code. None of this is public: another version
of PyTorch could change a signature, and crash the server. So a model must ask for it (RELEASE_INTERPRETER_LOCK), and it
is used with exactly the versions that it is tested with: PyTorch's own loader runs all other packages.
"""

import ctypes
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from naiad_torch.runtime import runtime

TESTED_VERSIONS = ("2.13.0",)
"""The releases of PyTorch whose interface is known: add one when the tests of this module pass with it."""

_FOLDER = "/data/aotinductor/"
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)


class UnlockedModel:
    """The model of a package's library, on the CPU; any thread may run it."""

    def __init__(self, library: ctypes.CDLL) -> None:
        """Raises RuntimeError if it cannot be created, AttributeError if the library lacks the functions."""
        self._container = ctypes.c_void_p()  # first, for `__del__` of an instance that could not be made
        self._library = library
        self._run = library.AOTInductorModelContainerRun
        make = library.AOTInductorModelContainerCreateWithDevice
        _check("making it", make(ctypes.byref(self._container), ctypes.c_size_t(1), b"cpu", None))
        self._inputs = self._count(library.AOTInductorModelContainerGetNumInputs)
        self._outputs = self._count(library.AOTInductorModelContainerGetNumOutputs)

    def __del__(self) -> None:
        if self._container:
            self._library.AOTInductorModelContainerDelete(self._container)

    def run(self, feeds: Sequence[Any]) -> Sequence[Any]:
        """Its results for these tensors, in C order. Raises RuntimeError when it fails, which says why on stderr."""
        if len(feeds) != self._inputs:  # it would read what is not there
            raise RuntimeError(f"the compiled model takes {self._inputs} tensors and was given {len(feeds)}")
        binding = runtime()._C._aoti
        capsules = binding.unsafe_alloc_void_ptrs_from_tensors(list(feeds))
        arguments = (ctypes.c_void_p * len(feeds))(*[_pointer(each, None) for each in capsules])
        results = (ctypes.c_void_p * self._outputs)()
        counts = ctypes.c_size_t(len(feeds)), ctypes.c_size_t(self._outputs)
        _check("running it", self._run(self._container, arguments, counts[0], results, counts[1], None, None))
        pointers = [_capsule(each, None, None) for each in results]
        # `alloc_tensor_by_stealing_from_void_ptr`, for one tensor, leaks it
        tensors: Sequence[Any] = binding.alloc_tensors_by_stealing_from_void_ptrs(pointers)
        return tensors

    def _count(self, ask: Any) -> int:
        count = ctypes.c_size_t()
        _check("asking it", ask(self._container, ctypes.byref(count)))
        return count.value


def unlocked(library: ctypes.CDLL | None) -> UnlockedModel | None:
    """A model of that library, None without one and where it is not as expected."""
    if library is None:
        return None
    try:
        return UnlockedModel(library)
    except (RuntimeError, AttributeError):
        return None


def is_tested() -> bool:
    """Whether this PyTorch is one of `TESTED_VERSIONS`, in any build (`2.13.0+cpu`)."""
    return str(runtime().__version__).partition("+")[0] in TESTED_VERSIONS


def library_in(path: Path) -> ctypes.CDLL | None:
    """The library of a self-contained package; None for a package that needs PyTorch's own loader.

    That is where weights lie beside the library, where operators of PyTorch are called by name, and for every package
    where this PyTorch is not among the tested versions. It is never closed, for `dlclose` leaves it where it is: it has
    unique symbols (`STB_GNU_UNIQUE`).
    """
    if not is_tested():
        return None
    with zipfile.ZipFile(path) as package:
        names = [name for name in package.namelist() if _FOLDER in name]
        libraries = [name for name in names if name.endswith(".so")]
        beside = [name for name in names if not name.endswith((".so", ".cpp", "_metadata.json"))]
        if len(libraries) != 1 or beside or any("/data/weights/" in name for name in package.namelist()):
            return None
        with tempfile.TemporaryDirectory(prefix="naiad-") as folder:
            extracted = package.extract(libraries[0], folder)
            try:
                return ctypes.CDLL(extracted)
            except OSError:
                return None


def _check(doing: str, code: int) -> None:
    if code:
        raise RuntimeError(f"{doing} failed with code {code}; PyTorch has written the reason to stderr")
