"""Hints for errors of user code: what to write in place of what raised them."""

import inspect
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

_UNEXPECTED = re.compile(r"\bmodel\(\) got an unexpected keyword argument '(\w+)'")
_DEFINITION = re.compile(r"\s*(async\s+def|def|class)\b")
_READ_ONLY = "read-only"
_NUMPY = str(Path(np.__file__).parent)


def hint_of(error: BaseException) -> str:
    """What to write instead, for an unknown argument of `@model` or an unknown name of `naiad_custom`; else ""."""
    if isinstance(error, ImportError) and error.name == "naiad_custom" and "cannot import name" in str(error):
        return f"naiad_custom has {', '.join(sys.modules['naiad_custom'].__all__)}"
    unexpected = _UNEXPECTED.search(str(error)) if isinstance(error, TypeError) else None
    if unexpected is None:
        return ""
    names = [name for name in inspect.signature(sys.modules["naiad_custom"].model).parameters if name != "target"]
    near = get_close_matches(unexpected[1], names, n=1)
    return f"did you mean '{near[0]}'?" if near else f"@model takes {', '.join(names)}"


def explain_read_only(error: ValueError) -> None:
    """Append to the text of an error of numpy, raised by a write to an input, where that is and how to avoid it."""
    if _READ_ONLY in str(error):
        frames = reversed(traceback.extract_tb(error.__traceback__))
        frame = next((each for each in frames if not each.filename.startswith(_NUMPY)), None)
        where = "" if frame is None else f"{frame.filename}:{frame.lineno}: "
        error.args = (f"{error}; {where}inputs are read-only: copy one before you change it, as a = a.copy()",)


def location_of(function: Callable[..., Any]) -> str:
    """`file:line` of a function, followed by `: `; "" for one without source, such as a callable object."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return "" if code is None else f"{code.co_filename}:{code.co_firstlineno}: "


def line_of(target: Callable[..., Any]) -> tuple[str, int, int]:
    """File, line and column of the `def` or `class` of a function or class; no file and zeros without its source."""
    try:
        lines, first = inspect.getsourcelines(target)
        file = inspect.getfile(target)
    except (OSError, TypeError):
        return "", 0, 0
    for offset, text in enumerate(lines):
        if _DEFINITION.match(text):
            return file, first + offset, len(text) - len(text.lstrip()) + 1
    return file, first, 1


def datatype_hint(array: np.ndarray, dtype: np.dtype[Any]) -> str:
    """How to convert an array that has another dtype than its output."""
    return f"it is {array.dtype} and must be {dtype}; return it as .astype({_written(dtype)})"


def list_hint(shown: str, dtype: np.dtype[Any]) -> str:
    """How to make the array of an output of a list, a string or another thing that is none."""
    return f"it is {shown} and must be an array; return np.asarray(..., dtype={_written(dtype)})"


def shape_hint(shape: Sequence[int], dims: Sequence[int], batching: bool) -> str:
    """How to give an array the dimensions of its output, before which a `batching` model has that of the batch."""
    rank = len(dims) + batching
    needs = f"{rank} dimension{'s' if rank != 1 else ''}" + (", of which the first is the batch" if batching else "")
    has = f"it has shape {list(shape)} and must have {needs}"
    if batching and shape and _fits(shape, dims):
        return f"{has}; return a row for each item of the batch, and so that of one item as [None]"
    if len(shape) == rank - 1:
        return f"{has}; return it as [:, None]" if batching and shape else f"{has}; return it as [None]"
    return f"{has}; return it with .reshape(...)"


def _fits(shape: Sequence[int], dims: Sequence[int]) -> bool:
    """Whether an array without the batch is that of one item; one value for each item of a batch may look the same."""
    single = len(dims) == 1 and dims[0] in (-1, 1)
    fits = len(shape) == len(dims) and all(dim in (-1, size) for size, dim in zip(shape, dims, strict=True))
    return fits and not single


def _written(dtype: np.dtype[Any]) -> str:
    return "bool" if dtype == np.bool_ else f"np.{dtype}"
