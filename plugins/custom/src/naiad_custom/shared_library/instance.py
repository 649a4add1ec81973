"""An instance of a shared-library model: one call of the library per batch."""

import ctypes

from naiad.backend import Answer, Batch
from naiad_custom.shared_library import abi
from naiad_custom.shared_library.answering import BatchAnswer
from naiad_custom.shared_library.library import Library
from naiad_custom.shared_library.outputs import Outputs
from naiad_custom.shared_library.setup import Preparation
from naiad_custom.shared_library.tables import RequestTable


class LibraryInstance:
    """Executes batches. `state` points to what naiad_initialize made with `preparation`, None is NULL."""

    def __init__(self, library: Library, state: int | None, preparation: Preparation, outputs: Outputs) -> None:
        self._library = library
        self._state = state
        self._preparation = preparation
        self._outputs = outputs
        self._head = library.new_batch()
        self._address = ctypes.addressof(self._head)
        self._table = RequestTable(self._head, outputs.requested)

    def execute(self, batch: Batch) -> Answer:
        """Call naiad_execute once. Raises what it fails the whole batch with, and ModelFailedError for its mistakes."""
        answer = BatchAnswer(self._outputs, batch)
        try:
            self._table.fill(batch)
            batch.mark_input_done()
            code = self._library.execute(self._state, self._address, answer)
            batch.mark_infer_done()
        finally:
            self._table.release()
        if not code:
            return answer.finish(None)
        message = f"model '{self._outputs.model}': naiad_execute gave back {code} and does not say why (naiad_fail)"
        return answer.finish(abi.failure(code, message))

    def close(self) -> None:
        """Call naiad_finalize."""
        self._library.finalize(self._state)


class ListeningInstance(LibraryInstance):
    """One of a library that has naiad_sequence_ended."""

    def sequence_ended(self, correlation_id: int | str, reason: str) -> None:
        """Tell the library that a sequence is over, and why."""
        self._library.end_sequence(self._state, str(correlation_id), reason)
