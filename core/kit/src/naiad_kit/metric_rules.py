"""Validation of custom metrics: names, labels, buckets and values; one invalid value spoils the whole page."""

import math
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from naiad.errors import InvalidArgumentError
from naiad_kit.metrics import LabelPairs
from naiad_tensors.datatypes import is_text

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_TAKEN_LABELS = ("le", "quantile")


def checked_name(name: Any) -> str:
    """The name of a family. Raises InvalidArgumentError for what Prometheus does not allow."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"{name!r} cannot be the name of a metric: it needs letters, digits, '_' and ':', and no digit first"
        )
    return name


def checked_description(name: str, description: Any) -> str:
    """The description of that family. Raises InvalidArgumentError unless it is text that UTF-8 can carry."""
    if not is_text(description):
        raise InvalidArgumentError(f"the description of metric '{name}' is {description!r}; give it a text")
    return str(description)


def checked_labels(name: str, labels: Any) -> LabelPairs:
    """The label pairs of a metric of that family, in order. Raises InvalidArgumentError for what cannot be labels."""
    if not isinstance(labels, Mapping):
        raise InvalidArgumentError(
            f"the labels of metric '{name}' are {labels!r}; give a dictionary of texts by the names of the labels"
        )
    for label, value in labels.items():
        if not isinstance(label, str) or not _LABEL.fullmatch(label) or label in _TAKEN_LABELS:
            raise InvalidArgumentError(
                f"metric '{name}' cannot have the label '{label}': it needs letters, digits and '_', neither a "
                f"digit nor '__' first, and cannot be {' or '.join(_TAKEN_LABELS)}"
            )
        if not is_text(value):
            raise InvalidArgumentError(
                f"label '{label}' of metric '{name}' is {value!r}; the values of labels are text"
            )
    return tuple(sorted(labels.items()))


def checked_bounds(name: str, kind: str, buckets: Any) -> tuple[float, ...]:
    """The upper bounds of the buckets; any iterable of numbers will do. Raises InvalidArgumentError for others."""
    if not isinstance(buckets, Iterable) or isinstance(buckets, str | bytes):
        raise InvalidArgumentError(f"the buckets of '{name}' are {buckets!r}; list their upper bounds")
    bounds = tuple(checked_number(name, each) for each in buckets)
    if bounds and kind != "histogram":
        raise InvalidArgumentError(f"'{name}' is a {kind}, which has no buckets; leave them out")
    rising = all(low < high for low, high in pairwise(bounds))
    if not rising or not all(map(math.isfinite, bounds)):
        raise InvalidArgumentError(
            f"the buckets of histogram '{name}' are {list(bounds)}; they must be finite and ascend"
        )
    return bounds


def checked_number(name: str, value: Any) -> float:
    """A Python float of any number, such as a scalar of numpy. Raises InvalidArgumentError for what is none."""
    try:
        if not isinstance(value, str | bytes | bytearray):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidArgumentError(f"metric '{name}' got {value!r}; use a real number")
