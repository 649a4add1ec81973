"""The answer of a library to one batch: allocates its outputs, records its failures, builds the reply."""

import logging
from collections.abc import Iterator
from itertools import accumulate

import numpy as np

from naiad.backend import Answer, Batch, Reply
from naiad.errors import ModelFailedError, NaiadError
from naiad_custom.shared_library.abi import ALL, text_of
from naiad_custom.shared_library.guarded import GuardedMemory
from naiad_custom.shared_library.outputs import Declared, Outputs, read_dims

_logger = logging.getLogger("naiad.model")


class _Buffer:
    """Memory that the library has for one output, of one request or of all."""

    __slots__ = ("content", "declared", "shape")

    def __init__(self, declared: Declared, shape: tuple[int, ...], content: GuardedMemory) -> None:
        self.declared = declared
        self.shape = shape
        self.content = content


class BatchAnswer:
    """The answer to one batch, while the library makes it."""

    def __init__(self, outputs: Outputs, batch: Batch) -> None:
        self._outputs = outputs
        self._batch = batch
        self._buffers: dict[tuple[str, int], _Buffer] = {}
        self._failures: dict[int, NaiadError] = {}
        self._failure: NaiadError | None = None
        self._scraps: list[GuardedMemory] = []
        self._arrays: dict[tuple[str, int], np.ndarray] = {}

    def output(
        self, index: int, name: bytes | None, datatype: bytes | None, dims: int | None, ndims: int, byte_size: int
    ) -> int | None:
        """The address of memory for an output of that request; of scrap memory where the request fails over it.

        None when there is no memory.
        """
        declared = self._outputs.by_name.get(name or b"")
        shape = read_dims(dims, ndims)
        try:
            content = GuardedMemory(byte_size)
        except (MemoryError, OverflowError):
            self._refuse(index, name, f"there is no memory for its {byte_size} bytes")
            return None
        objection = self._objection(index, name, declared, datatype, shape, byte_size)
        if objection or declared is None or shape is None:
            self._refuse(index, name, objection)
            self._scraps.append(content)
            return content.address
        self._buffers[declared.name, index] = _Buffer(declared, shape, content)
        return content.address

    def fail(self, index: int, error: NaiadError) -> None:
        """Note that a request fails; the first reason counts, and all fail where there is no such request."""
        if 0 <= index < len(self._batch.requests):
            self._failures.setdefault(index, error)
            return
        if index != ALL:
            error = type(error)(f"{error} ({self._unknown_request(index)})")
        self._failure = self._failure or error

    def finish(self, failure: NaiadError | None) -> Answer:
        """The answer to the kernel; `failure` is that of naiad_execute, None when it gave back 0.

        Raises the failure of the whole batch, and ModelFailedError when the library wrote where it may not.
        """
        self._check_guards()
        if self._failure is not None or failure is not None:
            raise self._failure or self._last() or failure  # type: ignore[misc]
        try:
            self._arrays = {key: self._read(*key, buffer) for key, buffer in self._buffers.items()}
        except ModelFailedError as error:
            self._failure = error
            raise
        whole = {name: array for (name, index), array in self._arrays.items() if index == ALL}
        if not self._failures and len(whole) == len(self._arrays) and self._is_complete(whole):
            return whole
        return list(self._replies(whole))

    def _replies(self, whole: dict[str, np.ndarray]) -> Iterator[Reply | NaiadError]:
        """One by one: the request's own outputs, and its rows of those that came in one piece."""
        batch = self._batch
        ends = list(accumulate(batch.sizes))
        own: list[dict[str, np.ndarray]] = [{} for _ in batch.requests]
        for (name, index), array in self._arrays.items():
            if index != ALL:
                own[index][name] = array
        for index, (request, end) in enumerate(zip(batch.requests, ends, strict=True)):
            outputs = own[index]
            for name, array in whole.items():
                outputs[name] = array[end - batch.sizes[index] : end] if self._has_rows(name) else array
            missing = [name for name in self._outputs.required(request) if name not in outputs]
            if index in self._failures:
                yield self._failures[index]
            elif missing:
                yield ModelFailedError(
                    f"model '{self._outputs.model}' gave no output '{missing[0]}'; ask for its memory with "
                    "naiad_output, or fail the request with naiad_fail"
                )
            else:
                yield Reply(outputs)

    def _is_complete(self, whole: dict[str, np.ndarray]) -> bool:
        return all(name in whole or not self._batch.wants(name) for name in self._outputs.names)

    def _has_rows(self, name: str) -> bool:
        return self._outputs.by_name[name.encode()].has_rows

    def _objection(
        self,
        index: int,
        name: bytes | None,
        declared: Declared | None,
        datatype: bytes | None,
        shape: tuple[int, ...] | None,
        byte_size: int,
    ) -> str:
        requests = self._batch.requests
        if index != ALL and not 0 <= index < len(requests):
            return self._unknown_request(index)
        if name is None:
            return "its name is NULL"
        if declared is None:
            known = ", ".join(f"'{each.name}'" for each in self._outputs.by_name.values())
            return f"the configuration does not declare it; it declares {known}"
        if (declared.name, index) in self._buffers:
            return "memory for it was asked for before, and an output is given once"
        if (declared.name, ALL) in self._buffers or (
            index == ALL and any(key[0] == declared.name for key in self._buffers)
        ):
            return "it was asked for both for all requests and for one of them"
        return declared.objection(
            datatype, shape, byte_size, self._batch.size if index == ALL else self._batch.sizes[index]
        )

    def _refuse(self, index: int, name: bytes | None, objection: str) -> None:
        self.fail(index, ModelFailedError(f"model '{self._outputs.model}', output '{text_of(name)}': {objection}"))

    def _unknown_request(self, index: int) -> str:
        return f"the batch has {len(self._batch.requests)} requests, counted from 0, and it was for request {index}"

    def _last(self) -> NaiadError | None:
        return next(reversed(self._failures.values()), None) if self._failures else None

    def _read(self, name: str, index: int, buffer: _Buffer) -> np.ndarray:
        try:
            return buffer.declared.array(buffer.shape, buffer.content)
        except ModelFailedError as error:
            raise ModelFailedError(f"model '{self._outputs.model}', output '{name}': {error}") from error

    def _check_guards(self) -> None:
        for (name, index), buffer in self._buffers.items():
            if not buffer.content.is_whole:
                before, behind = buffer.content.trespass()
                error = ModelFailedError(_trespass(self._outputs.model, name, index, buffer, before, behind))
                _logger.error("%s", error)
                raise error


def _trespass(model: str, name: str, index: int, buffer: _Buffer, before: int, behind: int) -> str:
    overruns = [f"{count} bytes {where} it" for count, where in ((before, "before"), (behind, "behind")) if count]
    of = "all requests" if index == ALL else f"request {index}"
    return (
        f"model '{model}', output '{name}' of {of} has {buffer.content.size} bytes of memory, and the library wrote at "
        f"least {' and '.join(overruns)}; nothing of this batch can be trusted, and further ones may harm the server: "
        "mend the library"
    )
