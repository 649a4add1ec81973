"""Datatypes of TensorFlow (`tensorflow/core/framework/types.proto`) and of configurations."""

from collections.abc import Mapping
from types import MappingProxyType

from naiad_config import DataType

DATA_TYPES: Mapping[str, DataType] = MappingProxyType(
    {
        "bool": DataType.TYPE_BOOL,
        "uint8": DataType.TYPE_UINT8,
        "uint16": DataType.TYPE_UINT16,
        "uint32": DataType.TYPE_UINT32,
        "uint64": DataType.TYPE_UINT64,
        "int8": DataType.TYPE_INT8,
        "int16": DataType.TYPE_INT16,
        "int32": DataType.TYPE_INT32,
        "int64": DataType.TYPE_INT64,
        "float16": DataType.TYPE_FP16,
        "float32": DataType.TYPE_FP32,
        "float64": DataType.TYPE_FP64,
        "bfloat16": DataType.TYPE_BF16,
        "string": DataType.TYPE_STRING,
    }
)
"""The datatype of a configuration for the name of each `tf.DType` that has one."""
