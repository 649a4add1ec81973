"""The worker's side of `RequestIO`: it fetches the inputs of a batch, stores its outputs and ends the loans."""

from collections.abc import Collection, Sequence

from naiad.batch import Batch
from naiad.errors import InternalError, NaiadError
from naiad.foreign_errors import describe_error
from naiad.server import Outcome
from naiad.types import Response
from naiad_tensors.devices import Device


def fetch_inputs(batch: Batch, devices: Collection[Device] = (), lend: bool = False) -> dict[int, NaiadError]:
    """Get the inputs: where they are, if on one of these devices or the instance may be lent them; or copies.

    Gives the errors of the requests that cannot have theirs, by their index in the batch. Those are executed all the
    same, over zeros, for the sake of the others. Raises the error of a request that is alone in its batch: the model
    need not compute what nobody gets.
    """
    failures: dict[int, NaiadError] = {}
    for index, request in enumerate(batch.requests):
        if request.transfer is not None:
            try:
                request.transfer.fetch(request.inputs, devices, lend)
            except NaiadError as error:
                failures[index] = error.with_traceback(None)  # which holds this very dict, and the memory of the client
            except Exception as error:  # noqa: BLE001 - also a MemoryError is of this request alone
                failures[index] = InternalError(f"the inputs in shared memory cannot be read: {describe_error(error)}")
    batch.mark_input_done()
    if failures and len(batch.requests) == 1:
        raise failures.pop(0)
    return failures


def store_outputs(
    batch: Batch, outcomes: Sequence[Outcome | None], failures: dict[int, NaiadError]
) -> Sequence[Outcome | None]:
    """Copy the outputs of requests that are not cancelled. Returns the outcomes, with the errors of failed copies."""
    results = list(outcomes)
    for index, error in failures.items():
        results[index] = error
    for index, (request, outcome) in enumerate(zip(batch.requests, results, strict=True)):
        if request.transfer is not None and isinstance(outcome, Response) and not request.cancelled:
            try:
                request.transfer.store(outcome.outputs)
            except NaiadError as error:
                results[index] = error.with_traceback(None)
    return results


def give_back(batch: Batch, outcomes: Sequence[Outcome | None]) -> tuple[Sequence[Outcome | None], bool]:
    """Take back what was lent; called when the kernel has let go of the answer, but for what it sends.

    Returns the outcomes, with the errors of requests whose clients have freed the memory meanwhile, and whether the
    model only read it.
    """
    results = list(outcomes)
    only_read = True
    for index, request in enumerate(batch.requests):
        if request.transfer is not None:
            try:
                only_read = request.transfer.give_back() and only_read
            except NaiadError as error:
                if results:  # else the whole batch has failed
                    results[index] = error.with_traceback(None)
    return results, only_read
