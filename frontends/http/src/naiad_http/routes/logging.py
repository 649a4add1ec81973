"""The logging extension: what is logged and how it looks, and changing that."""

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from naiad_http.bodies import read_body
from naiad_http.codec.documents import as_object, parse
from naiad_http.routes.operations import Operation, as_json

if TYPE_CHECKING:
    from naiad import Server


class LoggingRoutes:
    """Log settings; `limit` bounds the body of a request in bytes."""

    def __init__(self, server: "Server", limit: int) -> None:
        self._server = server
        self._limit = limit

    def operations(self) -> list[Operation]:
        """Every operation of this group."""
        fixed = {501: "only --log-file sets this"}
        return [
            Operation("GET", "/v2/logging", "logging", "Log settings", self.settings),
            Operation("POST", "/v2/logging", "logging", "Change log settings", self.update, fixed),
        ]

    async def settings(self, _request: Request) -> Response:
        """All settings."""
        return as_json(dict(self._server.logging.settings()))

    async def update(self, request: Request) -> Response:
        """All settings after the change."""
        body = await read_body(request.receive, self._limit)
        given = as_object(parse(body), "request") if body.strip() else {}
        return as_json(dict(self._server.logging.update(given)))
