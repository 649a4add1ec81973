"""Making the batch that a scheduler asks for, when what it asks for makes sense."""

import functools
from collections.abc import Mapping, Sequence
from contextlib import suppress

from naiad._kernel.answers import AnswerReader
from naiad._kernel.call import Call
from naiad._kernel.streams import Streams
from naiad._kernel.worker import Work
from naiad.batch import Batch
from naiad.scheduler import Dispatch


class Assembler:
    """Makes the batches of one queue, whose models answer through `streams`. Lives on the event loop's thread."""

    def __init__(self, reader: AnswerReader, streams: Streams) -> None:
        self._layout = reader.layout
        self._sender = streams.sender

    def work(self, dispatch: Dispatch, calls: Sequence[Call]) -> Work:
        """The batch of these calls, one a ticket."""
        place = dispatch.instance
        requests, sizes = [call.request for call in calls], [call.ticket.batch_size for call in calls]
        batch = Batch(requests, sizes, functools.partial(self._sender, calls, place), self._layout)
        return Work(place, dispatch.tickets, calls, batch)


def calls_of(
    dispatch: Dispatch, idle: Sequence[int], calls: Mapping[int, Call], running: set[int], streaming: set[int]
) -> Sequence[Call]:
    """The calls that a scheduler sends; those that run or stream do not wait.

    Raises RuntimeError when the instance is not idle or a ticket does not wait: the scheduler is broken.
    """
    tickets = dispatch.tickets
    if (
        dispatch.instance in idle
        and tickets
        and running.isdisjoint(tickets)
        and streaming.isdisjoint(tickets)
        and (len(tickets) == 1 or len(set(tickets)) == len(tickets))
    ):
        with suppress(KeyError):
            return [calls[ticket] for ticket in tickets]
    raise RuntimeError(
        f"it sent the tickets {list(tickets)} to instance {dispatch.instance}; "
        "every ticket must wait and be named once, and the instance must be idle"
    )
