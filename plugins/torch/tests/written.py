"""Configurations of the models of tests."""


def tensor(kind: str, name: str, datatype: str, dims: str) -> str:
    """An input or output as a configuration writes it."""
    return f'{kind} [{{ name: "{name}" data_type: TYPE_{datatype} dims: [ {dims} ] }}]\n'


ADD_SUB = "max_batch_size: 8\n" + "".join(
    [
        tensor("input", "a", "FP32", "4"),
        tensor("input", "b", "FP32", "4"),
        tensor("output", "OUTPUT__0", "FP32", "4"),
        tensor("output", "OUTPUT__1", "FP32", "4"),
    ]
)
"""The configuration of AddSub."""
