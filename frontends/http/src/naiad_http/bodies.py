"""Reader of ASGI request bodies, with a size limit."""

from collections.abc import Callable

from starlette.types import Receive

from naiad_http.chunks import too_large
from naiad_http.statuses import HttpError


async def read_body(receive: Receive, limit: int, refusal: Callable[[int, int], HttpError] = too_large) -> bytes:
    """The body of a request.

    Raises HttpError 400, or the error of `refusal(size, limit)`, above `limit` bytes; 499 if the client disconnects
    before the end of the body.
    """
    pieces: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpError(499, "the client left before its request was complete")
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise refusal(size, limit)
        pieces.append(piece)
        more = message.get("more_body", False)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
