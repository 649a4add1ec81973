"""A loaded shared library: its functions, and the callbacks into Naiad that it gets."""

import ctypes
import logging
from typing import Protocol

from naiad.errors import NaiadError
from naiad_custom.shared_library import abi

_logger = logging.getLogger("naiad.model")


class Answering(Protocol):
    """Takes what a library answers to one batch while it executes it."""

    def output(
        self, index: int, name: bytes | None, datatype: bytes | None, dims: int | None, ndims: int, byte_size: int
    ) -> int | None:
        """The address of memory for an output of the request with that index, None without; `dims` is an address."""
        ...

    def fail(self, index: int, error: NaiadError) -> None:
        """Note that the request with that index fails."""
        ...


class Library:
    """The functions of a library that has passed all checks; `name` is that of its file, for messages.

    The library and its callbacks are never unloaded, because a thread that it started may still run.
    """

    def __init__(self, name: str, functions: ctypes.CDLL) -> None:
        self.name = name
        self._functions = functions
        self._running: dict[int, Answering] = {}
        self._heads: list[abi.Batch] = []
        self._output = abi.Output(self._ask_output)
        self._fail = abi.Fail(self._take_failure)
        self._initialize = functions.naiad_initialize
        self._execute = functions.naiad_execute
        self._execute.argtypes = (ctypes.c_void_p, ctypes.c_void_p)
        self._finalize = functions.naiad_finalize
        self._finalize.argtypes, self._finalize.restype = (ctypes.c_void_p,), None

    def has(self, function: str) -> bool:
        """Whether the library has one of the optional functions."""
        return hasattr(self._functions, function)

    def complete(self, setup: abi.Setup) -> int:
        """Call naiad_complete, which must be there."""
        return int(self._functions.naiad_complete(ctypes.byref(setup)))

    def initialize(self, setup: abi.Setup) -> tuple[int, int | None]:
        """The code that naiad_initialize gives back, and the pointer to its instance (None is NULL)."""
        instance = ctypes.c_void_p()
        code = int(self._initialize(ctypes.byref(setup), ctypes.byref(instance)))
        return code, instance.value

    def execute(self, instance: int | None, batch: int, answering: Answering) -> int:
        """The code that naiad_execute gives back; `batch` is the address of one that `new_batch` made."""
        self._running[batch] = answering
        try:
            return int(self._execute(instance, batch))
        finally:
            del self._running[batch]

    def finalize(self, instance: int | None) -> None:
        """Call naiad_finalize."""
        self._finalize(instance)

    def end_sequence(self, instance: int | None, correlation_id: str, reason: str) -> None:
        """Call naiad_sequence_ended, which must be there."""
        self._functions.naiad_sequence_ended(
            ctypes.c_void_p(instance), correlation_id.encode("utf-8", "replace"), reason.encode()
        )

    def new_batch(self) -> abi.Batch:
        """A naiad_batch for the batches of one instance; its callbacks find what answers by its address.

        It is never freed, so a late call of the library is refused and corrupts nothing.
        """
        head = abi.Batch(output=self._output, fail=self._fail)
        self._heads.append(head)
        return head

    def _ask_output(
        self,
        batch: int,
        index: int,
        name: bytes | None,
        datatype: bytes | None,
        dims: int | None,
        ndims: int,
        byte_size: int,
    ) -> int | None:
        answering = self._running.get(batch)
        if answering is None:
            self._complain("naiad_output")
            return None
        try:
            return answering.output(index, name, datatype, dims, ndims, byte_size)
        except Exception as error:
            _logger.exception("answering naiad_output of '%s' failed", self.name)
            answering.fail(abi.ALL, abi.failure(abi.INTERNAL, f"naiad_output failed: {error!r}"))
            return None

    def _take_failure(self, batch: int, index: int, code: int, text: bytes | None) -> int:
        answering = self._running.get(batch)
        if answering is None:
            self._complain("naiad_fail")
        else:
            answering.fail(index, abi.failure(code, abi.text_of(text) or "it does not say why"))
        return code or abi.INTERNAL

    def _complain(self, function: str) -> None:
        _logger.error(
            "'%s' called %s for a batch that it does not execute; a batch is over when naiad_execute returns",
            self.name,
            function,
        )
