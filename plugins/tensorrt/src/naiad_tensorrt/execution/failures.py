"""Errors of failed runs, as callers get them. Pure."""

from collections.abc import Sequence

from naiad.errors import ModelFailedError, NaiadError, UnavailableError
from naiad_tensorrt.execution.cuda import CudaError


def device_lost(device: int, error: CudaError) -> str:
    """The error of every later use of this GPU."""
    return f"GPU {device} cannot be used by this process any more; restart the server: {error}"


def failure_of(error: Exception, errors: Sequence[str], device: int) -> NaiadError:
    """The error to raise for an error of a run, with the `errors` that TensorRT logged meanwhile.

    Errors of the caller stay as they are.
    """
    if isinstance(error, CudaError) and error.is_fatal:
        return UnavailableError(device_lost(device, error))
    if isinstance(error, CudaError) and error.is_out_of_memory:
        return UnavailableError(
            f"GPU {device} has too little memory: {error}; send smaller batches, or lower max_batch_size or the number "
            "of instances"
        )
    if isinstance(error, NaiadError) and not isinstance(error, ModelFailedError | CudaError):
        return error
    reason = str(error) if isinstance(error, NaiadError) else f"TensorRT failed: {error}"
    return ModelFailedError(f"{reason}: {'; '.join(errors)}" if errors else f"{reason}; the server's log may say more")
