"""The datatypes of Caffe2, by the numbers of `TensorProto.DataType` in `caffe2.proto`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

NUMPY_TYPES: Mapping[int, Any] = MappingProxyType(
    {
        1: np.float32,
        2: np.int32,
        3: np.uint8,
        5: np.bool_,
        6: np.uint8,
        7: np.int8,
        8: np.uint16,
        9: np.int16,
        10: np.int64,
        12: np.float16,
        13: np.float64,
    }
)
"""Those of numbers; strings (4) are not among them."""

NAMES: Mapping[str, int] = MappingProxyType(
    {
        "FLOAT": 1,
        "INT32": 2,
        "BYTE": 3,
        "BOOL": 5,
        "UINT8": 6,
        "INT8": 7,
        "UINT16": 8,
        "INT16": 9,
        "INT64": 10,
        "FLOAT16": 12,
        "DOUBLE": 13,
    }
)
"""The same, by the names that `Cast` takes as well."""
