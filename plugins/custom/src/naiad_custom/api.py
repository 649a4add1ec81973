"""The API of a model.py: the `model` decorator, `Array` annotations and the datatypes.

A type checker takes `Array` for `typing.Annotated` and a datatype for the numpy array it stands for, so
`a: Array[FP32, 16]` is a float32 array to it. At run time `Array[FP32, 16]` keeps datatype and dims for the server.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, overload

from naiad_custom.declaration import ISOLATIONS, MARK, ArraySpec, Declaration

if TYPE_CHECKING:
    from typing import Annotated as Array
    from typing import TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    BOOL: TypeAlias = NDArray[np.bool_]
    UINT8: TypeAlias = NDArray[np.uint8]
    UINT16: TypeAlias = NDArray[np.uint16]
    UINT32: TypeAlias = NDArray[np.uint32]
    UINT64: TypeAlias = NDArray[np.uint64]
    INT8: TypeAlias = NDArray[np.int8]
    INT16: TypeAlias = NDArray[np.int16]
    INT32: TypeAlias = NDArray[np.int32]
    INT64: TypeAlias = NDArray[np.int64]
    FP16: TypeAlias = NDArray[np.float16]
    FP32: TypeAlias = NDArray[np.float32]
    FP64: TypeAlias = NDArray[np.float64]
    BF16: TypeAlias = NDArray[np.float32]
    BYTES: TypeAlias = NDArray[np.object_]
else:
    BOOL, BYTES, BF16, FP16, FP32, FP64 = "BOOL", "BYTES", "BF16", "FP16", "FP32", "FP64"
    INT8, INT16, INT32, INT64 = "INT8", "INT16", "INT32", "INT64"
    UINT8, UINT16, UINT32, UINT64 = "UINT8", "UINT16", "UINT32", "UINT64"

    class Array:
        """`Array[datatype, dim, ...]`: an array of that datatype; the dim -1 is variable, the batch dim is left out."""

        def __class_getitem__(cls, item: Any) -> Any:
            return Annotated[Any, ArraySpec.of(item)]


__all__ = [
    "BF16",
    "BOOL",
    "BYTES",
    "FP16",
    "FP32",
    "FP64",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "Array",
    "ModelMark",
    "model",
]

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ModelMark(Declaration):
    """A declaration whose function or class can be served as it stands (`naiad_testing.serve`)."""

    def serve_from(self, target: Any, repository: Path) -> Sequence[object]:
        """Enter the marked object itself into a model repository; the plugins that serve it (`naiad_testing`)."""
        from naiad_custom.live import enter

        plugins: Sequence[object] = enter(target, repository)
        return plugins


@overload
def model(target: _T, /) -> _T: ...


@overload
def model(
    *, max_batch_size: int = 0, outputs: str | Sequence[str] = (), concurrency: int = 16, isolation: str = ""
) -> Callable[[_T], _T]: ...


def model(
    target: Any = None,
    /,
    *,
    max_batch_size: int = 0,
    outputs: str | Sequence[str] = (),
    concurrency: int = 16,
    isolation: str = "",
) -> Any:
    """Mark the function or class of this file that is served. It is returned unchanged and can be called as before.

    `max_batch_size` above 0 adds a batch dimension in front of all dims and turns dynamic batching on. `outputs` names
    what is returned where the annotation does not. `concurrency` bounds how many calls of an `async def` run at once on
    one instance. `isolation` says where the instances of a served file live: on a "thread" of the server each, in a
    "process" each, or in one process for all of the "model". It is a literal: it is read before the file is imported.
    """
    if type(max_batch_size) is not int or max_batch_size < 0:
        raise TypeError(f"max_batch_size is an integer >= 0, not {max_batch_size!r}")
    if type(concurrency) is not int or concurrency < 1:
        raise TypeError(f"concurrency is an integer >= 1, not {concurrency!r}")
    if isolation not in ("", *ISOLATIONS):
        raise TypeError(f"isolation is {' or '.join(map(repr, ISOLATIONS))}, not {isolation!r}")
    names = (outputs,) if isinstance(outputs, str) else tuple(outputs)
    if len(set(names)) < len(names):
        raise TypeError(f"outputs names one output twice: {names}")
    declaration = ModelMark(max_batch_size, names, concurrency, isolation)

    def mark(definition: Any) -> Any:
        if not callable(definition):
            raise TypeError(f"@model marks a function or a class, not {definition!r}")
        setattr(definition, MARK, declaration)
        return definition

    return mark if target is None else mark(target)
