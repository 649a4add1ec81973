"""The interpreter of a model's processes: the server's own."""

from naiad.backend import ModelContext
from naiad_process_workers.process import Environment


def environment_of(context: ModelContext) -> Environment:
    """The environment that the model names."""
    return Environment.own()
