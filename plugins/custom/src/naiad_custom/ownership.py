"""Output ownership: copies outputs whose memory the model may still write to.

An answer is encoded after `execute` returned, while the instance may already run its next batch. A model that keeps a
buffer and fills it anew for each batch would overwrite what is still on its way. So an output is sent without a copy
only where its memory is proven to be safe: it belongs to a numpy array that nothing else refers to (the usual case; its
references are counted, which costs 0.1 µs), to `bytes`, which nothing can write to, or to the request itself. All other
memory is copied: that of a `bytearray`, `mmap` or tensor of another library can have owners that cannot be counted.
"""

import sys
from collections.abc import Iterable
from mmap import mmap
from typing import Any

import numpy as np

from naiad_tensors.devices import is_on_device
from naiad_tensors.tensors import host_array

_ndarray = np.ndarray  # numpy looks its names up at each use: 0.05 µs
_OWN_NOTHING = (list, tuple, bool, int, float, complex, str, bytes, np.generic)
"""Types that numpy copies whenever it makes an array of them."""


def are_fresh(outputs: dict[str, Any], holders: int = 0) -> bool:
    """Whether nothing but `outputs`, and `holders` objects for each array, refers to any of the arrays."""
    most = _ALONE + holders
    for array in outputs.values():
        if type(array) is not _ndarray:
            if type(array) not in _OWN_NOTHING:
                return False
        elif sys.getrefcount(array) > most or array.base is not None or not array.flags.owndata:
            return False
    return True


def settle(outputs: dict[str, Any], inputs: Iterable[Any], holders: int = 0) -> None:
    """Copy each output whose memory something else may write to.

    `inputs` are the arrays of the request, once for each object that refers to them. A read-only one, and views of it,
    may be handed back as they are; one that the model can write to only if it is not kept elsewhere.
    """
    constant, references = _references(inputs)
    for name in outputs:
        array = outputs[name]
        if type(array) is not np.ndarray:
            outputs[name] = _copy_of_other(array)
            continue
        owner = _owner(array)
        if type(owner) is bytes or (id(owner) in constant and not array.flags.writeable):
            continue
        expected = references.get(id(array), 0)
        most = _NAMED + holders + expected
        if owner is array:
            del owner  # a reference less
            alone = array.flags.owndata and sys.getrefcount(array) <= most
        elif expected:  # views of a received array refer to its base, and so does the loan of shared memory
            loans = type(owner) is mmap
            del owner
            base = array.base
            alone = sys.getrefcount(array) <= most and sys.getrefcount(base) <= _BASE + loans
            del base
        else:
            alone = array.base is owner and type(owner) is np.ndarray and owner.flags.owndata
            alone = alone and sys.getrefcount(array) <= most and sys.getrefcount(owner) <= _ROOT
        if not alone:
            outputs[name] = array.copy()


def _references(inputs: Iterable[Any]) -> tuple[set[int], dict[int, int]]:
    """The owners of read-only inputs, and how many objects of the request refer to each writable one, by `id`."""
    constant: set[int] = set()
    references: dict[int, int] = {}
    for each in inputs:
        if isinstance(each, np.ndarray):
            if each.flags.writeable:
                references[id(each)] = references.get(id(each), 0) + 1
            else:
                constant.add(id(_owner(each)))
    return constant, references


def _owner(array: Any) -> Any:
    """The object that owns the memory; arrays and memoryviews that were made from one another form a chain."""
    while True:
        if isinstance(array, np.ndarray):
            if array.base is None:
                return array
            array = array.base
        elif type(array) is memoryview:
            array = array.obj
        else:
            return array


def _copy_of_other(value: Any) -> Any:
    """A copy of an output that is not a plain array; the value itself if no copy in host memory is possible."""
    if isinstance(value, _OWN_NOTHING):
        return value
    try:
        if is_on_device(value):
            return value
        array = host_array(value)
    except Exception:  # noqa: BLE001 - the kernel says what is wrong with the output
        return value
    return np.array(array) if array.dtype.kind not in "SU" else array


# What the functions above count for an array that only `outputs` holds differs between versions of Python, so it is
# counted here, by the same expressions.


def _in_loop(outputs: dict[str, Any]) -> int:
    counted = 0
    for array in outputs.values():
        counted = sys.getrefcount(array)
    return counted


def _by_name(outputs: dict[str, Any], name: str) -> int:
    array = outputs[name]
    return sys.getrefcount(array)


def _of_root(outputs: dict[str, Any], name: str) -> int:
    array = outputs[name]
    owner = _owner(array)
    return sys.getrefcount(owner)


def _of_base(outputs: dict[str, Any], name: str) -> int:
    array = outputs[name]
    base = array.base
    return sys.getrefcount(base)


_ALONE = _in_loop({"fresh": np.empty(1)})
_NAMED = _by_name({"fresh": np.empty(1)}, "fresh")
_ROOT = _of_root({"view": np.empty(2)[:1]}, "view")
_BASE = _of_base({"view": np.empty(2)[:1]}, "view")
