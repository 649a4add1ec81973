"""Arrays that a model answered with, made safe to send while the model goes on.

An answer is encoded after `execute` returned, while the instance may already run its next batch. A model that keeps a
buffer and fills it anew for each batch would overwrite what is still on its way, so an array that the model still holds
is copied. A fresh one, the usual case, is not: its references are counted, which costs 0.1 µs.
"""

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np


def are_fresh(outputs: dict[str, Any], holders: int = 0) -> bool:
    """Whether nobody but `outputs`, and `holders` objects for each array, holds any of the arrays."""
    most = _ALONE + holders
    for array in outputs.values():
        if type(array) is np.ndarray and (sys.getrefcount(array) > most or array.base is not None):
            return False
    return True


def settle(outputs: dict[str, Any], inputs: Iterable[Any], holders: int = 0) -> None:
    """Copy each writable array of `outputs` that others hold, or whose memory others hold.

    Arrays of the request itself (`inputs`) and views of them are left alone: nobody fills those anew.
    """
    lent = [_root(each) for each in inputs]
    for name in outputs:
        array = outputs[name]
        if type(array) is not np.ndarray or not array.flags.writeable:
            continue
        alone = sys.getrefcount(array) <= _NAMED + holders
        if array.base is not None:
            root = _root(array)
            alone = alone and sys.getrefcount(root) <= _ROOT
            if any(root is each for each in lent):
                continue
        if not alone and not any(array is each for each in lent):
            outputs[name] = array.copy()


def _root(array: Any) -> Any:
    """The object that owns the memory: arrays made from one another form a chain."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


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
    root = _root(array)
    return sys.getrefcount(root)


_ALONE = _in_loop({"fresh": np.empty(1)})
_NAMED = _by_name({"fresh": np.empty(1)}, "fresh")
_ROOT = _of_root({"view": np.empty(2)[:1]}, "view")
